! The fields that the granule keeps and changes, for the comparison with Python.
module kept_fields
    use diffusion_granule, only: diffusion_t
    use raw_files, only: wp, store
    implicit none
    private
    public :: write_kept_fields

    character(*), parameter :: OF_LEVELS(5) = [character(18) :: 'diff_multfac_vn', 'diff_multfac_n2w', &
        'diff_multfac_smag', 'smag_limit', 'enh_smag_fac']
    character(*), parameter :: HORIZONTAL(7) = [character(11) :: 'u_vert', 'v_vert', 'kh_smag_e', 'kh_smag_ec', &
        'z_nabla2_e', 'w_tmp', 'theta_v_tmp']

contains

    subroutine write_kept_fields(folder, diffusion)
        character(*), intent(in) :: folder
        type(diffusion_t), intent(in) :: diffusion
        real(wp), pointer :: levels(:), field(:, :)
        integer :: i

        do i = 1, size(OF_LEVELS)
            call diffusion%get(OF_LEVELS(i), levels)
            call store(folder, trim(OF_LEVELS(i)), levels)
        end do
        do i = 1, size(HORIZONTAL)
            call diffusion%get(HORIZONTAL(i), field)
            call store(folder, trim(HORIZONTAL(i)), field)
        end do
    end subroutine

end module
