! Sizes and strides that are polynomials of symbols: what the SDFG gets, and what is refused.
program shapes_of_arrays
    use, intrinsic :: iso_c_binding, only: c_double, c_int32_t
    use gtstub, only: gts_close, gts_program, gts_value_error
    use harness, only: call_count, check, check_refused, open_program, slot
    use shapes_stub, only: shapes
    implicit none
    integer, parameter :: N = 4
    integer(c_int32_t), parameter :: M = 3
    type(gts_program) :: program
    real(c_double), target :: a(N), edges(N + 2), table(M*N + 1), wide(7), columns(2*N, 3)
    integer :: stat
    character(len=300) :: errmsg

    program = open_program()
    call well()
    call shapes(program, a, edges(:N), table(:M*N), wide, columns, M, stat, errmsg)
    call refused("Argument 'edges' of program 'shapes' must have size N + 1 = 5 on dimension 1 ('D0'), not 4.")
    call shapes(program, a, edges(:N + 1), table, wide, columns, M, stat, errmsg)
    call refused("...size M*N = 12 on dimension 1 ('D0'), not 13.")
    call shapes(program, a, edges(:N + 1), table(:M*N), wide, columns, -M, stat, errmsg)
    call refused("...size M*N = -12 on dimension 1 ('D0').")
    call shapes(program, a, edges(:N + 1), table(:M*N), wide, columns(:, ::2), M, stat, errmsg)
    call refused("...stride 2*N = 8 on dimension 2 ('D1'), not 16.")
    call well()
    call check(call_count() == 2, 'nothing else was called')
    call gts_close(program)

contains

    subroutine well()
        call shapes(program, a, edges(:N + 1), table(:M*N), wide, columns(2:, :), M, stat, errmsg)
        call check(stat == 0, errmsg)
        call check(slot(5) == size(wide) .and. slot(6) == M .and. slot(7) == N, 'L, M and N arrive')
    end subroutine

    subroutine refused(text)
        character(len=*), intent(in) :: text

        call check_refused(stat, gts_value_error, errmsg, text, 1)
    end subroutine
end program
