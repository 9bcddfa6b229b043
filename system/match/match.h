/*
 * Turns what users say into a request of commands/plan.h: {commands, needs_clarification, clarification_reason}. First
 * the words are read by rules (lexical.h). If that is not enough, a model picks among the things that exist. If that is
 * not clear either, the user is asked. Nothing is closed unless the user's own words have a verb that closes, and name
 * the thing; what a model would close is only proposed.
 */
#ifndef SY_MATCH_H
#define SY_MATCH_H

#include "commands/plan.h"
#include "match/model.h"
#include "match/rank.h"

struct fm_json_writer;
struct json_object;

enum sy_by { SY_BY_WORDS, SY_BY_MODEL };

enum sy_way {
    SY_WORDS_FIRST, /* the usual one */
    SY_MODEL_ALONE, /* to measure the model: it alone picks one command, whatever the words are */
};

#define SY_MODEL_MS 2500

struct sy_match_options {
    const struct sy_picker *picker; /* NULL: there is no model */
    enum sy_way way;
    int64_t model_ms; /* time limit for all questions to the model; after it, the user is asked; 0: SY_MODEL_MS */
    /* The words that were said just before, and their envelope, so that "close it" and "the second one" have a meaning.
     * NULL: none. The envelope's indices are valid as long as the tabs have not changed since its `snapshot`. */
    const char *earlier_words;
    struct json_object *earlier_envelope;
};

struct sy_matched {
    enum sy_by by;            /* who found the answer */
    struct fm_error no_model; /* why the model did not answer; FM_OK: it answered, or was not asked */
};

/*
 * Writes the envelope. Without a model it takes some milliseconds. With a model it blocks as long as the picker does.
 * If the model fails, the function still succeeds. FM_INVALID_REQUEST names "words" or "previous"; FM_INTERNAL: out of
 * memory. `options` and `matched` may be NULL.
 */
FM_MUST_USE enum fm_code sy_match(const struct sy_scene *scene, const char *words,
                                  const struct sy_match_options *options, struct fm_json_writer *w,
                                  struct sy_matched *matched, struct fm_error *error);

/*
 * Writes the envelope as sy_match, for the present desktop and the presets of `world`. The list of tabs is kept
 * (told.h), so that the envelope's indices still mean the same tabs when it runs. Can also fail like sy_snapshot_take.
 */
FM_MUST_USE enum fm_code sy_match_now(struct sy_world *world, const char *words, const struct sy_match_options *options,
                                      struct fm_json_writer *w, struct sy_matched *matched, struct fm_error *error);

#endif
