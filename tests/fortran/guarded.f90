! Check 'bounds' of a Fortran host: sections of arrays, a table of index base 1, and accesses outside of them. An argument
! replaces the verb 'read' on machines whose signals do not tell a read from a write.
program guarded
    use, intrinsic :: iso_c_binding, only: c_double, c_int32_t, c_loc, c_size_t
    use gtstub, only: gts_checks, gts_checks_begin, gts_checks_end, gts_close, gts_open, gts_program, gts_runtime_error, &
        gts_set_index_base, gts_set_workspace
    use reach_stub, only: reach
    implicit none
    integer, parameter :: EDGES = 6, LEVELS = 4
    integer(c_int32_t), parameter :: NOTHING = 0, READ_X = 1, WRITE_OUT = 2, READ_TABLE = 3, WORKSPACE = 512
    real(c_double), target :: x(EDGES, LEVELS), all_out(2 * EDGES, LEVELS), lent(WORKSPACE / 8 + 32)
    integer(c_int32_t), target :: table(EDGES, 2)
    type(gts_program) :: program
    type(gts_checks) :: running
    integer :: stat, first
    character(len=300) :: errmsg

    call random_number(x)
    all_out = 5
    table = 1
    first = 1 + int(modulo(-transfer(c_loc(lent), 0_c_size_t), 256_c_size_t)) / 8
    call gts_open('.', program)
    call gts_set_workspace(program, 'CPU_Heap', c_loc(lent(first)), int(WORKSPACE, c_size_t))
    call gts_set_index_base(program, 'E2V', 1)

    call gts_checks_begin('bounds end', running)
    call reach(program, x, all_out(::2, :), NOTHING, 0, table)
    call check(all(abs(all_out(::2, :) - 2 * x) <= 0), 'the results are copied back')
    call check(all(abs(all_out(2::2, :) - 5) <= 0), 'nothing else is changed')
    call refuse(READ_X, EDGES * LEVELS + 1, "Argument 'x' of program 'reach' is", 'read', "2 elements after its end")
    call refuse(READ_TABLE, 2 * EDGES, "Connectivity 'E2V' of program 'reach' is", 'read', "1 element after its end")
    call refuse(WRITE_OUT, 3, "Argument 'out' of program 'reach' is", 'written', &
        '3 elements after its first one, where it has none,')
    call gts_checks_end(running)
    x = x + 1
    call reach(program, x, all_out(::2, :), NOTHING, 0, table)
    call check(all(abs(all_out(::2, :) - 2 * x) <= 0), 'the SDFG has the arguments again')
    call gts_close(program)

contains

    subroutine check(holds, text)
        logical, intent(in) :: holds
        character(len=*), intent(in) :: text

        if (.not. holds) error stop text
    end subroutine

    subroutine refuse(what, at, argument, verb, where)
        integer(c_int32_t), intent(in) :: what
        integer, intent(in) :: at
        character(len=*), intent(in) :: argument, verb, where
        character(len=8) :: said

        call reach(program, x, all_out(::2, :), what, int(at, c_int32_t), table, stat, errmsg)
        call check(stat == gts_runtime_error, 'the call fails')
        said = verb
        if (verb == 'read' .and. command_argument_count() > 0) call get_command_argument(1, said)
        if (trim(errmsg) /= argument // ' ' // trim(said) // ' ' // where // " by the call; check 'bounds' refuses this.") &
            error stop trim(errmsg)
        call check(all(abs(all_out(2::2, :) - 5) <= 0), 'nothing is written')
    end subroutine
end program
