! A Fortran host that finds a step of Python, runs and changes it. Its errors are texts that end in c_null_char.
module host_of_steps
    use, intrinsic :: iso_c_binding, only: c_char, c_double, c_int, c_null_char, c_ptr
    use gtstub, only: gts_step, gts_step_find, gts_step_free, gts_step_run, gts_step_set_scalar, gts_step_swap
    implicit none
    private
    public :: use_step, run_again, free_step

    type(gts_step), save :: step

contains

    ! Finds 'step', sets its factor, runs it, swaps two arrays, and runs it again.
    function use_step(factor, a, b, text) bind(c) result(status)
        real(c_double), value :: factor
        type(c_ptr), value :: a, b
        character(kind=c_char), intent(inout) :: text(1024)
        integer(c_int) :: status
        character(len=1024) :: message
        integer :: stat

        call gts_step_find('step  ', step, stat, message)
        if (stat == 0) call gts_step_set_scalar(step, 'factor', factor, stat, message)
        if (stat == 0) call gts_step_run(step, stat, message)
        if (stat == 0) call gts_step_swap(step, a, b, stat, message)
        if (stat == 0) call gts_step_run(step, stat, message)
        status = stat
        if (stat /= 0) call copy(message, text)
    end function

    ! Runs the step that was found before.
    function run_again(text) bind(c) result(status)
        character(kind=c_char), intent(inout) :: text(1024)
        integer(c_int) :: status
        character(len=1024) :: message
        integer :: stat

        call gts_step_run(step, stat, message)
        status = stat
        if (stat /= 0) call copy(message, text)
    end function

    subroutine free_step() bind(c)
        call gts_step_free(step)
    end subroutine

    subroutine copy(message, text)
        character(len=*), intent(in) :: message
        character(kind=c_char), intent(inout) :: text(1024)
        integer :: i

        do i = 1, len_trim(message)
            text(i) = message(i:i)
        end do
        text(len_trim(message) + 1) = c_null_char
    end subroutine
end module
