!
! gtstub: loads compiled gt4py programs in Fortran hosts. The module does not depend on a program: the procedure that
! calls a program is in the module <name>_stub, which 'gtstub generate --fortran' writes.
!
! Procedures that can fail have the optional arguments `stat` and `errmsg` of ALLOCATE. `stat` becomes 0 or the kind of
! the error. `errmsg` becomes the text of the error, and keeps its value if there is none. Without `stat`, an error is
! printed and stops the host.
!
module gtstub
    use, intrinsic :: iso_c_binding, only: c_associated, c_char, c_int, c_int32_t, c_int64_t, c_intptr_t, c_null_ptr, &
        c_ptr, c_size_t
    use gtstub_errors, only: c_string, f_string, finish, gts_program, gts_runtime_error, gts_type_error, &
        gts_value_error
    use gtstub_granules, only: gts_array, gts_granule
    use gtstub_steps, only: gts_action, gts_bound_call, gts_set_scalar, gts_start, gts_step, gts_step_find, &
        gts_step_free, gts_step_new, gts_step_run, gts_step_set_scalar, gts_step_swap, gts_unbind
    implicit none
    private
    public :: gts_program, gts_profile, gts_checks, gts_bound_call, gts_action, gts_step, gts_array, gts_granule
    public :: gts_type_error, gts_value_error, gts_runtime_error
    public :: gts_open, gts_load, gts_close
    public :: gts_set_origin, gts_set_lower_bounds, gts_set_index_base, gts_set_workspace
    public :: gts_start, gts_unbind, gts_set_scalar
    public :: gts_step_new, gts_step_find, gts_step_run, gts_step_set_scalar, gts_step_swap, gts_step_free
    public :: gts_set_stream, gts_reset_stream
    public :: gts_profile_begin, gts_profile_end, gts_pool_trim
    public :: gts_checks_begin, gts_checks_end

    ! A running profile.
    type, bind(c) :: gts_profile
        type(c_ptr) :: handle = c_null_ptr
    end type

    ! Running debug checks.
    type, bind(c) :: gts_checks
        type(c_ptr) :: handle = c_null_ptr
    end type

    ! Sets the stream of a GPU that the work of calls is put on: gts_set_stream(program, stream) for one program, and
    ! gts_set_stream(stream) for all that have none of their own. `stream` is a type(c_ptr), or the integer(c_intptr_t)
    ! that acc_get_cuda_stream() returns; c_null_ptr and 0 are the default stream. The host owns it, and must not
    ! destroy it before the programs have another one or are closed.
    interface gts_set_stream
        procedure :: set_stream, set_stream_number, set_common_stream, set_common_stream_number
    end interface

    interface
        function c_open(path, program) result(status) bind(c, name="gts_open")
            import
            character(kind=c_char), intent(in) :: path(*)
            type(gts_program), intent(inout) :: program
            integer(c_int) :: status
        end function

        function c_load(stub, library, program) result(status) bind(c, name="gts_load")
            import
            character(kind=c_char), intent(in) :: stub(*), library(*)
            type(gts_program), intent(inout) :: program
            integer(c_int) :: status
        end function

        subroutine c_close(program) bind(c, name="gts_close")
            import
            type(gts_program), intent(inout) :: program
        end subroutine

        function c_set_origin(program, argument, origin, rank) result(status) bind(c, name="gts_set_origin")
            import
            type(c_ptr), value :: program
            character(kind=c_char), intent(in) :: argument(*)
            integer(c_int64_t), intent(in) :: origin(*)
            integer(c_int32_t), value :: rank
            integer(c_int) :: status
        end function

        function c_set_lower_bounds(program, argument, bounds, rank) result(status) bind(c, name="gts_set_lower_bounds")
            import
            type(c_ptr), value :: program
            character(kind=c_char), intent(in) :: argument(*)
            integer(c_int64_t), intent(in) :: bounds(*)
            integer(c_int32_t), value :: rank
            integer(c_int) :: status
        end function

        function c_set_index_base(program, connectivity, base) result(status) bind(c, name="gts_set_index_base")
            import
            type(c_ptr), value :: program
            character(kind=c_char), intent(in) :: connectivity(*)
            integer(c_int64_t), value :: base
            integer(c_int) :: status
        end function

        function c_set_workspace(program, storage, memory, bytes) result(status) bind(c, name="gts_set_workspace")
            import
            type(c_ptr), value :: program
            character(kind=c_char), intent(in) :: storage(*)
            type(c_ptr), value :: memory
            integer(c_size_t), value :: bytes
            integer(c_int) :: status
        end function

        function c_set_stream(program, stream) result(status) bind(c, name="gts_set_stream")
            import
            type(c_ptr), value :: program, stream
            integer(c_int) :: status
        end function

        function c_reset_stream(program) result(status) bind(c, name="gts_reset_stream")
            import
            type(c_ptr), value :: program
            integer(c_int) :: status
        end function

        function c_profile_begin() result(profile) bind(c, name="gts_profile_begin")
            import
            type(c_ptr) :: profile
        end function

        function c_profile_end(profile) result(report) bind(c, name="gts_profile_end")
            import
            type(c_ptr), value :: profile
            type(c_ptr) :: report
        end function

        function c_pool_trim() result(bytes) bind(c, name="gts_pool_trim")
            import
            integer(c_size_t) :: bytes
        end function

        function c_checks_begin(text) result(checks) bind(c, name="gts_checks_begin")
            import
            character(kind=c_char), intent(in) :: text(*)
            type(c_ptr) :: checks
        end function

        subroutine c_checks_end(checks) bind(c, name="gts_checks_end")
            import
            type(gts_checks), intent(inout) :: checks
        end subroutine

        subroutine c_free(memory) bind(c, name="free")
            import
            type(c_ptr), value :: memory
        end subroutine
    end interface

