/*
 * Times one look at an array of doubles for NaN and two limits, beside reading it once and copying it. Prints for each
 * number of elements the minima in microseconds.
 */
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/wide.h"
#include "observers/debug/scan.h"

enum { ROUNDS = 60 };

static double *values, *other;
static volatile uint64_t sink;

/* The fastest way to read an array: no value is compared. */
GTS_WIDE static uint64_t read_once(const uint64_t *words, int64_t count)
{
    uint64_t all = 0;
    for (int64_t i = 0; i < count; ++i)
        all ^= words[i];
    return all;
}

static void run(const char *what, int64_t count, int64_t rows)
{
    const int64_t columns = count / rows;
    const gts_array array = {.data = values,
                             .dtype = GTS_FLOAT64,
                             .device = GTS_CPU,
                             .rank = 2,
                             .shape = {columns, rows},
                             .strides = {1, rows == 1 ? columns : columns + 8}};
    const gts_limits limits = {-280, 280, true};
    if (strcmp(what, "read") == 0)
        sink = read_once((const uint64_t *)(const void *)values, count);
    else if (strcmp(what, "copy") == 0)
        memcpy(other, values, (size_t)count * sizeof *values);
    else
        sink = gts_scan_finds(&array, limits);
}

static double best(const char *what, int64_t count, int64_t rows)
{
    uint64_t least = UINT64_MAX;
    for (int round = 0; round < ROUNDS; ++round) {
        const uint64_t begin = gts_clock_ns();
        run(what, count, rows);
        const uint64_t took = gts_clock_ns() - begin;
        least = took < least ? took : least;
    }
    return (double)least / 1000;
}

int main(void)
{
    const int64_t counts[] = {1 << 12, 1000 * 1000, 16 * 1000 * 1000};
    const int64_t most = 17 * 1000 * 1000;
    values = malloc((size_t)most * sizeof *values);
    other = malloc((size_t)most * sizeof *other);
    if (values == NULL || other == NULL)
        return 1;
    for (int64_t i = 0; i < most; ++i)
        values[i] = other[i] = (double)(i % 100);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; ++i) {
        const double read = best("read", counts[i], 1), check = best("check", counts[i], 1);
        printf("%9lld doubles: read once %8.2f, copied %8.2f, checked %8.2f (%.2f of reading), in padded rows of 64 "
               "%8.2f\n",
               (long long)counts[i], read, best("copy", counts[i], 1), check, check / read,
               best("check", counts[i], counts[i] / 64));
    }
    return 0;
}
