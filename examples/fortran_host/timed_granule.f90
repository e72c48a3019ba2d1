! The granule as a library, for measure.py: it makes many steps between two looks at the clock, and the granule can be
! opened from another folder while the arrays of the host stay where they are.
module timed_granule
    use, intrinsic :: iso_c_binding, only: c_char, c_double, c_long, c_null_char
    use, intrinsic :: iso_fortran_env, only: int64
    use diffusion_granule, only: diffusion_t
    use granule_state, only: wp, t_patch, t_int_state, t_nh_metrics, t_nh_prog, t_nh_diag, read_state, write_state
    use host_run, only: read_run
    implicit none
    private

    type(t_patch) :: patch
    type(t_int_state) :: int_state
    type(t_nh_metrics) :: metrics
    type(t_nh_prog), target :: prog
    type(t_nh_prog) :: initial_prog
    type(t_nh_diag), target :: diag
    type(t_nh_diag) :: initial_diag
    type(diffusion_t) :: diffusion
    real(wp) :: dtime

    public :: granule_init, granule_open, granule_restore, granule_steps, granule_write

contains

    subroutine granule_init(state) bind(c)
        character(kind=c_char), intent(in) :: state(*)
        integer :: steps

        call read_run(text(state), steps, dtime)
        call read_state(text(state), patch, int_state, metrics, prog, diag)
        initial_prog = prog
        initial_diag = diag
    end subroutine

    ! Takes the granule from a folder, and binds it. The one before stays open: what was recorded of it points to its
    ! kept arrays.
    subroutine granule_open(folder) bind(c)
        character(kind=c_char), intent(in) :: folder(*)

        diffusion = diffusion_t()
        call diffusion%open(text(folder))
        call diffusion%bind(prog_w=prog%w, prog_vn=prog%vn, prog_exner=prog%exner, prog_theta_v=prog%theta_v, &
            diag_hdef_ic=diag%hdef_ic, diag_div_ic=diag%div_ic, diag_dwdx=diag%dwdx, diag_dwdy=diag%dwdy)
    end subroutine

    ! Gives the model state the values it began with, in place.
    subroutine granule_restore() bind(c)
        prog%rho(:, :) = initial_prog%rho
        prog%w(:, :) = initial_prog%w
        prog%vn(:, :) = initial_prog%vn
        prog%exner(:, :) = initial_prog%exner
        prog%theta_v(:, :) = initial_prog%theta_v
        diag%hdef_ic(:, :) = initial_diag%hdef_ic
        diag%div_ic(:, :) = initial_diag%div_ic
        diag%dwdx(:, :) = initial_diag%dwdx
        diag%dwdy(:, :) = initial_diag%dwdy
    end subroutine

    ! Makes steps; returns the seconds they took.
    function granule_steps(count) result(seconds) bind(c)
        integer(c_long), value :: count
        real(c_double) :: seconds
        integer(int64) :: began, ended, rate
        integer(c_long) :: step

        call system_clock(began, rate)
        do step = 1, count
            call diffusion%run(dtime)
        end do
        call system_clock(ended)
        seconds = real(ended - began, c_double) / real(rate, c_double)
    end function

    subroutine granule_write(folder) bind(c)
        character(kind=c_char), intent(in) :: folder(*)

        call write_state(text(folder), prog, diag)
    end subroutine

    pure function text(characters)
        character(kind=c_char), intent(in) :: characters(*)
        character(:), allocatable :: text
        integer :: length, i

        length = 0
        do while (characters(length + 1) /= c_null_char)
            length = length + 1
        end do
        allocate (character(length) :: text)
        do i = 1, length
            text(i:i) = characters(i)
        end do
    end function

end module
