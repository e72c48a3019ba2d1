! The same run as fortran_host's, but the granule is icon4py's Python, called through the bindings that py2fgen makes.
!   embedded_host STATE RESULTS           folders: of prepare.py, and for results
!   embedded_host STATE RESULTS handed    the steps do not enter Python: it hands a step over
program embedded_host
    use, intrinsic :: iso_c_binding, only: c_bool, c_int, c_int32_t
    use granule_state, only: wp, t_patch, t_int_state, t_nh_metrics, t_nh_prog, t_nh_diag, read_state, write_state
    use host_run, only: argument, read_run, write_maps
    use gtstub, only: gts_step, gts_step_find, gts_step_free, gts_step_run
    use icon4py_diffusion, only: torus_init, diffusion_init, diffusion_run, diffusion_hand_over
    use timers, only: timer_of, timer_start, timer_stop, timer_report
    implicit none

    type(t_patch), target :: patch
    type(t_int_state), target :: int_state
    type(t_nh_metrics), target :: metrics
    type(t_nh_prog), target :: prog
    type(t_nh_diag), target :: diag
    character(:), allocatable :: state, results
    integer :: timer_python, timer_init, timer_initial, timer_run, step, steps
    integer(c_int) :: rc
    real(wp) :: dtime

    state = argument(1)
    results = argument(2)
    call read_run(state, steps, dtime)
    call read_state(state, patch, int_state, metrics, prog, diag)

    timer_python = timer_of('start of Python, imports, grid')
    timer_init = timer_of('nh_hdiff_init')
    timer_initial = timer_of('nh_hdiff_run_initial')
    timer_run = timer_of('nh_hdiff_run')

    call timer_start(timer_python)
    call torus_init(patch%vct_a, rc)
    call timer_stop(timer_python)
    call check(rc, 'torus_init')

    call timer_start(timer_init)
    call init()
    call timer_stop(timer_init)

    call timer_start(timer_initial)
    call run(linit=.true._c_bool)
    call timer_stop(timer_initial)

    if (argument(3) == 'handed') then
        call run_handed_over()
    else
        do step = 1, steps
            call timer_start(timer_run)
            call run(linit=.false._c_bool)
            call timer_stop(timer_run)
        end do
    end if

    call timer_report()
    call write_state(results, prog, diag)
    call write_maps(results)

