/* The life of a handle: initialised once, again when its memory no longer fits, workspaces, troubles, a fork, the end. */
#define _POSIX_C_SOURCE 200809L
#include <sys/wait.h>
#include <unistd.h>

#include "prog_stub.h"
#include "whole.h"

static const char *whole_stub, *whole_library, *prog_stub, *prog_library;

/* How many records there are of one function. */
static size_t count(const struct recorder *recorder, int function)
{
    size_t n = 0;
    for (size_t i = 0; i < recorder->count(); ++i)
        n += recorder->at(i).function == function;
    return n;
}

static struct recorder fresh_recorder(const char *library)
{
    const struct recorder recorder = open_recorder(library);
    recorder.clear();
    *recorder.behaviour = (struct behaviour){0};
    return recorder;
}

static void test_init_at_load(void)
{
    const struct recorder recorder = fresh_recorder(prog_library);
    gts_program *program = load(prog_stub, prog_library);
    CHECK(strcmp(gts_name(program), "prog") == 0);
    CHECK(recorder.count() == 1 && recorder.at(0).function == INIT);
    void *const handle = recorder.at(0).handle;

    double in[3] = {0}, out[3] = {0};
    const gts_array x = {in, GTS_FLOAT64, GTS_CPU, 1, true, {0}, {3}, {1}, {"K"}};
    const gts_array result = {out, GTS_FLOAT64, GTS_CPU, 1, false, {0}, {3}, {1}, {"K"}};
    const struct prog_args args = {.x = x, .factor = 2.5, .out = result};
    CHECK(prog_call(program, &args) == 0);
    CHECK(prog_call(program, &args) == 0);
    CHECK(recorder.count() == 3);
    CHECK(recorder.at(1).function == PROGRAM && recorder.at(1).handle == handle);
    CHECK(recorder.at(2).function == PROGRAM && recorder.at(2).handle == handle);

    gts_close(&program);
    CHECK(recorder.count() == 4);
    CHECK(recorder.at(3).function == EXIT && recorder.at(3).handle == handle);
}

static void test_init_that_fails_at_load(void)
{
    const struct recorder recorder = fresh_recorder(prog_library);
    gts_program *first = load(prog_stub, prog_library);
    gts_close(&first);
    recorder.behaviour->init_fails = true;
    gts_program *program = NULL;
    CHECK(gts_load(prog_stub, prog_library, &program) == -1);
    CHECK_ERROR(gts_last_error(NULL), GTS_RUNTIME_ERROR,
                "The SDFG of program 'prog' could not be initialised (__dace_init returned NULL).");
    CHECK(program == NULL);
    CHECK(count(&recorder, EXIT) == 1);
}

static void test_init_again_when_memory_no_longer_fits(void)
{
    const struct recorder recorder = fresh_recorder(whole_library);
    gts_program *program = load(whole_stub, whole_library);
    CHECK(recorder.count() == 0);
    struct whole w;
    set_up(&w);
    CHECK(whole_call(program, &w.args) == 0);
    CHECK(count(&recorder, INIT) == 1);
    const struct record first = recorder.at(0);
    CHECK(first.function == INIT && first.values[0] == LEVELS && first.values[1] == 1);

    w.args.flag = false; /* init takes it, but no memory depends on it */
    CHECK(whole_call(program, &w.args) == 0);
    CHECK(count(&recorder, INIT) == 1 && count(&recorder, EXIT) == 0);

    w.args.vn.shape[1] = w.args.x_0.shape[0] = w.args.out_0.shape[1] = w.args.out_1.shape[1] = LEVELS - 1;
    recorder.clear();
    CHECK(whole_call(program, &w.args) == 0);
    CHECK(recorder.at(0).function == EXIT && recorder.at(0).handle == first.handle);
    CHECK(recorder.at(1).function == INIT && recorder.at(1).values[0] == LEVELS - 1 && recorder.at(1).values[1] == 0);
    CHECK(last_record(&recorder).function == PROGRAM && last_record(&recorder).handle == recorder.at(1).handle);
    CHECK(whole_call(program, &w.args) == 0);
    CHECK(count(&recorder, INIT) == 1);
    gts_close(&program);
    CHECK(count(&recorder, EXIT) == 2);
}

