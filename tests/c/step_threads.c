/* Steps in several threads: one step runs in one thread at a time, and calls of one program run one after another. */
#include <pthread.h>
#include <stdatomic.h>

#include "gtstub/step.h"
#include "whole.h"

enum { THREADS = 3, RUNS = 200 };

static struct recorder recorder;
static gts_program *program;

/* ---- Steps of their own ---------------------------------------------------------------------------------------- */

struct worker {
    struct whole whole;
    gts_step *step;
};

static void *run_often(void *argument)
{
    struct worker *const worker = argument;
    gts_bound_call *call;
    CHECK(gts_bind(program, &worker->whole.args, &call) == 0);
    const gts_action actions[] = {{.call = call}, {.call = call}};
    CHECK(gts_step_new("own", actions, 2, &worker->step) == 0);
    for (int i = 0; i < RUNS; ++i) {
        const int32_t value = i;
        CHECK(gts_step_set_scalar(worker->step, "x[1][0]", GTS_INT32, &value) == 0);
        CHECK(gts_step_run(worker->step) == 0);
    }
    gts_step_free(&worker->step);
    gts_unbind(&call);
    return NULL;
}

static void test_every_thread_has_its_step(void)
{
    static struct worker workers[THREADS];
    pthread_t threads[THREADS];
    recorder.behaviour->delay = 5;
    for (int i = 0; i < THREADS; ++i) {
        set_up(&workers[i].whole);
        CHECK(pthread_create(&threads[i], NULL, run_often, &workers[i]) == 0);
    }
    for (int i = 0; i < THREADS; ++i)
        CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(recorder.behaviour->overlaps == 0);
    int runs[THREADS] = {0};
    for (size_t i = 0; i < recorder.count(); ++i) {
        const struct record record = recorder.at(i);
        if (record.function != PROGRAM)
            continue;
        int who = 0;
        while (who < THREADS && record.values[SLOT_VN] != (uintptr_t)workers[who].whole.args.vn.data)
            ++who;
        CHECK(who < THREADS);
        CHECK(record.values[SLOT_OUT_0] == (uintptr_t)workers[who].whole.args.out_0.data);
        CHECK((int32_t)record.values[SLOT_X_1_0] == runs[who] / 2);
        ++runs[who];
    }
    for (int i = 0; i < THREADS; ++i)
        CHECK(runs[i] == 2 * RUNS);
}

/* ---- One step -------------------------------------------------------------------------------------------------- */

static atomic_int phase;

static int wait_inside(void *data)
{
    (void)data;
    atomic_store(&phase, 1);
    while (atomic_load(&phase) == 1)
        ;
    return 0;
}

static void *run_once(void *step)
{
    CHECK(gts_step_run(step) == 0);
    return NULL;
}

static void test_two_threads_with_one_step(void)
{
    gts_step *step;
    CHECK(gts_step_new("common", &(gts_action){.function = wait_inside}, 1, &step) == 0);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, run_once, step) == 0);
    while (atomic_load(&phase) == 0)
        ;
    CHECK(gts_step_run(step) == -1);
    CHECK_ERROR(gts_last_error(NULL), GTS_RUNTIME_ERROR,
                "Step 'common' is running, in another thread or because one of its functions uses it.");
    atomic_store(&phase, 2);
    CHECK(pthread_join(thread, NULL) == 0);
    gts_step_free(&step);
}

int main(int argc, char **argv)
{
    CHECK(argc == 3);
    recorder = open_recorder(argv[2]);
    program = load(argv[1], argv[2]);
    test_every_thread_has_its_step();
    test_two_threads_with_one_step();
    gts_close(&program);
    recorder.clear();
    return 0;
}
