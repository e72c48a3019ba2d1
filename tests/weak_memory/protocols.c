/*
 * Two or three threads use what the runtime reads or writes without a lock, in all ways that weak memory allows:
 *
 *     protocols NAME ROUNDS FAKE_CUDA
 *
 * Each round is memory_run() with another seed, which a failed one prints. The names are those of the table "Words
 * without a lock" in docs/design.md.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/table_copy.h"
#include "calling_stub.h"
#include "memory.h"
#include "observers/debug/pages.h"
#include "observers/times/times.h"
#include "prog_stub.h"
#include "program/private.h"

static uint64_t seed;
static const char *fake_cuda;

#define EXPECT(condition) expect(condition, #condition, __LINE__)

static void expect(bool holds, const char *condition, int line)
{
    if (holds)
        return;
    fprintf(stderr, "seed %llu: protocols.c:%d: does not hold: %s\n", (unsigned long long)seed, line, condition);
    _exit(67);
}

/* In every second round, threads wait for each other: what happens before something must then be seen. */
static unsigned int phase;

static bool is_ordered(void)
{
    return seed % 2 == 0;
}

static void begin_phase(unsigned int next)
{
    __atomic_store_n(&phase, next, __ATOMIC_RELEASE);
}

static void wait_for_phase(unsigned int wanted)
{
    while (is_ordered() && __atomic_load_n(&phase, __ATOMIC_ACQUIRE) < wanted)
        memory_rest();
}

/* ---- Calls ----------------------------------------------------------------------------------------------------- */

static gts_program *program;

static void load_program(void)
{
    EXPECT(gts_load("./prog_stub.so", "./libsum.so", &program) == 0);
}

static gts_array line(double *data)
{
    return (gts_array){.data = data, .dtype = GTS_FLOAT64, .device = GTS_CPU, .rank = 1, .shape = {1}, .strides = {1}};
}

/* Calls the program with arrays of its own: out = factor * in. */
static int call(double factor)
{
    double in[1] = {2}, out[1] = {0};
    const struct prog_args args = {.x = line(in), .factor = factor, .out = line(out)};
    const int status = prog_call(program, &args);
    EXPECT(out[0] == 2 * factor || status != 0);
    return status;
}

static void call_with_3(void)
{
    EXPECT(call(3) == 0);
}

static void call_with_4(void)
{
    EXPECT(call(4) == 0);
    EXPECT(call(5) == 0);
}

/* ---- Profiles -------------------------------------------------------------------------------------------------- */

static void profile(void)
{
    gts_profile *const begun = gts_profile_begin();
    begin_phase(1);
    wait_for_phase(2);
    char *const report = gts_profile_end(begun);
    EXPECT(!is_ordered() || strstr(report, "\"prog\"") != NULL);
    free(report);
}

static void call_in_profile(void)
{
    wait_for_phase(1);
    EXPECT(call(3) == 0);
    begin_phase(2);
}

/* ---- Checks ---------------------------------------------------------------------------------------------------- */

static void check(void)
{
    gts_checks *outer = gts_checks_begin("max out=7"), *inner = gts_checks_begin("max out=1000");
    begin_phase(1);
    gts_checks_end(&inner);
    wait_for_phase(2);
    gts_checks_end(&outer);
    begin_phase(3);
}

static void check_else(void)
{
    gts_checks *other = gts_checks_begin("max out=100");
    gts_checks_end(&other);
}

static void call_in_checks(void)
{
    wait_for_phase(1);
    EXPECT(call(4) == -1 || !is_ordered());
    begin_phase(2);
    wait_for_phase(3);
    EXPECT(call(4) == 0 || !is_ordered());
}

/* ---- The ring of events ---------------------------------------------------------------------------------------- */

static const char *const TEXTS[] = {"0", "1", "2", "3"};

static void begin_ring(void)
{
    free(gts_ring.places);
    gts_ring.added = 0;
    EXPECT(gts_events_begin(2));
}

static void add_events(void)
{
    for (uint32_t i = 0; i < 4; ++i)
        gts_events_add((gts_event){i, i, i, TEXTS[i], TEXTS[i], i, i % 2 == 1, i, i});
}

static void copy_events(void)
{
    size_t count;
    uint64_t dropped;
    gts_event *const events = gts_events_copy(&count, &dropped);
    for (size_t i = 0; i < count; ++i) {
        const gts_event *const each = &events[i];
        EXPECT(each->begin == each->ticks && each->end == each->ticks && each->track == each->ticks);
        EXPECT(each->kind == TEXTS[each->ticks] && each->name == each->kind && each->in_ns == (each->ticks % 2 == 1));
        EXPECT(each->kib == each->ticks && each->us == each->ticks);
    }
    free(events);
}

/* ---- Steps ----------------------------------------------------------------------------------------------------- */

static gts_step *steps[2];
static int runs;

static int count_run(void *data)
{
    ++*(int *)data;
    return 0;
}

