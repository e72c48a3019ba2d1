! The programs of icon4py's diffusion granule, and a timer for each.
module diffusion_programs
    use gtstub, only: gts_program, gts_open, gts_close, gts_set_index_base
    use timers, only: timer_of, timer_start, timer_stop
    implicit none
    private

    ! Timer 0 is none.
    type, public :: t_program
        type(gts_program) :: handle
        integer :: timer = 0
    end type

    ! A handle for each place where a program is called: it recognises the arrays of its last call; others it checks.
    type, public :: t_programs
        type(t_program) :: init_local_fields, init_nabla2_factor, setup_initial, scale, interpolate_vn, nabla2
        type(t_program) :: turbulence, interpolate_nabla2, vn, copy_w, w, cold_pools, copy_theta_v, theta
    end type

    public :: open_programs, close_programs

contains

    ! Opens all programs in `folder`, and says of each table that it begins at 1. With `timed` programs get timers.
    subroutine open_programs(self, folder, timed)
        type(t_programs), intent(inout) :: self
        character(*), intent(in) :: folder
        logical, intent(in) :: timed
        integer :: timer_open

        timer_open = timer_of('gts_open')
        call open_program(self%init_local_fields, 'init_diffusion_local_fields_for_regular_timestep')
        call open_program(self%init_nabla2_factor, 'init_nabla2_factor_in_upper_damping_zone')
        call open_program(self%setup_initial, 'setup_fields_for_initial_step')
        call open_program(self%scale, 'scale_k')
        call open_program(self%interpolate_vn, 'mo_intp_rbf_rbf_vec_interpol_vertex', 'V2E')
        call open_program(self%nabla2, 'calculate_nabla2_and_smag_coefficients_for_vn', 'E2C2V')
        call open_program(self%turbulence, 'calculate_diagnostic_quantities_for_turbulence', 'C2E')
        call open_program(self%interpolate_nabla2, 'mo_intp_rbf_rbf_vec_interpol_vertex', 'V2E')
        call open_program(self%vn, 'apply_diffusion_to_vn', 'E2C2V')
        call open_program(self%copy_w, 'copy_field')
        call open_program(self%w, 'apply_diffusion_to_w_and_compute_horizontal_gradients_for_turbulence', 'C2E2CO')
        call open_program(self%cold_pools, 'calculate_enhanced_diffusion_coefficients_for_grid_point_cold_pools', &
            'C2E2C', 'E2C')
        call open_program(self%copy_theta_v, 'copy_field')
        call open_program(self%theta, 'apply_diffusion_to_theta_and_exner', 'C2E', 'C2E2C', 'E2C')

    contains

        subroutine open_program(program, name, table, second_table, third_table)
            type(t_program), intent(inout) :: program
            character(*), intent(in) :: name
            character(*), intent(in), optional :: table, second_table, third_table

            call timer_start(timer_open)
            call gts_open(folder // '/' // name, program%handle)
            call timer_stop(timer_open)
            if (present(table)) call gts_set_index_base(program%handle, table, 1)
            if (present(second_table)) call gts_set_index_base(program%handle, second_table, 1)
            if (present(third_table)) call gts_set_index_base(program%handle, third_table, 1)
            if (timed) program%timer = timer_of(name)
        end subroutine

    end subroutine

    subroutine close_programs(self)
        type(t_programs), intent(inout) :: self

        call gts_close(self%init_local_fields%handle)
        call gts_close(self%init_nabla2_factor%handle)
        call gts_close(self%setup_initial%handle)
        call gts_close(self%scale%handle)
        call gts_close(self%interpolate_vn%handle)
        call gts_close(self%interpolate_nabla2%handle)
        call gts_close(self%nabla2%handle)
        call gts_close(self%turbulence%handle)
        call gts_close(self%vn%handle)
        call gts_close(self%copy_w%handle)
        call gts_close(self%copy_theta_v%handle)
        call gts_close(self%w%handle)
        call gts_close(self%cold_pools%handle)
        call gts_close(self%theta%handle)
    end subroutine

end module
