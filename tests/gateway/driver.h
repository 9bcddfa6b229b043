/*
 * Shared by the drivers (tools_driver.c, providers_driver.c): lines of JSON come in on stdin, and lines with the id of
 * their subject go out on stdout. Loop thread.
 */
#ifndef TESTS_GATEWAY_DRIVER_H
#define TESTS_GATEWAY_DRIVER_H

#include "base/error.h"
#include "protocol/json_writer.h"

#include <uv.h>

struct json_object;

/*
 * Runs `loop`: `take` gets each line (borrowed); `ended` is called at the end of the input (NULL: nothing to do).
 * Returns when nothing is left on the loop, or never.
 */
void driver_run(uv_loop_t *loop, void (*take)(struct json_object *line), void (*ended)(void));

/* Return a member of a line; NULL or 0 if the line does not have it. Strings belong to the line. */
struct json_object *driver_member(struct json_object *line, const char *name);
const char *driver_text(struct json_object *line, const char *name);
int64_t driver_number(struct json_object *line, const char *name);

/*
 * Begins a line about `id`. The caller writes members and then calls driver_end, which sends the line and frees the
 * buffer.
 */
struct fm_json_writer driver_begin(struct fm_buf *line, int id);
void driver_end(struct fm_json_writer *w);

/* Writes a line with the members error, reason, param and detail. */
void driver_report(int id, const struct fm_error *error);

#endif
