! A Fortran host chooses streams, on the stand-in for the CUDA runtime. It prints the number of the stream on which each
! call must put its work. prog runs on a GPU, gather on the CPU.
program streams
    use, intrinsic :: iso_c_binding, only: c_double, c_f_pointer, c_int, c_intptr_t, c_null_ptr, c_ptr, c_size_t
    use gtstub, only: gts_close, gts_load, gts_program, gts_reset_stream, gts_runtime_error, gts_set_stream, &
        gts_value_error
    use harness, only: address, check, check_text
    use prog_stub, only: prog
    implicit none

    interface
        function cuda_malloc(memory, bytes) result(error) bind(c, name='cudaMalloc')
            import
            type(c_ptr), intent(out) :: memory
            integer(c_size_t), value :: bytes
            integer(c_int) :: error
        end function

        function cuda_stream_create(stream, flags) result(error) bind(c, name='cudaStreamCreateWithFlags')
            import
            type(c_ptr), intent(out) :: stream
            integer(c_int), value :: flags
            integer(c_int) :: error
        end function

        function cuda_stream_destroy(stream) result(error) bind(c, name='cudaStreamDestroy')
            import
            type(c_ptr), value :: stream
            integer(c_int) :: error
        end function

        function stream_number(stream) result(number) bind(c, name='fake_cuda_stream_number')
            import
            type(c_ptr), value :: stream
            integer(c_int) :: number
        end function
    end interface

    type(gts_program) :: program, on_cpu, closed
    type(c_ptr) :: first, second, destroyed
    real(c_double), pointer :: x(:), out(:)
    integer :: stat
    character(len=300) :: errmsg
    character(len=:), allocatable :: refusal

    call gts_load('./prog_stub.so', './libprog.so', program)
    call gts_load('./gather_stub.so', './libgather.so', on_cpu)
    x => on_gpu()
    out => on_gpu()
    first = new_stream()
    second = new_stream()
    destroyed = new_stream()
    call check(cuda_stream_destroy(destroyed) == 0, 'the stream is destroyed')

    call call_on(c_null_ptr)
    call gts_set_stream(program, first)
    call call_on(first)
    call gts_set_stream(program, address(second))
    call call_on(second)
    call gts_set_stream(program, c_null_ptr)
    call call_on(c_null_ptr)
    call gts_set_stream(first)
    call call_on(c_null_ptr)
    call gts_reset_stream(program)
    call call_on(first)
    call gts_set_stream(address(second), stat, errmsg)
    call check(stat == 0, 'the stream of all programs is set')
    call call_on(second)

    refusal = "Program 'prog' cannot use the stream " // hexadecimal(address(destroyed)) // &
        ': error 400 (cudaErrorInvalidResourceHandle: invalid resource handle).'
    call gts_set_stream(program, destroyed, stat, errmsg)
    call refused(gts_value_error, refusal)
    call gts_set_stream(program, address(destroyed), stat, errmsg)
    call refused(gts_value_error, refusal)
    call gts_set_stream(destroyed, stat, errmsg)
    call refused(gts_value_error, refusal)
    call gts_set_stream(address(destroyed), stat, errmsg)
    call refused(gts_value_error, refusal)

    refusal = "Program 'gather' runs on the CPU and has no stream."
    call gts_set_stream(on_cpu, first, stat, errmsg)
    call refused(gts_value_error, refusal)
    call gts_reset_stream(on_cpu, stat, errmsg)
    call refused(gts_value_error, refusal)

    refusal = 'The program is not open: it was closed, or never opened.'
    call gts_set_stream(closed, first, stat, errmsg)
    call refused(gts_runtime_error, refusal)
    call gts_set_stream(closed, address(first), stat, errmsg)
    call refused(gts_runtime_error, refusal)
    call gts_reset_stream(closed, stat, errmsg)
    call refused(gts_runtime_error, refusal)

    call call_on(second)
    call gts_set_stream(0_c_intptr_t)
    call call_on(c_null_ptr)
    call gts_close(program)
    call gts_close(on_cpu)

contains

    ! Calls the program, whose work must be on this stream.
    subroutine call_on(stream)
        type(c_ptr), intent(in) :: stream

        call prog(program, x, 1.0_c_double, out)
        print '(i0)', stream_number(stream)
    end subroutine

    subroutine refused(kind, text)
        integer, intent(in) :: kind
        character(len=*), intent(in) :: text

        call check_text(errmsg, text)
        call check(stat == kind, 'the error is of the expected kind')
        errmsg = ''
    end subroutine

    function on_gpu() result(array)
        real(c_double), pointer :: array(:)
        type(c_ptr) :: memory

        call check(cuda_malloc(memory, 24_c_size_t) == 0, 'there is memory')
        call c_f_pointer(memory, array, [3])
    end function

    function new_stream() result(stream)
        type(c_ptr) :: stream

        call check(cuda_stream_create(stream, 1_c_int) == 0, 'there is a stream')
    end function

    function hexadecimal(number) result(text)
        integer(c_intptr_t), intent(in) :: number
        character(len=:), allocatable :: text
        character(len=18) :: digits

        write (digits, '(z0)') number
        text = '0x' // lower(trim(digits))
    end function

    pure function lower(text)
        character(len=*), intent(in) :: text
        character(len=len(text)) :: lower
        integer :: i

        lower = text
        do i = 1, len(text)
            if (text(i:i) >= 'A' .and. text(i:i) <= 'F') lower(i:i) = achar(iachar(text(i:i)) + 32)
        end do
    end function
end program
