/* Calls the program 'whole' as a C host, with the arrays of a Fortran host and an origin of its own. */
#include "whole.h"

void call_from_c(gts_program **program, double *vn, double *x_0, double *out_0, double *out_1, int32_t *table,
                 int64_t start);

void call_from_c(gts_program **program, double *vn, double *x_0, double *out_0, double *out_1, int32_t *table,
                 int64_t start)
{
    struct whole w;
    set_up(&w);
    w.args.vn.data = vn;
    w.args.x_0.data = x_0;
    w.args.out_0.data = out_0;
    w.args.out_0.origin[1] = start;
    w.args.out_1.data = out_1;
    w.args.gt_conn_E2V.data = table;
    CHECK(whole_call(*program, &w.args) == 0);
}
