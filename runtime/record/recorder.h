/* Inside the runtime: what loading and calling programs has to do for a recording. */
#ifndef GTSTUB_RECORD_RECORDER_H
#define GTSTUB_RECORD_RECORDER_H

#include "gtstub/stub.h"

/* A call that is being recorded. */
typedef struct gts_recorded_call gts_recorded_call;

/* Once, when the first program is loaded: what GTSTUB_RECORD asks for. */
void gts_recording_read_environment(void);
/* What is recorded of a program that is loaded; NULL where nothing is. */
gts_recorded *gts_recording_of(const gts_stub *stub);

/* Around stub->run(), when self->recorded is not NULL: before returns NULL where this call is not recorded. */
gts_recorded_call *gts_recording_before(gts_program *self);
void gts_recording_after(gts_program *self, gts_recorded_call *call, bool has_run);

/* In a forked child: the recording is the parent's, the child begins its own. */
void gts_recording_forget(void);

#endif
