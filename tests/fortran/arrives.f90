! What the SDFG receives: memory, sizes, strides and origins as Fortran has them, sections without a copy.
program arrives
    use, intrinsic :: iso_c_binding, only: c_bool, c_double, c_int8_t, c_int32_t, c_int64_t, c_loc
    use gtstub, only: gts_close, gts_program, gts_set_index_base, gts_set_origin
    use harness, only: address, call_count, check, slot
    use whole_arguments, only: call_well, EDGES, flag, LEVELS, open_and_call, out_0, out_1, table, vn, x_0, x_1_0, x_1_1, &
        SLOT_CONN, SLOT_FLAG, SLOT_NK, SLOT_OUT_0, SLOT_OUT_0_START, SLOT_OUT_0_STOP, SLOT_OUT_0_STRIDE, SLOT_OUT_1, &
        SLOT_TABLE_STRIDE, SLOT_VN, SLOT_VN_STOP, SLOT_VN_STRIDE, SLOT_X_0, SLOT_X_1_0, SLOT_X_1_1
    use whole_stub, only: whole
    implicit none
    type(gts_program) :: program

    program = open_and_call()
    call whole_arrays()
    call sections()
    call time_levels()
    call empty_sections()
    call arrays_on_the_heap()
    call origins()
    call logicals()
    call index_bases()
    call gts_close(program)

