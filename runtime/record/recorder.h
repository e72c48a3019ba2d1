/* Inside the runtime: what loading and calling programs has to do for a recording. */
#ifndef GTSTUB_RECORD_RECORDER_H
#define GTSTUB_RECORD_RECORDER_H

#include "gtstub/stub.h"

/* A call that is being recorded. */
typedef struct gts_recorder_call gts_recorder_call;

/* Once, when the first program is loaded: what GTSTUB_RECORD asks for. */
void gts_recorder_read_environment(void);
/* What is recorded of a program that is loaded; NULL where nothing is. */
gts_recorder_program *gts_recorder_find(const gts_stub *stub);

/* Around stub->run(), when self->recorded is not NULL: before returns NULL where this call is not recorded. */
gts_recorder_call *gts_recorder_before(gts_program *self);
void gts_recorder_after(gts_program *self, gts_recorder_call *call, bool has_run);

/* In a forked child: the recording is the parent's, the child begins its own. */
void gts_recorder_forget(void);

#endif
