! A Fortran host of the granule 'tiny' without its module: its compiler lets pass what the module would not.
program untyped
    use, intrinsic :: iso_c_binding
    implicit none

    interface
        function open(folder, granule) result(status) bind(c, name="tiny_open")
            import
            character(kind=c_char), intent(in) :: folder(*)
            type(c_ptr), intent(out) :: granule
            integer(c_int) :: status
        end function
        function bind(granule, u, w, line, edges, vertices, v2e, exchange, data, index_base) result(status) &
            bind(c, name="tiny_fortran_bind")
            import
            type(c_ptr), value :: granule, data
            type(*), intent(in), optional :: u(..), w(..), line(..), edges(..), vertices(..), v2e(..)
            type(c_funptr), value :: exchange
            integer(c_int64_t), value :: index_base
            integer(c_int) :: status
        end function
        function last_error(program) result(error) bind(c, name="gts_last_error")
            import
            type(c_ptr), value :: program
            type(c_ptr) :: error
        end function
    end interface

    type, bind(c) :: gts_error
        integer(c_int) :: kind
        character(kind=c_char) :: message(1024)
    end type

    type :: element
        sequence
        real(c_double) :: value
        integer(c_int32_t) :: other
    end type

    integer, parameter :: ROWS = 4, LEVELS = 5, EDGES = 6, VERTICES = 4, POINTS = 7
    integer(c_int), parameter :: TYPE_ERROR = 1, VALUE_ERROR = 2, RUNTIME_ERROR = 3
    real(c_double), target :: u(ROWS, LEVELS) = 0, w(ROWS, LEVELS) = 0, line(POINTS) = 0, edge(EDGES, LEVELS) = 0
    real(c_double), target :: vertex(VERTICES, LEVELS) = 0, high(1, 1, 1, 1, 1, 1, 1)
    real(c_float) :: single(ROWS, LEVELS)
    character(kind=c_char) :: letters(ROWS, LEVELS)
    type(element), target :: elements(POINTS)
    integer(c_int32_t), target :: v2e(VERTICES, 2) = 1
    type(c_ptr) :: granule
    type(c_funptr) :: hook
    character(len=500) :: folder

    call get_command_argument(1, folder)
    hook = c_funloc(exchange)
    call refused(bind(c_null_ptr, exchange=hook, data=c_null_ptr, index_base=1_c_int64_t), RUNTIME_ERROR, &
        "The granule is not open.")
    if (open(trim(folder) // c_null_char, granule) /= 0) error stop 'the granule does not open'
    call refused(bind_u(high), TYPE_ERROR, "Argument 'u' of granule 'tiny' must be an array of type 'float64' and rank 2," // &
        " not of type 'float64' and rank 7.")
    call refused(bind_u(1.0_c_double), TYPE_ERROR, "Argument 'u' of granule 'tiny' must be an array of type 'float64' and" // &
        " rank 2, not of type 'float64' and rank 0.")
    call refused(bind_u(single), TYPE_ERROR, "Argument 'u' of granule 'tiny' must be an array of type 'float64' and rank 2," // &
        " not of type 'float32' and rank 2.")
    call refused(bind_u(letters), TYPE_ERROR, "Argument 'u' of granule 'tiny' must be an array of type 'float64' and rank" // &
        " 2, not of type 'unknown dtype' and rank 2.")
    call refused(bind_u(), TYPE_ERROR, "Argument 'u' of granule 'tiny' must not be absent.")
    call refused(bind(granule, u, w, elements%value, edge, vertex, v2e, hook, c_null_ptr, 1_c_int64_t), VALUE_ERROR, &
        "Argument 'line' of granule 'tiny' has a stride of 12 bytes on dimension 1, which is not" // &
        " a multiple of its element size 8.")
    call assumed_size(u)
    if (bind_u(u) /= 0) error stop 'a good granule is refused'

contains

    integer(c_int) function bind_u(array)
        type(*), intent(in), optional :: array(..)

        bind_u = bind(granule, array, w, line, edge, vertex, v2e, hook, c_null_ptr, 1_c_int64_t)
    end function

    subroutine assumed_size(array)
        real(c_double), intent(in) :: array(ROWS, *)

        call refused(bind_u(array), VALUE_ERROR, "Argument 'u' of granule 'tiny' has no size on dimension 2 ('K'): pass a" // &
            " section with an upper bound.")
    end subroutine

    subroutine refused(status, kind, expected)
        integer(c_int), intent(in) :: status, kind
        character(len=*), intent(in) :: expected
        type(gts_error), pointer :: error
        integer :: i

        call c_f_pointer(last_error(c_null_ptr), error)
        if (status == -1 .and. error%kind == kind .and. error%message(len(expected) + 1) == c_null_char) then
            if (all([(error%message(i) == expected(i:i), i=1, len(expected))])) return
        end if
        print *, 'status', status, 'kind', error%kind, error%message(:200)
        error stop 'another refusal was expected: ' // expected
    end subroutine

    function exchange(data, passed) bind(c) result(status)
        type(c_ptr), value :: data, passed
        integer(c_int) :: status

        status = merge(1, 0, c_associated(data) .or. c_associated(passed))
    end function
end program
