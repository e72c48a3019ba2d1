! Timers as ICON has them, and their table.
module timers
    use, intrinsic :: iso_fortran_env, only: int64, real64
    implicit none
    private

    type :: t_timer
        character(80) :: name
        integer :: calls = 0
        integer(int64) :: began, least = huge(0_int64), most = 0, total = 0 ! clock ticks
    end type

    type(t_timer) :: all_timers(32)
    integer :: timer_count = 0

    public :: timer_of, timer_start, timer_stop, timer_report

contains

    ! The timer of a name, which is made where there is none; the table has them in the order of their making.
    integer function timer_of(name) result(timer)
        character(*), intent(in) :: name

        do timer = 1, timer_count
            if (all_timers(timer)%name == name) return
        end do
        timer_count = timer_count + 1
        timer = timer_count
        all_timers(timer)%name = name
    end function

    subroutine timer_start(timer)
        integer, intent(in) :: timer

        call system_clock(all_timers(timer)%began)
    end subroutine

    subroutine timer_stop(timer)
        integer, intent(in) :: timer
        integer(int64) :: now, ticks

        call system_clock(now)
        associate (t => all_timers(timer))
            ticks = now - t%began
            t%calls = t%calls + 1
            t%least = min(t%least, ticks)
            t%most = max(t%most, ticks)
            t%total = t%total + ticks
        end associate
    end subroutine

    ! Prints all timers that were used: microseconds of a call, seconds in total.
    subroutine timer_report()
        integer(int64) :: rate
        real(real64) :: microsecond
        integer :: i, width

        call system_clock(count_rate=rate)
        microsecond = real(rate, real64) / 1e6_real64
        width = maxval(len_trim(all_timers(:timer_count)%name))
        print '(a, a9, 3a15, a12)', 'name' // repeat(' ', width - 4), &
            '# calls', 't_min [us]', 't_avg [us]', 't_max [us]', 'total [s]'
        do i = 1, timer_count
            associate (t => all_timers(i))
                if (t%calls == 0) cycle
                print '(a, i9, 3f15.2, f12.6)', t%name(:width), t%calls, real(t%least, real64) / microsecond, &
                    real(t%total, real64) / real(t%calls, real64) / microsecond, real(t%most, real64) / microsecond, &
                    real(t%total, real64) / real(rate, real64)
            end associate
        end do
    end subroutine

end module
