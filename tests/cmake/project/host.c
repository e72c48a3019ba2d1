/* Multiplies three numbers by 2.5 with the program 'scale', and prints them. */
#include <stdio.h>

#include "scale_stub.h"

int main(int argc, char **argv)
{
    gts_program *program;
    if (gts_open(argc > 1 ? argv[1] : ENTRY, &program) != 0) {
        fprintf(stderr, "%s\n", gts_last_error(NULL)->message);
        return 1;
    }
    double in[3] = {1.0, 2.0, 3.0};
    double out[3] = {0.0, 0.0, 0.0};
    struct scale_args args = {
        .x = {.data = in, .dtype = GTS_FLOAT64, .device = GTS_CPU, .rank = 1, .shape = {3}, .strides = {1}},
        .factor = 2.5,
        .out = {.data = out, .dtype = GTS_FLOAT64, .device = GTS_CPU, .rank = 1, .shape = {3}, .strides = {1}},
    };
    const int status = scale_call(program, &args);
    if (status != 0)
        fprintf(stderr, "%s\n", gts_last_error(program)->message);
    else
        printf("%g %g %g\n", out[0], out[1], out[2]);
    gts_close(&program);
    return status != 0;
}
