! Errors that nobody asks for stop the host. What is to go wrong is the host's argument.
program stops
    use, intrinsic :: iso_c_binding, only: c_double
    use gtstub, only: gts_open, gts_program, gts_set_origin
    use harness, only: open_program
    use whole_arguments, only: call_well, flag, open_and_call, out_0, out_1, table, vn, x_0, x_1_0, x_1_1
    use whole_stub, only: whole
    implicit none
    type(gts_program) :: program
    real(c_double), allocatable :: none(:, :)
    character(len=20) :: what
    character(len=100) :: errmsg

    call get_command_argument(1, what)
    print '(a)', 'before'
    select case (what)
    case ('open')
        call gts_open('./nowhere_stub.so', program)
    case ('origin')
        program = open_program()
        call gts_set_origin(program, 'nothing', [0, 0])
    case ('call')
        program = open_and_call()
        call whole(program, none, x_0, x_1_0, x_1_1, flag, out_0, out_1, table, errmsg=errmsg)
    case ('closed')
        call call_well(program)
    end select
    print '(a)', 'after'
end program