static void make_step(void)
{
    EXPECT(gts_step_new("common", &(gts_action){.function = count_run, .data = &runs}, 1, &steps[0]) == 0);
    steps[1] = gts_step_keep(steps[0]);
}

static void run_first(void)
{
    (void)gts_step_run(steps[0]);
    gts_step_free(&steps[0]);
}

static void run_second(void)
{
    (void)gts_step_run(steps[1]);
    gts_step_free(&steps[1]);
}

/* ---- Steps that were handed over --------------------------------------------------------------------------------- */

static bool has_host_ended;

static int run_in_host(gts_step *step)
{
    (void)step;
    EXPECT(!has_host_ended);
    return 0;
}

static const gts_step_host HOST = {.run = run_in_host};

static void hand_over(void)
{
    has_host_ended = false;
    EXPECT(gts_step_new("handed over", NULL, 0, &steps[0]) == 0);
    steps[0]->host = &HOST;
    EXPECT(gts_step_hand_over(steps[0], "handed over") == 0);
    EXPECT(gts_step_find("handed over", &steps[1]) == 0);
}

static void end_host(void)
{
    gts_step *step = gts_step_end_one();
    has_host_ended = true;
    gts_step_free(&step);
}

static void take_back(void)
{
    gts_step *step;
    if (gts_step_take_back("handed over", &step) == 0)
        has_host_ended = true;
    gts_step_free(&step);
}

static void run_handed_over(void)
{
    (void)gts_step_run(steps[1]);
    (void)gts_step_run(steps[1]);
    gts_step_free(&steps[1]);
}

/* A step that was running was not taken back. */
static void take_back_and_free(void)
{
    gts_step *step;
    (void)gts_step_take_back("handed over", &step);
    gts_step_free(&step);
    gts_step_free(&steps[0]);
}

/* ---- Bound calls and copies of tables ---------------------------------------------------------------------------- */

static gts_bound_call *bound[2];
static gts_table_copy *copies[2];

static void bind(void)
{
    static double in[1], out[1];
    const struct prog_args args = {.x = line(in), .factor = 2, .out = line(out)};
    EXPECT(gts_bind(program, &args, &bound[0]) == 0);
    bound[1] = gts_bound_keep(bound[0]);
    copies[0] = calloc(1, sizeof *copies[0] + 8);
    copies[0]->owners = 1;
    copies[1] = gts_table_copy_keep(copies[0]);
}

static void release_bound(int which)
{
    EXPECT(((const struct prog_args *)bound[which]->args)->factor == 2);
    gts_unbind(&bound[which]);
    EXPECT(copies[which]->bytes[0] == 0);
    gts_table_copy_release(copies[which]);
}

static void release_first(void)
{
    release_bound(0);
}

static void release_second(void)
{
    release_bound(1);
}

/* ---- Guarded memory ---------------------------------------------------------------------------------------------- */

/* Not compared with the accesses of other threads, to whose memory the addresses have belonged before. */
__attribute__((no_sanitize_thread, noinline)) static void touch(uintptr_t address)
{
    (void)*(const volatile char *)address;
}

enum { TOUCHES = 12 };

static gts_pages *moving, *staying;

static gts_pages *reserve(size_t most)
{
    gts_pages *const pages = gts_pages_reserve(2 * gts_page_size(), most);
    EXPECT(pages != NULL);
    return pages;
}

static void begin_to_guard(void)
{
    gts_pages_watch();
    gts_pages *const above = reserve(2); /* its memory goes to whoever asks next */
    staying = reserve(TOUCHES);
    moving = reserve(2);
    gts_pages_release(above);
}

/* Takes the free memory above what stays, so that what is reserved next lies below it. */
static void fill_above(void)
{
    const size_t size = 2 * gts_page_size();
    void *memory = NULL;
    for (int i = 0; i < 1000 && (memory == NULL || (uintptr_t)memory > staying->begin); ++i) {
        memory = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        EXPECT(memory != MAP_FAILED);
    }
    (void)munmap(memory, size);
}

/* Touches a page that is closed, for the `count`th time. */
static void touch_page(const gts_pages *pages, size_t count)
{
    const uintptr_t address = pages->begin + 8;
    EXPECT(gts_pages_close(pages->begin, pages->end));
    touch(address);
    EXPECT(gts_pages_count(pages) == count && pages->noted[count - 1].address == address);
}

static void touch_staying(void)
{
    for (size_t i = 1; i <= TOUCHES; ++i)
        touch_page(staying, i);
}

/* Moves above what stays, and below it again. */
static void move(void)
{
    gts_pages_release(moving);
    moving = reserve(2);
    touch_page(moving, 1);
    gts_pages_release(moving);
    fill_above();
    moving = reserve(2);
    touch_page(moving, 1);
    touch_page(reserve(3), 1); /* the first one with room for 3: a new element of the list */
}

/* ---- Callbacks --------------------------------------------------------------------------------------------------- */

static gts_program *calling[2];
static int seen;

static double now(void *data)
{
    (void)data;
    return 1;
}

