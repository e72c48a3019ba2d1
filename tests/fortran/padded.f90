! Elements that an SDFG reads, but on which no results depend: what is printed.
program padded_arrays
    use, intrinsic :: iso_c_binding, only: c_double, c_int32_t
    use gtstub, only: gts_close, gts_program, gts_set_index_base, gts_set_lower_bounds
    use harness, only: call_count, check, open_program
    use padded_stub, only: padded
    implicit none
    type(gts_program) :: program
    real(c_double) :: x(0:3)
    integer(c_int32_t) :: y(1, 3), table(2, 2)

    x = 1
    y = 1
    table = 1
    program = open_program()
    call gts_set_index_base(program, 'E2V', 1)
    call gts_set_lower_bounds(program, 'x', lbound(x))
    call padded(program, x, y, 5, table)
    call check(call_count() == 1, 'the program was called')
    call gts_close(program)
end program
