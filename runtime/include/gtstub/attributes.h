/* gtstub: hot and cold paths, for gcc and clang. */
#ifndef GTSTUB_ATTRIBUTES_H
#define GTSTUB_ATTRIBUTES_H

#define GTS_LIKELY(condition) __builtin_expect(!!(condition), 1)
#define GTS_UNLIKELY(condition) __builtin_expect(!!(condition), 0)
#define GTS_COLD __attribute__((cold, noinline))
#define GTS_NOINLINE __attribute__((noinline))
#define GTS_ALWAYS_INLINE __attribute__((always_inline))

/** Silences compilers about conditions of an SDFG, whose operands C converts as C++ does. */
#define GTS_CONVERTING_BEGIN                                                                                           \
    GTS_PRAGMA(GCC diagnostic push)                                                                                    \
    GTS_PRAGMA(GCC diagnostic ignored "-Wpragmas")                                                                     \
    GTS_PRAGMA(GCC diagnostic ignored "-Wunknown-warning-option")                                                      \
    GTS_PRAGMA(GCC diagnostic ignored "-Wbool-compare")                                                                \
    GTS_PRAGMA(GCC diagnostic ignored "-Wbool-operation")                                                              \
    GTS_PRAGMA(GCC diagnostic ignored "-Wconstant-logical-operand")                                                    \
    GTS_PRAGMA(GCC diagnostic ignored "-Wconversion")                                                                  \
    GTS_PRAGMA(GCC diagnostic ignored "-Wint-in-bool-context")                                                         \
    GTS_PRAGMA(GCC diagnostic ignored "-Wlogical-not-parentheses")                                                     \
    GTS_PRAGMA(GCC diagnostic ignored "-Wsign-compare")                                                                \
    GTS_PRAGMA(GCC diagnostic ignored "-Wsign-conversion")                                                             \
    GTS_PRAGMA(GCC diagnostic ignored "-Wtautological-compare")                                                        \
    GTS_PRAGMA(GCC diagnostic ignored "-Wtype-limits")
#define GTS_CONVERTING_END GTS_PRAGMA(GCC diagnostic pop)
#define GTS_PRAGMA(text) _Pragma(#text)

/** Returns -1 from the function that it stands in if `call` does not return 0. */
#define GTS_TRY(call)                                                                                                  \
    do {                                                                                                               \
        if (GTS_UNLIKELY((call) != 0))                                                                                 \
            return -1;                                                                                                 \
    } while (0)

#endif
