! Repeats time steps of icon4py's driver, its dynamical core and its diffusion, without Python:
!   dycore_host FOLDER STEPS    FOLDER is what the export has written; STEPS is even
! It reads both time levels of the model, makes the steps, and compares every element with Python's.
module courant
    use, intrinsic :: iso_c_binding, only: c_int, c_ptr
    use gtstub, only: gts_array
    implicit none

contains

    ! The model would take its number of substeps from the Courant number; here it stays the same.
    function courant_number(data, arrays) bind(c) result(status)
        type(c_ptr), value :: data
        type(gts_array), intent(in) :: arrays(*)
        integer(c_int) :: status

        status = 0
    end function

end module

program dycore_host
    use, intrinsic :: iso_c_binding, only: c_double, c_funloc
    use, intrinsic :: iso_fortran_env, only: int64
    use courant, only: courant_number
    use dycore_granule, only: dycore_t
    implicit none

    type :: state
        real(c_double), allocatable :: rho(:, :), w(:, :), vn(:, :), exner(:, :), theta_v(:, :)
    end type

    type(state), target :: now, next
    type(dycore_t) :: dycore
    character(200) :: folder, text
    integer :: step, steps, different
    integer(int64) :: began, ended, rate

    call get_command_argument(1, folder)
    call get_command_argument(2, text)
    read (text, *) steps
    call read_level('now', now)
    call read_level('next', next)
    call dycore%open(trim(folder) // '/granule')
    call dycore%bind(now_rho=now%rho, now_w=now%w, now_vn=now%vn, now_exner=now%exner, now_theta_v=now%theta_v, &
        next_rho=next%rho, next_w=next%w, next_vn=next%vn, next_exner=next%exner, next_theta_v=next%theta_v, &
        courant_number=c_funloc(courant_number))

    call system_clock(began, rate)
    do step = 1, steps, 2
        call dycore%even_1(); call dycore%even_2(); call dycore%even_3(); call dycore%even_4(); call dycore%even_5()
        call dycore%even_6()
        call dycore%odd_1(); call dycore%odd_2(); call dycore%odd_3(); call dycore%odd_4(); call dycore%odd_5()
        call dycore%odd_6()
    end do
    call system_clock(ended)
    print '(a, f8.2, a)', 'a time step took ', 1e3 * real(ended - began) / real(rate) / real(steps), ' ms'
    call dycore%close()

    different = 0
    call compare('now', now)
    call compare('next', next)
    if (different > 0) error stop 'The fields are not those of Python.'
    print '(a)', 'all fields are those of Python, bit for bit'

contains

    subroutine read_level(name, level)
        character(*), intent(in) :: name
        type(state), intent(inout) :: level

        call read_field('before/' // name // '_rho', level%rho)
        call read_field('before/' // name // '_w', level%w)
        call read_field('before/' // name // '_vn', level%vn)
        call read_field('before/' // name // '_exner', level%exner)
        call read_field('before/' // name // '_theta_v', level%theta_v)
    end subroutine

    ! A file has the sizes of its field, and then the elements.
    subroutine read_field(name, values)
        character(*), intent(in) :: name
        real(c_double), allocatable, intent(out) :: values(:, :)
        integer(int64) :: sizes(2)
        integer :: unit

        open (newunit=unit, file=trim(folder) // '/' // name // '.bin', access='stream', form='unformatted', &
            action='read', status='old')
        read (unit) sizes
        allocate (values(sizes(1), sizes(2)))
        read (unit) values
        close (unit)
    end subroutine

    subroutine compare(name, level)
        character(*), intent(in) :: name
        type(state), intent(in) :: level

        call compare_field(name // '_rho', level%rho)
        call compare_field(name // '_w', level%w)
        call compare_field(name // '_vn', level%vn)
        call compare_field(name // '_exner', level%exner)
        call compare_field(name // '_theta_v', level%theta_v)
    end subroutine

    subroutine compare_field(name, values)
        character(*), intent(in) :: name
        real(c_double), intent(in) :: values(:, :)
        real(c_double), allocatable :: expected(:, :)
        integer :: count_here

        call read_field('after/' // name, expected)
        count_here = count(transfer(values, 0_int64, size(values)) /= transfer(expected, 0_int64, size(values)))
        if (count_here > 0) print '(a, i0, a)', name // ' differs at ', count_here, ' elements'
        different = different + count_here
    end subroutine

end program
