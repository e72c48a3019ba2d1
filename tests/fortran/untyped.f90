! A host without the program's module: its compiler lets pass what the module would not.
program untyped
    use, intrinsic :: iso_c_binding, only: c_bool, c_char, c_double, c_float, c_int, c_int32_t, c_int64_t
    use gtstub, only: gts_program, gts_set_index_base, gts_type_error
    use harness, only: call_count, check, check_refused, open_program
    implicit none

    interface
        subroutine whole(program, vn, x_0, x_1_0, x_1_1, flag, out_0, out_1, table, stat, errmsg) &
            bind(c, name="whole_fortran")
            import
            type(gts_program), intent(in) :: program
            type(*), intent(in), optional :: vn(..), x_0(..), out_0(..), out_1(..), table(..)
            integer(c_int32_t), value :: x_1_0
            real(c_float), value :: x_1_1
            logical(c_bool), value :: flag
            integer(c_int), intent(out), optional :: stat
            character(kind=c_char, len=*), intent(inout), optional :: errmsg
        end subroutine
    end interface

    integer, parameter :: EDGES = 6, LEVELS = 4
    real(c_double) :: vn(EDGES, LEVELS), x_0(LEVELS), cube(EDGES, LEVELS, 2), high(1, 1, 1, 1, 1, 1, 1)
    real(c_float) :: single(EDGES, LEVELS)
    complex(c_double) :: complex(EDGES, LEVELS)
    character(kind=c_char) :: letters(EDGES, LEVELS)
    integer(c_int64_t) :: wide(EDGES, 2)
    logical(c_bool) :: flag = .true.
    integer(c_int32_t) :: table(EDGES, 2) = 0
    type(gts_program) :: program
    integer :: stat
    character(len=300) :: errmsg

    program = open_program()
    call gts_set_index_base(program, 'E2V', 0)
    call whole(program, vn, x_0, 1, 1.0, flag, vn, vn, table, stat, errmsg)
    call check(stat == 0, 'a good call')
    call whole(program, single, x_0, 1, 1.0, flag, vn, vn, table, stat, errmsg)
    call refused("Argument 'vn' of program 'whole' must have dtype 'float64', not 'float32'.")
    call whole(program, complex, x_0, 1, 1.0, flag, vn, vn, table, stat, errmsg)
    call refused("...'float64', not 'complex128'.")
    call whole(program, letters, x_0, 1, 1.0, flag, vn, vn, table, stat, errmsg)
    call refused("...'float64', not 'unknown dtype'.")
    call whole(program, vn, x_0, 1, 1.0, flag, vn, vn, wide, stat, errmsg)
    call refused("...'int32', not 'int64'.")
    call whole(program, x_0, x_0, 1, 1.0, flag, vn, vn, table, stat, errmsg)
    call refused("Argument 'vn' of program 'whole' must have 2 dimensions ('Edge', 'K'), not 1.")
    call whole(program, cube, x_0, 1, 1.0, flag, vn, vn, table, stat, errmsg)
    call refused("...('Edge', 'K'), not 3.")
    call whole(program, high, x_0, 1, 1.0, flag, vn, vn, table, stat, errmsg)
    call refused("...('Edge', 'K'), not 7.")
    call whole(program, vn, 1.0_c_double, 1, 1.0, flag, vn, vn, table, stat, errmsg)
    call refused("...('K'), not 0.")
    call whole(program, vn, x_0, 1, 1.0, flag, out_1=vn, table=table, stat=stat, errmsg=errmsg)
    call refused("Argument 'out[0]' of program 'whole' must not be absent.")
    call assumed_size(vn)
    call whole(program, vn, x_0, 1, 1.0, flag, vn, vn, table, stat, errmsg)
    call check(stat == 0, 'another good call')

contains

    subroutine assumed_size(array)
        real(c_double), intent(in) :: array(EDGES, *)

        call whole(program, array, x_0, 1, 1.0, flag, vn, vn, table, stat, errmsg)
        call check_refused(stat, 2, errmsg, "Argument 'vn' of program 'whole' has no size on dimension 2 ('K'): pass a" // &
            " section with an upper bound.", 1)
    end subroutine

    subroutine refused(text)
        character(len=*), intent(in) :: text

        call check_refused(stat, gts_type_error, errmsg, text, 1)
    end subroutine
end program
