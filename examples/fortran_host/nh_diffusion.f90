! Horizontal diffusion: icon4py's programs in the order in which its granule calls them, and nothing of Python.
! What icon4py compiles in (horizontal and vertical bounds, and constants such as 'nudgezone_diff') is no argument here:
! the header of each stub, examples/icon4py/<program>/<program>_stub.h, lists these values.
module nh_diffusion
    use diffusion_programs, only: t_program, t_programs, open_programs
    use granule_state, only: wp, t_patch, t_int_state, t_nh_metrics, t_nh_prog, t_nh_diag
    use raw_files, only: store
    use timers, only: timer_start, timer_stop

    use apply_diffusion_to_theta_and_exner_stub, only: apply_diffusion_to_theta_and_exner
    use apply_diffusion_to_vn_stub, only: apply_diffusion_to_vn
    use apply_diffusion_to_w_stub, only: apply_diffusion_to_w
    use calculate_diagnostic_quantities_for_turbulence_stub, only: calculate_diagnostic_quantities_for_turbulence
    use calculate_enhanced_diffusion_coefficients_stub, only: calculate_enhanced_diffusion_coefficients
    use calculate_nabla2_and_smag_coefficients_for_vn_stub, only: calculate_nabla2_and_smag_coefficients_for_vn
    use copy_field_stub, only: copy_field
    use init_diffusion_local_fields_stub, only: init_diffusion_local_fields
    use init_nabla2_factor_in_upper_damping_zone_stub, only: init_nabla2_factor_in_upper_damping_zone
    use mo_intp_rbf_rbf_vec_interpol_vertex_stub, only: mo_intp_rbf_rbf_vec_interpol_vertex
    use scale_k_stub, only: scale_k
    use setup_fields_for_initial_step_stub, only: setup_fields_for_initial_step
    implicit none
    private

    type, public :: t_diffusion
        ! of the namelist, and what follows from it
        integer :: itype_sher
        logical :: lhdiff_temp, loutshs
        real(wp) :: a_hshr, hdiff_efdt_ratio, k4, smag_offset
        ! local fields
        real(wp), allocatable :: diff_multfac_vn(:), smag_limit(:), initial_diff_multfac_vn(:), initial_smag_limit(:)
        real(wp), allocatable :: diff_multfac_n2w(:), enh_smag_fac(:), diff_multfac_smag(:)
        real(wp), allocatable :: u_vert(:, :), v_vert(:, :), kh_smag_e(:, :), kh_smag_ec(:, :), z_nabla2_e(:, :)
        real(wp), allocatable :: w_tmp(:, :), theta_v_tmp(:, :)
        type(t_programs) :: programs
    contains
        procedure :: has_turbulence
    end type

    public :: diffusion_init, diffusion_run, write_local_fields

