! Arrays in raw files: one file for each, as they lie in memory.
module raw_files
    use, intrinsic :: iso_c_binding, only: c_double, c_int32_t
    implicit none
    private

    integer, parameter, public :: wp = c_double

    public :: load, store

    ! Allocates an array and reads it.
    interface load
        module procedure load_real_1, load_real_2, load_real_3, load_int_2, load_int_3
    end interface

    ! Writes an array.
    interface store
        module procedure store_real_1, store_real_2
    end interface

contains

    integer function opened(folder, name, action) result(unit)
        character(*), intent(in) :: folder, name, action

        open (newunit=unit, file=folder // '/' // name // '.bin', access='stream', form='unformatted', action=action)
    end function

    subroutine load_real_1(folder, name, values, sizes)
        character(*), intent(in) :: folder, name
        real(wp), allocatable, intent(out) :: values(:)
        integer, intent(in) :: sizes(1)
        integer :: unit

        allocate (values(sizes(1)))
        unit = opened(folder, name, 'read')
        read (unit) values
        close (unit)
    end subroutine

    subroutine load_real_2(folder, name, values, sizes)
        character(*), intent(in) :: folder, name
        real(wp), allocatable, intent(out) :: values(:, :)
        integer, intent(in) :: sizes(2)
        integer :: unit

        allocate (values(sizes(1), sizes(2)))
        unit = opened(folder, name, 'read')
        read (unit) values
        close (unit)
    end subroutine

    subroutine load_real_3(folder, name, values, sizes)
        character(*), intent(in) :: folder, name
        real(wp), allocatable, intent(out) :: values(:, :, :)
        integer, intent(in) :: sizes(3)
        integer :: unit

        allocate (values(sizes(1), sizes(2), sizes(3)))
        unit = opened(folder, name, 'read')
        read (unit) values
        close (unit)
    end subroutine

    subroutine load_int_2(folder, name, values, sizes)
        character(*), intent(in) :: folder, name
        integer(c_int32_t), allocatable, intent(out) :: values(:, :)
        integer, intent(in) :: sizes(2)
        integer :: unit

        allocate (values(sizes(1), sizes(2)))
        unit = opened(folder, name, 'read')
        read (unit) values
        close (unit)
    end subroutine

    subroutine load_int_3(folder, name, values, sizes)
        character(*), intent(in) :: folder, name
        integer(c_int32_t), allocatable, intent(out) :: values(:, :, :)
        integer, intent(in) :: sizes(3)
        integer :: unit

        allocate (values(sizes(1), sizes(2), sizes(3)))
        unit = opened(folder, name, 'read')
        read (unit) values
        close (unit)
    end subroutine

    subroutine store_real_1(folder, name, values)
        character(*), intent(in) :: folder, name
        real(wp), intent(in) :: values(:)
        integer :: unit

        unit = opened(folder, name, 'write')
        write (unit) values
        close (unit)
    end subroutine

    subroutine store_real_2(folder, name, values)
        character(*), intent(in) :: folder, name
        real(wp), intent(in) :: values(:, :)
        integer :: unit

        unit = opened(folder, name, 'write')
        write (unit) values
        close (unit)
    end subroutine

end module
