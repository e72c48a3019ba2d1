/* Arguments for the program 'whole' of tests/signatures.py that are right, for tests to spoil one at a time. */
#ifndef GTSTUB_TESTS_WHOLE_H
#define GTSTUB_TESTS_WHOLE_H

#include "harness.h"
#include "whole_stub.h"

enum { EDGES = 6, LEVELS = 4, NEIGHBORS = 2 };

/* Slots of __program_whole that tests look at. */
enum {
    SLOT_CONN = 1,
    SLOT_OUT_0,
    SLOT_OUT_1,
    SLOT_VN,
    SLOT_X_0,
    SLOT_NK = 7,
    SLOT_OUT_0_START,
    SLOT_OUT_0_STRIDE = 10,
    SLOT_VN_STRIDE = 13,
    SLOT_FLAG,
    SLOT_X_1_0 = 16,
    SLOT_X_1_1
};

struct whole {
    double memory[3][EDGES * LEVELS];
    double column[LEVELS];
    int32_t table[EDGES * NEIGHBORS];
    struct whole_args args;
};

static inline gts_array edge_k(double *data)
{
    return (gts_array){.data = data,
                       .dtype = GTS_FLOAT64,
                       .device = GTS_CPU,
                       .rank = 2,
                       .shape = {EDGES, LEVELS},
                       .strides = {1, EDGES},
                       .dims = {"Edge", "K"}};
}

static inline void set_up(struct whole *w)
{
    memset(w, 0, sizeof *w);
    w->args = (struct whole_args){.vn = edge_k(w->memory[0]),
                                  .x_0 = {.data = w->column,
                                          .dtype = GTS_FLOAT64,
                                          .device = GTS_CPU,
                                          .rank = 1,
                                          .shape = {LEVELS},
                                          .strides = {1},
                                          .dims = {"K"}},
                                  .x_1_0 = -3,
                                  .x_1_1 = 0.5f,
                                  .flag = true,
                                  .out_0 = edge_k(w->memory[1]),
                                  .out_1 = edge_k(w->memory[2]),
                                  .gt_conn_E2V = {.data = w->table,
                                                  .dtype = GTS_INT32,
                                                  .device = GTS_CPU,
                                                  .rank = 2,
                                                  .readonly = true,
                                                  .shape = {EDGES, NEIGHBORS},
                                                  .strides = {1, EDGES},
                                                  .dims = {"Edge", "E2V"}}};
}

#endif
