! ICON's part in this example: reads the state, runs the diffusion granule, prints times, writes results. No Python.
!   fortran_host STATE PROGRAMS RESULTS WAY    folders: of prepare.py; of the stubs and SDFG libraries; for results
! WAY is 'calls', or 'step': the calls of a step are bound once, and run as one step.
program fortran_host
    use bound_diffusion, only: t_bound_diffusion, diffusion_bind, diffusion_step, diffusion_unbind
    use diffusion_programs, only: close_programs
    use granule_state, only: wp, t_patch, t_int_state, t_nh_metrics, t_nh_prog, t_nh_diag, read_state, write_state
    use host_run, only: argument, read_run, write_maps
    use nh_diffusion, only: t_diffusion, diffusion_init, diffusion_run, write_local_fields
    use timers, only: timer_of, timer_start, timer_stop, timer_report
    implicit none

    type(t_patch), target :: patch
    type(t_int_state), target :: int_state
    type(t_nh_metrics), target :: metrics
    type(t_nh_prog), target :: prog
    type(t_nh_diag), target :: diag
    type(t_diffusion), target :: diffusion
    type(t_bound_diffusion) :: bound
    character(:), allocatable :: state, programs, results
    integer :: timer_init, timer_initial, timer_bind, timer_run, step, steps
    logical :: binds
    real(wp) :: dtime

    state = argument(1)
    programs = argument(2)
    results = argument(3)
    binds = argument(4) == 'step'
    call read_run(state, steps, dtime)
    call read_state(state, patch, int_state, metrics, prog, diag)

    timer_init = timer_of('nh_hdiff_init')
    timer_initial = timer_of('nh_hdiff_run_initial')
    timer_bind = timer_of('nh_hdiff_bind')
    timer_run = timer_of('nh_hdiff_run')

    call timer_start(timer_init)
    call diffusion_init(diffusion, state, programs, patch, timed=.not. binds)
    call timer_stop(timer_init)

    call timer_start(timer_initial)
    call diffusion_run(diffusion, patch, int_state, metrics, prog, diag, dtime, linit=.true.)
    call timer_stop(timer_initial)

    if (binds) then
        call timer_start(timer_bind)
        call diffusion_bind(bound, diffusion, patch, int_state, metrics, prog, diag, dtime)
        call timer_stop(timer_bind)
    end if
    do step = 1, steps
        call timer_start(timer_run)
        if (binds) then
            call diffusion_step(bound)
        else
            call diffusion_run(diffusion, patch, int_state, metrics, prog, diag, dtime, linit=.false.)
        end if
        call timer_stop(timer_run)
    end do

    call timer_report()
    call write_state(results, prog, diag)
    call write_local_fields(diffusion, results)
    call write_maps(results)
    call diffusion_unbind(bound)
    call close_programs(diffusion%programs)
end program