contains

    ! --- Init ---------------------------------------------------------------------------------------------------------

    ! Opens the programs in `programs`, and computes the fields that depend on the configuration, which is in
    ! 'host.nml' of `folder`. With `timed` each program gets a timer.
    subroutine diffusion_init(self, folder, programs, patch, timed)
        type(t_diffusion), target, intent(out) :: self
        character(*), intent(in) :: folder, programs
        type(t_patch), intent(in) :: patch
        logical, intent(in) :: timed
        integer :: ndyn_substeps, itype_sher, unit
        logical :: lhdiff_temp, loutshs
        real(wp) :: hdiff_efdt_ratio, hdiff_smag_fac(4), hdiff_smag_z(4), a_hshr
        namelist /diffusion_nml/ ndyn_substeps, lhdiff_temp, hdiff_efdt_ratio, hdiff_smag_fac, hdiff_smag_z, &
            itype_sher, loutshs, a_hshr

        open (newunit=unit, file=folder // '/host.nml', action='read', status='old')
        read (unit, nml=diffusion_nml)
        close (unit)
        self%itype_sher = itype_sher
        self%lhdiff_temp = lhdiff_temp
        self%loutshs = loutshs
        self%a_hshr = a_hshr
        self%hdiff_efdt_ratio = hdiff_efdt_ratio
        self%k4 = merge(1.0_wp / (hdiff_efdt_ratio * 8.0_wp), 0.0_wp, hdiff_efdt_ratio > 0.0_wp) / 8.0_wp
        self%smag_offset = 0.25_wp * self%k4 * real(ndyn_substeps, wp)

        call open_programs(self%programs, programs, timed)
        call allocate_local_fields(self, patch)
        call begin(self%programs%init_local_fields)
        call init_diffusion_local_fields(self%programs%init_local_fields%handle, self%k4, &
            real(ndyn_substeps, wp), hdiff_smag_fac(1), hdiff_smag_fac(2), hdiff_smag_fac(3), hdiff_smag_fac(4), &
            hdiff_smag_z(1), hdiff_smag_z(2), hdiff_smag_z(3), hdiff_smag_z(4), &
            patch%vct_a, self%diff_multfac_vn, self%smag_limit, self%enh_smag_fac)
        call finish(self%programs%init_local_fields)
        call begin(self%programs%init_nabla2_factor)
        call init_nabla2_factor_in_upper_damping_zone(self%programs%init_nabla2_factor%handle, patch%vct_a, &
            self%diff_multfac_n2w)
        call finish(self%programs%init_nabla2_factor)
    end subroutine

    subroutine allocate_local_fields(self, patch)
        type(t_diffusion), intent(inout) :: self
        type(t_patch), intent(in) :: patch

        associate (cells => patch%cells, edges => patch%edges, vertices => patch%vertices, levels => patch%levels)
            allocate (self%diff_multfac_vn(levels), self%smag_limit(levels), source=0.0_wp)
            allocate (self%initial_diff_multfac_vn(levels), self%initial_smag_limit(levels), source=0.0_wp)
            allocate (self%diff_multfac_n2w(levels), self%enh_smag_fac(levels), source=0.0_wp)
            allocate (self%u_vert(vertices, levels), self%v_vert(vertices, levels), source=0.0_wp)
            allocate (self%kh_smag_e(edges, levels), self%kh_smag_ec(edges, levels), source=0.0_wp)
            allocate (self%z_nabla2_e(edges, levels), self%w_tmp(cells, levels + 1), source=0.0_wp)
            allocate (self%theta_v_tmp(cells, levels), self%diff_multfac_smag(levels), source=0.0_wp)
        end associate
    end subroutine

    ! --- Run ----------------------------------------------------------------------------------------------------------

    ! One diffusion step; with `linit` the one before the first time step. ICON exchanges halos where a comment says so:
    ! there are none on one process.
    subroutine diffusion_run(self, patch, int_state, metrics, prog, diag, dtime, linit)
        type(t_diffusion), target, intent(inout) :: self
        type(t_patch), intent(in) :: patch
        type(t_int_state), intent(in) :: int_state
        type(t_nh_metrics), intent(in) :: metrics
        type(t_nh_prog), intent(inout) :: prog
        type(t_nh_diag), intent(inout) :: diag
        real(wp), intent(in) :: dtime
        logical, intent(in) :: linit
        real(wp), pointer :: diff_multfac_vn(:), smag_limit(:)
        real(wp) :: smag_offset

        if (linit) then
            diff_multfac_vn => self%initial_diff_multfac_vn
            smag_limit => self%initial_smag_limit
            smag_offset = 0.0_wp
            call begin(self%programs%setup_initial)
            call setup_fields_for_initial_step(self%programs%setup_initial%handle, self%k4, self%hdiff_efdt_ratio, &
                diff_multfac_vn, smag_limit)
            call finish(self%programs%setup_initial)
        else
            diff_multfac_vn => self%diff_multfac_vn
            smag_limit => self%smag_limit
            smag_offset = self%smag_offset
        end if

        call begin(self%programs%scale)
        call scale_k(self%programs%scale%handle, self%enh_smag_fac, dtime, self%diff_multfac_smag)
        call finish(self%programs%scale)

        call begin(self%programs%interpolate_vn)
        call mo_intp_rbf_rbf_vec_interpol_vertex(self%programs%interpolate_vn%handle, prog%vn, &
            int_state%rbf_coeff_1, int_state%rbf_coeff_2, self%u_vert, self%v_vert, patch%v2e)
        call finish(self%programs%interpolate_vn)
        ! halo exchange: u_vert, v_vert

        call begin(self%programs%nabla2)
        call calculate_nabla2_and_smag_coefficients_for_vn(self%programs%nabla2%handle, self%diff_multfac_smag, &
            patch%tangent_orientation, patch%inv_primal_edge_length, patch%inv_vert_vert_length, &
            self%u_vert, self%v_vert, patch%primal_normal_vert_x, patch%primal_normal_vert_y, &
            patch%dual_normal_vert_x, patch%dual_normal_vert_y, prog%vn, smag_limit, &
            self%kh_smag_e, self%kh_smag_ec, self%z_nabla2_e, smag_offset, patch%e2c2v)
        call finish(self%programs%nabla2)

        if (self%has_turbulence()) then
            call begin(self%programs%turbulence)
            call calculate_diagnostic_quantities_for_turbulence(self%programs%turbulence%handle, self%kh_smag_ec, &
                prog%vn, int_state%e_bln_c_s, int_state%geofac_div, self%diff_multfac_smag, metrics%wgtfac_c, &
                diag%div_ic, diag%hdef_ic, patch%c2e)
            call finish(self%programs%turbulence)
        end if
        ! halo exchange: z_nabla2_e

        call begin(self%programs%interpolate_nabla2)
        call mo_intp_rbf_rbf_vec_interpol_vertex(self%programs%interpolate_nabla2%handle, self%z_nabla2_e, &
            int_state%rbf_coeff_1, int_state%rbf_coeff_2, self%u_vert, self%v_vert, patch%v2e)
        call finish(self%programs%interpolate_nabla2)
        ! halo exchange: u_vert, v_vert

        call begin(self%programs%vn)
        call apply_diffusion_to_vn(self%programs%vn%handle, self%u_vert, self%v_vert, patch%primal_normal_vert_x, &
            patch%primal_normal_vert_y, self%z_nabla2_e, patch%inv_vert_vert_length, patch%inv_primal_edge_length, &
            patch%edge_areas, self%kh_smag_e, diff_multfac_vn, int_state%nudgecoeff_e, prog%vn, patch%e2c2v)
        call finish(self%programs%vn)
        ! halo exchange: vn, which may go on until temperature is diffused

        call begin(self%programs%copy_w)
        call copy_field(self%programs%copy_w%handle, prog%w, self%w_tmp)
        call finish(self%programs%copy_w)

        call begin(self%programs%w)
        call apply_diffusion_to_w(self%programs%w%handle, patch%cell_areas, int_state%geofac_n2s, &
            int_state%geofac_grg_x, int_state%geofac_grg_y, self%w_tmp, prog%w, diag%dwdx, diag%dwdy, &
            self%diff_multfac_n2w, patch%c2e2co)
        call finish(self%programs%w)

        if (self%lhdiff_temp) then
            call begin(self%programs%cold_pools)
            call calculate_enhanced_diffusion_coefficients(self%programs%cold_pools%handle, prog%theta_v, &
                metrics%theta_ref_mc, self%kh_smag_e, patch%c2e2c, patch%e2c)
            call finish(self%programs%cold_pools)

            call begin(self%programs%copy_theta_v)
            call copy_field(self%programs%copy_theta_v%handle, prog%theta_v, self%theta_v_tmp)
            call finish(self%programs%copy_theta_v)

            call begin(self%programs%theta)
            call apply_diffusion_to_theta_and_exner(self%programs%theta%handle, self%kh_smag_e, &
                patch%inv_dual_edge_length, self%theta_v_tmp, int_state%geofac_div, metrics%zd_vertoffset, &
                metrics%zd_diffcoef, int_state%geofac_n2s(:, 1), int_state%geofac_n2s(:, 2:), metrics%zd_intcoef, &
                patch%cell_areas, prog%theta_v, prog%exner, patch%c2e, patch%c2e2c, patch%e2c)
            call finish(self%programs%theta)
            ! halo exchange: theta_v, exner
        end if
    end subroutine

    ! Whether a step computes what turbulence needs.
    pure logical function has_turbulence(self)
        class(t_diffusion), intent(in) :: self

        has_turbulence = self%itype_sher >= 1 .or. self%loutshs .or. self%a_hshr > 0.0_wp
    end function

    ! Before and after a call of a program.
    subroutine begin(program)
        type(t_program), intent(in) :: program

        if (program%timer > 0) call timer_start(program%timer)
    end subroutine

    subroutine finish(program)
        type(t_program), intent(in) :: program

        if (program%timer > 0) call timer_stop(program%timer)
    end subroutine

    ! --- Results ------------------------------------------------------------------------------------------------------

    subroutine write_local_fields(self, folder)
        type(t_diffusion), intent(in) :: self
        character(*), intent(in) :: folder

        call store(folder, 'diff_multfac_vn', self%diff_multfac_vn)
        call store(folder, 'diff_multfac_n2w', self%diff_multfac_n2w)
        call store(folder, 'diff_multfac_smag', self%diff_multfac_smag)
        call store(folder, 'smag_limit', self%smag_limit)
        call store(folder, 'enh_smag_fac', self%enh_smag_fac)
        call store(folder, 'u_vert', self%u_vert)
        call store(folder, 'v_vert', self%v_vert)
        call store(folder, 'kh_smag_e', self%kh_smag_e)
        call store(folder, 'kh_smag_ec', self%kh_smag_ec)
        call store(folder, 'z_nabla2_e', self%z_nabla2_e)
        call store(folder, 'w_tmp', self%w_tmp)
        call store(folder, 'theta_v_tmp', self%theta_v_tmp)
    end subroutine

end module
