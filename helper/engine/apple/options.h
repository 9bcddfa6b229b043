/* Which settings of a job, besides its conversation, Apple's model supports, and which it does not. Pure. */
#ifndef FM_ENGINE_APPLE_OPTIONS_H
#define FM_ENGINE_APPLE_OPTIONS_H

#include "engine/kit/kit.h"

/*
 * FM_INVALID_REQUEST, with the param and `elsewhere`: the job asks for something that Apple's model does not have and
 * that no flag of the kit covers. No setting is ever ignored silently.
 */
FM_MUST_USE enum fm_code fm_apple_check(const struct fm_kit_job *job, struct fm_error *error);

/* Appends the options of the job as the library takes them: JSON, NUL-terminated. */
void fm_apple_options(const struct fm_kit_job *job, struct fm_buf *options);

#endif
