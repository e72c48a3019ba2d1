! The program 'ranks': fields of one to six dimensions, whole and as sections, each axis with a step of its own.
program ranks
    use, intrinsic :: iso_c_binding, only: c_double, c_int32_t, c_loc
    use gtstub, only: gts_close, gts_program
    use harness, only: address, check, open_program, slot
    use ranks_stub, only: ranks_ => ranks
    implicit none
    type(gts_program) :: program
    real(c_double), target :: a(4), b(4, 5), c(4, 5, 6), d(4, 5, 6, 3), e(4, 5, 6, 3, 2), f(4, 5, 6, 3, 2, 7)

    program = open_program()
    call ranks_(program, a, b, c, d, e, f)
    call check(slot(0) == address(c_loc(a)), 'a')
    call check(slot(5) == address(c_loc(f)), 'f')
    call check_axes(6, [4], [1])
    call check_axes(8, [4, 5], [1, 4])
    call check_axes(12, [4, 5, 6], [1, 4, 20])
    call check_axes(18, [4, 5, 6, 3], [1, 4, 20, 120])
    call check_axes(26, [4, 5, 6, 3, 2], [1, 4, 20, 120, 360])
    call check_axes(36, [4, 5, 6, 3, 2, 7], [1, 4, 20, 120, 360, 720])

    call ranks_(program, a(4:1:-1), b(2:, ::2), c(:, 5:1:-4, 3:4), d(1:1, :, 6:1:-5, 3:1:-1), e(::3, 2:1, :, :, 2:2), &
        f(4:1:-3, 5:1:-2, ::4, 3:2:-1, 2:1:-1, 7:1:-6))
    call check(slot(0) == address(c_loc(a(4))), 'a, backwards')
    call check_axes(6, [4], [-1])
    call check(slot(1) == address(c_loc(b(2, 1))), 'b')
    call check_axes(8, [3, 3], [1, 8])
    call check(slot(2) == address(c_loc(c(1, 5, 3))), 'c')
    call check_axes(12, [4, 2, 2], [1, -16, 20])
    call check(slot(3) == address(c_loc(d(1, 1, 6, 3))), 'd')
    call check_axes(18, [1, 5, 2, 3], [1, 4, -100, -120])
    call check_axes(26, [2, 0, 6, 3, 1], [3, 4, 20, 120, 360])
    call check(slot(5) == address(c_loc(f(4, 5, 1, 3, 2, 7))), 'f')
    call check_axes(36, [2, 3, 2, 2, 2, 2], [-3, -8, 80, -120, -360, -4320])
    call gts_close(program)

contains

    ! Sizes stand in slots from `first` on, then strides.
    subroutine check_axes(first, sizes, strides)
        integer, intent(in) :: first, sizes(:), strides(:)
        integer :: axis

        do axis = 1, size(sizes)
            call check(int(slot(first + axis - 1), c_int32_t) == sizes(axis), 'a size')
            call check(int(slot(first + size(sizes) + axis - 1), c_int32_t) == strides(axis), 'a stride')
        end do
    end subroutine
end program
