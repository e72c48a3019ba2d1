! What host.c does, in Fortran.
program host
    use, intrinsic :: iso_c_binding, only: c_double
    use gtstub, only: gts_program, gts_open, gts_close
    use scale_stub, only: scale
    implicit none
    type(gts_program) :: handle
    real(c_double) :: x(3) = [1.0_c_double, 2.0_c_double, 3.0_c_double]
    real(c_double) :: out(3)

    call gts_open(ENTRY, handle)
    call scale(handle, x, 2.5_c_double, out)
    print '(3f4.1)', out
    call gts_close(handle)
end program host
