/*
 * The fake engine's script: a JSON array of steps, which make the output of one job. Tests use it to make an engine do
 * what a real engine does seldom: stall, crash, print, be slow.
 *
 *     ["Hello", {"sleep_ms":50}, {"repeat":[" again",3]}, {"finish":"length"}]
 *
 *     "text"                   a token; after a tool_call, one of its arguments
 *     {"repeat":[TEXT,COUNT]}  the same token COUNT times
 *     {"reasoning":TEXT}       a token of what the model thinks, before all text and calls
 *     {"tool_call":{"name":NAME,"arguments":TEXT}}
 *                              a call, whether the tool exists or not; its arguments are sent word by word
 *     {"sleep_ms":N}           waits; an abort ends it
 *     {"prefill_ms":N}         works, then reports that the prompt is read; an abort ends it
 *     {"finish":WHY}           the end: stop, length or content_filter
 *     {"error":DETAIL}         the end: INTERNAL
 *     {"error":{"code":CODE,"detail":DETAIL,"retry_after_ms":N,"elsewhere":BOOL,"reason_code":CODE}}
 *                              the end, with this error; all members except `code` may be left out
 *     {"piece":[KIND,TEXT]}    output that is not counted: text, reasoning, refusal or arguments; in place of tokens
 *     {"refusal":TEXT}         the same as a piece of the kind refusal
 *     {"call":NAME}            begins a call; pieces are its arguments
 *     {"restart":DETAIL}       takes back all output, for the reason OVERLOADED, and continues; the end, with this
 *                              error, if the job is not restartable
 *     {"state":TEXT}           a state that the engine wants back with the answer
 *     {"usage":{"input":N,"cached":N,"output":N,"reasoning":N}}
 *                              the counts that job.finished reports; counts that are left out are unknown
 *     {"stdout":TEXT}          prints among the frames
 *     {"hang":HOW}             soft: hangs until the abort; hard: reports progress, then hangs forever
 *     {"signal":NAME}          sends itself a signal, such as SEGV
 *     {"gpu_signal":NAME}      the same, but only if the front offers a GPU
 *     {"exit":STATUS}          exits at once
 *     {"try":ATTEMPT}          an attempt of attempt.h; a token with its result, such as "ok" or "EPERM"
 *     {"parameter":NAME}       a token with the job's parameter of sampling (protocol/params.h), or its model,
 *                              session or states; saved: the predecessor's text (saved.h); config: the
 *                              configuration; key:NAME: the key in the variable NAME, read at the start
 *
 * A job that asks for log probabilities gets made-up ones: the sum of a token's bytes modulo 1024, divided by -1000.
 * The most likely tokens in its place are the token itself, and the token with "~", "~~" and so on after it; each log
 * probability is 1 lower.
 *
 * Pure, except for the job's own calls; a script belongs to one thread.
 */
#ifndef FM_ENGINE_FAKE_SCRIPT_H
#define FM_ENGINE_FAKE_SCRIPT_H

#include "engine/kit/kit.h"

struct json_object;

/*
 * Parses `text`. `*script` becomes NULL if `text` is not a JSON array, and so not a script; otherwise the caller frees
 * it with fm_script_free. FM_INVALID_REQUEST names the index of a step that is unknown or malformed.
 */
FM_MUST_USE enum fm_code fm_script_parse(const char *text, size_t len, struct json_object **script,
                                         struct fm_error *error);
void fm_script_free(struct json_object *script);

/* Runs a parsed script on an accepted job, up to its end. `error` is filled for FM_REASON_ERROR. Blocks. */
enum fm_reason fm_script_run(struct json_object *script, struct fm_kit_job *job, struct fm_error *error);

/*
 * Answers with `text` word by word, one token a word; white space goes with the word after it. With `ignore_eos` and no
 * format, repeats the text until `room` tokens are sent or the job ends for another reason.
 */
enum fm_reason fm_script_echo(const char *text, size_t len, int64_t room, struct fm_kit_job *job,
                              struct fm_error *error);

/* Calls the tool `name`, and then sends the arguments as fm_script_echo sends a text. */
enum fm_reason fm_script_call(const char *name, const char *arguments, size_t len, struct fm_kit_job *job,
                              struct fm_error *error);

/* Takes the configuration, and the keys that it names, out of the environment. Call it before any thread runs. */
void fm_fake_take_config(void);

/* Words between white space: the fake engine's tokens. */
int64_t fm_script_words(const char *text, size_t len);

#endif
