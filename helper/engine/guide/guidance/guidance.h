/* The Rust library's own functions; the other ones are in llguidance.h. */
#ifndef FM_ENGINE_GUIDE_GUIDANCE_H
#define FM_ENGINE_GUIDE_GUIDANCE_H

#include <stddef.h>
#include <stdint.h>

/*
 * Whether the JSON text `instance` is valid by the JSON schema `schema`. 0: valid; 1: not valid; -1: that can't be
 * decided. `reason` (`reason_size` bytes, at least 1) gets the first violation, or why it can't be decided:
 * NUL-terminated UTF-8, "" for 0. Any thread; reads only the two texts.
 */
int32_t fm_schema_check(const char *schema, size_t schema_len, const char *instance, size_t instance_len, char *reason,
                        size_t reason_size);

#endif
