! Many threads call one program, well and wrongly in turn: one call at a time runs, and each thread gets its own error.
program threads
    use, intrinsic :: iso_c_binding, only: c_double, c_int32_t
    use gtstub, only: gts_close, gts_program, gts_value_error
    use harness, only: call_count, check
    use whole_arguments, only: flag, LEVELS, open_and_call, out_0, out_1, table, vn, x_0, x_1_0, x_1_1
    use whole_stub, only: whole
    implicit none
    integer, parameter :: CALLS = 300
    type(gts_program) :: program
    integer :: i, wrong

    wrong = 0
    program = open_and_call()
    !$omp parallel do num_threads(4) schedule(static, 1) reduction(+:wrong)
    do i = 1, CALLS
        wrong = wrong + merge(0, 1, is_right(i))
    end do
    call check(wrong == 0, 'each call has its own result and its own text')
    call check(call_count() == 1 + CALLS / 2, 'every good call was made')
    call gts_close(program)

contains

    ! Every other call is wrong, in one of two ways, and each of them in its own.
    function is_right(i)
        integer, intent(in) :: i
        logical :: is_right
        integer :: stat, size
        character(len=200) :: errmsg, expected
        real(c_double), allocatable :: column(:)

        if (mod(i, 2) == 0) then
            call whole(program, vn, x_0, x_1_0, x_1_1, flag, out_0, out_1, table, stat, errmsg)
            is_right = stat == 0
            return
        end if
        size = LEVELS + i
        allocate (column(size))
        call whole(program, vn, column, x_1_0, x_1_1, flag, out_0, out_1, table, stat, errmsg)
        write (expected, '(a, i0, a)') "Arguments of program 'whole' disagree: size of dimension 2 of 'vn' is 4, but size of" // &
            " dimension 1 of 'x[0]' is ", size, '.'
        is_right = stat == gts_value_error .and. errmsg == expected
    end function
end program
