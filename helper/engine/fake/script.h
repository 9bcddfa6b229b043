/*
 * The fake engine's script: a JSON array of steps, run as the tokens of one job. Tests use it to make an engine do what
 * a real one does seldom: stall, crash, print, be slow.
 *
 *     ["Hello", {"sleep_ms":50}, {"repeat":[" again",3]}, {"finish":"length"}]
 *
 *     "text"                   a token; after a tool_call, one of its arguments
 *     {"repeat":[TEXT,COUNT]}  the same token COUNT times
 *     {"reasoning":TEXT}       a token of what the model thinks, before all text and calls
 *     {"tool_call":{"name":NAME,"arguments":TEXT}}
 *                              a call, whether there is such a tool or not; the text word by word
 *     {"sleep_ms":N}           nothing; ends with an abort
 *     {"prefill_ms":N}         works, then tells that the prompt is read; ends with an abort
 *     {"finish":WHY}           the end: stop, length or content_filter
 *     {"error":DETAIL}         the end: INTERNAL
 *     {"error":{"code":CODE,"detail":DETAIL,"retry_after_ms":N,"elsewhere":BOOL,"reason_code":CODE}}
 *                              the end, with that error; all but `code` may be left out
 *     {"piece":[KIND,TEXT]}    output that is not counted: text, reasoning, refusal or arguments; in place of tokens
 *     {"refusal":TEXT}         the same as a piece of that kind
 *     {"call":NAME}            begins a call; pieces are its arguments
 *     {"restart":DETAIL}       takes back what was said, as OVERLOADED is the reason, and goes on; the end, with that
 *                              error, where the job is not restartable
 *     {"state":TEXT}           what the engine wants back with the answer
 *     {"usage":{"input":N,"cached":N,"output":N,"reasoning":N}}
 *                              the counts that the end tells; what is left out is unknown
 *     {"stdout":TEXT}          prints among the frames
 *     {"hang":HOW}             soft: until the abort; hard: tells progress, then for good
 *     {"signal":NAME}          to itself, such as SEGV
 *     {"gpu_signal":NAME}      the same as long as the front tells of a GPU; else nothing
 *     {"exit":STATUS}          at once
 *     {"try":ATTEMPT}          what the sandbox should forbid (attempt.h); a token says how it went: "ok" or "EPERM"
 *     {"parameter":NAME}       a token with what the job has as a parameter of sampling (protocol/params.h), model,
 *                              session, states; saved: what the engine has of its predecessor (saved.h); config: the
 *                              configuration; key:NAME: the key in that variable, taken at the start
 *
 * A job that asks for log probabilities gets made-up ones: the sum of a token's bytes modulo 1024, through -1000; the
 * most likely tokens in its place are it, it with "~" after it, with "~~" and so on, each by 1 less likely.
 *
 * Pure, except for the job's own calls; a script belongs to one thread.
 */
#ifndef FM_ENGINE_FAKE_SCRIPT_H
#define FM_ENGINE_FAKE_SCRIPT_H

#include "engine/kit/kit.h"

struct json_object;

/*
 * Parses `text`. `*script` is NULL when it is no JSON array, and so no script; else the caller frees it with
 * fm_script_free. A step that is not known, or not well-formed, is FM_INVALID_REQUEST and names its index.
 */
FM_MUST_USE enum fm_code fm_script_parse(const char *text, size_t len, struct json_object **script,
                                         struct fm_error *error);
void fm_script_free(struct json_object *script);

/* Runs a parsed script on an accepted job, up to its end. `error` is filled for FM_REASON_ERROR. Blocks. */
enum fm_reason fm_script_run(struct json_object *script, struct fm_kit_job *job, struct fm_error *error);

/*
 * Answers with `text` word by word, one token a word; white space goes with the word after it. With `ignore_eos`
 * and no format again and again, until `room` tokens are out or the job ends otherwise.
 */
enum fm_reason fm_script_echo(const char *text, size_t len, int64_t room, struct fm_kit_job *job,
                              struct fm_error *error);

/* Calls the tool `name`, then sends its arguments as fm_script_echo sends a text. */
enum fm_reason fm_script_call(const char *name, const char *arguments, size_t len, struct fm_kit_job *job,
                              struct fm_error *error);

/* Takes the configuration, and the keys that it names, out of the environment. Call it before any thread runs. */
void fm_fake_take_config(void);

/* Words between white space: the fake engine's tokens. */
int64_t fm_script_words(const char *text, size_t len);

#endif