static void see(const double *x, const float *y, void *data)
{
    (void)x, (void)y, (void)data;
    ++seen;
}

static void smooth(const double *memory, double *result, void *data)
{
    (void)memory, (void)result, (void)data;
}

static void split(double a, int32_t *count, float *tile, void *data)
{
    (void)a, (void)tile, (void)data;
    *count = 2;
}

static bool weigh(double a, int32_t i, bool is_last, void *data)
{
    (void)a, (void)i, (void)data;
    return is_last;
}

static void load_calling(void)
{
    for (int i = 0; i < 2; ++i)
        EXPECT(gts_load("./calling_stub.so", "./libcalling.so", &calling[i]) == 0);
}

static void call_calling(gts_program *called)
{
    double x[2] = {0};
    float y[3][2] = {{0}};
    const struct calling_args args = {
        .x = {x, GTS_FLOAT64, GTS_CPU, 1, false, {0}, {2}, {1}, {"K"}},
        .y = {y, GTS_FLOAT32, GTS_CPU, 2, false, {0}, {2, 3}, {1, 2}, {"Edge", "K"}},
        .a = 0.5,
        .now = {now, NULL},
        .see = {see, NULL},
        .weigh = {weigh, NULL},
        .smooth = {smooth, NULL},
        .split = {split, NULL},
    };
    EXPECT(calling_call(called, &args) == 0 && x[0] == 3);
}

static void call_first(void)
{
    call_calling(calling[0]);
}

static void call_second(void)
{
    call_calling(calling[1]);
}

/* ---- The functions of CUDA --------------------------------------------------------------------------------------- */

static void *cuda_library;

static void open_cuda(void)
{
    cuda_library = dlopen(fake_cuda, RTLD_NOW);
    EXPECT(cuda_library != NULL);
}

static void find_cuda(void)
{
    const char *missing;
    EXPECT(gts_cuda_find(cuda_library, GTS_CUDA, &missing) != NULL);
}

static void use_cuda(void)
{
    const gts_cuda *const cuda = gts_cuda_loaded();
    EXPECT(cuda == NULL || (cuda->get_device != NULL && cuda->event_destroy != NULL));
}

/* ------------------------------------------------------------------------------------------------------------------ */

static void nothing(void)
{
}

static const struct protocol {
    const char *name;
    void (*prepare)(void), (*before)(void), (*threads[MEMORY_THREADS])(void), (*after)(void);
    bool forks; /* each round is the first of its process */
} PROTOCOLS[] = {
    {"calls", load_program, nothing, {call_with_3, call_with_4}, nothing, false},
    {"profiles", load_program, nothing, {profile, call_in_profile, call_with_3}, nothing, false},
    {"checks", load_program, nothing, {check, call_in_checks}, nothing, false},
    {"two checks", load_program, nothing, {check_else, check_else, call_with_4}, nothing, false},
    {"ring", nothing, begin_ring, {add_events, copy_events}, nothing, false},
    {"steps", nothing, make_step, {run_first, run_second}, nothing, false},
    {"end of the host", nothing, hand_over, {end_host, run_handed_over}, take_back_and_free, false},
    {"taking back", nothing, hand_over, {take_back, run_handed_over}, take_back_and_free, false},
    {"bound calls", load_program, bind, {release_first, release_second}, nothing, false},
    {"guarded memory", nothing, begin_to_guard, {touch_staying, move}, nothing, true},
    {"callbacks", load_calling, nothing, {call_first, call_second}, nothing, false},
    {"functions of CUDA", open_cuda, nothing, {find_cuda, find_cuda, use_cuda}, nothing, true},
};

static void run_round(const struct protocol *self)
{
    int count = 0;
    while (count < MEMORY_THREADS && self->threads[count] != NULL)
        ++count;
    phase = 0;
    self->before();
    memory_run(seed, count, self->threads);
    self->after();
}

static int run_forked(const struct protocol *self)
{
    int status = -1;
    const pid_t child = fork();
    if (child == 0) {
        run_round(self);
        _exit(0);
    }
    (void)waitpid(child, &status, 0);
    return status;
}

int main(int argc, char **argv)
{
    EXPECT(argc == 4);
    fake_cuda = argv[3];
    const uint64_t first = getenv("SEED") == NULL ? 0 : strtoull(getenv("SEED"), NULL, 10);
    for (size_t i = 0; i < sizeof PROTOCOLS / sizeof *PROTOCOLS; ++i) {
        if (strcmp(PROTOCOLS[i].name, argv[1]) != 0)
            continue;
        PROTOCOLS[i].prepare();
        for (seed = first; seed < first + strtoull(argv[2], NULL, 10); ++seed) {
            if (!PROTOCOLS[i].forks)
                run_round(&PROTOCOLS[i]);
            else if (run_forked(&PROTOCOLS[i]) != 0)
                return 68;
        }
        return 0;
    }
    EXPECT(!"such a protocol");
    return 1;
}
