/* What of a job Apple's model can be told beside its conversation, and what it can't. Pure. */
#ifndef FM_ENGINE_APPLE_OPTIONS_H
#define FM_ENGINE_APPLE_OPTIONS_H

#include "engine/kit/kit.h"

/*
 * FM_INVALID_REQUEST, with the param and `elsewhere`: the job asks for something that Apple's model does not have and
 * that no flag of the kit tells. Nothing is ever left out in silence.
 */
FM_MUST_USE enum fm_code fm_apple_check(const struct fm_kit_job *job, struct fm_error *error);

/* Appends the options of the job as the library takes them: JSON, NUL-terminated. */
void fm_apple_options(const struct fm_kit_job *job, struct fm_buf *options);

#endif
