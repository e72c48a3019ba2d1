! The model state of the diffusion granule, as ICON holds it: the horizontal index comes first, and tables begin at 1.
! Everything is read from raw files, one for each array, which prepare.py writes; results go back the same way.
module granule_state
    use, intrinsic :: iso_c_binding, only: c_int32_t
    use raw_files, only: wp, load, store
    implicit none
    private

    public :: wp, read_state, write_state

    ! The grid with its tables, and the geometry of its edges and cells.
    type, public :: t_patch
        integer :: cells, edges, vertices, levels
        integer(c_int32_t), allocatable :: c2e(:, :), c2e2c(:, :), c2e2co(:, :), e2c(:, :), e2c2v(:, :), v2e(:, :)
        real(wp), allocatable :: tangent_orientation(:), inv_primal_edge_length(:), inv_dual_edge_length(:)
        real(wp), allocatable :: inv_vert_vert_length(:), edge_areas(:), cell_areas(:)
        real(wp), allocatable :: primal_normal_vert_x(:, :), primal_normal_vert_y(:, :)
        real(wp), allocatable :: dual_normal_vert_x(:, :), dual_normal_vert_y(:, :)
        real(wp), allocatable :: vct_a(:) ! height of the levels' interfaces
    end type

    ! Interpolation coefficients.
    type, public :: t_int_state
        real(wp), allocatable :: e_bln_c_s(:, :), geofac_div(:, :), geofac_n2s(:, :)
        real(wp), allocatable :: geofac_grg_x(:, :), geofac_grg_y(:, :), nudgecoeff_e(:)
        real(wp), allocatable :: rbf_coeff_1(:, :), rbf_coeff_2(:, :)
    end type

    ! Metric fields; those that begin with 'zd' are for the diffusion of temperature along steep slopes.
    type, public :: t_nh_metrics
        real(wp), allocatable :: theta_ref_mc(:, :), wgtfac_c(:, :), zd_diffcoef(:, :), zd_intcoef(:, :, :)
        integer(c_int32_t), allocatable :: zd_vertoffset(:, :, :)
    end type

    type, public :: t_nh_prog
        real(wp), allocatable :: rho(:, :), w(:, :), vn(:, :), exner(:, :), theta_v(:, :)
    end type

    type, public :: t_nh_diag
        real(wp), allocatable :: hdef_ic(:, :), div_ic(:, :), dwdx(:, :), dwdy(:, :)
    end type

contains

    ! Reads all of it from `folder`; the sizes are in 'host.nml'.
    subroutine read_state(folder, patch, int_state, metrics, prog, diag)
        character(*), intent(in) :: folder
        type(t_patch), intent(out) :: patch
        type(t_int_state), intent(out) :: int_state
        type(t_nh_metrics), intent(out) :: metrics
        type(t_nh_prog), intent(out) :: prog
        type(t_nh_diag), intent(out) :: diag
        integer :: cells, edges, vertices, levels, unit
        namelist /patch_nml/ cells, edges, vertices, levels

        open (newunit=unit, file=folder // '/host.nml', action='read', status='old')
        read (unit, nml=patch_nml)
        close (unit)
        patch%cells = cells
        patch%edges = edges
        patch%vertices = vertices
        patch%levels = levels

        call load(folder, 'c2e', patch%c2e, [cells, 3])
        call load(folder, 'c2e2c', patch%c2e2c, [cells, 3])
        call load(folder, 'c2e2co', patch%c2e2co, [cells, 4])
        call load(folder, 'e2c', patch%e2c, [edges, 2])
        call load(folder, 'e2c2v', patch%e2c2v, [edges, 4])
        call load(folder, 'v2e', patch%v2e, [vertices, 6])
        call load(folder, 'tangent_orientation', patch%tangent_orientation, [edges])
        call load(folder, 'inv_primal_edge_length', patch%inv_primal_edge_length, [edges])
        call load(folder, 'inv_dual_edge_length', patch%inv_dual_edge_length, [edges])
        call load(folder, 'inv_vert_vert_length', patch%inv_vert_vert_length, [edges])
        call load(folder, 'edge_areas', patch%edge_areas, [edges])
        call load(folder, 'cell_areas', patch%cell_areas, [cells])
        call load(folder, 'primal_normal_vert_x', patch%primal_normal_vert_x, [edges, 4])
        call load(folder, 'primal_normal_vert_y', patch%primal_normal_vert_y, [edges, 4])
        call load(folder, 'dual_normal_vert_x', patch%dual_normal_vert_x, [edges, 4])
        call load(folder, 'dual_normal_vert_y', patch%dual_normal_vert_y, [edges, 4])
        call load(folder, 'vct_a', patch%vct_a, [levels + 1])

        call load(folder, 'e_bln_c_s', int_state%e_bln_c_s, [cells, 3])
        call load(folder, 'geofac_div', int_state%geofac_div, [cells, 3])
        call load(folder, 'geofac_n2s', int_state%geofac_n2s, [cells, 4])
        call load(folder, 'geofac_grg_x', int_state%geofac_grg_x, [cells, 4])
        call load(folder, 'geofac_grg_y', int_state%geofac_grg_y, [cells, 4])
        call load(folder, 'nudgecoeff_e', int_state%nudgecoeff_e, [edges])
        call load(folder, 'rbf_coeff_1', int_state%rbf_coeff_1, [vertices, 6])
        call load(folder, 'rbf_coeff_2', int_state%rbf_coeff_2, [vertices, 6])

        call load(folder, 'theta_ref_mc', metrics%theta_ref_mc, [cells, levels])
        call load(folder, 'wgtfac_c', metrics%wgtfac_c, [cells, levels + 1])
        call load(folder, 'zd_diffcoef', metrics%zd_diffcoef, [cells, levels])
        call load(folder, 'zd_intcoef', metrics%zd_intcoef, [cells, 3, levels])
        call load(folder, 'zd_vertoffset', metrics%zd_vertoffset, [cells, 3, levels])

        call load(folder, 'rho', prog%rho, [cells, levels])
        call load(folder, 'w', prog%w, [cells, levels + 1])
        call load(folder, 'vn', prog%vn, [edges, levels])
        call load(folder, 'exner', prog%exner, [cells, levels])
        call load(folder, 'theta_v', prog%theta_v, [cells, levels])

        call load(folder, 'hdef_ic', diag%hdef_ic, [cells, levels + 1])
        call load(folder, 'div_ic', diag%div_ic, [cells, levels + 1])
        call load(folder, 'dwdx', diag%dwdx, [cells, levels + 1])
        call load(folder, 'dwdy', diag%dwdy, [cells, levels + 1])
    end subroutine

    subroutine write_state(folder, prog, diag)
        character(*), intent(in) :: folder
        type(t_nh_prog), intent(in) :: prog
        type(t_nh_diag), intent(in) :: diag

        call store(folder, 'rho', prog%rho)
        call store(folder, 'w', prog%w)
        call store(folder, 'vn', prog%vn)
        call store(folder, 'exner', prog%exner)
        call store(folder, 'theta_v', prog%theta_v)
        call store(folder, 'hdef_ic', diag%hdef_ic)
        call store(folder, 'div_ic', diag%div_ic)
        call store(folder, 'dwdx', diag%dwdx)
        call store(folder, 'dwdy', diag%dwdy)
    end subroutine

end module
