/*
 * What users say, as a request of commands/plan.h: {commands, needs_clarification, clarification_reason}. Words first
 * (lexical.h); a model picks among what exists, where these are not enough; and the user is asked where that is not
 * clear either. Nothing is closed unless the user's own words have a verb that says so and name what; what a model
 * would close is only proposed.
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
    SY_MODEL_ALONE, /* to measure it: one command of the model's, whatever the words are */
};

#define SY_MODEL_MS 2500

struct sy_match_options {
    const struct sy_picker *picker; /* NULL: there is no model */
    enum sy_way way;
    int64_t model_ms; /* that the model may take for all it is asked, then the user is; 0: SY_MODEL_MS */
    /* What was said just before and its envelope, so that "close it" and "the second one" have a meaning. NULL:
     * nothing. The envelope's indices count as long as the tabs are the same, by its `snapshot`. */
    const char *earlier_words;
    struct json_object *earlier_envelope;
};

struct sy_matched {
    enum sy_by by;            /* who found the answer */
    struct fm_error no_model; /* why the model did not answer; FM_OK: it did, or it was not asked */
};

/*
 * Writes the envelope. Without a model it takes some milliseconds; with one it blocks as long as the picker does, and
 * never fails because of it. FM_INVALID_REQUEST names "words" or "previous"; FM_INTERNAL: out of memory. `options` and
 * `matched` may be NULL.
 */
FM_MUST_USE enum fm_code sy_match(const struct sy_scene *scene, const char *words,
                                  const struct sy_match_options *options, struct fm_json_writer *w,
                                  struct sy_matched *matched, struct fm_error *error);

/*
 * The same on the desktop of now, with the presets of `world`. The tabs count as told (told.h), so that the envelope's
 * indices keep their meaning when it runs. Fails like sy_snapshot_take too.
 */
FM_MUST_USE enum fm_code sy_match_now(struct sy_world *world, const char *words, const struct sy_match_options *options,
                                      struct fm_json_writer *w, struct sy_matched *matched, struct fm_error *error);

#endif
