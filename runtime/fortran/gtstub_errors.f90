!
! What the modules of gtstub share: the type of a program, errors, and texts of C. Hosts use the module gtstub.
!
module gtstub_errors
    use, intrinsic :: iso_c_binding, only: c_associated, c_char, c_f_pointer, c_int, c_loc, c_null_char, c_null_ptr, &
        c_ptr, c_size_t
    implicit none
    private
    public :: gts_program
    public :: gts_type_error, gts_value_error, gts_runtime_error
    public :: finish
    public :: c_string, f_string

    ! A loaded program. It is closed until gts_open() or gts_load() is called. A copy of it is the same program.
    type, bind(c) :: gts_program
        type(c_ptr) :: handle = c_null_ptr
    end type

    ! Values of `stat` after an error.
    enum, bind(c)
        enumerator :: gts_type_error = 1, gts_value_error, gts_runtime_error
    end enum

    integer, parameter :: MESSAGE_LENGTH = 1024

    type, bind(c) :: gts_error
        integer(c_int) :: kind = 0
        character(kind=c_char) :: message(MESSAGE_LENGTH) = c_null_char
    end type

    interface
        function c_last_error(program) result(error) bind(c, name="gts_last_error")
            import
            type(c_ptr), value :: program
            type(c_ptr) :: error
        end function

        function c_strlen(text) result(length) bind(c, name="strlen")
            import
            type(c_ptr), value :: text
            integer(c_size_t) :: length
        end function
    end interface

contains

    ! ---- Errors ------------------------------------------------------------------------------------------------------

    ! Returns the error of a program, or with c_null_ptr that of the thread, as ALLOCATE does.
    subroutine finish(status, program, stat, errmsg)
        integer(c_int), intent(in) :: status
        type(c_ptr), intent(in) :: program
        integer, intent(out), optional :: stat
        character(len=*), intent(inout), optional :: errmsg
        type(gts_error), pointer :: error
        character(len=:), allocatable :: message

        if (present(stat)) stat = 0
        if (status == 0) return
        call c_f_pointer(c_last_error(program), error)
        message = f_string(c_loc(error%message))
        if (.not. present(stat)) error stop message
        stat = error%kind
        if (present(errmsg)) errmsg = message
    end subroutine

    ! ---- Texts of C --------------------------------------------------------------------------------------------------

    pure function c_string(text)
        character(len=*), intent(in) :: text
        character(kind=c_char, len=len_trim(text) + 1) :: c_string

        c_string = trim(text) // c_null_char
    end function

    function f_string(text)
        type(c_ptr), intent(in) :: text
        character(len=:), allocatable :: f_string
        character(kind=c_char), pointer :: characters(:)
        integer(c_size_t) :: length, i

        length = 0
        if (c_associated(text)) length = c_strlen(text)
        allocate (character(len=length) :: f_string)
        if (length > 0) call c_f_pointer(text, characters, [length])
        do i = 1, length
            f_string(i:i) = characters(i)
        end do
    end function
end module
