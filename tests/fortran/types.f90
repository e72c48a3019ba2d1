! The program 'types': a field and a scalar of every type; signed integers stand for unsigned ones.
program types
    use, intrinsic :: iso_c_binding, only: c_bool, c_double, c_float, c_int16_t, c_int32_t, c_int64_t, c_int8_t, c_loc
    use gtstub, only: gts_close, gts_program
    use harness, only: address, check, open_program, slot
    use types_stub, only: types_ => types
    implicit none
    integer(c_int64_t), parameter :: LAST_BYTE = 255
    type(gts_program) :: program
    logical(c_bool), target :: bool(2)
    integer(c_int8_t), target :: int8(2), uint8(2)
    integer(c_int16_t), target :: int16(2), uint16(2)
    integer(c_int32_t), target :: int32(2), uint32(2)
    integer(c_int64_t), target :: int64(2), uint64(2)
    real(c_float), target :: float32(2)
    real(c_double), target :: float64(2)

    program = open_program()
    call types_(program, bool, int8, uint8, int16, uint16, int32, uint32, int64, uint64, float32, float64, .true._c_bool, &
        -1_c_int8_t, -2_c_int8_t, -3_c_int16_t, -4_c_int16_t, -5_c_int32_t, -6_c_int32_t, -7_c_int64_t, -8_c_int64_t, &
        1.5, 2.5_c_double)
    call check(slot(0) == address(c_loc(bool)), 'bool')
    call check(slot(1) == address(c_loc(float32)), 'float32')
    call check(slot(2) == address(c_loc(float64)), 'float64')
    call check(slot(3) == address(c_loc(int16)), 'int16')
    call check(slot(4) == address(c_loc(int32)), 'int32')
    call check(slot(5) == address(c_loc(int64)), 'int64')
    call check(slot(6) == address(c_loc(int8)), 'int8')
    call check(slot(7) == address(c_loc(uint16)), 'uint16')
    call check(slot(8) == address(c_loc(uint32)), 'uint32')
    call check(slot(9) == address(c_loc(uint64)), 'uint64')
    call check(slot(10) == address(c_loc(uint8)), 'uint8')
    call check(slot(11) == 1, 'scalar bool')
    call check(slot(12) == transfer(1.5, 0_c_int32_t), 'scalar float32')
    call check(slot(13) == transfer(2.5_c_double, 0_c_int64_t), 'scalar float64')
    call check(int(slot(14), c_int16_t) == -3, 'scalar int16')
    call check(int(slot(15), c_int32_t) == -5, 'scalar int32')
    call check(slot(16) == -7, 'scalar int64')
    call check(iand(slot(17), LAST_BYTE) == LAST_BYTE, 'scalar int8')
    call check(slot(18) == 65532, 'scalar uint16')
    call check(slot(19) == 4294967290_c_int64_t, 'scalar uint32')
    call check(slot(20) == -8, 'scalar uint64')
    call check(slot(21) == 254, 'scalar uint8')
    call gts_close(program)
end program
