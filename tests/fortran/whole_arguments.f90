! Arguments for the program 'whole' of tests/signatures.py that are right, for tests to spoil one at a time.
module whole_arguments
    use, intrinsic :: iso_c_binding, only: c_bool, c_double, c_float, c_int32_t
    use gtstub, only: gts_program, gts_set_index_base
    use harness, only: open_program
    use whole_stub, only: whole
    implicit none

    integer, parameter :: EDGES = 6, LEVELS = 4, NEIGHBORS = 2

    ! Slots of __program_whole that tests look at.
    integer, parameter :: SLOT_CONN = 1, SLOT_OUT_0 = 2, SLOT_OUT_1 = 3, SLOT_VN = 4, SLOT_X_0 = 5, SLOT_TABLE_STRIDE = 6, &
        SLOT_NK = 7, SLOT_OUT_0_START = 8, SLOT_OUT_0_STOP = 9, SLOT_OUT_0_STRIDE = 10, SLOT_VN_STOP = 12, &
        SLOT_VN_STRIDE = 13, SLOT_FLAG = 14, SLOT_X_1_0 = 16, SLOT_X_1_1 = 17

    real(c_double), target :: vn(EDGES, LEVELS), x_0(LEVELS), out_0(EDGES, LEVELS), out_1(EDGES, LEVELS)
    integer(c_int32_t), target :: table(EDGES, NEIGHBORS) = 1
    integer(c_int32_t), parameter :: x_1_0 = -3
    real(c_float), parameter :: x_1_1 = 0.5
    logical(c_bool), parameter :: flag = .true.

contains

    ! A program that has been called well.
    function open_and_call() result(program)
        type(gts_program) :: program

        program = open_program()
        call gts_set_index_base(program, 'E2V', 1)
        call call_well(program)
    end function

    subroutine call_well(program)
        type(gts_program), intent(in) :: program

        call whole(program, vn, x_0, x_1_0, x_1_1, flag, out_0, out_1, table)
    end subroutine
end module
