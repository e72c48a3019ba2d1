! What the hosts of these tests share: checks that say what does not hold, and a view of the library of tests/recording.py.
module harness
    use, intrinsic :: iso_c_binding, only: c_associated, c_char, c_f_pointer, c_int, c_int64_t, c_intptr_t, c_loc, c_ptr, &
        c_size_t
    use gtstub, only: gts_program, gts_open
    implicit none
    private
    public :: check, check_text, check_refused, open_program, call_count, slot, address

    integer(c_int), parameter :: PROGRAM_RECORD = 0

    type, bind(c) :: record
        integer(c_int) :: function
        integer(c_int) :: storage
        type(c_ptr) :: handle
        type(c_ptr) :: memory
        type(c_ptr) :: values
    end type

    interface
        function record_count() bind(c)
            import
            integer(c_size_t) :: record_count
        end function

        function record_at(i) bind(c)
            import
            integer(c_size_t), value :: i
            type(record) :: record_at
        end function
    end interface

contains

    subroutine check(holds, what)
        logical, intent(in) :: holds
        character(len=*), intent(in) :: what

        if (.not. holds) error stop 'does not hold: ' // what
    end subroutine

    ! Of an expected text that begins with '...', only the end is compared: another test has the whole.
    subroutine check_text(found, expected)
        character(len=*), intent(in) :: found, expected
        integer :: first

        if (found == expected) return
        if (index(expected, '...') == 1) then
            first = len_trim(found) - len_trim(expected) + 4
            if (first > 0 .and. found(max(first, 1):) == expected(4:)) return
        end if
        print '(a)', '  found    ' // trim(found), '  expected ' // trim(expected)
        error stop 'another text was expected'
    end subroutine

    ! `calls` is what call_count() was before the call.
    subroutine check_refused(stat, kind, errmsg, text, calls)
        integer, intent(in) :: stat, kind, calls
        character(len=*), intent(in) :: errmsg, text

        call check_text(errmsg, text)
        call check(stat == kind, 'the error is of the expected kind')
        call check(call_count() == calls, 'nothing was called')
    end subroutine

    ! The program of this folder.
    function open_program() result(program)
        type(gts_program) :: program

        call gts_open('.', program)
    end function

    ! How often the SDFG has been called.
    function call_count() result(count)
        integer :: count
        integer(c_size_t) :: i
        type(record) :: found

        count = 0
        do i = 0, record_count() - 1
            found = record_at(i)
            if (found%function == PROGRAM_RECORD) count = count + 1
        end do
    end function

    ! What the last call has received in a slot: its first eight bytes.
    function slot(i) result(value)
        integer, intent(in) :: i
        integer(c_int64_t) :: value
        type(record) :: found
        integer(c_int64_t), pointer :: values(:)

        found = record_at(record_count() - 1)
        call check(found%function == PROGRAM_RECORD, 'the last record is of a call')
        call c_f_pointer(found%values, values, [i + 1])
        value = values(i + 1)
    end function

    function address(pointer) result(value)
        type(c_ptr), intent(in) :: pointer
        integer(c_intptr_t) :: value

        value = transfer(pointer, value)
    end function
end module