contains

    subroutine init()
        integer, parameter :: dace = 1
        real(wp), allocatable :: rbf_vec_coeff_v(:, :, :)
        real(wp), pointer, contiguous :: zd_intcoef(:, :), zd_diffcoef(:)
        integer(c_int32_t), pointer, contiguous :: zd_cellidx(:, :), zd_vertidx(:, :)
        integer :: ndyn_substeps, itype_sher, iforcing, cell, level, point, unit
        logical :: lhdiff_temp, loutshs
        real(wp) :: hdiff_efdt_ratio, hdiff_w_efdt_ratio, hdiff_smag_fac(4), hdiff_smag_z(4), a_hshr
        real(wp) :: denom_diffu_v, nudge_max_coeff
        namelist /diffusion_nml/ ndyn_substeps, lhdiff_temp, hdiff_efdt_ratio, hdiff_smag_fac, hdiff_smag_z, &
            itype_sher, loutshs, a_hshr
        namelist /embedded_nml/ hdiff_w_efdt_ratio, denom_diffu_v, nudge_max_coeff, iforcing

        open (newunit=unit, file=state // '/host.nml', action='read', status='old')
        read (unit, nml=diffusion_nml)
        rewind (unit)
        read (unit, nml=embedded_nml)
        close (unit)

        allocate (rbf_vec_coeff_v(6, 2, patch%vertices))
        rbf_vec_coeff_v(:, 1, :) = transpose(int_state%rbf_coeff_1)
        rbf_vec_coeff_v(:, 2, :) = transpose(int_state%rbf_coeff_2)

        ! ICON keeps steep points in a list; here all points are in it.
        associate (points => patch%cells * patch%levels)
            allocate (zd_cellidx(4, points), zd_vertidx(4, points), zd_intcoef(3, points), zd_diffcoef(points))
        end associate
        point = 0
        do level = 1, patch%levels
            do cell = 1, patch%cells
                point = point + 1
                zd_cellidx(:, point) = [cell, patch%c2e2c(cell, :)]
                zd_vertidx(:, point) = [level, level + metrics%zd_vertoffset(cell, :, level)]
                zd_intcoef(:, point) = metrics%zd_intcoef(cell, :, level)
                zd_diffcoef(point) = metrics%zd_diffcoef(cell, level)
            end do
        end do

        call diffusion_init(metrics%theta_ref_mc, metrics%wgtfac_c, int_state%e_bln_c_s, int_state%geofac_div, &
            int_state%geofac_grg_x, int_state%geofac_grg_y, int_state%geofac_n2s, int_state%nudgecoeff_e, &
            rbf_vec_coeff_v, zd_cellidx, zd_vertidx, zd_intcoef, zd_diffcoef, &
            ndyn_substeps=ndyn_substeps, diffusion_type=5, hdiff_w=.true._c_bool, hdiff_vn=.true._c_bool, &
            hdiff_smag_w=.false._c_bool, zdiffu_t=.true._c_bool, type_t_diffu=2, type_vn_diffu=1, &
            hdiff_efdt_ratio=hdiff_efdt_ratio, hdiff_w_efdt_ratio=hdiff_w_efdt_ratio, &
            smagorinski_scaling_factor=hdiff_smag_fac(1), smagorinski_scaling_factor2=hdiff_smag_fac(2), &
            smagorinski_scaling_factor3=hdiff_smag_fac(3), smagorinski_scaling_factor4=hdiff_smag_fac(4), &
            smagorinski_scaling_height=hdiff_smag_z(1), smagorinski_scaling_height2=hdiff_smag_z(2), &
            smagorinski_scaling_height3=hdiff_smag_z(3), smagorinski_scaling_height4=hdiff_smag_z(4), &
            hdiff_temp=logical(lhdiff_temp, c_bool), denom_diffu_v=denom_diffu_v, nudge_max_coeff=nudge_max_coeff, &
            itype_sher=itype_sher, iforcing=iforcing, a_hshr=a_hshr, loutshs=logical(loutshs, c_bool), &
            backend=dace, rc=rc)
        call check(rc, 'diffusion_init')
        deallocate (zd_cellidx, zd_vertidx, zd_intcoef, zd_diffcoef)
    end subroutine

    subroutine run(linit)
        logical(c_bool), intent(in) :: linit
        real(wp), pointer, contiguous :: hdef_ic(:, :), div_ic(:, :), dwdx(:, :), dwdy(:, :)

        hdef_ic => diag%hdef_ic
        div_ic => diag%div_ic
        dwdx => diag%dwdx
        dwdy => diag%dwdy
        call diffusion_run(prog%w, prog%vn, prog%exner, prog%theta_v, prog%rho, hdef_ic, div_ic, dwdx, dwdy, &
            dtime, linit, rc)
        call check(rc, 'diffusion_run')
    end subroutine

    ! The first step is done by Python, which hands it over.
    subroutine run_handed_over()
        type(gts_step) :: nh_hdiff_run
        integer :: timer_hand_over

        timer_hand_over = timer_of('nh_hdiff_hand_over')
        call timer_start(timer_hand_over)
        call hand_over()
        call gts_step_find('nh_hdiff_run', nh_hdiff_run)
        call timer_stop(timer_hand_over)
        do step = 2, steps
            call timer_start(timer_run)
            call gts_step_run(nh_hdiff_run)
            call timer_stop(timer_run)
        end do
        call gts_step_free(nh_hdiff_run)
    end subroutine

    subroutine hand_over()
        real(wp), pointer, contiguous :: hdef_ic(:, :), div_ic(:, :), dwdx(:, :), dwdy(:, :)

        hdef_ic => diag%hdef_ic
        div_ic => diag%div_ic
        dwdx => diag%dwdx
        dwdy => diag%dwdy
        call diffusion_hand_over(prog%w, prog%vn, prog%exner, prog%theta_v, prog%rho, hdef_ic, div_ic, dwdx, dwdy, &
            dtime, rc)
        call check(rc, 'diffusion_hand_over')
    end subroutine

    ! 1 is success, 2 an exception, which Python has logged, 0 a Python that did not start.
    subroutine check(rc, name)
        integer(c_int), intent(in) :: rc
        character(*), intent(in) :: name

        if (rc == 1) return
        print '(3a, i0)', 'embedded_host: ', name, ' returned ', rc
        error stop 1
    end subroutine

end program