contains

    subroutine whole_arrays()
        call check(slot(SLOT_VN) == address(c_loc(vn)), 'vn is passed itself')
        call check(slot(SLOT_X_0) == address(c_loc(x_0)), 'x_0 is passed itself')
        call check(slot(SLOT_OUT_0) == address(c_loc(out_0)), 'out_0 is passed itself')
        call check(slot(SLOT_OUT_1) == address(c_loc(out_1)), 'out_1 is passed itself')
        call check(slot(SLOT_NK) == LEVELS, 'the size of axis 1 of vn')
        call check(slot(SLOT_OUT_0_START) == 0, 'the origin is 0')
        call check(slot(SLOT_OUT_0_STOP) == LEVELS, 'origin and size')
        call check(slot(SLOT_VN_STOP) == EDGES, 'the size of axis 0 of vn')
        call check(slot(SLOT_VN_STRIDE) == EDGES, 'the stride of axis 1 of vn')
        call check(slot(SLOT_FLAG) == 1, 'flag')
        call check(int(slot(SLOT_X_1_0), c_int32_t) == x_1_0, 'x_1_0')
        call check(slot(SLOT_X_1_1) == transfer(x_1_1, 0_c_int32_t), 'x_1_1')
    end subroutine

    ! The array is larger than the field, as with blocks of nproma; levels are every second one, backwards.
    subroutine sections()
        real(c_double), target :: padded(EDGES + 3, 2 * LEVELS)

        call whole(program, padded(3:EDGES + 2, 2 * LEVELS:1:-2), x_0, x_1_0, x_1_1, flag, &
            padded(2:EDGES + 1, 1::2), out_1, table)
        call check(slot(SLOT_VN) == address(c_loc(padded(3, 2 * LEVELS))), 'the first element of a section')
        call check(int(slot(SLOT_VN_STRIDE), c_int32_t) == -2 * (EDGES + 3), 'a negative stride')
        call check(slot(SLOT_OUT_0) == address(c_loc(padded(2, 1))), 'the first element of the other section')
        call check(slot(SLOT_OUT_0_STRIDE) == 2 * (EDGES + 3), 'every second level')
        call check(slot(SLOT_VN_STOP) == EDGES, 'the size of the section')
        call check(slot(SLOT_NK) == LEVELS, 'its levels')
    end subroutine

    ! Two arrays in turn, one of them a section; an origin that is said meanwhile is that of both.
    subroutine time_levels()
        real(c_double), target :: new(EDGES + 1, LEVELS)
        integer :: step

        do step = 1, 4
            if (step == 3) call gts_set_origin(program, 'out[0]', [0, 7])
            call whole(program, new(:EDGES, :), x_0, x_1_0, x_1_1, flag, out_0, out_1, table)
            call check(slot(SLOT_VN) == address(c_loc(new)), 'the new level')
            call check(slot(SLOT_VN_STRIDE) == EDGES + 1, 'the stride of the new level')
            call check(slot(SLOT_OUT_0_START) == merge(7, 0, step > 2), 'the origin beside the new level')
            call call_well(program)
            call check(slot(SLOT_VN) == address(c_loc(vn)), 'the old level')
            call check(slot(SLOT_VN_STRIDE) == EDGES, 'the stride of the old level')
            call check(slot(SLOT_OUT_0_START) == merge(7, 0, step > 2), 'the origin beside the old level')
        end do
        call gts_set_origin(program, 'out[0]', [0, 0])
    end subroutine

    subroutine empty_sections()
        call whole(program, vn(:, 3:2), x_0(:0), x_1_0, x_1_1, flag, out_0(:, :0), out_1(1:0, :), table)
        call check(slot(SLOT_NK) == 0, 'no levels')
        call check(slot(SLOT_OUT_0_STOP) == 0, 'no levels of out_0')
        call call_well(program)
    end subroutine

    ! They have bounds of their own, which an assumed-shape argument does not carry.
    subroutine arrays_on_the_heap()
        real(c_double), allocatable, target :: own(:, :), empty(:)
        real(c_double), pointer :: there(:, :)

        allocate (own(0:EDGES - 1, -1:LEVELS - 2), empty(5:4))
        there(7:, 8:) => out_1
        call whole(program, own, x_0, x_1_0, x_1_1, flag, there, out_1, table)
        call check(slot(SLOT_VN) == address(c_loc(own)), 'allocatable')
        call check(slot(SLOT_OUT_0) == address(c_loc(out_1)), 'pointer')
        call check(slot(SLOT_OUT_0_START) == 0, 'bounds are not carried')
        call check(slot(SLOT_NK) == LEVELS, 'sizes are')
        call whole(program, own(:, 1:0), empty, x_1_0, x_1_1, flag, there(:, 1:0), out_1, table)
        call check(slot(SLOT_NK) == 0, 'allocated with no element')
    end subroutine

    subroutine origins()
        call gts_set_origin(program, 'out[0]', [0, 2])
        call call_well(program)
        call check(slot(SLOT_OUT_0_START) == 2, 'the origin')
        call check(slot(SLOT_OUT_0_STOP) == 2 + LEVELS, 'the origin and the size')
        call gts_set_origin(program, 'out[0]', [5, -1])
        call call_well(program)
        call check(int(slot(SLOT_OUT_0_START), c_int32_t) == -1, 'another origin')
        call check(slot(SLOT_OUT_0) == address(c_loc(out_0)), 'the memory stays where it is')
        call gts_set_origin(program, 'out[0]', [0, 0])
        call call_well(program)
        call check(slot(SLOT_OUT_0_START) == 0, 'the origin that was the default')
    end subroutine

    ! Some compilers set all bits for true.
    subroutine logicals()
        integer(c_int8_t) :: byte
        integer :: i

        do i = -128, 127
            byte = int(i, c_int8_t)
            call with_flag(transfer(byte, flag))
            call check(slot(SLOT_FLAG) == merge(0, 1, i == 0), 'all but 0 is true')
        end do
    end subroutine

    subroutine with_flag(any)
        logical(c_bool), intent(in) :: any

        call whole(program, vn, x_0, x_1_0, x_1_1, any, out_0, out_1, table)
    end subroutine

    subroutine index_bases()
        call gts_set_index_base(program, 'E2V', 0)
        call call_well(program)
        call check(slot(SLOT_CONN) == address(c_loc(table)), 'a table of base 0 is passed itself')
        call check(slot(SLOT_TABLE_STRIDE) == EDGES, 'its stride')
    end subroutine
end program
