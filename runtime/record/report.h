/* Inside the runtime: writes the report of a replay, which grows with every comparison. */
#pragma once

#include <stdio.h>

#include "record/compare.h"
#include "record/index.h"

typedef struct gts_findings {
    FILE *out;
    char *text;
    size_t size;
    bool has_any;
} gts_findings;

/* Begins a report; false when memory runs out. */
bool gts_findings_begin(gts_findings *findings);

/* Adds the comparison of one field; `expected` and `found` are packed. */
void gts_findings_add(gts_findings *findings, const gts_archive_call *call, uint32_t leaf, uint64_t tolerance,
                      const gts_difference *difference, const void *expected, const void *found);

/* Ends the report and returns its text, to be freed with free(); NULL when memory runs out. */
char *gts_findings_end(gts_findings *findings);
