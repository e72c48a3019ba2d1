! Calls that are refused: each after a good one, with its text, its kind, and nothing called.
program refusals
    use, intrinsic :: iso_c_binding, only: c_double, c_float, c_int32_t, c_size_t, c_null_ptr
    use gtstub, only: gts_close, gts_load, gts_open, gts_program, gts_set_index_base, gts_set_lower_bounds, gts_set_origin, &
        gts_set_workspace, gts_runtime_error, gts_type_error, gts_value_error
    use harness, only: call_count, check, check_refused, check_text, open_program
    use whole_arguments, only: call_well, EDGES, flag, LEVELS, NEIGHBORS, open_and_call, out_0, out_1, table, vn, x_0, x_1_0, &
        x_1_1
    use whole_stub, only: whole
    implicit none
    type(gts_program) :: program
    integer :: stat, calls
    character(len=300) :: errmsg

    program = open_and_call()
    calls = call_count()
    call memory()
    call sizes()
    call strides()
    call origins()
    call connectivities()
    call texts()
    call workspaces()
    call call_well(program)
    call check(call_count() == calls + 1, 'the program can be called after all that')
    call closed()
    call libraries()

contains

    subroutine memory()
        real(c_double), allocatable :: none(:, :), column(:)
        real(c_double), pointer :: nowhere(:, :)

        nowhere => null()
        call whole(program, none, x_0, x_1_0, x_1_1, flag, out_0, out_1, table, stat, errmsg)
        call refused(gts_value_error, "Argument 'vn' of program 'whole' must be allocated or associated.")
        call whole(program, vn, column, x_1_0, x_1_1, flag, out_0, out_1, table, stat, errmsg)
        call refused(gts_value_error, "Argument 'x[0]' of program 'whole' must be allocated or associated.")
        call whole(program, vn, x_0, x_1_0, x_1_1, flag, nowhere, out_1, table, stat, errmsg)
        call refused(gts_value_error, "Argument 'out[0]' of program 'whole' must be allocated or associated.")
    end subroutine

    subroutine sizes()
        call whole(program, vn, x_0(2:), x_1_0, x_1_1, flag, out_0, out_1, table, stat, errmsg)
        call refused(gts_value_error, "Arguments of program 'whole' disagree: size of dimension 2 of 'vn' is 4, but size of" // &
            " dimension 1 of 'x[0]' is 3.")
        call whole(program, vn, x_0, x_1_0, x_1_1, flag, out_0, out_1, table(:, 1:1), stat, errmsg)
        call refused(gts_value_error, "...size 2 on dimension 2 ('E2V'), not 1.")
        call whole(program, vn(:1, :), x_0, x_1_0, x_1_1, flag, out_0, out_1, table, stat, errmsg)
        call refused(gts_value_error, "Argument 'vn' of program 'whole' must have the indices 1 to 2 on dimension 1 " // &
            "('Edge'), which this call uses, not 1 to 1. Set GTSTUB_BOUNDS=0 to build the program without this check.")
    end subroutine

    subroutine strides()
        type element
            sequence
            real(c_double) :: value
            integer(c_int32_t) :: other
        end type
        type(element), target :: elements(LEVELS)

        call whole(program, vn(::2, :), x_0, x_1_0, x_1_1, flag, out_0, out_1, table, stat, errmsg)
        call refused(gts_value_error, "Argument 'vn' of program 'whole' must have stride 1 on dimension 1 ('Edge'), not 2.")
        call whole(program, vn(EDGES:1:-1, :), x_0, x_1_0, x_1_1, flag, out_0, out_1, table, stat, errmsg)
        call refused(gts_value_error, "...stride 1 on dimension 1 ('Edge'), not -1.")
        call whole(program, vn, elements%value, x_1_0, x_1_1, flag, out_0, out_1, table, stat, errmsg)
        call refused(gts_value_error, "Argument 'x[0]' of program 'whole' has a stride of 12 bytes on dimension 1, which is" // &
            " not a multiple of its element size 8.")
    end subroutine

    subroutine origins()
        call gts_set_origin(program, 'vn', [1, 0], stat, errmsg)
        call check(stat == 0, 'an origin can be said that the contract refuses')
        call whole(program, vn, x_0, x_1_0, x_1_1, flag, out_0, out_1, table, stat, errmsg)
        call refused(gts_value_error, "...start 0 on dimension 1 ('Edge'), not 1.")
        call gts_set_origin(program, 'vn', [0, 0], stat, errmsg)
        call check(stat == 0, 'the origin that it must have')
    end subroutine

    subroutine connectivities()
        integer(c_int32_t) :: other(EDGES, NEIGHBORS)
        type(gts_program) :: silent

        silent = open_program()
        call whole(silent, vn, x_0, x_1_0, x_1_1, flag, out_0, out_1, table, stat, errmsg)
        call refused(gts_value_error, "Connectivity 'E2V' of program 'whole' has no index base: set 0 or 1 with" // &
            " gts_set_index_base().")
        call gts_close(silent)
        other = table
        other(3, 2) = 0
        call whole(program, vn, x_0, x_1_0, x_1_1, flag, out_0, out_1, other, stat, errmsg)
        call check(stat == gts_value_error, 'index 0 in a table of base 1')
        call refused(gts_value_error, "Connectivity 'E2V' of program 'whole' has index 0 at E2V(3,2) (index base 1, see " // &
            'gts_set_index_base()), but this program computes values for the indices 1 to 1000 only: Vertex.size = ' // &
            '1000 was compiled in, from the tables that it was built with. Build the program for each grid.')
        call gts_set_lower_bounds(program, 'E2V', [0, -1])
        call whole(program, vn, x_0, x_1_0, x_1_1, flag, out_0, out_1, other, stat, errmsg)
        call check(index(errmsg, ' has index 0 at E2V(2,0) (') > 0, 'its lower bounds')
        call whole(program, vn, x_0, x_1_0, x_1_1, flag, out_0, out_1, table(:EDGES - 1, :), stat, errmsg)
        call refused(gts_value_error, "Connectivity 'E2V' of program 'whole' must have the rows 0 to 5, which this " // &
            'call uses, not 0 to 4. Set GTSTUB_BOUNDS=0 to build the program without this check.')
        call gts_set_lower_bounds(program, 'E2V', [1, 1])
        call whole(program, vn, x_0, x_1_0, x_1_1, flag, out_0, out_1, table(:EDGES - 1, :), stat, errmsg)
        call refused(gts_value_error, '...must have the rows 1 to 6, which this call uses, not 1 to 5. Set ' // &
            'GTSTUB_BOUNDS=0 to build the program without this check.')
        call gts_set_lower_bounds(program, 'E2V', [1, 1, 1], stat, errmsg)
        call refused(gts_value_error, "Argument 'E2V' of program 'whole' has 2 dimensions, but its lower bounds were " // &
            'given for 3.')
        call gts_set_lower_bounds(program, 'nothing', [1, 1], stat, errmsg)
        call refused(gts_value_error, "Program 'whole' has no field 'nothing'; it has 'vn', 'x[0]', 'out[0]', 'out[1]'.")
        call check(call_count() == calls, 'nothing was called')
    end subroutine

    ! As with ALLOCATE: a text that is too long is cut, a rest is blank, and what is absent is not written.
    subroutine texts()
        character(len=12) :: short
        character(len=0) :: empty

        call whole(program, vn(::2, :), x_0, x_1_0, x_1_1, flag, out_0, out_1, table, stat, short)
        call check_text(short, "Argument 'vn")
        call whole(program, vn(::2, :), x_0, x_1_0, x_1_1, flag, out_0, out_1, table, stat, empty)
        call check(stat == gts_value_error, 'a text without room')
        call whole(program, vn(::2, :), x_0, x_1_0, x_1_1, flag, out_0, out_1, table, stat)
        call check(stat == gts_value_error, 'no text')
        errmsg = repeat('x', len(errmsg))
        call whole(program, vn(::2, :), x_0, x_1_0, x_1_1, flag, out_0, out_1, table, stat, errmsg)
        call refused(gts_value_error, "...stride 1 on dimension 1 ('Edge'), not 2.")
        errmsg = 'as it was'
        stat = 7
        call whole(program, vn, x_0, x_1_0, x_1_1, flag, out_0, out_1, table, stat, errmsg)
        call check(stat == 0, 'stat is 0 after a good call')
        call check_text(errmsg, 'as it was')
        calls = calls + 1
    end subroutine

    subroutine workspaces()
        call gts_set_workspace(program, 'GPU_Global', c_null_ptr, 0_c_size_t, stat, errmsg)
        call refused(gts_value_error, "Program 'whole' has no workspace in 'GPU_Global'.")
        call gts_set_workspace(program, 'CPU_Heap', c_null_ptr, 0_c_size_t, stat, errmsg)
        call check(stat == 0, 'a workspace of nothing')
    end subroutine

    subroutine closed()
        type(gts_program) :: never

        calls = call_count()
        call gts_close(program)
        call gts_close(program)
        call whole(program, vn, x_0, x_1_0, x_1_1, flag, out_0, out_1, table, stat, errmsg)
        call refused(gts_runtime_error, "Program 'whole' is not open: it was closed, or never opened.")
        call whole(never, vn, x_0, x_1_0, x_1_1, flag, out_0, out_1, table, stat, errmsg)
        call refused(gts_runtime_error, "...or never opened.")
        call gts_set_origin(program, 'vn', [0, 0], stat, errmsg)
        call check(stat == gts_runtime_error, 'the origin of a closed program')
        call gts_set_index_base(program, 'E2V', 1, stat, errmsg)
        call check(stat == gts_runtime_error, 'the index base of a closed program')
    end subroutine

    subroutine libraries()
        call gts_open('./nowhere_stub.so', program, stat, errmsg)
        call check(stat == gts_runtime_error, 'a library that is not there')
        call check(index(errmsg, './nowhere_stub.so') > 0, 'its name is in the text')
        call gts_load('./whole_stub.so', './nowhere.so', program, stat, errmsg)
        call refused(gts_runtime_error, "Cannot load library './nowhere.so': No such file or directory.")
        call whole(program, vn, x_0, x_1_0, x_1_1, flag, out_0, out_1, table, stat, errmsg)
        call refused(gts_runtime_error, "...or never opened.")
        call gts_load('./whole_stub.so', './libwhole.so  ', program, stat, errmsg)
        call check(stat == 0, 'both paths')
        call gts_close(program)
    end subroutine

    subroutine refused(kind, text)
        integer, intent(in) :: kind
        character(len=*), intent(in) :: text

        call check_refused(stat, kind, errmsg, text, calls)
    end subroutine
end program
