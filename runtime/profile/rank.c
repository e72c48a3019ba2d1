/* The rank of this process, from the variables of launchers that ranks.py reads, in the same order. */
#define _POSIX_C_SOURCE 200809L
#include "profile/rank.h"

#include <stddef.h>
#include <stdlib.h>

#define SIZES "OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE", "PMI_SIZE", "FLUX_JOB_SIZE", "SLURM_STEP_NUM_TASKS"

typedef struct launcher {
    const char *rank;
    const char *sizes[5]; /* those that may be set; NULL after the last one */
} launcher;

static const launcher launchers[] = {
    {"OMPI_COMM_WORLD_RANK", {"OMPI_COMM_WORLD_SIZE"}},
    {"MV2_COMM_WORLD_RANK", {"MV2_COMM_WORLD_SIZE"}},
    {"PMIX_RANK", {SIZES}},
    {"PMI_RANK", {"PMI_SIZE"}},
    {"PMI_ID", {"PMI_SIZE"}},
    {"FLUX_TASK_RANK", {"FLUX_JOB_SIZE"}},
    {"PALS_RANKID", {SIZES}},
    {"ALPS_APP_PE", {SIZES}},
    {"SLURM_PROCID", {"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"}},
};

/* The value of a variable; -1 if it is not set to a number. */
static long read_number(const char *variable)
{
    const char *const text = getenv(variable);
    if (text == NULL || *text < '0' || *text > '9')
        return -1;
    char *end = NULL;
    const long number = strtol(text, &end, 10);
    return *end == '\0' ? number : -1;
}

static long find_size(const launcher *self)
{
    for (size_t i = 0; i < sizeof self->sizes / sizeof *self->sizes && self->sizes[i] != NULL; ++i) {
        if (getenv(self->sizes[i]) != NULL)
            return read_number(self->sizes[i]);
    }
    return -1;
}

long gts_rank(void)
{
    const size_t last = sizeof launchers / sizeof *launchers - 1;
    for (size_t i = 0; i <= last; ++i) {
        const long rank = read_number(launchers[i].rank), size = find_size(&launchers[i]);
        if (rank < 0 || size < 0)
            continue;
        if (i == last && getenv("SLURM_STEP_ID") == NULL && getenv("SLURM_STEPID") == NULL)
            continue; /* the first shell of a job */
        return size > 1 ? rank : -1;
    }
    return -1;
}
