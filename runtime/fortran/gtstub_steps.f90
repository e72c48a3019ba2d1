!
! Bound calls, whose arguments are checked once, and steps, which start several of them in order. Hosts use the module
! gtstub. <name>_bind() of the module <name>_stub binds a call.
!
module gtstub_steps
    use, intrinsic :: iso_c_binding, only: c_bool, c_char, c_double, c_double_complex, c_float, c_float_complex, c_funptr, &
        c_int, c_int16_t, c_int32_t, c_int64_t, c_int8_t, c_loc, c_null_char, c_null_funptr, c_null_ptr, c_ptr, c_size_t
    use gtstub_errors, only: c_string, finish
    implicit none
    private
    public :: gts_bound_call, gts_action, gts_step
    public :: gts_start, gts_unbind, gts_set_scalar
    public :: gts_step_new, gts_step_find, gts_step_run, gts_step_set_scalar, gts_step_swap, gts_step_free

    integer, parameter :: NAME_LENGTH = 128

    ! A call with all its arguments. It is unbound until <name>_bind() is called. A copy of it is the same call.
    type, bind(c) :: gts_bound_call
        type(c_ptr) :: handle = c_null_ptr
    end type

    ! Actions that are done in order. It is freed until gts_step_new() is called. A copy of it is the same step.
    type, bind(c) :: gts_step
        type(c_ptr) :: handle = c_null_ptr
    end type

    ! What a step does at one of its positions: it starts `call`, runs `step`, or calls `function`, which is c_funloc() of
    !     function exchange(data) bind(c) result(status)
    !         type(c_ptr), value :: data
    !         integer(c_int) :: status
    ! or `array_function`, for a function that uses arrays. This is c_funloc() of
    !     function exchange(data, arrays) bind(c) result(status)
    !         type(c_ptr), value :: data
    !         type(c_ptr), intent(in) :: arrays(*)
    !         integer(c_int) :: status
    ! `arrays` is c_loc() of an array of type(c_ptr), which has `array_count` elements: the addresses of the first elements
    ! of the arrays. They are copied. The function gets them as they are after all swaps. A step ends if `status` is not 0.
    ! `name` is that of a function or a step in messages and profiles, without the blanks at its end.
    type :: gts_action
        type(gts_bound_call) :: call = gts_bound_call()
        type(c_funptr) :: function = c_null_funptr
        type(c_ptr) :: data = c_null_ptr
        character(len=NAME_LENGTH) :: name = ''
        type(gts_step) :: step = gts_step()
        type(c_funptr) :: array_function = c_null_funptr
        type(c_ptr) :: arrays = c_null_ptr
        integer(c_size_t) :: array_count = 0
    end type

    ! The struct gts_action of C.
    type, bind(c) :: c_action
        type(gts_bound_call) :: call
        type(c_funptr) :: function
        type(c_ptr) :: data
        type(c_ptr) :: name
        type(gts_step) :: step
        type(c_funptr) :: array_function
        type(c_ptr) :: arrays
        integer(c_size_t) :: array_count
    end type

    ! A scalar of any type, and its number in gts_dtype.
    type :: scalar
        integer(c_int) :: dtype
        integer(c_int8_t) :: bytes(16)
    end type

    enum, bind(c)
        enumerator :: UNKNOWN = 0, BOOL = 1, INT8 = 2, INT16 = 4, INT32 = 6, INT64 = 8, FLOAT32 = 10, FLOAT64 = 11, &
            COMPLEX64 = 13, COMPLEX128 = 14
    end enum

    interface
        function c_start(call) result(status) bind(c, name="gts_start")
            import
            type(c_ptr), value :: call
            integer(c_int) :: status
        end function

        function c_bound_program(call) result(program) bind(c, name="gts_bound_program")
            import
            type(c_ptr), value :: call
            type(c_ptr) :: program
        end function

        subroutine c_unbind(call) bind(c, name="gts_unbind")
            import
            type(gts_bound_call), intent(inout) :: call
        end subroutine

        function c_set_scalar(call, argument, dtype, value) result(status) bind(c, name="gts_set_scalar")
            import
            type(c_ptr), value :: call
            character(kind=c_char), intent(in) :: argument(*)
            integer(c_int), value :: dtype
            integer(c_int8_t), intent(in) :: value(*)
            integer(c_int) :: status
        end function

        function c_step_new(name, actions, count, step) result(status) bind(c, name="gts_step_new")
            import
            character(kind=c_char), intent(in) :: name(*)
            type(c_action), intent(in), target :: actions(*)
            integer(c_size_t), value :: count
            type(gts_step), intent(inout) :: step
            integer(c_int) :: status
        end function

        function c_step_find(name, step) result(status) bind(c, name="gts_step_find")
            import
            character(kind=c_char), intent(in) :: name(*)
            type(gts_step), intent(inout) :: step
            integer(c_int) :: status
        end function

        function c_step_run(step) result(status) bind(c, name="gts_step_run")
            import
            type(c_ptr), value :: step
            integer(c_int) :: status
        end function

        function c_step_set_scalar(step, argument, dtype, value) result(status) bind(c, name="gts_step_set_scalar")
            import
            type(c_ptr), value :: step
            character(kind=c_char), intent(in) :: argument(*)
            integer(c_int), value :: dtype
            integer(c_int8_t), intent(in) :: value(*)
            integer(c_int) :: status
        end function

        function c_step_swap(step, a, b) result(status) bind(c, name="gts_step_swap")
            import
            type(c_ptr), value :: step, a, b
            integer(c_int) :: status
        end function

        function c_step_swap_memory(step, a, b, bytes) result(status) bind(c, name="gts_step_swap_memory")
            import
            type(c_ptr), value :: step, a, b
            integer(c_size_t), value :: bytes
            integer(c_int) :: status
        end function

        function c_step_free(step) result(status) bind(c, name="gts_step_free")
            import
            type(gts_step), intent(inout) :: step
            integer(c_int) :: status
        end function
    end interface

