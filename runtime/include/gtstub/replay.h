/**
 * @file
 * gtstub: replays of recorded calls.
 *
 * GTSTUB_RECORD=DIR, or `gtstub record`, writes the arguments of every call, before and after it, to an archive for
 * each process (docs/record.md). A replay passes the arguments from before a call to a program, and compares the
 * results with the arguments from after the call:
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

/** An open archive of one process, and the results of all comparisons with it. */
typedef struct gts_replay gts_replay;

/**
 * Opens an archive.
 *
 * @param path    the directory of one process
 * @param replay  receives the replay, which the caller owns and passes to gts_replay_close(); NULL after an error
 * @return 0, or -1 with the error in gts_last_error(NULL)
 */
GTS_EXPORT int gts_replay_open(const char *path, gts_replay **replay);

/**
 * Returns the number of recorded calls of all programs. Calls are numbered in the order in which they ended.
 *
 * @param replay  the replay
 * @return the number of calls; the last one has this number - 1
 */
GTS_EXPORT size_t gts_replay_count(const gts_replay *replay);

/**
 * Returns the name of the program of a call.
 *
 * @param replay  the replay
 * @param call    number of the call, from 0
 * @return a text that is valid until gts_replay_close(); NULL if there is no such call, with the error in
 *         gts_last_error(NULL)
 */
GTS_EXPORT const char *gts_replay_program(const gts_replay *replay, size_t call);

/**
 * Returns whether a call was recorded of exactly this program. Several programs may have the same name: variants that
 * have other values compiled in.
 *
 * @param replay   the replay
 * @param call     number of the call, from 0
 * @param program  a program
 * @return whether it was generated from the signatures that the recording names; false if there is no such call, or if
 *         the program is NULL
 */
GTS_EXPORT bool gts_replay_is_of(const gts_replay *replay, size_t call, const gts_program *program);

/**
 * Sets how much a result may differ from the recorded one. The default is 0.
 *
 * @param replay    the replay
 * @param argument  as in messages: "vn", "x[0]"; NULL: all arguments without a tolerance of their own
 * @param ulp       units in the last place: 1 for neighboring floating-point numbers
 * @return 0, or -1 with the error in gts_last_error(NULL) if no program has this argument
 */
GTS_EXPORT int gts_replay_tolerate(gts_replay *replay, const char *argument, uint64_t ulp);

/**
 * Calls a program with the recorded arguments, and compares every field that it writes. The replay allocates the memory
 * of the arguments, with the recorded strides and overlaps; for a program on a GPU there, too. Then it waits for the
 * stream of the program.
 *
 * The program need not be the one that was recorded, but must take the same arguments, or some of them.
 *
 * @param replay   the replay
 * @param call     number of the call, from 0
 * @param program  the program, which no other thread may call meanwhile; its connectivities must have index base 0
 * @return number of fields that differ by more than is tolerated, or -1 with the error in gts_last_error(program), also
 *         if the program is NULL because it was closed
 */
GTS_EXPORT int gts_replay_call(gts_replay *replay, size_t call, gts_program *program);

/**
 * Makes several calls as one step (gtstub/step.h): binds all of them, runs the step, and compares the results. Each call
 * has memory of its own, with the values that were recorded before it, so that the results of all calls can be compared
 * after the step. All of this memory is allocated at a time.
 *
 * @param replay    the replay
 * @param calls     [count], numbers of the calls, from 0
 * @param programs  [count], the program of each call, as for gts_replay_call()
 * @param count     number of calls
 * @return number of fields that differ by more than is tolerated, or -1 with the error in gts_last_error(NULL)
 */
GTS_EXPORT int gts_replay_step(gts_replay *replay, const size_t *calls, gts_program *const *programs, size_t count);

/**
 * Compares one field with the recorded result of a call, for hosts that do not call a stub. A field on a GPU is copied
 * to the host on the stream of gts_stream(NULL), which is waited for. For that a program with kernels must be loaded.
 *
 * @param replay    the replay
 * @param call      number of the call, from 0
 * @param argument  as in messages: "vn", "x[0]"
 * @param found     the result, of the recorded type and shape
 * @return 0, 1 if it differs by more than is tolerated, or -1 with the error in gts_last_error(NULL)
 */
GTS_EXPORT int gts_replay_compare(gts_replay *replay, size_t call, const char *argument, const gts_array *found);

/**
 * Returns the field that has differed most so far, for hosts that analyse it.
 *
 * @param replay    the replay
 * @param call      receives the number of the call, from 0
 * @param argument  receives the field's path, which is valid until gts_replay_close()
 * @return its elements in the result, contiguous and with the first axis fastest. The replay owns them; they are valid
 *         until its next call or comparison. NULL if no field has differed
 */
GTS_EXPORT const void *gts_replay_worst(const gts_replay *replay, size_t *call, const char **argument);

/**
 * Frees the replay and sets *replay to NULL.
 *
 * @param replay  the replay; *replay may be NULL
 * @return the report of all comparisons, a JSON document (docs/formats.md) that the caller frees with free(); NULL when
 *         memory runs out, or if *replay is NULL
 */
GTS_EXPORT char *gts_replay_close(gts_replay **replay);

#ifdef __cplusplus
}
#endif

#endif
