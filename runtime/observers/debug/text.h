/* Inside the runtime: debug checks, as their text describes them (docs/debugging.md). */
#pragma once

#include "observers/debug/scan.h"

/* A text that selects programs or arguments by a pattern of fnmatch(), and whether it has selected one. */
typedef struct gts_pattern {
    const char *pattern;
    const char *item;         /* as it is written: "min q*=0" */
    bool is_optional;         /* it comes from a preset, and may select nothing */
    _Atomic bool has_matched; /* set by calls, in any thread */
} gts_pattern;

/* A check of the values of fields. */
typedef struct gts_rule {
    gts_pattern fields;
    gts_limits limits;
} gts_rule;

/* An index whose values are printed. */
typedef struct gts_trace {
    gts_pattern fields; /* `pattern` is "*" */
    int32_t rank;
    int64_t index[GTS_MAX_RANK];
} gts_trace;

/* Which ends of arrays are next to a guard page. */
typedef enum gts_guarded {
    GTS_NOT_GUARDED,
    GTS_GUARDED_BY_TURNS, /* the end in the first call of a program, the start in the second, and so on */
    GTS_GUARDED_END,
    GTS_GUARDED_START
} gts_guarded;

struct gts_checks {
    gts_checks *_Atomic outer;
    char *text; /* the items, each ended by a 0 */
    gts_rule *rules;
    gts_trace *traces;
    gts_pattern *only; /* programs; all if there are none */
    uint32_t rule_count, trace_count, only_count;
    bool warns, shows_progress;
    gts_guarded guarded;
    _Atomic bool has_met;      /* a program, of any name */
    _Atomic bool has_selected; /* a program */
};

/* Reads the text of checks. Returns them, or NULL after setting gts_own_error. */
gts_checks *gts_checks_read(const char *text);

void gts_checks_free(gts_checks *self);

/* Whether the pattern selects a name. A name that equals the pattern is selected, too: x[0]. */
bool gts_pattern_selects(gts_pattern *self, const char *name);
