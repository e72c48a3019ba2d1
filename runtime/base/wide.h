/* Inside the runtime: loops over many elements. */
#pragma once

#include <stdint.h> /* defines __GLIBC__ */

/*
 * A function that is compiled twice: for any x86-64 processor, and for those with AVX2. The dynamic linker chooses one
 * when it loads the runtime. Address and thread sanitizers cannot instrument that choice.
 */
#if defined __x86_64__ && defined __GLIBC__ && defined __has_attribute && !defined __SANITIZE_ADDRESS__ &&             \
    !defined __SANITIZE_THREAD__
#if __has_attribute(target_clones)
#define GTS_WIDE __attribute__((target_clones("avx2", "default")))
#endif
#endif

#ifndef GTS_WIDE
#define GTS_WIDE
#endif
