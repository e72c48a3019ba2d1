/* Complex numbers of a C host: arrays, scalars by value, functions, and changes of a bound call. */
#include <complex.h>

#include "gtstub/step.h"
#include "waves_stub.h"
#include "harness.h"

enum { N = 4 };

struct host {
    float complex w;
    double complex z;
    int calls;
};

static double complex turn(float complex w, double complex z, void *data)
{
    struct host *const host = data;
    CHECK(w == host->w && z == host->z);
    ++host->calls;
    return (double complex)w * z;
}

static void parts(double complex z, float complex *narrow, double complex *twice, void *data)
{
    struct host *const host = data;
    CHECK(z == host->z);
    *narrow = (float complex)conj(z);
    *twice = 2 * z;
}

static void check_results(const double complex *wide, const float complex *half, const struct host *host)
{
    const double complex w = host->w, z = host->z;
    CHECK(wide[0] == z && wide[1] == 0.5 * z && wide[2] == w * z && wide[3] == 2 * z);
    CHECK(half[0] == host->w && half[1] == (float complex)conj(z));
}

int main(void)
{
    gts_program *program;
    gts_bound_call *bound;
    double complex wide[N] = {0};
    float complex half[2] = {0};
    struct host host = {.w = 1 - 2 * I, .z = 3 + 0.25 * I};
    CHECK(gts_load("./waves_stub.so", "./libwaves.so", &program) == 0);
    struct waves_args args = {
        .wide = {wide, GTS_COMPLEX128, GTS_CPU, 1, false, {0}, {N}, {1}, {"K"}},
        .half = {half, GTS_COMPLEX64, GTS_CPU, 1, false, {0}, {2}, {1}, {"K"}},
        .w = host.w,
        .x = 0.5,
        .z = host.z,
        .turn = {turn, &host},
        .parts = {parts, &host},
    };
    CHECK(waves_call(program, &args) == 0);
    check_results(wide, half, &host);

    CHECK(gts_bind(program, &args, &bound) == 0);
    host.w = -1 + I;
    host.z = 1e300 * I;
    CHECK(gts_set_scalar(bound, "w", GTS_COMPLEX64, &host.w) == 0);
    CHECK(gts_set_scalar(bound, "z", GTS_COMPLEX128, &host.z) == 0);
    host.z = -2;
    CHECK(gts_set_scalar(bound, "z", GTS_COMPLEX128, &host.z) == 0);
    CHECK(gts_start(bound) == 0);
    check_results(wide, half, &host);
    CHECK(host.calls == 2);
    CHECK(gts_set_scalar(bound, "z", GTS_COMPLEX64, &host.w) == -1);
    CHECK_ERROR(gts_last_error(program), GTS_TYPE_ERROR,
                "Argument 'z' of program 'waves' must have dtype 'complex128', not 'complex64'.");
    gts_unbind(&bound);

    args.wide.dtype = GTS_FLOAT64;
    CHECK(waves_call(program, &args) == -1);
    CHECK_ERROR(gts_last_error(program), GTS_TYPE_ERROR,
                "Argument 'wide' of program 'waves' must have dtype 'complex128', not 'float64'.");
    gts_close(&program);
    return 0;
}
