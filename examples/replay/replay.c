/*
 * Replays the calls of a recorded process on a program, and prints what differs: C alone, no Python in the process.
 *
 *     replay RECORDING PROGRAM [ULP]
 *
 * RECORDING is the directory of one process, recording/<host>-<process>; PROGRAM is a cache entry or a stub library.
 * Exits with 1 where a result is further from the recorded one than ULP units in the last place, which are 0 unless
 * given, and with 2 after an error.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gtstub/replay.h"

static int fail(const gts_program *program)
{
    fprintf(stderr, "%s\n", gts_last_error(program)->message);
    return 2;
}

/* Replays the calls of one program. 0, 1 where a result differs, or 2. */
static int replay_calls(gts_replay *replay, gts_program *program)
{
    size_t calls = 0, differing = 0;
    for (size_t i = 0; i < gts_replay_count(replay); ++i) {
        if (strcmp(gts_replay_program(replay, i), gts_name(program)) != 0)
            continue;
        const int fields = gts_replay_call(replay, i, program);
        if (fields < 0)
            return fail(program);
        ++calls;
        differing += fields > 0;
    }
    fprintf(stderr, "%zu of %zu calls of '%s' differ.\n", differing, calls, gts_name(program));
    return differing > 0;
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: %s RECORDING PROGRAM [ULP]\n", argv[0]);
        return 2;
    }
    gts_replay *replay;
    gts_program *program;
    if (gts_replay_open(argv[1], &replay) != 0)
        return fail(NULL);
    if (gts_open(argv[2], &program) != 0) {
        free(gts_replay_close(&replay));
        return fail(NULL);
    }
    gts_replay_tolerate(replay, NULL, argc > 3 ? strtoull(argv[3], NULL, 10) : 0);
    const int status = replay_calls(replay, program);
    char *const report = gts_replay_close(&replay);
    if (report != NULL)
        fputs(report, stdout);
    free(report);
    gts_close(&program);
    return status;
}