contains

    ! Loads a program. `path` is its stub library, <name>_stub.so, or a directory that contains exactly one; the SDFG
    ! library is in the same directory. A program that is open is closed first.
    subroutine gts_open(path, program, stat, errmsg)
        character(len=*), intent(in) :: path
        type(gts_program), intent(inout) :: program
        integer, intent(out), optional :: stat
        character(len=*), intent(inout), optional :: errmsg
        integer(c_int) :: status

        call c_close(program)
        status = c_open(c_string(path), program)
        call finish(status, c_null_ptr, stat, errmsg)
    end subroutine

    ! Loads a program from two libraries in any directories. A program that is open is closed first.
    subroutine gts_load(stub, library, program, stat, errmsg)
        character(len=*), intent(in) :: stub, library
        type(gts_program), intent(inout) :: program
        integer, intent(out), optional :: stat
        character(len=*), intent(inout), optional :: errmsg
        integer(c_int) :: status

        call c_close(program)
        status = c_load(c_string(stub), c_string(library), program)
        call finish(status, c_null_ptr, stat, errmsg)
    end subroutine

    ! Closes the program, which may be closed already. No other thread may call it meanwhile.
    subroutine gts_close(program)
        type(gts_program), intent(inout) :: program

        call c_close(program)
    end subroutine

    ! Sets where a field begins in gt4py's index space: the index of its first element on each axis. It is 0 until it is
    ! set, because an assumed-shape argument does not contain its lower bounds. `argument` is written as in messages:
    ! "vn", "x[0]", "state.vn".
    subroutine gts_set_origin(program, argument, origin, stat, errmsg)
        type(gts_program), intent(in) :: program
        character(len=*), intent(in) :: argument
        integer, intent(in) :: origin(:)
        integer, intent(out), optional :: stat
        character(len=*), intent(inout), optional :: errmsg
        integer(c_int) :: status

        status = c_set_origin(program%handle, c_string(argument), int(origin, c_int64_t), size(origin, kind=c_int32_t))
        call finish(status, program%handle, stat, errmsg)
    end subroutine

    ! Sets the lower bounds of the arrays that are passed for an argument, a field or a connectivity, as in
    !     call gts_set_lower_bounds(program, 'vn', lbound(vn))
    ! so that the indices in messages count from them. They count from 1 until this is called, because an argument of
    ! assumed shape has no lower bounds. Nothing else depends on them.
    subroutine gts_set_lower_bounds(program, argument, bounds, stat, errmsg)
        type(gts_program), intent(in) :: program
        character(len=*), intent(in) :: argument
        integer, intent(in) :: bounds(:)
        integer, intent(out), optional :: stat
        character(len=*), intent(inout), optional :: errmsg
        integer(c_int) :: status

        status = c_set_lower_bounds(program%handle, c_string(argument), int(bounds, c_int64_t), &
            size(bounds, kind=c_int32_t))
        call finish(status, program%handle, stat, errmsg)
    end subroutine

    ! Sets the index of the first element that a connectivity refers to: 0, as in gt4py, or 1, as in ICON. It must be
    ! set for every connectivity before the first call.
    subroutine gts_set_index_base(program, connectivity, base, stat, errmsg)
        type(gts_program), intent(in) :: program
        character(len=*), intent(in) :: connectivity
        integer, intent(in) :: base
        integer, intent(out), optional :: stat
        character(len=*), intent(inout), optional :: errmsg
        integer(c_int) :: status

        status = c_set_index_base(program%handle, c_string(connectivity), int(base, c_int64_t))
        call finish(status, program%handle, stat, errmsg)
    end subroutine

    ! Lends the program memory for the transients that its SDFG has in `storage`: so many bytes, aligned to 256 bytes.
    ! The host owns the memory, and must not free it before the program is closed or has been lent other memory.
    subroutine gts_set_workspace(program, storage, memory, bytes, stat, errmsg)
        type(gts_program), intent(in) :: program
        character(len=*), intent(in) :: storage
        type(c_ptr), intent(in) :: memory
        integer(c_size_t), intent(in) :: bytes
        integer, intent(out), optional :: stat
        character(len=*), intent(inout), optional :: errmsg
        integer(c_int) :: status

        status = c_set_workspace(program%handle, c_string(storage), memory, bytes)
        call finish(status, program%handle, stat, errmsg)
    end subroutine

    ! Makes a program use the stream again that gts_set_stream(stream) has set for all.
    subroutine gts_reset_stream(program, stat, errmsg)
        type(gts_program), intent(in) :: program
        integer, intent(out), optional :: stat
        character(len=*), intent(inout), optional :: errmsg
        integer(c_int) :: status

        status = c_reset_stream(program%handle)
        call finish(status, program%handle, stat, errmsg)
    end subroutine

    ! ---- gts_set_stream ----------------------------------------------------------------------------------------------

    subroutine set_stream(program, stream, stat, errmsg)
        type(gts_program), intent(in) :: program
        type(c_ptr), intent(in) :: stream
        integer, intent(out), optional :: stat
        character(len=*), intent(inout), optional :: errmsg
        integer(c_int) :: status

        if (c_associated(program%handle)) then
            status = c_set_stream(program%handle, stream)
        else ! c_set_stream() would set the stream of all programs
            status = c_reset_stream(program%handle)
        end if
        call finish(status, program%handle, stat, errmsg)
    end subroutine

    subroutine set_stream_number(program, stream, stat, errmsg)
        type(gts_program), intent(in) :: program
        integer(c_intptr_t), intent(in) :: stream
        integer, intent(out), optional :: stat
        character(len=*), intent(inout), optional :: errmsg

        call set_stream(program, transfer(stream, c_null_ptr), stat, errmsg)
    end subroutine

    subroutine set_common_stream(stream, stat, errmsg)
        type(c_ptr), intent(in) :: stream
        integer, intent(out), optional :: stat
        character(len=*), intent(inout), optional :: errmsg
        integer(c_int) :: status

        status = c_set_stream(c_null_ptr, stream)
        call finish(status, c_null_ptr, stat, errmsg)
    end subroutine

    subroutine set_common_stream_number(stream, stat, errmsg)
        integer(c_intptr_t), intent(in) :: stream
        integer, intent(out), optional :: stat
        character(len=*), intent(inout), optional :: errmsg

        call set_common_stream(transfer(stream, c_null_ptr), stat, errmsg)
    end subroutine

    ! ---- Profiles ----------------------------------------------------------------------------------------------------

    ! Begins to time the calls of all programs.
    subroutine gts_profile_begin(profile)
        type(gts_profile), intent(out) :: profile

        profile%handle = c_profile_begin()
    end subroutine

    ! Ends a profile. `report` is its JSON document, which docs/performance.md explains, or empty when memory ran out.
    subroutine gts_profile_end(profile, report)
        type(gts_profile), intent(inout) :: profile
        character(len=:), allocatable, intent(out) :: report
        type(c_ptr) :: text

        text = c_null_ptr
        if (c_associated(profile%handle)) text = c_profile_end(profile%handle)
        profile%handle = c_null_ptr
        report = f_string(text)
        call c_free(text)
    end subroutine

    ! ---- Memory ------------------------------------------------------------------------------------------------------

    ! Gives the memory that SDFGs have freed, and that the process keeps for their next arrays, back to the system.
    ! `bytes` is how many were kept.
    subroutine gts_pool_trim(bytes)
        integer(c_int64_t), intent(out), optional :: bytes
        integer(c_int64_t) :: kept

        kept = int(c_pool_trim(), c_int64_t)
        if (present(bytes)) bytes = kept
    end subroutine

    ! ---- Debug checks ------------------------------------------------------------------------------------------------

    ! Begins to check the fields of all calls. docs/debugging.md lists what `text` may contain. Checks that `checks`
    ! has begun before are ended first.
    subroutine gts_checks_begin(text, checks, stat, errmsg)
        character(len=*), intent(in) :: text
        type(gts_checks), intent(inout) :: checks
        integer, intent(out), optional :: stat
        character(len=*), intent(inout), optional :: errmsg
        integer(c_int) :: status

        call c_checks_end(checks)
        checks%handle = c_checks_begin(c_string(text))
        status = merge(0_c_int, -1_c_int, c_associated(checks%handle))
        call finish(status, c_null_ptr, stat, errmsg)
    end subroutine

    ! Waits for the calls that are running, and ends the checks, which may have ended already.
    subroutine gts_checks_end(checks)
        type(gts_checks), intent(inout) :: checks

        call c_checks_end(checks)
    end subroutine
end module
