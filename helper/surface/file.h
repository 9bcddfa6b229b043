/*
 * Files in messages: texts that a host sends as a part of a message. The model reads a file as text between two tags,
 * with its name. Pure; values are borrowed.
 */
#ifndef FM_SURFACE_FILE_H
#define FM_SURFACE_FILE_H

#include "base/buf.h"
#include "surface/check.h"

/* The members that a file has in both APIs. */
extern const struct fm_rule fm_file_rules[];

/* Appends a checked file, which has the members `file_data` and `filename`. The buffer keeps a failure. */
void fm_file_append(struct json_object *file, struct fm_buf *text);

#endif
