/**
 * @file
 * gtstub: complex numbers, which C and C++ have different types for. Both are a real and an imaginary part in memory, and
 * functions take and return both in the same way.
 */
#ifndef GTSTUB_COMPLEX_H
#define GTSTUB_COMPLEX_H

#ifdef __cplusplus

#include <complex>

typedef std::complex<float> gts_complex64;
typedef std::complex<double> gts_complex128;

#else

typedef float _Complex gts_complex64;
typedef double _Complex gts_complex128;

#endif

#endif
