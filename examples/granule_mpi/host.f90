! Runs the granule of each rank for some time steps, and writes the ring to a file:
! host GRANULE CELLS STEPS OUTPUT, where GRANULE is the folder of the rank, which has CELLS cells.
module halos
    use, intrinsic :: iso_c_binding, only: c_double, c_f_pointer, c_int, c_ptr
    use gtstub, only: gts_array
    use mpi_f08
    implicit none

    ! What an exchange needs to know: the number of own cells and of levels, and the ranks beside this one.
    type :: ring_part
        integer :: cells, levels, left, right
    end type

contains

    ! A hook of the granule: gets one array, and fills its halo.
    function exchange(data, arrays) bind(c) result(status)
        type(c_ptr), value :: data
        type(gts_array), intent(in) :: arrays(*)
        integer(c_int) :: status
        type(ring_part), pointer :: part
        real(c_double), pointer :: x(:, :)

        call c_f_pointer(data, part)
        call c_f_pointer(arrays(1)%data, x, [arrays(1)%strides(2), arrays(1)%shape(2)])
        call fill_halo(part, x(:arrays(1)%shape(1), :))
        status = 0
    end function

    subroutine fill_halo(part, x)
        type(ring_part), intent(in) :: part
        real(c_double), intent(inout) :: x(:, :)
        real(c_double) :: sent(part%levels), received(part%levels)

        associate (n => part%cells)
            sent = x(n, :)
            call MPI_Sendrecv(sent, part%levels, MPI_DOUBLE_PRECISION, part%right, 0, received, part%levels, &
                MPI_DOUBLE_PRECISION, part%left, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
            x(n + 1, :) = received
            sent = x(1, :)
            call MPI_Sendrecv(sent, part%levels, MPI_DOUBLE_PRECISION, part%left, 1, received, part%levels, &
                MPI_DOUBLE_PRECISION, part%right, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
            x(n + 2, :) = received
        end associate
    end subroutine
end module

program host
    use, intrinsic :: iso_c_binding, only: c_double, c_funloc, c_funptr, c_loc
    use halos
    use mpi_f08
    use ring_granule, only: ring_t
    implicit none
    type(ring_t) :: ring
    type(ring_part), target :: part
    type(c_funptr) :: hook
    real(c_double), allocatable, target :: now(:, :), later(:, :), laplacian_now(:, :)
    real(c_double), pointer :: last(:, :)
    integer :: first, i, k, ranks, rank, step, steps
    character(len=1000) :: text

    call MPI_Init()
    call MPI_Comm_size(MPI_COMM_WORLD, ranks)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank)
    call get_command_argument(2, text)
    read (text, *) part%cells
    part%levels = 4
    part%left = modulo(rank - 1, ranks)
    part%right = modulo(rank + 1, ranks)

    ! The number of the first own cell in the ring, from 0.
    call MPI_Exscan(part%cells, first, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
    if (rank == 0) first = 0
    allocate (now(part%cells + 2, part%levels))
    allocate (later, laplacian_now, mold=now)
    do k = 1, part%levels
        now(:part%cells, k) = [(real(modulo(7*(first + i) + 3*k, 11), c_double), i=0, part%cells - 1)]
    end do
    call fill_halo(part, now)

    call get_command_argument(1, text)
    call ring%open(trim(text)) ! without stat an error stops the host
    hook = c_funloc(exchange)
    call ring%bind(now, later, laplacian_now, exchange=hook, exchange_data=c_loc(part))
    call get_command_argument(3, text)
    read (text, *) steps
    do step = 1, steps
        call ring%run(factor=0.05_c_double)
        call ring%swap('now', 'later')
    end do
    call ring%get('now', last)
    call get_command_argument(4, text)
    call write_ring(last(:part%cells, :), trim(text))
    call ring%close()
    call MPI_Finalize()

contains

    ! Writes the cells of all ranks, one level after the other.
    subroutine write_ring(own, file)
        real(c_double), intent(in) :: own(:, :)
        character(len=*), intent(in) :: file
        real(c_double), allocatable :: all(:)
        integer :: counts(ranks), places(ranks), unit

        call MPI_Allgather(size(own, 1), 1, MPI_INTEGER, counts, 1, MPI_INTEGER, MPI_COMM_WORLD)
        places = [(sum(counts(:i - 1)), i=1, ranks)]
        allocate (all(sum(counts)))
        if (rank == 0) open (newunit=unit, file=file, access='stream', form='unformatted', status='replace')
        do k = 1, size(own, 2)
            call MPI_Gatherv(own(:, k), size(own, 1), MPI_DOUBLE_PRECISION, all, counts, places, &
                MPI_DOUBLE_PRECISION, 0, MPI_COMM_WORLD)
            if (rank == 0) write (unit) all
        end do
        if (rank == 0) then
            close (unit)
            print '(i0, a, i0, a, 2f9.5)', steps, ' steps on ', ranks, ' ranks, lowest and highest value', &
                minval(all), maxval(all)
        end if
    end subroutine
end program
