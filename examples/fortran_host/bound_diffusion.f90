! A diffusion step as one step of gtstub: its calls are bound once, and then run without any look at their arguments.
module bound_diffusion
    use granule_state, only: wp, t_patch, t_int_state, t_nh_metrics, t_nh_prog, t_nh_diag
    use gtstub, only: gts_action, gts_bound_call, gts_step, gts_step_free, gts_step_new, gts_step_run, gts_unbind
    use nh_diffusion, only: t_diffusion

    use apply_diffusion_to_theta_and_exner_stub, only: apply_diffusion_to_theta_and_exner_bind
    use apply_diffusion_to_vn_stub, only: apply_diffusion_to_vn_bind
    use apply_diffusion_to_w_stub, only: apply_diffusion_to_w_bind
    use calculate_diagnostic_quantities_for_turbulence_stub, only: calculate_diagnostic_quantities_for_turbulence_bind
    use calculate_enhanced_diffusion_coefficients_stub, only: calculate_enhanced_diffusion_coefficients_bind
    use calculate_nabla2_and_smag_coefficients_for_vn_stub, only: calculate_nabla2_and_smag_coefficients_for_vn_bind
    use copy_field_stub, only: copy_field_bind
    use mo_intp_rbf_rbf_vec_interpol_vertex_stub, only: mo_intp_rbf_rbf_vec_interpol_vertex_bind
    use scale_k_stub, only: scale_k_bind
    implicit none
    private

    integer, parameter :: MOST_CALLS = 11

    ! What diffusion_run() calls if linit is false.
    type, public :: t_bound_diffusion
        private
        type(gts_bound_call) :: calls(MOST_CALLS)
        integer :: count = 0
        type(gts_step) :: step
    end type

    public :: diffusion_bind, diffusion_step, diffusion_unbind

contains

    ! Binds the calls, and makes a step of them. The arrays must stay where they are. ICON exchanges halos where a comment
    ! says so; each would be a gts_action with a function of ICON.
    subroutine diffusion_bind(self, diffusion, patch, int_state, metrics, prog, diag, dtime)
        type(t_bound_diffusion), intent(inout) :: self
        type(t_diffusion), target, intent(inout) :: diffusion
        type(t_patch), target, intent(in) :: patch
        type(t_int_state), target, intent(in) :: int_state
        type(t_nh_metrics), target, intent(in) :: metrics
        type(t_nh_prog), target, intent(inout) :: prog
        type(t_nh_diag), target, intent(inout) :: diag
        real(wp), intent(in) :: dtime
        integer :: i

        call diffusion_unbind(self)
        associate (local => diffusion, programs => diffusion%programs)
            call scale_k_bind(programs%scale%handle, local%enh_smag_fac, dtime, local%diff_multfac_smag, self%calls(next()))

            call mo_intp_rbf_rbf_vec_interpol_vertex_bind(programs%interpolate_vn%handle, prog%vn, &
                int_state%rbf_coeff_1, int_state%rbf_coeff_2, local%u_vert, local%v_vert, patch%v2e, self%calls(next()))
            ! halo exchange: u_vert, v_vert

            call calculate_nabla2_and_smag_coefficients_for_vn_bind(programs%nabla2%handle, local%diff_multfac_smag, &
                patch%tangent_orientation, patch%inv_primal_edge_length, patch%inv_vert_vert_length, &
                local%u_vert, local%v_vert, patch%primal_normal_vert_x, patch%primal_normal_vert_y, &
                patch%dual_normal_vert_x, patch%dual_normal_vert_y, prog%vn, local%smag_limit, local%kh_smag_e, &
                local%kh_smag_ec, local%z_nabla2_e, local%smag_offset, patch%e2c2v, self%calls(next()))

            if (local%has_turbulence()) &
                call calculate_diagnostic_quantities_for_turbulence_bind(programs%turbulence%handle, local%kh_smag_ec, &
                    prog%vn, int_state%e_bln_c_s, int_state%geofac_div, local%diff_multfac_smag, metrics%wgtfac_c, &
                    diag%div_ic, diag%hdef_ic, patch%c2e, self%calls(next()))
            ! halo exchange: z_nabla2_e

            call mo_intp_rbf_rbf_vec_interpol_vertex_bind(programs%interpolate_nabla2%handle, local%z_nabla2_e, &
                int_state%rbf_coeff_1, int_state%rbf_coeff_2, local%u_vert, local%v_vert, patch%v2e, self%calls(next()))
            ! halo exchange: u_vert, v_vert

            call apply_diffusion_to_vn_bind(programs%vn%handle, local%u_vert, local%v_vert, patch%primal_normal_vert_x, &
                patch%primal_normal_vert_y, local%z_nabla2_e, patch%inv_vert_vert_length, patch%inv_primal_edge_length, &
                patch%edge_areas, local%kh_smag_e, local%diff_multfac_vn, int_state%nudgecoeff_e, prog%vn, patch%e2c2v, &
                self%calls(next()))
            ! halo exchange: vn

            call copy_field_bind(programs%copy_w%handle, prog%w, local%w_tmp, self%calls(next()))

            call apply_diffusion_to_w_bind(programs%w%handle, patch%cell_areas, int_state%geofac_n2s, &
                int_state%geofac_grg_x, int_state%geofac_grg_y, local%w_tmp, prog%w, diag%dwdx, diag%dwdy, &
                local%diff_multfac_n2w, patch%c2e2co, self%calls(next()))

            if (local%lhdiff_temp) then
                call calculate_enhanced_diffusion_coefficients_bind(programs%cold_pools%handle, prog%theta_v, &
                    metrics%theta_ref_mc, local%kh_smag_e, patch%c2e2c, patch%e2c, self%calls(next()))

                call copy_field_bind(programs%copy_theta_v%handle, prog%theta_v, local%theta_v_tmp, self%calls(next()))

                call apply_diffusion_to_theta_and_exner_bind(programs%theta%handle, local%kh_smag_e, &
                    patch%inv_dual_edge_length, local%theta_v_tmp, int_state%geofac_div, metrics%zd_vertoffset, &
                    metrics%zd_diffcoef, int_state%geofac_n2s(:, 1), int_state%geofac_n2s(:, 2:), metrics%zd_intcoef, &
                    patch%cell_areas, prog%theta_v, prog%exner, patch%c2e, patch%c2e2c, patch%e2c, self%calls(next()))
                ! halo exchange: theta_v, exner
            end if
        end associate
        call gts_step_new('nh_hdiff_run', [(gts_action(call=self%calls(i)), i = 1, self%count)], self%step)

    contains

        integer function next()
            self%count = self%count + 1
            next = self%count
        end function

    end subroutine

    subroutine diffusion_step(self)
        type(t_bound_diffusion), intent(in) :: self

        call gts_step_run(self%step)
    end subroutine

    subroutine diffusion_unbind(self)
        type(t_bound_diffusion), intent(inout) :: self
        integer :: i

        call gts_step_free(self%step)
        do i = 1, self%count
            call gts_unbind(self%calls(i))
        end do
        self%count = 0
    end subroutine

end module