static void test_init_that_fails_at_a_call(void)
{
    const struct recorder recorder = fresh_recorder(whole_library);
    gts_program *program = load(whole_stub, whole_library);
    struct whole w;
    set_up(&w);
    CHECK(whole_call(program, &w.args) == 0);
    recorder.clear();
    recorder.behaviour->init_fails = true;
    w.args.vn.shape[1] = w.args.x_0.shape[0] = w.args.out_0.shape[1] = LEVELS - 1;
    CHECK(whole_call(program, &w.args) == -1);
    CHECK_ERROR(gts_last_error(program), GTS_RUNTIME_ERROR,
                "The SDFG of program 'whole' could not be initialised (__dace_init returned NULL).");
    CHECK(count(&recorder, PROGRAM) == 0);
    recorder.behaviour->init_fails = false;
    CHECK(whole_call(program, &w.args) == 0); /* it can be used again */
    CHECK(count(&recorder, PROGRAM) == 1);
    gts_close(&program);
}

static void test_exit_that_fails(void)
{
    const struct recorder recorder = fresh_recorder(whole_library);
    gts_program *program = load(whole_stub, whole_library);
    struct whole w;
    set_up(&w);
    CHECK(whole_call(program, &w.args) == 0);
    recorder.clear();
    recorder.behaviour->exit_status = 3;
    w.args.vn.shape[1] = w.args.x_0.shape[0] = w.args.out_0.shape[1] = LEVELS - 1;
    CHECK(whole_call(program, &w.args) == -1);
    CHECK_ERROR(gts_last_error(program), GTS_RUNTIME_ERROR,
                "The SDFG of program 'whole' could not be finalised (__dace_exit returned 3).");
    CHECK(count(&recorder, PROGRAM) == 0 && count(&recorder, INIT) == 0);
    recorder.behaviour->exit_status = 0;
    CHECK(whole_call(program, &w.args) == 0);
    gts_close(&program);
}

/* A workspace that could not be set, because the handle could not be ended, is not kept: its owner may free it. */
static void test_workspace_after_an_exit_that_fails(void)
{
    const struct recorder recorder = fresh_recorder(whole_library);
    gts_program *program = load(whole_stub, whole_library);
    struct whole w;
    set_up(&w);
    char *const kept = aligned_alloc(256, 512), *const refused = aligned_alloc(256, 512);
    CHECK(gts_set_workspace(program, "CPU_Heap", kept, 512) == 0);
    recorder.behaviour->workspace_bytes = 512;
    CHECK(whole_call(program, &w.args) == 0);
    recorder.behaviour->exit_status = 3;
    CHECK(gts_set_workspace(program, "CPU_Heap", refused, 512) == -1);
    CHECK_ERROR(gts_last_error(program), GTS_RUNTIME_ERROR,
                "The SDFG of program 'whole' could not be finalised (__dace_exit returned 3).");
    free(refused);
    recorder.behaviour->exit_status = 0;
    recorder.clear();
    CHECK(whole_call(program, &w.args) == 0);
    CHECK(count(&recorder, WORKSPACE_INSTALL) == 1 && recorder.at(2).memory == kept);
    gts_close(&program);
    free(kept);
    recorder.behaviour->workspace_bytes = 0;
}

