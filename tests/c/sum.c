/*
 * An SDFG library of 'prog' that computes: out[i] = factor * x[i] + x[i - 1], in order, so that it matters whether both
 * are one memory. It kills its process where factor is 13. Compiled with SPOIL, an element is wrong by some ulp;
 * compiled with PAST, it also reads the element after the last one of x where factor is 11.
 */
#include <math.h>
#include <signal.h>
#include <stdint.h>

extern void *__dace_init_prog(void);
extern int __dace_exit_prog(void *handle);
extern void __program_prog(void *handle, double *out, double *x, int32_t n, double factor);

void *__dace_init_prog(void)
{
    static int handle;
    return &handle;
}

int __dace_exit_prog(void *handle)
{
    (void)handle;
    return 0;
}

void __program_prog(void *handle, double *out, double *x, int32_t n, double factor)
{
    (void)handle;
    for (int32_t i = 0; i < n; ++i)
        out[i] = factor * x[i] + (i > 0 ? x[i - 1] : 0);
    if (factor == 13)
        (void)raise(SIGKILL);
#ifdef PAST
    double sum = 0;
#ifdef _OPENMP
#pragma omp parallel for num_threads(2) reduction(+ : sum)
#endif
    for (int32_t i = 0; i < n + (factor == 11); ++i) /* one too many */
        sum += x[i];
    if (factor == 11)
        out[0] = sum;
#endif
#ifdef SPOIL
    for (int i = 0; n > 2 && i < SPOIL; ++i)
        out[2] = nextafter(out[2], INFINITY);
#endif
}
