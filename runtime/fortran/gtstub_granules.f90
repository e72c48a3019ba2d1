!
! Granules: steps over one set of arrays, which gtstub.Granule has exported from Python. Hosts use the generated module
! <name>_granule, whose type extends gts_granule by open(), bind(), get() and a procedure for each step.
!
module gtstub_granules
    use, intrinsic :: iso_c_binding, only: c_bool, c_char, c_int, c_int16_t, c_int32_t, c_int64_t, c_null_ptr, c_ptr
    use gtstub_errors, only: c_string, finish
    implicit none
    private
    public :: gts_array, gts_granule

    integer, parameter :: MAX_RANK = 6

    ! An array that a hook gets: the address of its first element, and for each of its `rank` axes the number of elements
    ! and their distance in memory, in elements. A pointer to an array of two axes with strides(1) = 1 is
    !     call c_f_pointer(array%data, all, [array%strides(2), array%shape(2)])
    !     pointer => all(:array%shape(1), :)
    ! get() of the granule points to an array of any strides.
    type, bind(c) :: gts_array
        type(c_ptr) :: data
        integer(c_int32_t), private :: dtype_and_device
        integer(c_int16_t) :: rank
        logical(c_bool) :: readonly
        integer(c_int64_t), private :: origin(MAX_RANK)
        integer(c_int64_t) :: shape(MAX_RANK), strides(MAX_RANK)
        type(c_ptr), private :: dims(MAX_RANK)
    end type

    ! A granule. It is closed until open() is called. A copy of it is the same granule, and is refused after close().
    type :: gts_granule
        type(c_ptr) :: handle = c_null_ptr
    contains
        procedure :: swap
        procedure :: unbind
        procedure :: close => close_granule
    end type

    interface
        function c_swap(granule, a, b) result(status) bind(c, name="gts_granule_swap")
            import
            type(c_ptr), value :: granule
            character(kind=c_char), intent(in) :: a(*), b(*)
            integer(c_int) :: status
        end function

        function c_unbind(granule) result(status) bind(c, name="gts_granule_unbind")
            import
            type(c_ptr), value :: granule
            integer(c_int) :: status
        end function

        function c_close(granule) result(status) bind(c, name="gts_granule_close")
            import
            type(c_ptr), intent(inout) :: granule
            integer(c_int) :: status
        end function
    end interface

contains

    ! Exchanges the memory of two arrays, which are given by their names, in all steps, as models do with time levels.
    subroutine swap(self, a, b, stat, errmsg)
        class(gts_granule), intent(in) :: self
        character(len=*), intent(in) :: a, b
        integer, intent(out), optional :: stat
        character(len=*), intent(inout), optional :: errmsg

        call finish(c_swap(self%handle, c_string(a), c_string(b)), c_null_ptr, stat, errmsg)
    end subroutine

    ! Forgets the arguments, whose memory the host may then free. Kept arrays keep their values. A hook cannot do this.
    subroutine unbind(self, stat, errmsg)
        class(gts_granule), intent(in) :: self
        integer, intent(out), optional :: stat
        character(len=*), intent(inout), optional :: errmsg

        call finish(c_unbind(self%handle), c_null_ptr, stat, errmsg)
    end subroutine

    ! Closes the programs, and frees the kept arrays. The granule may be closed already. A hook cannot do this.
    subroutine close_granule(self, stat, errmsg)
        class(gts_granule), intent(inout) :: self
        integer, intent(out), optional :: stat
        character(len=*), intent(inout), optional :: errmsg

        call finish(c_close(self%handle), c_null_ptr, stat, errmsg)
    end subroutine
end module
