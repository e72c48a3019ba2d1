/* Arguments for the program 'whole' of tests/signatures.py that are right, for tests to spoil one at a time. */
#ifndef GTSTUB_TESTS_WHOLE_H
#define GTSTUB_TESTS_WHOLE_H

#include "harness.h"
#include "whole_stub.h"

enum { EDGES = 6, LEVELS = 4, NEIGHBORS = 2 };

/* Slots of __program_whole that tests look at. */
enum { SLOT_CONN = 1, SLOT_OUT_0, SLOT_OUT_1, SLOT_VN, SLOT_X_0, SLOT_NK = 7, SLOT_FLAG = 14, SLOT_X_1_1 = 17 };

struct whole {
    double memory[3][EDGES * LEVELS];
    double column[LEVELS];
    int32_t table[EDGES * NEIGHBORS];
    gts_array vn, x_0, out_0, out_1, table_array;
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
    w->vn = edge_k(w->memory[0]);
    w->out_0 = edge_k(w->memory[1]);
    w->out_1 = edge_k(w->memory[2]);
    w->x_0 = (gts_array){.data = w->column,
                         .dtype = GTS_FLOAT64,
                         .device = GTS_CPU,
                         .rank = 1,
                         .shape = {LEVELS},
                         .strides = {1},
                         .dims = {"K"}};
    w->table_array = (gts_array){.data = w->table,
                                 .dtype = GTS_INT32,
                                 .device = GTS_CPU,
                                 .rank = 2,
                                 .readonly = true,
                                 .shape = {EDGES, NEIGHBORS},
                                 .strides = {1, EDGES},
                                 .dims = {"Edge", "E2V"}};
    w->args = (struct whole_args){.vn = &w->vn,
                                  .x_0 = &w->x_0,
                                  .x_1_0 = -3,
                                  .x_1_1 = 0.5f,
                                  .flag = true,
                                  .out_0 = &w->out_0,
                                  .out_1 = &w->out_1,
                                  .gt_conn_E2V = &w->table_array};
}

#endif