contains

    ! ---- Bound calls -------------------------------------------------------------------------------------------------

    ! Runs a program with the arguments of a bound call.
    recursive subroutine gts_start(call, stat, errmsg)
        type(gts_bound_call), intent(in) :: call
        integer, intent(out), optional :: stat
        character(len=*), intent(inout), optional :: errmsg

        if (c_start(call%handle) /= 0) then
            call finish(-1_c_int, c_bound_program(call%handle), stat, errmsg)
        else if (present(stat)) then
            stat = 0
        end if
    end subroutine

    ! Changes a scalar of a bound call. `argument` is written as in messages: "dtime", "x[0]". `value` has the type that
    ! <name>() takes.
    subroutine gts_set_scalar(call, argument, value, stat, errmsg)
        type(gts_bound_call), intent(in) :: call
        character(len=*), intent(in) :: argument
        class(*), intent(in) :: value
        integer, intent(out), optional :: stat
        character(len=*), intent(inout), optional :: errmsg
        type(scalar) :: new
        integer(c_int) :: status

        new = scalar_of(value)
        status = c_set_scalar(call%handle, c_string(argument), new%dtype, new%bytes)
        call finish(status, c_bound_program(call%handle), stat, errmsg)
    end subroutine

    ! Frees a bound call, which may be unbound already. The steps that contain it keep it until they are freed.
    subroutine gts_unbind(call)
        type(gts_bound_call), intent(inout) :: call

        call c_unbind(call)
    end subroutine

    ! ---- Steps -------------------------------------------------------------------------------------------------------

    ! Makes a step, which copies the actions, and keeps their bound calls and steps. A step that was made before is freed,
    ! unless the new one cannot be made.
    subroutine gts_step_new(name, actions, step, stat, errmsg)
        character(len=*), intent(in) :: name
        type(gts_action), intent(in), target :: actions(:) ! target: addresses in it are kept
        type(gts_step), intent(inout) :: step
        integer, intent(out), optional :: stat
        character(len=*), intent(inout), optional :: errmsg
        type(c_action), target :: copies(size(actions))
        character(kind=c_char), target :: names(NAME_LENGTH + 1, size(actions))
        character(kind=c_char, len=NAME_LENGTH + 1) :: name_of_action
        type(gts_step) :: made
        integer(c_int) :: status
        integer :: i

        do i = 1, size(actions)
            name_of_action = trim(actions(i)%name) // c_null_char
            names(:, i) = transfer(name_of_action, names(:, i))
            copies(i) = c_action(actions(i)%call, actions(i)%function, actions(i)%data, c_null_ptr, actions(i)%step, &
                actions(i)%array_function, actions(i)%arrays, actions(i)%array_count)
            if (actions(i)%name /= '') copies(i)%name = c_loc(names(1, i))
        end do
        status = c_step_new(c_string(name), copies, size(actions, kind=c_size_t), made)
        if (status == 0) status = replace(step, made)
        call finish(status, c_null_ptr, stat, errmsg)
    end subroutine

    ! Finds a step that Python has handed over in this process under a name, without the blanks at its end. A step that was
    ! made or found before is freed, unless there is none of this name. gts_step_free() must be called also after Python
    ! has taken the step back.
    subroutine gts_step_find(name, step, stat, errmsg)
        character(len=*), intent(in) :: name
        type(gts_step), intent(inout) :: step
        integer, intent(out), optional :: stat
        character(len=*), intent(inout), optional :: errmsg
        type(gts_step) :: found
        integer(c_int) :: status

        status = c_step_find(c_string(name), found)
        if (status == 0) status = replace(step, found)
        call finish(status, c_null_ptr, stat, errmsg)
    end subroutine

    ! Frees a step, and puts another one in its place. If it cannot be freed, the other one is freed instead.
    function replace(step, by) result(status)
        type(gts_step), intent(inout) :: step, by
        integer(c_int) :: status, ignored

        status = c_step_free(step)
        if (status == 0) then
            step = by
        else
            ignored = c_step_free(by)
        end if
    end function

    ! Does all actions. After an error, the actions before the one that has failed have been done, and no others.
    recursive subroutine gts_step_run(step, stat, errmsg)
        type(gts_step), intent(in) :: step
        integer, intent(out), optional :: stat
        character(len=*), intent(inout), optional :: errmsg

        if (c_step_run(step%handle) /= 0) then
            call finish(-1_c_int, c_null_ptr, stat, errmsg)
        else if (present(stat)) then
            stat = 0
        end if
    end subroutine

    ! Changes a scalar in all bound calls of a step, and of the steps inside it, that have it, as gts_set_scalar() does.
    subroutine gts_step_set_scalar(step, argument, value, stat, errmsg)
        type(gts_step), intent(in) :: step
        character(len=*), intent(in) :: argument
        class(*), intent(in) :: value
        integer, intent(out), optional :: stat
        character(len=*), intent(inout), optional :: errmsg
        type(scalar) :: new
        integer(c_int) :: status

        new = scalar_of(value)
        status = c_step_set_scalar(step%handle, c_string(argument), new%dtype, new%bytes)
        call finish(status, c_null_ptr, stat, errmsg)
    end subroutine

    ! Exchanges two arrays in all bound calls of a step and among the arrays of its functions, and in the steps inside it,
    ! as models do with time levels. `a` and `b` are c_loc() of their first elements. `bytes` is the size of each array,
    ! c_sizeof(x) for example. It is needed if calls have sections of them alone: an address does not say where the array ends.
    subroutine gts_step_swap(step, a, b, stat, errmsg, bytes)
        type(gts_step), intent(in) :: step
        type(c_ptr), intent(in) :: a, b
        integer, intent(out), optional :: stat
        character(len=*), intent(inout), optional :: errmsg
        integer(c_size_t), intent(in), optional :: bytes
        integer(c_int) :: status

        if (present(bytes)) then
            status = c_step_swap_memory(step%handle, a, b, bytes)
        else
            status = c_step_swap(step%handle, a, b)
        end if
        call finish(status, c_null_ptr, stat, errmsg)
    end subroutine

    ! Frees a step, which may be freed already. A step that contains it keeps it until it is freed itself. A function of
    ! the step cannot free it.
    subroutine gts_step_free(step, stat, errmsg)
        type(gts_step), intent(inout) :: step
        integer, intent(out), optional :: stat
        character(len=*), intent(inout), optional :: errmsg

        call finish(c_step_free(step), c_null_ptr, stat, errmsg)
    end subroutine

    ! ---- Values --------------------------------------------------------------------------------------------------------

    function scalar_of(value) result(copy)
        class(*), intent(in) :: value
        type(scalar) :: copy

        copy = scalar(UNKNOWN, 0_c_int8_t)
        select type (value)
        type is (logical(c_bool))
            copy%dtype = BOOL
            copy%bytes(:1) = transfer(value, copy%bytes(:1)) ! true if any bit is set
        type is (integer(c_int8_t))
            copy%dtype = INT8
            copy%bytes(:1) = transfer(value, copy%bytes(:1))
        type is (integer(c_int16_t))
            copy%dtype = INT16
            copy%bytes(:2) = transfer(value, copy%bytes(:2))
        type is (integer(c_int32_t))
            copy%dtype = INT32
            copy%bytes(:4) = transfer(value, copy%bytes(:4))
        type is (integer(c_int64_t))
            copy%dtype = INT64
            copy%bytes(:8) = transfer(value, copy%bytes(:8))
        type is (real(c_float))
            copy%dtype = FLOAT32
            copy%bytes(:4) = transfer(value, copy%bytes(:4))
        type is (real(c_double))
            copy%dtype = FLOAT64
            copy%bytes(:8) = transfer(value, copy%bytes(:8))
        type is (complex(c_float_complex))
            copy%dtype = COMPLEX64
            copy%bytes(:8) = transfer(value, copy%bytes(:8))
        type is (complex(c_double_complex))
            copy%dtype = COMPLEX128
            copy%bytes = transfer(value, copy%bytes)
        end select
    end function
end module
