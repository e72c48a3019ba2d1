! The granule as a library, for measure.py: it makes many steps between two looks at the clock, and the programs can be
! replaced by recording ones while all arrays stay where they are.
module timed_granule
    use, intrinsic :: iso_c_binding, only: c_char, c_double, c_long, c_null_char
    use, intrinsic :: iso_fortran_env, only: int64
    use bound_diffusion, only: t_bound_diffusion, diffusion_bind, diffusion_step
    use diffusion_programs, only: t_programs, open_programs
    use granule_state, only: wp, t_patch, t_int_state, t_nh_metrics, t_nh_prog, t_nh_diag, read_state, write_state
    use host_run, only: read_run
    use nh_diffusion, only: t_diffusion, diffusion_init, diffusion_run
    implicit none
    private

    type(t_patch), target :: patch
    type(t_int_state), target :: int_state
    type(t_nh_metrics), target :: metrics
    type(t_nh_prog), target :: prog
    type(t_nh_prog) :: initial_prog
    type(t_nh_diag), target :: diag
    type(t_nh_diag) :: initial_diag
    type(t_diffusion), target :: diffusion
    type(t_bound_diffusion) :: bound
    real(wp) :: dtime

    public :: granule_init, granule_reopen, granule_bind, granule_restore, granule_steps, granule_bound_steps, granule_write

contains

    ! As fortran_host begins; both are folders.
    subroutine granule_init(state, programs) bind(c)
        character(kind=c_char), intent(in) :: state(*), programs(*)
        integer :: steps

        call read_run(text(state), steps, dtime)
        call read_state(text(state), patch, int_state, metrics, prog, diag)
        initial_prog = prog
        initial_diag = diag
        call diffusion_init(diffusion, text(state), text(programs), patch, timed=.false.)
    end subroutine

    ! Takes the programs from another folder. Those before stay open: what was recorded of them points to their copies
    ! of the tables.
    subroutine granule_reopen(programs) bind(c)
        character(kind=c_char), intent(in) :: programs(*)

        diffusion%programs = t_programs()
        call open_programs(diffusion%programs, text(programs), timed=.false.)
    end subroutine

    ! Binds the calls of a step to the programs that are open now.
    subroutine granule_bind() bind(c)
        call diffusion_bind(bound, diffusion, patch, int_state, metrics, prog, diag, dtime)
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
            call diffusion_run(diffusion, patch, int_state, metrics, prog, diag, dtime, linit=.false.)
        end do
        call system_clock(ended)
        seconds = real(ended - began, c_double) / real(rate, c_double)
    end function

    ! The same with bound calls.
    function granule_bound_steps(count) result(seconds) bind(c)
        integer(c_long), value :: count
        real(c_double) :: seconds
        integer(int64) :: began, ended, rate
        integer(c_long) :: step

        call system_clock(began, rate)
        do step = 1, count
            call diffusion_step(bound)
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
