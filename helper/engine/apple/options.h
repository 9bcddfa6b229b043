/* Which settings of a job Apple's model supports, besides the conversation. Pure. */
#ifndef FM_ENGINE_APPLE_OPTIONS_H
#define FM_ENGINE_APPLE_OPTIONS_H

#include "engine/kit/kit.h"

/*
 * FM_INVALID_REQUEST, with the param and `elsewhere`: the job asks for something that Apple's model does not have and
 * that no flag of the kit covers. No setting is ever ignored silently.
 */
FM_MUST_USE enum fm_code fm_apple_check(const struct fm_kit_job *job, struct fm_error *error);

/* Appends the job's options in the form of the library: JSON, NUL-terminated. */
void fm_apple_options(const struct fm_kit_job *job, struct fm_buf *options);

#endif
