/* Inside the runtime: what loading and calling programs has to do for profiles. */
#ifndef GTSTUB_PROFILE_PROFILE_H
#define GTSTUB_PROFILE_PROFILE_H

#include "gtstub/stub.h"

/* The profile that began last and has not ended; NULL when none runs. */
extern gts_profile *gts_profile_running __attribute__((visibility("hidden")));

/* Profiles reach the programs that are loaded here, to wait until their calls have ended. */
void gts_profile_add_program(gts_program *self);
/* What was recorded of the program stays in the profiles. */
void gts_profile_remove_program(gts_program *self);

/* In a call that has just entered: reads the clock for `profile`. */
void gts_profile_enter(gts_program *self, gts_profile *profile);
/* stub->run() of a call that gts_profile_enter() has seen, timed. */
int gts_profile_run(gts_program *self);

/* Once, when the first program is loaded: begins the profile that GTSTUB_PROFILE asks for. */
void gts_profile_read_environment(void);
/* In a forked child: the profiles are the parent's. */
void gts_profile_forget(void);

#endif
