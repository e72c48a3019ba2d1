! ICON's part in this example: reads the state, runs the diffusion granule, prints times, writes results. No Python.
!   fortran_host STATE GRANULE RESULTS    folders: of prepare.py; of the exported granule; for results
program fortran_host
    use diffusion_granule, only: diffusion_t
    use granule_state, only: wp, t_patch, t_int_state, t_nh_metrics, t_nh_prog, t_nh_diag, read_state, write_state
    use host_run, only: argument, read_run, write_maps
    use kept_fields, only: write_kept_fields
    use timers, only: timer_of, timer_start, timer_stop, timer_report
    implicit none

    type(t_patch) :: patch
    type(t_int_state) :: int_state
    type(t_nh_metrics) :: metrics
    type(t_nh_prog), target :: prog
    type(t_nh_diag), target :: diag
    type(diffusion_t) :: diffusion
    character(:), allocatable :: state, results
    integer :: timer_init, timer_initial, timer_bind, timer_run, step, steps
    real(wp) :: dtime

    state = argument(1)
    results = argument(3)
    call read_run(state, steps, dtime)
    call read_state(state, patch, int_state, metrics, prog, diag)

    timer_init = timer_of('nh_hdiff_init')
    timer_bind = timer_of('nh_hdiff_bind')
    timer_initial = timer_of('nh_hdiff_run_initial')
    timer_run = timer_of('nh_hdiff_run')

    call timer_start(timer_init)
    call diffusion%open(argument(2))
    call timer_stop(timer_init)

    call timer_start(timer_bind)
    call diffusion%bind(prog_w=prog%w, prog_vn=prog%vn, prog_exner=prog%exner, prog_theta_v=prog%theta_v, &
        diag_hdef_ic=diag%hdef_ic, diag_div_ic=diag%div_ic, diag_dwdx=diag%dwdx, diag_dwdy=diag%dwdy)
    call timer_stop(timer_bind)

    call timer_start(timer_initial)
    call diffusion%run_initial(dtime)
    call timer_stop(timer_initial)

    do step = 1, steps
        call timer_start(timer_run)
        call diffusion%run(dtime)
        call timer_stop(timer_run)
    end do

    call timer_report()
    call write_state(results, prog, diag)
    call write_kept_fields(results, diffusion)
    call write_maps(results)
    call diffusion%close()
end program
