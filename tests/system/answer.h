/* Shared by the drivers: running a request on any desktop. */
#ifndef TEST_SYSTEM_ANSWER_H
#define TEST_SYSTEM_ANSWER_H

#include <stdbool.h>

struct fm_json_writer;
struct json_object;
struct sy_world;

/*
 * Runs a request: an envelope, or {"type": a command's, "args": {...}}; both may have "dry_run". Writes members of an
 * object: "done", "question", or "error" ("done" is before "error" if the request began).
 */
void answer_members(struct sy_world *world, struct json_object *request, struct fm_json_writer *w);

/*
 * Reads requests from stdin, one a line, and answers each with a line on stdout. The line is an object. If `other`
 * knows the request (returns true), the object has the members that `other` writes, or else the request's answer. "ms"
 * is the time that the request took. In the end this function frees the world and its desktop.
 */
void answer_lines(struct sy_world *world,
                  bool (*other)(struct sy_world *world, struct json_object *request, struct fm_json_writer *w));

#endif
