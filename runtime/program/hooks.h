/*
 * Inside the runtime: the functions that loading and calling a program runs for profiles, recordings and debug checks.
 * The folders profile/, record/ and debug/ are above program/ and implement these functions, so that program/ includes
 * no header of theirs.
 */
#ifndef GTSTUB_PROGRAM_HOOKS_H
#define GTSTUB_PROGRAM_HOOKS_H

#include "program/private.h"

/* ---- profile/profile.c ----------------------------------------------------------------------------------------- */

/* The profile that began last and has not ended; NULL when none is running. */
extern gts_profile *gts_profile_running __attribute__((visibility("hidden")));

/* Begins the profile that GTSTUB_PROFILE asks for. Called once, when the first program is loaded. */
void gts_profile_read_environment(void);

/* Begins to time the call that has just been entered. */
void gts_profile_enter(gts_program *self, gts_profile *profile);

/* Runs the SDFG in a call that gts_profile_enter() has begun to time, and adds the times to the profile. */
int gts_profile_run(gts_program *self);

/* Moves the times of a program that is being closed into their profiles. */
void gts_profile_close(gts_program *self);

/* Notes that a step is being freed. */
void gts_profile_release_step(const gts_step *step);

/* Forgets all profiles in a forked child, because they belong to the parent. */
void gts_profile_forget(void);

/* ---- record/recorder.c ----------------------------------------------------------------------------------------- */

/* A call that is being recorded. */
typedef struct gts_recorder_call gts_recorder_call;

/* Begins the recording that GTSTUB_RECORD asks for. Called once, when the first program is loaded. */
void gts_recorder_read_environment(void);

/* The part of the recording that belongs to a program which is being loaded; NULL if its calls are not recorded. */
gts_recorder_program *gts_recorder_find(const gts_stub *stub);

/* Records the arguments before the SDFG runs; self->recorder is not NULL. Returns NULL if this call is not recorded. */
gts_recorder_call *gts_recorder_before(gts_program *self);

/* Records the results, if the SDFG has run, and frees `call`. */
void gts_recorder_after(gts_program *self, gts_recorder_call *call, bool has_run);

/* Forgets the recording in a forked child, which begins its own. */
void gts_recorder_forget(void);

/* ---- debug/call.c, checked.c, checks.c, guard.c, maps.c --------------------------------------------------------------- */

/* The checks that began last and have not ended; NULL when there are none. */
extern gts_checks *gts_checks_running __attribute__((visibility("hidden")));

/* Begins the checks that GTSTUB_CHECK asks for. Called once, when the first program is loaded. */
void gts_checks_read_environment(void);

/* Connects the checks that an SDFG has after its maps, if it was built with them; `library` is from dlopen(). */
void gts_maps_find(gts_program *self, void *library);

/* Makes the call that has just been entered one that is checked. */
void gts_checks_enter(gts_program *self);

/* Checks the arguments before the SDFG runs. After -1 it must not run. */
int gts_checks_before(gts_program *self);

/* Checks what the SDFG has written. `status` is that of the SDFG, and is returned unless a check fails. */
int gts_checks_after(gts_program *self, int status);

/*
 * For a call whose runtime->is_guarded is set: calls `run` while the arrays of the program are guarded copies, and
 * copies the results back. Fails if the SDFG has accessed memory outside of them.
 */
int gts_guard_run(gts_program *self, int (*run)(gts_program *));

/* Replaces a workspace of `size` bytes by a guarded copy until the call ends; runtime->guard is not NULL. */
int gts_guard_workspace(gts_program *self, uint32_t workspace, size_t size);

/* Frees what checks know of a program that is being closed. */
void gts_checks_close(gts_program *self);

/* Keeps the running checks in a forked child. */
void gts_checks_inherit(void);

#endif
