! Complex numbers of a Fortran host: arrays, scalars by value, functions, and changes of a bound call.
module functions
    use, intrinsic :: iso_c_binding, only: c_double_complex, c_float_complex, c_ptr
    implicit none

contains

    function turn(w, z, data) bind(c)
        complex(c_float_complex), value :: w
        complex(c_double_complex), value :: z
        type(c_ptr), value :: data
        complex(c_double_complex) :: turn

        turn = cmplx(w, kind=c_double_complex) * z
    end function

    subroutine parts(z, narrow, twice, data) bind(c)
        complex(c_double_complex), value :: z
        complex(c_float_complex), intent(out) :: narrow
        complex(c_double_complex), intent(out) :: twice
        type(c_ptr), value :: data

        narrow = cmplx(conjg(z), kind=c_float_complex)
        twice = 2 * z
    end subroutine
end module

program waves
    use, intrinsic :: iso_c_binding, only: c_double, c_double_complex, c_float_complex, c_funloc
    use gtstub, only: gts_bound_call, gts_close, gts_open, gts_program, gts_set_scalar, gts_start, gts_type_error, gts_unbind
    use functions, only: parts, turn
    use waves_stub, only: run => waves, waves_bind
    implicit none
    type(gts_program) :: program
    type(gts_bound_call) :: bound
    complex(c_double_complex), target :: wide(4), padded(8)
    complex(c_float_complex), target :: half(2)
    integer :: stat
    character(len=100) :: errmsg

    call gts_open('./waves_stub.so', program)
    call run(program, wide, half, (1.0, -2.0), 0.5_c_double, (3.0_c_double, 0.25_c_double), c_funloc(turn), &
        c_funloc(parts))
    call check((1.0, -2.0), (3.0_c_double, 0.25_c_double), wide)
    call run(program, padded(2::2), half, (0.0, 1.0), 0.5_c_double, (1.0_c_double, 0.0_c_double), c_funloc(turn), &
        c_funloc(parts))
    call check((0.0, 1.0), (1.0_c_double, 0.0_c_double), padded(2::2))

    call waves_bind(program, wide, half, (0.0, 0.0), 0.5_c_double, (0.0_c_double, 0.0_c_double), c_funloc(turn), &
        c_funloc(parts), bound)
    call gts_set_scalar(bound, 'w', (-1.0, 1.0))
    call gts_set_scalar(bound, 'z', (0.5_c_double, -4.0_c_double))
    call gts_start(bound)
    call check((-1.0, 1.0), (0.5_c_double, -4.0_c_double), wide)
    call gts_set_scalar(bound, 'z', (0.5, -4.0), stat, errmsg)
    if (stat /= gts_type_error) error stop 'another kind is taken'
    if (errmsg /= "Argument 'z' of program 'waves' must have dtype 'complex128', not 'complex64'.") error stop errmsg
    call gts_unbind(bound)
    call gts_close(program)

contains

    subroutine check(w, z, found)
        complex(c_float_complex), intent(in) :: w
        complex(c_double_complex), intent(in) :: z, found(4)

        if (any(found /= [z, 0.5_c_double * z, cmplx(w, kind=c_double_complex) * z, 2 * z])) error stop 'wide'
        if (half(1) /= w .or. half(2) /= cmplx(conjg(z), kind=c_float_complex)) error stop 'half'
    end subroutine
end program
