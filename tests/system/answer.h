/* What the drivers share: running a request, on whatever desktop. */
#ifndef TEST_SYSTEM_ANSWER_H
#define TEST_SYSTEM_ANSWER_H

struct fm_json_writer;
struct json_object;
struct sy_world;

/*
 * Runs a request: an envelope, or {"type": a command's, "args": {...}}; both may have "dry_run". Writes members of an
 * object: "done", "question", or "error" (with "done" before it, if it began).
 */
void answer_members(struct sy_world *world, struct json_object *request, struct fm_json_writer *w);

#endif
