! A Fortran host of the granule 'tiny' (tests/support/granules.py): host SCENARIO FOLDER [INPUT OUTPUT]. Its arrays have
! the elements of the input, whose axes are in the other order, and the output is in the order of Python.
module model
    use, intrinsic :: iso_c_binding, only: c_double, c_f_pointer, c_funloc, c_int, c_int32_t, c_ptr
    use gtstub, only: gts_array
    use tiny_granule, only: tiny_t
    implicit none
    private
    public :: arrays, read_input, bind, exchange, use_granule, write_arrays, check, check_refused, hook_calls, running

    integer, parameter :: ROWS = 4, LEVELS = 5, EDGES = 6, VERTICES = 4, POINTS = 7

    integer :: hook_calls = 0
    type(tiny_t) :: running ! for use_granule()

    type :: arrays
        real(c_double), allocatable :: u(:, :), w(:, :), line(:), edges(:, :), vertices(:, :)
        integer(c_int32_t), allocatable :: v2e(:, :)
    end type

contains

    subroutine check(holds, what)
        logical, intent(in) :: holds
        character(len=*), intent(in) :: what

        if (.not. holds) error stop 'does not hold: ' // what
    end subroutine

    subroutine check_refused(stat, errmsg, expected)
        integer, intent(in) :: stat
        character(len=*), intent(in) :: errmsg, expected

        if (stat /= 0 .and. errmsg == expected) return
        print '(a)', '  found    ' // trim(errmsg), '  expected ' // trim(expected)
        error stop 'another text was expected'
    end subroutine

    subroutine read_input(file, self)
        character(len=*), intent(in) :: file
        type(arrays), intent(out) :: self
        integer :: unit

        allocate (self%u(ROWS, LEVELS), self%w(ROWS, LEVELS), self%line(POINTS), self%edges(EDGES, LEVELS))
        allocate (self%vertices(VERTICES, LEVELS), self%v2e(VERTICES, 2))
        open (newunit=unit, file=file, access='stream', form='unformatted', action='read', status='old')
        read (unit) self%u, self%w, self%line, self%edges, self%vertices, self%v2e
        close (unit)
    end subroutine

    subroutine bind(granule, self)
        type(tiny_t), intent(in) :: granule
        type(arrays), intent(in), target :: self

        call granule%bind(self%u, self%w, self%line, self%edges, self%vertices, self%v2e, c_funloc(exchange), 1)
    end subroutine

    function exchange(data, passed) bind(c) result(status)
        type(c_ptr), value :: data
        type(gts_array), intent(in) :: passed(*)
        integer(c_int) :: status
        real(c_double), pointer :: w(:, :)
        real(c_double) :: second(LEVELS)

        associate (unused => data)
        end associate
        hook_calls = hook_calls + 1
        call check(passed(1)%rank == 2 .and. all(passed(1)%shape(:2) == [ROWS, LEVELS]), 'the shape of the array')
        call check(all(passed(1)%strides(:2) == [1, ROWS]), 'the strides of the array')
        call c_f_pointer(passed(1)%data, w, [ROWS, LEVELS])
        second = w(2, :)
        w(1, :) = w(ROWS - 1, :)
        w(ROWS, :) = second
        status = 0
    end function

    ! A hook that uses the granule that has called it.
    function use_granule(data, passed) bind(c) result(status)
        type(c_ptr), value :: data
        type(gts_array), intent(in) :: passed(*)
        integer(c_int) :: status
        type(tiny_t) :: copy
        integer :: stat
        character(len=500) :: errmsg
        character(len=*), parameter :: IS_RUNNING = &
            "Granule 'tiny' is running, in another thread or because one of its hooks uses it."

        copy = running
        call copy%run(0.5_c_double, stat, errmsg)
        call check_refused(stat, errmsg, IS_RUNNING)
        call copy%swap('u', 'w', stat, errmsg)
        call check_refused(stat, errmsg, IS_RUNNING)
        call copy%unbind(stat, errmsg)
        call check_refused(stat, errmsg, IS_RUNNING)
        call copy%close(stat, errmsg)
        call check_refused(stat, errmsg, IS_RUNNING)
        call copy%open('nowhere', stat, errmsg)
        call check_refused(stat, errmsg, IS_RUNNING)
        status = exchange(data, passed)
    end function

    subroutine write_arrays(unit, granule)
        integer, intent(in) :: unit
        type(tiny_t), intent(in) :: granule
        real(c_double), pointer :: matrix(:, :), vector(:)

        nullify (matrix, vector)
        call granule%get('u', matrix)
        write (unit) transpose(matrix)
        call granule%get('w', matrix)
        write (unit) transpose(matrix)
        call granule%get('line', vector)
        write (unit) vector
        call granule%get('edges', matrix)
        write (unit) transpose(matrix)
        call granule%get('vertices', matrix)
        write (unit) transpose(matrix)
        call granule%get('coefficients', matrix)
        call check(all(lbound(matrix) == 1) .and. all(shape(matrix) == [ROWS, LEVELS - 1]), 'bounds of a pointer')
        write (unit) transpose(matrix)
        call granule%get('work', matrix)
        write (unit) transpose(matrix)
        call granule%get('history', vector)
        write (unit) vector
    end subroutine
