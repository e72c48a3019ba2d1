! Calls icon4py's program copy_field, new_f = old_f, on 3 cells and 2 levels: host_fortran FOLDER, where the stub lies.
program host
    use, intrinsic :: iso_c_binding, only: c_double
    use gtstub, only: gts_close, gts_open, gts_program
    use copy_field_stub, only: copy_field
    implicit none
    type(gts_program) :: program
    real(c_double) :: old_f(3, 2), padded(5, 2)
    integer :: stat
    character(len=1000) :: folder, errmsg

    call get_command_argument(1, folder)
    call gts_open(trim(folder), program) ! without stat an error stops the host

    old_f = reshape(real([1, 2, 3, 10, 20, 30], c_double), shape(old_f))
    call copy_field(program, old_f, padded(2:4, :), stat, errmsg) ! a section is passed as it is
    if (stat /= 0) error stop trim(errmsg)
    print '(3f6.1)', padded(2:4, :)

    call gts_close(program)
end program
