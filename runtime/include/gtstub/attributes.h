/* gtstub: hot and cold paths, for gcc and clang. */
#ifndef GTSTUB_ATTRIBUTES_H
#define GTSTUB_ATTRIBUTES_H

#define GTS_LIKELY(condition) __builtin_expect(!!(condition), 1)
#define GTS_UNLIKELY(condition) __builtin_expect(!!(condition), 0)
#define GTS_COLD __attribute__((cold, noinline))
#define GTS_NOINLINE __attribute__((noinline))
#define GTS_ALWAYS_INLINE __attribute__((always_inline))

/** Returns -1 from the function that it stands in if `call` does not return 0. */
#define GTS_TRY(call)                                                                                                  \
    do {                                                                                                               \
        if (GTS_UNLIKELY((call) != 0))                                                                                 \
            return -1;                                                                                                 \
    } while (0)

#endif
