/*
 * Times what a host does with a granule of twenty programs and a hundred arrays, which compute nothing:
 *   granule_host FOLDER ARRAYS    prints nanoseconds, the least of many rounds: of opening, binding, a step, a swap
 */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "many_granule.h"

enum { SIZE = 64 };

static double now(void)
{
    struct timespec time;
    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static void check(int status)
{
    if (status == 0)
        return;
    (void)fprintf(stderr, "%s\n", gts_last_error(NULL)->message);
    exit(1);
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    struct many_arguments arguments = {0};
    gts_array *const arrays = (gts_array *)&arguments;
    const int count = atoi(argv[2]);
    for (int i = 0; i < count; ++i)
        arrays[i] = (gts_array){.data = calloc(SIZE, sizeof(double)), .dtype = GTS_FLOAT64, .device = GTS_CPU,
                                .rank = 1, .shape = {SIZE}, .strides = {1}};
    double open = 1e99, bind = 1e99, step = 1e99, swap = 1e99;
    gts_granule *granule = NULL;
    for (int i = 0; i < 20; ++i) {
        gts_granule_close(&granule);
        const double begin = now();
        check(many_open(argv[1], &granule));
        const double end = now();
        open = end - begin < open ? end - begin : open;
    }
    for (int i = 0; i < 200; ++i) {
        const double begin = now();
        check(many_bind(granule, &arguments));
        const double end = now();
        bind = end - begin < bind ? end - begin : bind;
    }
    for (int i = 0; i < 200; ++i) {
        const double begin = now();
        for (int j = 0; j < 100; ++j)
            check(many_run(granule));
        const double end = now();
        step = (end - begin) / 100 < step ? (end - begin) / 100 : step;
    }
    for (int i = 0; i < 200; ++i) {
        const double begin = now();
        check(gts_granule_swap(granule, "a0", "b0"));
        const double end = now();
        swap = end - begin < swap ? end - begin : swap;
    }
    gts_granule_close(&granule);
    printf("{\"open\": %.0f, \"bind\": %.0f, \"step\": %.0f, \"swap\": %.0f}\n", open, bind, step, swap);
    return 0;
}
