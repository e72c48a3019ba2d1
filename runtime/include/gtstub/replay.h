/**
 * @file
 * gtstub: calls that were recorded, made again.
 *
 * GTSTUB_RECORD=DIR, or `gtstub record`, writes the arguments of every call before and after it to an archive,
 * one for each process (docs/record.md). A replay passes the arguments before a call to a program and compares
 * what it has written with the arguments after it:
 *
 *     gts_replay *replay;
 *     if (gts_replay_open("recording/host-1234", &replay) != 0) ...
 *     for (size_t i = 0; i < gts_replay_count(replay); ++i)
 *         if (strcmp(gts_replay_program(replay, i), "diffuse") == 0 && gts_replay_call(replay, i, program) < 0) ...
 *     char *const report = gts_replay_close(&replay);
 *
 * Threads: a replay belongs to one thread at a time. Different replays are independent.
 */
#ifndef GTSTUB_REPLAY_H
#define GTSTUB_REPLAY_H

#include "gtstub/gtstub.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The archive of one process, and what its comparisons have found. */
typedef struct gts_replay gts_replay;

/**
 * Opens an archive.
 *
 * @param path    the directory of one process
 * @param replay  belongs to the caller, who gives it back with gts_replay_close(); NULL after an error
 * @return 0, or -1 and the error is gts_last_error(NULL)
 */
GTS_EXPORT int gts_replay_open(const char *path, gts_replay **replay);

/**
 * Number of calls, of all programs, in the order in which they ended.
 *
 * @param replay  the replay
 * @return the calls are those from 0 to this number, itself not included
 */
GTS_EXPORT size_t gts_replay_count(const gts_replay *replay);

/**
 * Name of the program of a call.
 *
 * @param replay  the replay
 * @param call    number of the call, from 0
 * @return text that lives as long as the replay, or NULL where there is no such call and the error is
 *         gts_last_error(NULL)
 */
GTS_EXPORT const char *gts_replay_program(const gts_replay *replay, size_t call);

/**
 * Whether a call was recorded of this very program. Programs of one name may be several: variants, in which other
 * values are compiled in.
 *
 * @param replay   the replay
 * @param call     number of the call, from 0
 * @param program  a program
 * @return whether it was made from the signatures that the recording names; false where there is no such call, or where
 *         the program is NULL
 */
GTS_EXPORT bool gts_replay_is_of(const gts_replay *replay, size_t call, const gts_program *program);

/**
 * Says how far a result may be from the recorded one: 0 unless it is said.
 *
 * @param replay    the replay
 * @param argument  as in messages: "vn", "x[0]"; NULL: all of which nothing else is said
 * @param ulp       units in the last place: floating-point numbers between the two, one of them included
 * @return 0, or -1 and the error is gts_last_error(NULL): no program has this argument
 */
GTS_EXPORT int gts_replay_tolerate(gts_replay *replay, const char *argument, uint64_t ulp);

/**
 * Calls a program with the recorded arguments, in memory of the replay's own that has the same strides and the same
 * overlaps, and compares every field that it writes.
 *
 * The program need not be the one that was recorded, but must take the same arguments, or some of them.
 *
 * @param replay   the replay
 * @param call     number of the call, from 0
 * @param program  what to call; it must not be called by another thread meanwhile, and its tables must count from 0
 * @return number of fields that differ by more than is tolerated, or -1 and the error is gts_last_error(program), also
 *         where the program is NULL because it was closed
 */
GTS_EXPORT int gts_replay_call(gts_replay *replay, size_t call, gts_program *program);

/**
 * Compares one field with what a call has written into it, for hosts that call something else than a stub.
 *
 * @param replay    the replay
 * @param call      number of the call, from 0
 * @param argument  as in messages: "vn", "x[0]"
 * @param found     the result, of the recorded type and shape, in host memory
 * @return 0, 1 where it differs by more than is tolerated, or -1 and the error is gts_last_error(NULL)
 */
GTS_EXPORT int gts_replay_compare(gts_replay *replay, size_t call, const char *argument, const gts_array *found);

/**
 * The field that has differed most so far, for hosts that look closer.
 *
 * @param replay    the replay
 * @param call      becomes the number of the call, from 0
 * @param argument  becomes the field's path, which lives as long as the replay
 * @return its elements as they came out, one after the other, the first axis fastest; they belong to the replay and live
 *         until its next call or comparison. NULL where nothing has differed
 */
GTS_EXPORT const void *gts_replay_worst(const gts_replay *replay, size_t *call, const char **argument);

/**
 * Frees the replay and sets *replay to NULL.
 *
 * @param replay  the replay; NULL inside is fine
 * @return the report of all comparisons, a JSON document (docs/formats.md) that belongs to the caller, who frees it with
 *         free(); NULL when memory runs out
 */
GTS_EXPORT char *gts_replay_close(gts_replay **replay);

#ifdef __cplusplus
}
#endif

#endif
