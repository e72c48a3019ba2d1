! Bound calls and steps of a program whose library records what it receives.
module exchanges
    use, intrinsic :: iso_c_binding, only: c_f_pointer, c_int, c_ptr
    use harness, only: call_count
    implicit none

contains

    ! Notes how many calls there were, and returns what it noted before.
    function exchange(data) bind(c) result(status)
        type(c_ptr), value :: data
        integer(c_int) :: status
        integer(c_int), pointer :: seen

        call c_f_pointer(data, seen)
        status = merge(3, 0, seen < 0)
        seen = int(call_count(), c_int)
    end function

    ! Notes the address of an array.
    function note(data, arrays) bind(c) result(status)
        type(c_ptr), value :: data
        type(c_ptr), intent(in) :: arrays(*)
        integer(c_int) :: status
        type(c_ptr), pointer :: seen

        call c_f_pointer(data, seen)
        seen = arrays(1)
        status = 0
    end function
end module

program bound
    use, intrinsic :: iso_c_binding, only: c_bool, c_char, c_double, c_float, c_funloc, c_int, c_int32_t, c_int64_t, &
        c_int8_t, c_loc, c_null_char, c_null_ptr, c_ptr, c_sizeof
    use exchanges, only: exchange, note
    use gtstub, only: gts_action, gts_bound_call, gts_close, gts_program, gts_runtime_error, gts_set_index_base, &
        gts_set_scalar, gts_start, gts_step, gts_step_free, gts_step_new, gts_step_run, gts_step_set_scalar, &
        gts_step_swap, gts_type_error, gts_unbind, gts_value_error
    use harness, only: address, call_count, check, check_refused, check_text, open_program, slot
    use whole_arguments, only: call_well, EDGES, flag, LEVELS, open_and_call, out_0, out_1, SLOT_CONN, SLOT_FLAG, &
        SLOT_OUT_0, SLOT_VN, SLOT_X_1_0, SLOT_X_1_1, table, vn, x_0, x_1_0, x_1_1
    use whole_stub, only: whole, whole_bind
    implicit none
    type(gts_program) :: program
    integer :: stat, calls
    character(len=400) :: errmsg

    program = open_and_call()
    call test_a_bound_call()
    call test_what_is_not_bound()
    call test_binding_anew_is_refused()
    call test_a_step_inside_a_step()
    call test_scalars()
    call test_a_table_of_base_1()
    call test_a_step()
    call test_time_levels()
    call test_a_closed_program()

