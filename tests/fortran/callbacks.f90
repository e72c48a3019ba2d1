! Functions of a Fortran host that an SDFG calls: their arguments and results, and what is refused.
module functions
    use, intrinsic :: iso_c_binding, only: c_bool, c_double, c_float, c_int32_t, c_ptr, c_associated
    implicit none
    integer :: seen = 0
    logical :: has_data = .false.

contains

    function now(data) bind(c)
        type(c_ptr), value :: data
        real(c_double) :: now

        has_data = has_data .or. c_associated(data)
        now = 2.0_c_double
    end function

    subroutine see(x, y, data) bind(c)
        real(c_double), intent(in) :: x(4)
        real(c_float), intent(in) :: y(4, 3)
        type(c_ptr), value :: data

        has_data = has_data .or. c_associated(data)
        if (x(1) == 2.0_c_double .and. all(y == 1.0_c_float)) seen = seen + 1
    end subroutine

    function weigh(a, i, is_last, data) bind(c)
        real(c_double), value :: a
        integer(c_int32_t), value :: i
        logical(c_bool), value :: is_last
        type(c_ptr), value :: data
        logical(c_bool) :: weigh

        weigh = a == 0.5_c_double .and. (is_last .eqv. i == 1) .and. is_last .and. .not. c_associated(data)
    end function

    subroutine smooth(memory, result, data) bind(c)
        real(c_double), intent(in) :: memory(3, 9)
        real(c_double), intent(inout) :: result(4)
        type(c_ptr), value :: data

        has_data = has_data .or. c_associated(data)
        result(2:) = memory(1, 2:4)
    end subroutine

    subroutine split(a, count, tile, data) bind(c)
        real(c_double), value :: a
        integer(c_int32_t), intent(out) :: count
        real(c_float), intent(out) :: tile(3, 4)
        type(c_ptr), value :: data

        has_data = has_data .or. c_associated(data)
        count = int(8 * a, c_int32_t)
        tile = 1.0_c_float
    end subroutine
end module

program callbacks
    use, intrinsic :: iso_c_binding, only: c_double, c_float, c_funloc, c_funptr, c_null_funptr
    use gtstub, only: gts_bound_call, gts_close, gts_open, gts_program, gts_start, gts_type_error, gts_unbind
    use calling_stub, only: calling, calling_bind
    use functions, only: has_data, now, see, seen, smooth, split, weigh
    implicit none
    type(gts_program) :: program
    type(gts_bound_call) :: bound
    real(c_double), target :: x(4)
    real(c_float), target :: y(4, 3)
    integer :: stat
    character(len=100) :: errmsg

    call gts_open('./calling_stub.so', program)
    x = 0
    y = 1
    call call_with(c_funloc(smooth))
    if (stat /= 0) error stop errmsg
    if (any(x /= [6, 103, 6, 9])) error stop 'the results do not come back'
    if (any(y /= 2)) error stop 'the tile does not come back'
    if (seen /= 1) error stop 'the arguments do not arrive'
    if (has_data) error stop 'there are data'

    call call_with(c_null_funptr)
    if (stat /= gts_type_error) error stop 'NULL is not refused'
    if (errmsg /= "Argument 'smooth' of program 'calling' must be a function, not NULL.") error stop 'another text'
    if (seen /= 1) error stop 'something was called'

    call calling_bind(program, x, y, 0.5_c_double, c_funloc(now), c_funloc(see), c_funloc(weigh), c_funloc(smooth), &
        c_funloc(split), bound)
    if (seen /= 1) error stop 'something was called'
    x = 0
    y = 1
    call gts_start(bound)
    if (any(x /= [6, 103, 6, 9]) .or. any(y /= 2) .or. seen /= 2) error stop 'a bound call does not call them'
    call gts_unbind(bound)
    call gts_close(program)

contains

    subroutine call_with(smooths)
        type(c_funptr), intent(in) :: smooths

        call calling(program, x, y, 0.5_c_double, c_funloc(now), c_funloc(see), c_funloc(weigh), smooths, &
            c_funloc(split), stat, errmsg)
    end subroutine
end program
