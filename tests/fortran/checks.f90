! Debug checks of a Fortran host: what they refuse, and how they begin and end. The SDFG writes nothing.
program checks
    use gtstub, only: gts_checks, gts_checks_begin, gts_checks_end, gts_close, gts_program, gts_runtime_error, &
        gts_set_lower_bounds, gts_set_origin, gts_value_error
    use harness, only: call_count, check, check_text
    use whole_arguments, only: flag, open_and_call, out_0, out_1, table, vn, x_0, x_1_0, x_1_1
    use whole_stub, only: whole
    implicit none
    type(gts_program) :: program
    type(gts_checks) :: running
    integer :: stat, count
    character(len=300) :: errmsg

    program = open_and_call()
    vn = 1
    out_0 = 1
    out_1 = 1
    x_0 = 1
    call gts_checks_end(running) ! has no effect

    call gts_checks_begin('min out=zero', running, stat, errmsg)
    call check(stat == gts_value_error, 'a limit that is no number is a value error')
    call check_text(errmsg, "The limit of check 'min out=zero' must be a number, not 'zero'.")

    call gts_checks_begin('nan; min vn=0; max out*=5', running)
    call whole(program, vn, x_0, x_1_0, x_1_1, flag, out_0, out_1, table)
    count = call_count()
    vn(2, 3) = -4
    call whole(program, vn, x_0, x_1_0, x_1_1, flag, out_0, out_1, table, stat, errmsg)
    call check(stat == gts_runtime_error, 'a value that is refused is a runtime error')
    call check_text(errmsg, "Argument 'vn' of program 'whole' is -4 at vn(2,3) before the call; check 'min vn=0' " // &
        "refuses 1 of 24 elements.")
    call check(call_count() == count, 'nothing was called')
    call gts_set_lower_bounds(program, 'vn', [-1, 0])
    call whole(program, vn, x_0, x_1_0, x_1_1, flag, out_0, out_1, table, stat, errmsg)
    call check_text(errmsg, "Argument 'vn' of program 'whole' is -4 at vn(0,2) before the call; check 'min vn=0' " // &
        "refuses 1 of 24 elements.")

    vn = 1
    out_1(6, 4) = 7
    call gts_set_origin(program, 'out[1]', [0, 10])
    call whole(program, vn, x_0, x_1_0, x_1_1, flag, out_0, out_1, table, stat, errmsg)
    call check(stat == gts_runtime_error, 'a value that is left is refused')
    call check_text(errmsg, "Argument 'out[1]' of program 'whole' is 7 at out[1](6,4) before and after the call; " // &
        "check 'max out*=5' refuses 1 of 24 elements.")
    call check(call_count() == count + 1, 'the program was called')

    call gts_checks_begin('trace 6,4', running) ! ends the ones before
    call whole(program, vn, x_0, x_1_0, x_1_1, flag, out_0, out_1, table)
    call gts_checks_begin('only other', running)
    call whole(program, vn, x_0, x_1_0, x_1_1, flag, out_0, out_1, table)
    call gts_checks_end(running)
    call gts_checks_end(running)
    call gts_close(program)
end program