static void test_workspace(void)
{
    const struct recorder recorder = fresh_recorder(whole_library);
    gts_program *program = load(whole_stub, whole_library);
    struct whole w;
    set_up(&w);
    CHECK(whole_call(program, &w.args) == 0); /* needs none, so none is installed */
    CHECK(count(&recorder, WORKSPACE_BYTES) == 1 && count(&recorder, WORKSPACE_INSTALL) == 0);
    gts_close(&program);

    recorder.clear();
    recorder.behaviour->workspace_bytes = 1000;
    gts_program *again = load(whole_stub, whole_library);
    CHECK(whole_call(again, &w.args) == -1);
    CHECK_ERROR(gts_last_error(again), GTS_RUNTIME_ERROR,
                "Program 'whole' needs a workspace of 1000 bytes in 'CPU_Heap', but none has been set.");
    char *const memory = aligned_alloc(256, 1024);
    CHECK(memory != NULL);
    CHECK(gts_set_workspace(again, "CPU_Heap", memory + 8, 1000) == -1);
    CHECK_ERROR(gts_last_error(again), GTS_VALUE_ERROR,
                "The workspace of program 'whole' in 'CPU_Heap' must be aligned to 256 bytes.");
    CHECK(gts_set_workspace(again, "GPU_Global", memory, 1000) == -1);
    CHECK_ERROR(gts_last_error(again), GTS_VALUE_ERROR, "Program 'whole' has no workspace in 'GPU_Global'.");
    CHECK(gts_set_workspace(again, "CPU_Heap", memory, 999) == 0);
    CHECK(whole_call(again, &w.args) == -1);
    CHECK_ERROR(gts_last_error(again), GTS_VALUE_ERROR,
                "Program 'whole' needs a workspace of 1000 bytes in 'CPU_Heap', but the one set has 999.");
    CHECK(count(&recorder, PROGRAM) == 0);
    CHECK(count(&recorder, INIT) == count(&recorder, EXIT)); /* nothing half-initialised is left */

    CHECK(gts_set_workspace(again, "CPU_Heap", memory, 1000) == 0);
    recorder.clear();
    CHECK(whole_call(again, &w.args) == 0);
    CHECK(recorder.count() == 4);
    void *const handle = recorder.at(0).handle;
    CHECK(recorder.at(1).function == WORKSPACE_BYTES && recorder.at(1).handle == handle);
    CHECK(recorder.at(1).values[0] == LEVELS);
    CHECK(recorder.at(2).function == WORKSPACE_INSTALL && recorder.at(2).handle == handle);
    CHECK(recorder.at(2).memory == memory && recorder.at(2).values[1] == 1);
    CHECK(recorder.at(3).function == PROGRAM && recorder.at(3).handle == handle);

    recorder.clear(); /* a larger domain needs more: asked for again, not overrun */
    recorder.behaviour->workspace_bytes = 1001;
    w.args.vn.shape[1] = w.args.x_0.shape[0] = w.args.out_0.shape[1] = LEVELS - 1;
    CHECK(whole_call(again, &w.args) == -1);
    CHECK_ERROR(gts_last_error(again), GTS_VALUE_ERROR,
                "Program 'whole' needs a workspace of 1001 bytes in 'CPU_Heap', but the one set has 1000.");
    CHECK(gts_set_workspace(again, "CPU_Heap", NULL, 0) == 0); /* taken back */
    CHECK(whole_call(again, &w.args) == -1);
    CHECK_TEXT(gts_last_error(again)->message,
               "Program 'whole' needs a workspace of 1001 bytes in 'CPU_Heap', but none has been set.");
    CHECK(count(&recorder, PROGRAM) == 0);
    gts_close(&again);
    free(memory);
}

static void test_fork(void)
{
    const struct recorder recorder = fresh_recorder(whole_library);
    gts_program *program = load(whole_stub, whole_library);
    struct whole w;
    set_up(&w);
    CHECK(whole_call(program, &w.args) == 0);
    void *const handle = last_record(&recorder).handle;
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        recorder.clear();
        CHECK(whole_call(program, &w.args) == -1);
        CHECK_ERROR(gts_last_error(program), GTS_RUNTIME_ERROR,
                    "Program 'whole' was loaded before this process was forked; load it again in the child, "
                    "in Python by with_backend() or gtstub.compile().");
        gts_close(&program);
        CHECK(recorder.count() == 0); /* the handle is the parent's */
        gts_program *own = load(whole_stub, whole_library);
        CHECK(whole_call(own, &w.args) == 0);
        gts_close(&own);
        recorder.clear();
        free(handle); /* nobody else does in this process, and a memory checker minds */
        _exit(0);
    }
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK(whole_call(program, &w.args) == 0);
    gts_close(&program);
    CHECK(count(&recorder, EXIT) == 1);
}

int main(int argc, char **argv)
{
    CHECK(argc == 5);
    whole_stub = argv[1];
    whole_library = argv[2];
    prog_stub = argv[3];
    prog_library = argv[4];
    test_init_at_load();
    test_init_that_fails_at_load();
    test_init_again_when_memory_no_longer_fits();
    test_init_that_fails_at_a_call();
    test_exit_that_fails();
    test_workspace_after_an_exit_that_fails();
    test_workspace();
    test_fork();
    open_recorder(whole_library).clear();
    open_recorder(prog_library).clear();
    return 0;
}
