! Tables of a Fortran host that change between calls: local arrays, sections, and one that is corrected after a refusal.
program changed_tables
    use, intrinsic :: iso_c_binding, only: c_double, c_f_pointer, c_int32_t, c_null_ptr
    use gather_stub, only: gather, gather_bind
    use gtstub, only: gts_bound_call, gts_close, gts_program, gts_set_index_base, gts_start, gts_unbind, gts_value_error
    use harness, only: call_count, check, open_program, slot
    implicit none

    integer, parameter :: ROWS = 30
    type(gts_program) :: program
    real(c_double), target :: x(50), out(ROWS)
    integer(c_int32_t), target :: table(ROWS, 2)
    integer :: base, value

    program = open_program()
    do base = 0, 1
        call gts_set_index_base(program, 'E2V', base)
        do value = 1, 4
            call call_with_local_array(ROWS, value)
            call call_with_section(value)
            call call_with_allocated_array(value)
        end do
        call correct_table()
        call start_bound_call()
    end do
    call gts_close(program)

contains

    subroutine call_with_local_array(n, value)
        integer, intent(in) :: n, value
        integer(c_int32_t) :: e2v(n, 2)

        e2v = value
        call gather(program, x, out, e2v)
        call check_passed(value, 1, n, 'a local array')
    end subroutine

    subroutine call_with_section(value)
        integer, intent(in) :: value
        integer(c_int32_t), save :: larger(2 * ROWS, 5) = 0

        larger(::2, 2::3) = value
        call gather(program, x, out, larger(::2, 2::3))
        call check_passed(value, 2, 6 * ROWS, 'a section')
    end subroutine

    subroutine call_with_allocated_array(value)
        integer, intent(in) :: value
        integer(c_int32_t), allocatable :: e2v(:, :)

        allocate (e2v(ROWS, 2), source=int(value, c_int32_t))
        call gather(program, x, out, e2v)
        call check_passed(value, 1, ROWS, 'an allocated array')
    end subroutine

    subroutine correct_table()
        integer :: stat, row, calls
        character(len=300) :: errmsg

        do row = 1, ROWS
            table = 1
            table(row, 2) = 99
            call gts_set_index_base(program, 'E2V', base)
            calls = call_count()
            call gather(program, x, out, table, stat, errmsg)
            call check(stat == gts_value_error .and. index(errmsg, 'has index 99 at E2V') > 0, 'a refused table')
            call check(call_count() == calls, 'nothing was called')
            table(row, 2) = 1
            call gather(program, x, out, table, stat, errmsg)
            call check(stat == 0, 'a corrected table')
            call check_passed(1, 1, ROWS, 'a corrected table')
        end do
    end subroutine

    subroutine start_bound_call()
        type(gts_bound_call) :: bound
        integer :: stat, value
        character(len=300) :: errmsg

        table = 7
        call gather_bind(program, x, out, table, bound)
        do value = 8, 10
            table = value
            call gts_start(bound)
            call check_passed(value, 1, ROWS, 'a bound table')
        end do
        table = 99
        call gts_start(bound, stat, errmsg)
        call check(stat == gts_value_error .and. index(errmsg, 'has index 99 at E2V') > 0, 'a refused bound table')
        table = 3
        call gts_start(bound)
        call check_passed(3, 1, ROWS, 'a corrected bound table')
        call gts_unbind(bound)
    end subroutine

    ! The SDFG has got a table of base 0 in which all elements are one.
    subroutine check_passed(value, down, right, what)
        integer, intent(in) :: value, down, right
        character(len=*), intent(in) :: what
        integer(c_int32_t), pointer :: passed(:)
        integer :: row

        call c_f_pointer(transfer(slot(0), c_null_ptr), passed, [(ROWS - 1) * down + right + 1])
        do row = 0, ROWS - 1
            call check(passed(1 + row * down) == value - base, what)
            call check(passed(1 + row * down + right) == value - base, what)
        end do
    end subroutine
end program
