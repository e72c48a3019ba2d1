/* Several threads call one program with arguments of their own: one call at a time, and no call sees another's values. */
#include <pthread.h>
#include <stdatomic.h>

#include "gtstub/stub.h"
#include "whole.h"

enum { THREADS = 3, CALLS = 200 };

static struct recorder recorder;
static gts_program *program;

static void *call_often(void *argument)
{
    struct whole *const w = argument;
    for (int i = 0; i < CALLS; ++i)
        CHECK(whole_call(program, &w->args) == 0);
    return NULL;
}

static void test_one_call_at_a_time(void)
{
    static struct whole w[THREADS];
    pthread_t threads[THREADS];
    recorder.behaviour->delay = 20;
    for (int i = 0; i < THREADS; ++i) {
        set_up(&w[i]);
        CHECK(pthread_create(&threads[i], NULL, call_often, &w[i]) == 0);
    }
    for (int i = 0; i < THREADS; ++i)
        CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(recorder.behaviour->overlaps == 0);
    int calls[THREADS] = {0};
    for (size_t i = 0; i < recorder.count(); ++i) {
        const struct record record = recorder.at(i);
        if (record.function != PROGRAM)
            continue;
        int who = 0;
        while (who < THREADS && record.values[SLOT_VN] != (uintptr_t)w[who].args.vn.data)
            ++who;
        CHECK(who < THREADS);
        CHECK(record.values[SLOT_OUT_0] == (uintptr_t)w[who].args.out_0.data);
        CHECK(record.values[SLOT_X_0] == (uintptr_t)w[who].args.x_0.data);
        ++calls[who];
    }
    for (int i = 0; i < THREADS; ++i)
        CHECK(calls[i] == CALLS);
}

static void *try_to_enter(void *result)
{
    *(int *)result = gts_enter(program, false);
    return NULL;
}

static void test_host_can_refuse_to_wait(void)
{
    pthread_t thread;
    int result = 0;
    CHECK(gts_enter(program, true) == 0);
    CHECK(pthread_create(&thread, NULL, try_to_enter, &result) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(result == 1);
    gts_leave(program);
    CHECK(gts_enter(program, false) == 0);
    gts_leave(program);
}

enum { RARE_CALLS = 20, CALLS_BETWEEN = 200 };

static atomic_bool has_ended;

static void *call_until_the_end(void *argument)
{
    struct whole *const w = argument;
    int *const calls = (int *)(void *)w->memory[0];
    while (!atomic_load(&has_ended)) {
        CHECK(whole_call(program, &w->args) == 0);
        ++*calls;
    }
    return NULL;
}

/* A thread that calls again and again leaves the lock for nanoseconds only; another one gets it all the same. */
static void test_nobody_waits_for_ever(void)
{
    static struct whole busy, rare;
    pthread_t thread;
    recorder.behaviour->delay = 300;
    set_up(&busy);
    set_up(&rare);
    CHECK(pthread_create(&thread, NULL, call_until_the_end, &busy) == 0);
    for (int i = 0; i < RARE_CALLS; ++i)
        CHECK(whole_call(program, &rare.args) == 0);
    gts_profile *const profile = gts_profile_begin();
    free(gts_profile_end(profile)); /* waits for the call that is running, too */
    atomic_store(&has_ended, true);
    CHECK(pthread_join(thread, NULL) == 0);
    int calls;
    memcpy(&calls, busy.memory[0], sizeof calls);
    CHECK(calls < (RARE_CALLS + 1) * CALLS_BETWEEN);
    recorder.behaviour->delay = 0;
}

int main(int argc, char **argv)
{
    CHECK(argc == 3);
    recorder = open_recorder(argv[2]);
    program = load(argv[1], argv[2]);
    test_one_call_at_a_time();
    test_host_can_refuse_to_wait();
    test_nobody_waits_for_ever();
    gts_close(&program);
    recorder.clear();
    return 0;
}