contains

    subroutine bind(call, x)
        type(gts_bound_call), intent(inout) :: call
        real(c_double), intent(in), target, optional :: x(:)

        if (present(x)) then
            call whole_bind(program, vn, x, x_1_0, x_1_1, flag, out_0, out_1, table, call, stat, errmsg)
        else
            call whole_bind(program, vn, x_0, x_1_0, x_1_1, flag, out_0, out_1, table, call)
        end if
    end subroutine

    subroutine test_a_bound_call()
        type(gts_bound_call) :: call

        calls = call_count()
        call bind(call)
        call check(call_count() == calls, 'binding runs nothing')
        call whole(program, vn(:, EDGES - 2:1:-1), x_0, 7, x_1_1, flag, out_1, out_0, table)
        call gts_start(call)
        call check(call_count() == calls + 2, 'a start runs the program')
        call check(slot(SLOT_VN) == address(c_loc(vn)) .and. slot(SLOT_OUT_0) == address(c_loc(out_0)), 'its arrays')
        call check(int(slot(SLOT_X_1_0), c_int32_t) == x_1_0, 'its scalars')
        call bind(call) ! the other one is unbound
        call gts_start(call, stat)
        call check(stat == 0, 'a good start')
        call gts_unbind(call)
        call gts_unbind(call)
    end subroutine

    subroutine test_what_is_not_bound()
        type(gts_bound_call) :: call
        type(gts_step) :: step
        real(c_double), allocatable, target :: nothing(:)
        character(len=*), parameter :: UNBOUND = 'The call cannot be used: it was unbound, or never bound.', &
            FREED = 'The step cannot be used: it was freed, or never made.'

        calls = call_count()
        call gts_start(call, stat, errmsg)
        call check_refused(stat, gts_runtime_error, errmsg, UNBOUND, calls)
        call whole_bind(program, vn, nothing, x_1_0, x_1_1, flag, out_0, out_1, table, call, stat, errmsg)
        call check_refused(stat, gts_value_error, errmsg, "Argument 'x[0]' of program 'whole' must be allocated or " // &
            'associated.', calls)
        call gts_set_scalar(call, 'flag', flag, stat, errmsg)
        call check_refused(stat, gts_runtime_error, errmsg, UNBOUND, calls)
        call gts_step_run(step, stat, errmsg)
        call check_refused(stat, gts_runtime_error, errmsg, FREED, calls)
        call gts_step_set_scalar(step, 'flag', flag, stat, errmsg)
        call check_refused(stat, gts_runtime_error, errmsg, FREED, calls)
        call gts_step_swap(step, c_loc(vn), c_loc(out_0), stat, errmsg)
        call check_refused(stat, gts_runtime_error, errmsg, FREED, calls)
        call gts_step_new('s', [gts_action()], step, stat, errmsg)
        call check_refused(stat, gts_type_error, errmsg, "Position 1 of step 's' must have either a bound call, a " // &
            'function or a step.', calls)
    end subroutine

    ! What is refused replaces nothing.
    subroutine test_binding_anew_is_refused()
        type(gts_bound_call) :: call
        type(gts_step) :: step
        real(c_double), target :: column(LEVELS + 1)
        real(c_double), allocatable, target :: nothing(:)

        call bind(call)
        call gts_step_new('s', [gts_action(call=call)], step)
        calls = call_count()
        call bind(call, column)
        call check_refused(stat, gts_value_error, errmsg, "Arguments of program 'whole' disagree: size of dimension 2 of " // &
            "'vn' is 4, but size of dimension 1 of 'x[0]' is 5.", calls)
        call whole_bind(program, vn, nothing, x_1_0, x_1_1, flag, out_0, out_1, table, call, stat, errmsg)
        call check_refused(stat, gts_value_error, errmsg, "Argument 'x[0]' of program 'whole' must be allocated or " // &
            'associated.', calls)
        call gts_step_new('t', [gts_action()], step, stat, errmsg)
        call check_refused(stat, gts_type_error, errmsg, "Position 1 of step 't' must have either a bound call, a " // &
            'function or a step.', calls)
        call gts_step_set_scalar(step, 'x[1][0]', 33)
        call gts_step_run(step)
        call check(int(slot(SLOT_X_1_0), c_int32_t) == 33, 'the step still has its call')
        call gts_start(call)
        call check(int(slot(SLOT_X_1_0), c_int32_t) == 33, 'the call is still bound')

        call bind(call) ! the step keeps the other one
        call gts_step_set_scalar(step, 'x[1][0]', 34)
        call gts_start(call)
        call check(int(slot(SLOT_X_1_0), c_int32_t) == x_1_0, 'the new call is not in the step')
        call gts_unbind(call)
        call gts_step_run(step)
        call check(int(slot(SLOT_X_1_0), c_int32_t) == 34, 'the step has the call that was unbound')
        call gts_step_free(step)
    end subroutine

    subroutine test_a_step_inside_a_step()
        type(gts_bound_call) :: call
        type(gts_step) :: inner, outer
        type(c_ptr), target :: arrays(1), seen

        call bind(call)
        arrays = c_loc(out_0)
        call gts_step_new('inner', [gts_action(call=call), gts_action(array_function=c_funloc(note), data=c_loc(seen), &
            arrays=c_loc(arrays), array_count=1)], inner)
        call gts_step_new('outer', [gts_action(step=inner)], outer)
        call gts_unbind(call)
        call gts_step_free(inner)
        call gts_step_run(outer)
        call check(address(seen) == address(c_loc(out_0)), 'the array of the function')
        call gts_step_swap(outer, c_loc(out_0), c_loc(vn))
        call gts_step_set_scalar(outer, 'x[1][0]', 21)
        call gts_step_run(outer)
        call check(slot(SLOT_VN) == address(c_loc(out_0)) .and. slot(SLOT_OUT_0) == address(c_loc(vn)), 'swapped inside')
        call check(int(slot(SLOT_X_1_0), c_int32_t) == 21, 'set inside')
        call check(address(seen) == address(c_loc(vn)), 'the function gets the array as it is now')
        call gts_step_free(outer)
    end subroutine

    subroutine test_scalars()
        type(gts_bound_call) :: call
        real(c_float) :: found

        call bind(call)
        call gts_set_scalar(call, 'x[1][0]', 12)
        call gts_set_scalar(call, 'x[1][1]', 0.25_c_float)
        call gts_set_scalar(call, 'flag', .false._c_bool)
        call gts_start(call)
        found = transfer(int(slot(SLOT_X_1_1), c_int32_t), found)
        call check(int(slot(SLOT_X_1_0), c_int32_t) == 12 .and. found == 0.25 .and. iand(slot(SLOT_FLAG), 255_c_int64_t) &
            == 0, 'the new scalars')
        call gts_set_scalar(call, 'flag', transfer(-1_c_int8_t, flag)) ! true, as some compilers write it
        call gts_start(call)
        call check(iand(slot(SLOT_FLAG), 255_c_int64_t) == 1, 'a logical with all bits')
        calls = call_count()
        call gts_set_scalar(call, 'x[1][0]', 12_c_int64_t, stat, errmsg)
        call check_refused(stat, gts_type_error, errmsg, &
            "...'int32', not 'int64'.", calls)
        call gts_set_scalar(call, 'x[1][1]', 1.0_c_double, stat, errmsg)
        call check_refused(stat, gts_type_error, errmsg, &
            "...'float32', not 'float64'.", calls)
        call gts_set_scalar(call, 'flag', .true., stat, errmsg)
        call check_refused(stat, gts_type_error, errmsg, &
            "...'bool', not 'unknown dtype'.", calls)
        call gts_set_scalar(call, 'flag', 1_c_int8_t, stat, errmsg)
        call check_refused(stat, gts_type_error, errmsg, &
            "...'bool', not 'int8'.", calls)
        call gts_set_scalar(call, 'vn', 1.0_c_double, stat, errmsg)
        call check_refused(stat, gts_type_error, errmsg, &
            "Argument 'vn' of program 'whole' is not a scalar: bind the call again to change it.", calls)
        call gts_set_scalar(call, 'y', 1.0_c_double, stat, errmsg)
        call check_refused(stat, gts_type_error, errmsg, "Program 'whole' has no argument 'y'.", calls)
        call gts_start(call)
        call check(int(slot(SLOT_X_1_0), c_int32_t) == 12, 'a refused scalar changes nothing')
        call gts_unbind(call)
    end subroutine

    ! The bound call keeps the copy of the table that begins at 0, whatever the program forgets.
    subroutine test_a_table_of_base_1()
        type(gts_bound_call) :: call
        integer(c_int64_t) :: copy
        integer(c_int32_t) :: others(EDGES, 2, 3)
        integer :: i

        others = 1
        call bind(call)
        call gts_start(call)
        copy = slot(SLOT_CONN)
        call check(copy /= address(c_loc(table)), 'the table is copied')
        do i = 1, 3
            call whole(program, vn, x_0, x_1_0, x_1_1, flag, out_0, out_1, others(:, :, i))
            call gts_set_index_base(program, 'E2V', 1)
        end do
        call gts_start(call)
        call check(slot(SLOT_CONN) == copy, 'the copy is kept')
        call gts_unbind(call)
    end subroutine

    subroutine test_a_step()
        type(gts_bound_call) :: a, b
        type(gts_step) :: step
        integer(c_int), target :: seen

        call bind(a)
        call bind(b)
        calls = call_count()
        call gts_step_new('run', [gts_action(call=a), gts_action(function=c_funloc(exchange), data=c_loc(seen), &
            name='halo'), gts_action(call=b), gts_action(call=a)], step)
        seen = 0
        call gts_step_run(step)
        call check(call_count() == calls + 3 .and. seen == calls + 1, 'all is done in order')
        call gts_step_set_scalar(step, 'x[1][0]', 21, stat)
        call gts_step_run(step, stat)
        call check(stat == 0 .and. int(slot(SLOT_X_1_0), c_int32_t) == 21, 'scalars are changed everywhere')
        calls = call_count()
        call gts_step_set_scalar(step, 'x[1][0]', 1.0_c_double, stat, errmsg)
        call check_refused(stat, gts_type_error, errmsg, "...'int32', not 'float64'. Nothing has changed.", calls)
        seen = -1
        call gts_step_run(step, stat, errmsg)
        call check_refused(stat, gts_runtime_error, errmsg, "Step 'run' has stopped at position 2 of 4, function 'halo': " &
            // 'it has returned 3. Position 1 has run.', calls + 1)
        seen = -1
        call gts_step_new(' ', [gts_action(function=c_funloc(exchange), data=c_loc(seen))], step)
        call gts_step_run(step, stat, errmsg)
        call check_refused(stat, gts_runtime_error, errmsg, "Step 'unnamed' has stopped at position 1 of 1, function " // &
            "'unnamed': it has returned 3.", calls + 1)
        call gts_step_new('other', [gts_action(call=b)], step) ! the other one is freed
        call gts_step_run(step)
        call gts_step_free(step)
        call gts_step_free(step)
        call gts_unbind(a)
        call gts_unbind(b)
    end subroutine

    subroutine test_time_levels()
        type(gts_bound_call) :: call
        type(gts_step) :: step

        call bind(call)
        call gts_step_new('run', [gts_action(call=call)], step)
        call gts_step_swap(step, c_loc(out_0), c_loc(vn))
        call gts_step_run(step)
        call check(slot(SLOT_VN) == address(c_loc(out_0)) .and. slot(SLOT_OUT_0) == address(c_loc(vn)), 'swapped')
        call gts_step_swap(step, c_loc(out_0), c_loc(vn), bytes=c_sizeof(vn))
        call gts_step_run(step)
        call check(slot(SLOT_VN) == address(c_loc(vn)) .and. slot(SLOT_OUT_0) == address(c_loc(out_0)), 'swapped back')
        calls = call_count()
        call gts_step_swap(step, c_loc(out_0), c_loc(vn), stat, errmsg, c_sizeof(vn) - 8)
        call check_refused(stat, gts_value_error, errmsg, "...has elements of the second array that is swapped, and " // &
            "others: it would have both arrays. Nothing has changed.", calls)
        call gts_step_swap(step, c_null_ptr, c_loc(vn), stat, errmsg)
        call check_refused(stat, gts_value_error, errmsg, &
            "Arrays of step 'run' cannot be swapped: no program of it has the first one.", calls)
        call gts_step_free(step)
        call gts_unbind(call)
    end subroutine

    subroutine test_a_closed_program()
        type(gts_bound_call) :: call

        call bind(call)
        call gts_close(program)
        calls = 0
        call gts_start(call, stat, errmsg)
        call check(stat == gts_runtime_error, 'an error')
        call check_text(errmsg, "The bound call of program 'whole' cannot be used: the program was closed.")
        call bind(call, x_0)
        call check_text(errmsg, "Program 'whole' is not open: it was closed, or never opened.")
        call gts_unbind(call)
    end subroutine
end program
