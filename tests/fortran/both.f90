! A program that is called from Fortran and from C in turn, with the same arrays: each says its own origins.
program both
    use, intrinsic :: iso_c_binding, only: c_double, c_int32_t, c_int64_t
    use gtstub, only: gts_close, gts_program
    use harness, only: check, slot
    use whole_arguments, only: call_well, open_and_call, out_0, out_1, table, vn, x_0, SLOT_OUT_0_START
    implicit none

    interface
        subroutine call_from_c(program, vn, x_0, out_0, out_1, table, start) bind(c)
            import
            type(gts_program), intent(in) :: program
            real(c_double), intent(in) :: vn(*), x_0(*)
            real(c_double), intent(inout) :: out_0(*), out_1(*)
            integer(c_int32_t), intent(in) :: table(*)
            integer(c_int64_t), value :: start
        end subroutine
    end interface

    type(gts_program) :: program
    integer :: i

    program = open_and_call()
    do i = 1, 3
        call call_from_c(program, vn, x_0, out_0, out_1, table, 2_c_int64_t)
        call check(slot(SLOT_OUT_0_START) == 2, 'the origin that C says')
        call call_well(program)
        call check(slot(SLOT_OUT_0_START) == 0, 'the origin that Fortran has')
        call call_well(program)
        call check(slot(SLOT_OUT_0_START) == 0, 'the same once more')
        call call_from_c(program, vn, x_0, out_0, out_1, table, 0_c_int64_t)
        call check(slot(SLOT_OUT_0_START) == 0, 'the same from C')
    end do
    call gts_close(program)
end program