end module

program host
    use, intrinsic :: iso_c_binding, only: c_double, c_funloc, c_null_funptr
    use gtstub, only: gts_runtime_error, gts_type_error, gts_value_error
    use model, only: arrays, bind, check, check_refused, exchange, hook_calls, read_input, running, use_granule, &
        write_arrays
    use tiny_granule, only: tiny_t
    implicit none
    character(len=500) :: scenario, folder, input, output
    integer :: unit

    call get_command_argument(1, scenario)
    call get_command_argument(2, folder)
    call get_command_argument(3, input)
    call get_command_argument(4, output)
    if (output /= '') open (newunit=unit, file=output, access='stream', form='unformatted', action='write', status='new')
    select case (scenario)
    case ('run')
        call run()
    case ('again')
        call again()
    case ('refusals')
        call refusals()
    case ('hooks')
        call hooks()
    case ('looks')
        call looks()
    case ('closed')
        call closed()
    case ('stops')
        call stops()
    case default
        error stop 'there is no such scenario'
    end select

contains

    subroutine run()
        type(tiny_t) :: granule
        type(arrays), target :: own

        call read_input(input, own)
        call granule%open(folder)
        call bind(granule, own)
        call granule%run(0.5_c_double)
        call granule%first(0.25_c_double)
        call granule%run(0.25_c_double)
        call write_arrays(unit, granule)
        call granule%swap('u', 'w')
        call granule%run(-1.5_c_double)
        call write_arrays(unit, granule)
        call granule%swap('w', 'u')
        call granule%run(-1.5_c_double)
        call granule%unbind()
        call bind(granule, own)
        call granule%run(-1.5_c_double)
        call write_arrays(unit, granule)
        call granule%close()
        call granule%close()
    end subroutine

    ! A granule that is opened again begins from the file; open() closes what is open.
    subroutine again()
        type(tiny_t) :: granule
        type(arrays), target :: own
        integer :: i

        do i = 1, 2
            call read_input(input, own)
            call granule%open(folder)
            call bind(granule, own)
            call granule%run(0.5_c_double)
            call write_arrays(unit, granule)
        end do
        call granule%close()
    end subroutine

    subroutine refusals()
        type(tiny_t) :: granule
        type(arrays), target :: own, other
        real(c_double), allocatable, target :: missing(:, :)
        real(c_double), pointer :: pointer(:)
        integer :: stat
        character(len=500) :: errmsg

        call read_input(input, own)
        call granule%run(0.5_c_double, stat, errmsg)
        call check_refused(stat, errmsg, 'The granule is not open.')
        call check(stat == gts_runtime_error, 'kind')
        call granule%bind(own%u, own%w, own%line, own%edges, own%vertices, own%v2e, c_funloc(exchange), 1, stat=stat, &
            errmsg=errmsg)
        call check_refused(stat, errmsg, 'The granule is not open.')
        call granule%open(folder, stat, errmsg)
        call check(stat == 0, 'open')
        call granule%run(0.5_c_double, stat, errmsg)
        call check_refused(stat, errmsg, "Granule 'tiny' is not bound: bind its arguments first.")
        call bind(granule, own)
        other = own
        call granule%bind(missing, other%w, other%line, other%edges, other%vertices, other%v2e, c_funloc(exchange), 1, &
            stat=stat, errmsg=errmsg)
        call check_refused(stat, errmsg, "Argument 'u' of granule 'tiny' must be allocated or associated.")
        call check(stat == gts_value_error, 'kind')
        call granule%bind(other%u(:, 2:), other%w, other%line, other%edges, other%vertices, other%v2e, &
            c_funloc(exchange), 1, stat=stat, errmsg=errmsg)
        call check_refused(stat, errmsg, &
            "Argument 'u' of granule 'tiny' must have 5 elements on dimension 2 ('K'), as when it was exported, not 4.")
        call check(stat == gts_value_error, 'kind')
        call granule%bind(other%u, other%u, other%line, other%edges, other%vertices, other%v2e, c_funloc(exchange), 1, &
            stat=stat, errmsg=errmsg)
        call check_refused(stat, errmsg, "Argument 'u' of granule 'tiny' shares memory with array 'w', but did not " // &
            "when the granule was exported, and a step writes one.")
        call granule%bind(other%u, other%w, other%line, other%edges, other%vertices, other%v2e, c_null_funptr, 1, &
            stat=stat, errmsg=errmsg)
        call check_refused(stat, errmsg, "Hook 'exchange' of granule 'tiny' is missing: it must be a function.")
        call granule%bind(other%u, other%w, other%line, other%edges, other%vertices, other%v2e, c_funloc(exchange), 2, &
            stat=stat, errmsg=errmsg)
        call check_refused(stat, errmsg, "The index base of granule 'tiny' must be 0 or 1, not 2.")
        deallocate (other%line)
        allocate (other%line(14))
        call granule%bind(other%u, other%w, other%line(::2), other%edges, other%vertices, other%v2e, &
            c_funloc(exchange), 1, stat=stat, errmsg=errmsg)
        call check(stat == gts_value_error .and. index(errmsg, "must have stride 1 on dimension 1 (") > 0, trim(errmsg))
        nullify (pointer)
        call granule%get('u', pointer, stat, errmsg)
        call check_refused(stat, errmsg, "Array 'u' of granule 'tiny' has type 'float64' and rank 2: a pointer of " // &
            "type 'float64' and rank 1 cannot point to it.")
        call check(stat == gts_type_error, 'kind')
        call check(.not. associated(pointer), 'a refused pointer stays as it is')
        call granule%get('nothing', pointer, stat, errmsg)
        call check_refused(stat, errmsg, "Granule 'tiny' has no array 'nothing'.")
        call granule%swap('u', 'edges', stat, errmsg)
        call check_refused(stat, errmsg, "Arrays 'u' and 'edges' of granule 'tiny' cannot be swapped: they differ in " // &
            "type, size or stride.")
        call check(hook_calls == 0, 'nothing has run')
        call granule%run(0.5_c_double, stat)
        call check(stat == 0, 'the earlier binding runs')
        call write_arrays(unit, granule)
        call granule%close()
    end subroutine

    subroutine looks()
        type(tiny_t) :: granule
        real(c_double), pointer :: coefficients(:, :)

        call granule%open(folder)
        call granule%get('coefficients', coefficients)
    end subroutine

    subroutine hooks()
        type(arrays), target :: own

        call read_input(input, own)
        call running%open(folder)
        call running%bind(own%u, own%w, own%line, own%edges, own%vertices, own%v2e, c_funloc(use_granule), 1)
        call running%run(0.5_c_double)
        call check(hook_calls == 1, 'the hook was called')
        call write_arrays(unit, running)
        call running%close()
    end subroutine

    subroutine closed()
        type(tiny_t) :: granule, copy
        type(arrays), target :: own
        real(c_double), pointer :: matrix(:, :)
        integer :: stat
        character(len=500) :: errmsg
        character(len=*), parameter :: WAS_CLOSED = "Granule 'tiny' is not open: it was closed."

        call read_input(input, own)
        call granule%open(folder)
        call bind(granule, own)
        call granule%run(0.5_c_double)
        call write_arrays(unit, granule)
        copy = granule
        call granule%close(stat)
        call check(stat == 0, 'close')
        call copy%run(0.5_c_double, stat, errmsg)
        call check_refused(stat, errmsg, WAS_CLOSED)
        call copy%bind(own%u, own%w, own%line, own%edges, own%vertices, own%v2e, c_funloc(exchange), 1, stat=stat, &
            errmsg=errmsg)
        call check_refused(stat, errmsg, WAS_CLOSED)
        call copy%swap('u', 'w', stat, errmsg)
        call check_refused(stat, errmsg, WAS_CLOSED)
        nullify (matrix)
        call copy%get('work', matrix, stat, errmsg)
        call check_refused(stat, errmsg, WAS_CLOSED)
        call copy%unbind(stat)
        call check(stat == 0, 'unbind')
        call copy%close(stat)
        call check(stat == 0, 'close again')
    end subroutine

    subroutine stops()
        type(tiny_t) :: granule

        call granule%open(folder)
    end subroutine
end program
