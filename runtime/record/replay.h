/* Inside the recorder: what is known of a replay. */
#pragma once

#include "gtstub/replay.h"
#include "record/archive.h"
#include "record/report.h"

struct gts_replay {
    char *path;
    gts_archive_index index;
    uint64_t tolerance; /* for arguments without their own */
    gts_findings findings;
    struct worst {
        const gts_archive_call *call;
        uint32_t leaf;
        uint64_t ulp; /* 0 if no field has differed yet */
        void *found;  /* packed */
    } worst;
};

/* The call of this number; NULL with an error if there is none. */
const gts_archive_call *gts_replay_find_call(const gts_replay *self, size_t call, gts_error *error);

/* Reads the packed value of an argument from offset `place` of its store into memory to be freed with free(). */
int gts_replay_read_value(const gts_replay *self, const gts_archive_call *call, uint32_t leaf, int64_t place,
                          void **packed, gts_error *error);

/* Compares a field with its recorded result. Returns 0, 1 if it differs by more than is tolerated, or -1. */
int gts_replay_compare_field(gts_replay *self, const gts_archive_call *call, uint32_t leaf, const gts_array *found,
                             gts_error *error);

/* Refuses a call for which there is no memory. Returns -1. */
GTS_COLD int gts_replay_refuse_memory(const gts_archive_call *call, gts_error *error);
