/* What the drivers share: running a request, on whatever desktop. */
#ifndef TEST_SYSTEM_ANSWER_H
#define TEST_SYSTEM_ANSWER_H

#include <stdbool.h>

struct fm_json_writer;
struct json_object;
struct sy_world;

/*
 * Runs a request: an envelope, or {"type": a command's, "args": {...}}; both may have "dry_run". Writes members of an
 * object: "done", "question", or "error" (with "done" before it, if it began).
 */
void answer_members(struct sy_world *world, struct json_object *request, struct fm_json_writer *w);

/*
 * Answers each line of stdin, a request, by a line on stdout: an object of what `other` writes, if it knows the request
 * (true), or else of the request's answer, and "ms" that it took. Then frees the world and its desktop.
 */
void answer_lines(struct sy_world *world,
                  bool (*other)(struct sy_world *world, struct json_object *request, struct fm_json_writer *w));

#endif
