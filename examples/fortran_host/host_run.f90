! What both hosts do around the granule: arguments of the command line, length of the run, what the process has loaded.
module host_run
    use granule_state, only: wp
    implicit none
    private
    public :: argument, read_run, write_maps

contains

    function argument(number) result(value)
        integer, intent(in) :: number
        character(:), allocatable :: value
        integer :: length

        call get_command_argument(number, length=length)
        allocate (character(length) :: value)
        call get_command_argument(number, value)
    end function

    ! Steps after the initial one, and seconds of a step.
    subroutine read_run(folder, steps, dtime)
        character(*), intent(in) :: folder
        integer, intent(out) :: steps
        real(wp), intent(out) :: dtime
        integer :: unit
        namelist /run_nml/ steps, dtime

        open (newunit=unit, file=folder // '/host.nml', action='read', status='old')
        read (unit, nml=run_nml)
        close (unit)
    end subroutine

    ! Copies this process's memory map, which names every library it has loaded, to 'maps.txt'.
    subroutine write_maps(folder)
        character(*), intent(in) :: folder
        character(4096) :: line
        integer :: from, to, status

        open (newunit=from, file='/proc/self/maps', action='read')
        open (newunit=to, file=folder // '/maps.txt', action='write')
        do
            read (from, '(a)', iostat=status) line
            if (status /= 0) exit
            write (to, '(a)') trim(line)
        end do
        close (from)
        close (to)
    end subroutine

end module
