/* The rank of this process, from the variables of launchers that ranks.py reads, in the same order. */
#define _GNU_SOURCE
#include "base/rank.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/new.h"
#include "base/path.h"

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

/* ---- Files of one process -------------------------------------------------------------------------------------- */

/* Where the part of a path begins that each process replaces or adds to: "%p", or else the suffix of the file name. */
static const char *find_place(const char *path)
{
    const char *const number = strstr(path, "%p");
    if (number != NULL)
        return number;
    const char *const name = gts_file_name(path);
    const char *const dot = strrchr(name, '.');
    return dot == NULL || dot == name ? strchr(name, '\0') : dot;
}

char *gts_own_path(const char *path)
{
    if (path == NULL || *path == '\0')
        return NULL;
    const char *const place = find_place(path);
    const bool has_process = strncmp(place, "%p", 2) == 0;
    const long rank = gts_rank();
    char directory[PATH_MAX] = "", number[32] = "";
    if (*path != '/' && getcwd(directory, sizeof directory) == NULL)
        return NULL;
    if (has_process)
        snprintf(number, sizeof number, "%ld", (long)getpid());
    else if (rank >= 0)
        snprintf(number, sizeof number, "-%ld", rank);
    return gts_new_text("%s%s%.*s%s%s", directory, *directory == '\0' ? "" : "/", (int)(place - path), path, number,
                        has_process ? place + 2 : place);
}
