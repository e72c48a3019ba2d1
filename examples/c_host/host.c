/* Calls icon4py's program copy_field, new_f = old_f, on 3 cells and 2 levels: host_c FOLDER, where the stub lies. */
#include <stdio.h>

#include "copy_field_stub.h"

enum { CELLS = 3, LEVELS = 2 };

int main(int argc, char **argv)
{
    gts_program *program;
    if (gts_open(argc > 1 ? argv[1] : ".", &program) != 0) {
        fprintf(stderr, "%s\n", gts_last_error(NULL)->message);
        return 1;
    }

    double old_f[LEVELS][CELLS] = {{1.0, 2.0, 3.0}, {10.0, 20.0, 30.0}};
    double new_f[LEVELS][CELLS];
    struct copy_field_args args = {
        .old_f = {.data = old_f,
                  .dtype = GTS_FLOAT64,
                  .device = GTS_CPU,
                  .rank = 2, /* the axes are [Cell, K]; cells lie one after the other */
                  .shape = {CELLS, LEVELS},
                  .strides = {1, CELLS}},
    };
    args.new_f = args.old_f;
    args.new_f.data = new_f;
    const int status = copy_field_call(program, &args);
    if (status != 0)
        fprintf(stderr, "%s\n", gts_last_error(program)->message);
    for (int k = 0; k < LEVELS && status == 0; ++k)
        printf("%6.1f%6.1f%6.1f\n", new_f[k][0], new_f[k][1], new_f[k][2]);

    gts_close(&program);
    return status != 0;
}
