/*
 * The steps from words to an envelope. Every command that closes something passes `guard`, which only uses the user's
 * words.
 */
#include "match/match.h"
#include "base/clock.h"
#include "commands/table.h"
#include "desktop/refuse.h"
#include "match/context.h"
#include "match/lexical.h"
#include "match/meaning.h"
#include "match/prompt.h"
#include "match/schema.h"
#include "protocol/json_writer.h"

#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHOICE_LEAST 0.55 /* least score of the choice that the words name */
#define CHOICE_APART 0.05
#define PROMPT_MAX   (64u << 10)

struct job {
    const struct sy_scene *scene;
    const struct sy_match_options *options;
    struct sy_index index;
    struct sy_words whole; /* as the user said them */
    struct sy_words words; /* the same words without those that belong to no command */
    struct sy_words bold;
    bool has_earlier;
    struct sy_words earlier_whole;
    struct sy_words earlier_words;
    struct sy_reading earlier;
    struct sy_before before;
    struct sy_reading reading;
    struct sy_matched *matched;
    int64_t until_ms; /* deadline for the model's answer; after it, the user is asked */
};

static bool may_close(const struct job *job) {
    return sy_asks_to_close(&job->words) || (job->has_earlier && sy_asks_to_close(&job->earlier_words));
}

/* ---- the earlier words and their envelope ---- */

static struct json_object *object_member(struct json_object *object, const char *name) {
    return json_object_is_type(object, json_type_object) ? json_object_object_get(object, name) : NULL;
}

static const char *command_text(struct json_object *object, const char *name) {
    struct json_object *value = object_member(object, name);
    return json_object_is_type(value, json_type_string) ? json_object_get_string(value) : "";
}

static const char *known_name(const struct job *job, const char *name) {
    for (size_t i = 0; i < job->index.app_count; i++) {
        if (strcmp(job->index.apps[i].name, name) == 0) {
            return job->index.apps[i].name;
        }
    }
    return NULL;
}

/* Reads the command's tabs, if the tabs have not changed since its snapshot. False when out of memory. */
static bool read_tabs(const struct job *job, struct json_object *command, struct sy_found *found) {
    struct json_object *list = object_member(command, "tab_indices");
    struct json_object *one = object_member(command, "tab_index");
    size_t tabs[SY_CHOICES_MAX];
    size_t count = 0;
    size_t len = one ? 1 : json_object_is_type(list, json_type_array) ? json_object_array_length(list) : 0;
    if (!sy_same_tabs(command_text(command, "snapshot"), job->scene->snapshot->handle) || len > SY_CHOICES_MAX) {
        return true;
    }
    for (size_t i = 0; i < len; i++) {
        int64_t tab = json_object_get_int64(one ? one : json_object_array_get_idx(list, i));
        if (tab < 1 || (uint64_t)tab > job->scene->snapshot->tab_count) {
            return true;
        }
        tabs[count++] = (size_t)tab;
    }
    return count == 0 || sy_found_set_tabs(found, tabs, count);
}

/* Reads a command of the earlier envelope; type NULL: the command has no meaning now. False when out of memory. */
static bool read_command(const struct job *job, struct json_object *command, struct sy_found *found) {
    const struct sy_command *row = sy_find_command(command_text(command, "type"));
    *found = (struct sy_found){.type = NULL};
    bool read = read_tabs(job, command, found);
    found->name = known_name(job, command_text(command, "app_name"));
    if (row && (found->name || found->tab_count > 0)) {
        found->type = row->type;
    } else {
        sy_found_free(found);
    }
    return read;
}

static enum fm_code read_earlier(struct job *job, struct fm_error *error) {
    const struct sy_match_options *options = job->options;
    if (!options->earlier_words || !options->earlier_envelope) {
        return FM_OK;
    }
    struct fm_error fault;
    struct json_object *commands = object_member(options->earlier_envelope, "commands");
    size_t count = json_object_is_type(commands, json_type_array) ? json_object_array_length(commands) : 0;
    if (sy_words_read(options->earlier_words, &job->earlier_whole, &fault) != FM_OK) {
        return sy_refuse(error, "invalid_words", "previous", "the words in previous can't be read: %s", fault.detail);
    }
    sy_context_drop(&job->index, &job->earlier_whole, false, &job->earlier_words);
    job->has_earlier = true;
    job->before.asked = json_object_get_boolean(object_member(options->earlier_envelope, "needs_clarification"));
    if (count > 0 && !read_command(job, json_object_array_get_idx(commands, count - 1), &job->before.last)) {
        return fm_fail_no_memory(error);
    }
    enum fm_code code = sy_lexical(&job->index, &job->earlier_words, NULL, &job->earlier, error);
    job->before.verb = job->earlier.verb;
    job->before.where = job->earlier.where;
    return code;
}

/* ---- answers to a question ---- */

/* Whether all words are in the list. */
static bool only(const struct sy_words *words, const char *const *list, size_t count) {
    for (size_t i = 0; i < words->count; i++) {
        bool known = false;
        for (size_t j = 0; j < count; j++) {
            known |= strcmp(words->at[i].text, list[j]) == 0;
        }
        if (!known) {
            return false;
        }
    }
    return true;
}

static bool says_yes(const struct sy_words *words) {
    static const char *const list[] = {"yes", "yeah",  "yep",     "yup",     "sure", "ok",    "okay", "please", "do",
                                       "it",  "right", "correct", "exactly", "go",   "ahead", "y",    "thats",  "that"};
    bool yes = strcmp(words->at[0].text, "please") != 0 || words->count > 1;
    return yes && only(words, list, sizeof list / sizeof list[0]);
}

static bool says_no(const struct sy_words *words) {
    static const char *const list[] = {"no",   "nope",   "cancel", "never",   "mind",   "nevermind",
                                       "stop", "forget", "it",     "nothing", "n",      "thanks",
                                       "none", "of",     "them",   "that",    "neither"};
    return only(words, list, sizeof list / sizeof list[0]);
}

static bool among(const struct sy_reading *earlier, size_t at) {
    for (size_t i = 0; i < earlier->choice_count; i++) {
        if (earlier->choices[i] == at) {
            return true;
        }
    }
    return false;
}

/* Finds the choice that the words fit best. `*found` false: none fits, or several do. */
static enum fm_code choose_by_name(struct job *job, size_t begin, size_t end, size_t *choice, bool *found,
                                   struct fm_error *error) {
    const struct sy_word *pointers[SY_WORDS_MAX] = {NULL};
    struct sy_terms terms;
    struct sy_hits hits;
    size_t count = 0;
    for (size_t i = begin; i < end; i++) {
        if (!sy_is_one_of(job->words.at[i].text, "one ones no")) {
            pointers[count++] = &job->words.at[i];
        }
    }
    sy_terms_make(&job->index, pointers, count, &terms);
    if (!sy_rank(&job->index, job->earlier.group, &terms, &hits)) {
        return fm_fail_no_memory(error);
    }
    double best = 0;
    *found = false;
    for (size_t i = 0; i < hits.count; i++) { /* the best first */
        if (!among(&job->earlier, hits.at[i].at)) {
            continue;
        }
        if (best > 0) {
            *found = *found && hits.at[i].score < best - CHOICE_APART;
            break;
        }
        best = hits.at[i].score;
        *choice = hits.at[i].at;
        *found = best >= CHOICE_LEAST;
    }
    free(hits.at);
    return FM_OK;
}

struct choices {
    size_t at[SY_CHOICES_MAX];
    size_t count;
};

static void add_choice(struct choices *choices, size_t at) {
    if (choices->count < SY_CHOICES_MAX) {
        choices->at[choices->count++] = at;
    }
}

/* Whether the word may be part of a place in a list, such as "the second one". */
static bool counts(const char *word) {
    return sy_number(word) >= 0 || sy_ordinal(word) != 0 || sy_is_stop(word) ||
           sy_is_one_of(word, "one ones number numbers nr no tab tabs yes yeah it them both");
}

/* Picks choices by their place in the list or their number: "the second one", "5", "the last two". */
static void pick_counted(const struct job *job, size_t begin, size_t end, struct choices *choices) {
    const struct sy_reading *earlier = &job->earlier;
    for (size_t i = begin; i < end; i++) {
        const char *word = job->words.at[i].text;
        int ordinal = sy_ordinal(word);
        int number = strcmp(word, "one") == 0 && job->words.count > 1 ? -1 : sy_number(word);
        bool tab = earlier->group == SY_TABS && number > 0 && among(earlier, (size_t)number - 1);
        size_t nth = ordinal < 0 ? earlier->choice_count : (size_t)ordinal;
        int many = i + 1 < end ? sy_number(job->words.at[i + 1].text) : -1;
        if ((ordinal == 1 || ordinal == -1) && many > 1 && (size_t)many <= earlier->choice_count) {
            for (size_t j = 0; j < (size_t)many; j++) {
                add_choice(choices, earlier->choices[ordinal == 1 ? j : earlier->choice_count - 1 - j]);
            }
            i++;
            continue;
        }
        nth = nth == 0 && number > 0 && !tab ? (size_t)number : nth;
        if (tab || (nth > 0 && nth <= earlier->choice_count)) {
            add_choice(choices, tab ? (size_t)number - 1 : earlier->choices[nth - 1]);
        }
    }
}

/* Adds the choice that one piece of "the first and the one about rust" names. If the piece names no choice, adds
 * nothing. */
static enum fm_code pick_piece(struct job *job, size_t begin, size_t end, struct choices *choices,
                               struct fm_error *error) {
    bool counted = true;
    bool found = false;
    size_t choice = 0;
    for (size_t i = begin; i < end; i++) {
        counted = counted && counts(job->words.at[i].text);
    }
    if (counted) {
        pick_counted(job, begin, end, choices);
        return FM_OK;
    }
    enum fm_code code = choose_by_name(job, begin, end, &choice, &found, error);
    if (code == FM_OK && found) {
        add_choice(choices, choice);
    }
    return code;
}

/* Picks a choice for each piece. If a piece names none, there are no choices. */
static enum fm_code pick_pieces(struct job *job, size_t begin, struct choices *choices, struct fm_error *error) {
    enum fm_code code = FM_OK;
    for (size_t i = begin; i < job->words.count && code == FM_OK; i++) {
        bool joins = sy_is_one_of(job->words.at[i].text, "and or");
        if (i + 1 < job->words.count && !joins && !job->words.at[i].breaks) {
            continue;
        }
        size_t before = choices->count;
        size_t end = i + !joins;
        code = end > begin ? pick_piece(job, begin, end, choices, error) : FM_OK;
        if (end > begin && choices->count == before) {
            choices->count = 0;
            return code;
        }
        begin = i + 1;
    }
    return code;
}

/* Keeps the picked choices, or, with `others`, the choices that were not picked. Each stays once, in the original
 * order. */
static void take_choices(const struct sy_reading *earlier, bool others, struct choices *choices) {
    struct choices taken = {.count = 0};
    for (size_t i = 0; i < earlier->choice_count; i++) {
        bool picked = false;
        for (size_t j = 0; j < choices->count; j++) {
            picked |= choices->at[j] == earlier->choices[i];
        }
        if (picked != others) {
            add_choice(&taken, earlier->choices[i]);
        }
    }
    *choices = taken;
}

/* Reads "the second one", "5", "both", "all but the first", "the one about rust". `choices->count` 0: no choice. */
static enum fm_code read_choice(struct job *job, size_t begin, struct choices *choices, struct fm_error *error) {
    const struct sy_reading *earlier = &job->earlier;
    bool all = false;
    bool but = false;
    choices->count = 0;
    if (sy_is_negated(job->words.at, job->words.count)) {
        return FM_OK;
    }
    for (size_t i = begin; i < job->words.count; i++) {
        all |= sy_is_one_of(job->words.at[i].text, "all both every each everything");
        if (!but && sy_is_one_of(job->words.at[i].text, "except but besides without excluding")) {
            but = true;
            begin = i + 1;
        }
    }
    if (all && !but) {
        memcpy(choices->at, earlier->choices, earlier->choice_count * sizeof *earlier->choices);
        choices->count = earlier->choice_count;
        return FM_OK;
    }
    enum fm_code code = pick_pieces(job, begin, choices, error);
    if (choices->count > 0) {
        take_choices(earlier, but, choices);
    }
    return code;
}

/* Whether the words pick a choice although they have a verb of their own: "close the first one". */
static bool picks_only(const struct job *job, enum sy_verb verb, size_t begin) {
    bool points = false;
    bool all = verb == SY_CLOSE || verb == SY_SWITCH || verb == SY_VISIT || verb == SY_OPEN;
    for (size_t i = begin; i < job->words.count; i++) {
        const char *word = job->words.at[i].text;
        points |= sy_is_one_of(word, "one ones both them all");
        all = all && (counts(word) || sy_is_one_of(word, "all and of"));
    }
    return points && all;
}

/* Whether the words mean another kind of thing than the question: "the spotify app", if the question was about tabs. */
static bool is_of_another_kind(const struct job *job) {
    const char *others = job->earlier.group == SY_TABS   ? "app apps application applications program programs desktop"
                         : job->earlier.group == SY_APPS ? "tab tabs page pages website site web"
                                                         : "";
    for (size_t i = 0; i < job->words.count; i++) {
        if (sy_is_one_of(job->words.at[i].text, others)) {
            return true;
        }
    }
    return false;
}

/* Reads the words as an answer to the earlier question. `*done` false: they are no answer, or only together with the
 * earlier words. */
static enum fm_code answer_question(struct job *job, bool *done, struct fm_error *error) {
    struct sy_reading *reading = &job->reading;
    struct choices choices = {.count = 0};
    size_t len;
    size_t polite = sy_polite(job->words.at, job->words.count);
    enum fm_code code = FM_OK;
    *done = true;
    if (says_no(&job->words)) {
        *reading = (struct sy_reading){.standing = SY_ASK, .reason = "Nothing was done. What is to be done?"};
        return FM_OK;
    }
    if (says_yes(&job->words) && job->before.last.type) {
        *reading = (struct sy_reading){.standing = SY_CLEAR, .count = 1};
        reading->found[0] = job->before.last;
        job->before.last = (struct sy_found){.type = NULL};
        return FM_OK;
    }
    *done = false;
    enum sy_verb verb = sy_verb_at(job->words.at + polite, job->words.count - polite, &len);
    bool goes_on = verb == SY_NO_VERB || picks_only(job, verb, polite + len);
    if (!goes_on || job->earlier.count > 0) {
        return FM_OK; /* the words are a command of their own, or the earlier words had more commands */
    }
    if (job->earlier.choice_count > 0 && !is_of_another_kind(job)) {
        job->earlier.verb = verb == SY_NO_VERB ? job->earlier.verb : verb;
        code = read_choice(job, verb == SY_NO_VERB ? 0 : polite + len, &choices, error);
    }
    if (code == FM_OK && choices.count > 0) {
        *done = true;
        code = sy_lexical_choose(&job->index, &job->words, &job->earlier, choices.at, choices.count, reading, error);
    }
    return code;
}

/* Reads the earlier words and the answer as one text: "move chrome" - "where to?" - "the left monitor". */
static enum fm_code read_together(struct job *job, struct fm_error *error) {
    char text[2 * SY_TEXT_MAX + 3];
    struct sy_words words;
    struct sy_reading whole;
    struct fm_error fault;
    bool told = job->earlier.verb == SY_NO_VERB; /* as in "chess bores me" - "close it" */
    snprintf(text, sizeof text, "%s%s %s", job->earlier_whole.text, told ? "." : "", job->whole.text);
    bool negated = sy_is_negated(job->words.at, job->words.count); /* "not that one" */
    if (negated || strlen(text) > SY_TEXT_MAX || sy_words_read(text, &words, &fault) != FM_OK) {
        return FM_OK;
    }
    sy_context_drop(&job->index, &words, false, &job->bold);
    enum fm_code code = sy_lexical(&job->index, &job->bold, NULL, &whole, error);
    if (code == FM_OK && whole.standing == SY_CLEAR) {
        sy_reading_free(&job->reading);
        job->reading = whole;
    } else {
        sy_reading_free(&whole);
    }
    return code;
}

/* Reads once more, without the parts that have no verb and name nothing. */
static enum fm_code read_boldly(struct job *job, struct fm_error *error) {
    struct sy_reading reading;
    sy_context_drop(&job->index, &job->whole, true, &job->bold);
    if (job->bold.count == job->words.count) {
        return FM_OK;
    }
    enum fm_code code = sy_lexical(&job->index, &job->bold, job->has_earlier ? &job->before : NULL, &reading, error);
    bool better = code == FM_OK && reading.standing == SY_CLEAR;
    if (better) {
        sy_reading_free(&job->reading);
        job->reading = reading;
        job->words = job->bold;
    } else {
        sy_reading_free(&reading);
    }
    return code;
}

/* Whether the words pick one of the things in question, even if other things have the name too: "the google one". */
static bool is_which(const struct sy_words *words) {
    size_t len;
    return words->count > 1 && strcmp(words->at[words->count - 1].text, "one") == 0 &&
           sy_is_one_of(words->at[0].text, "the my that") && sy_verb_at(words->at, words->count, &len) == SY_NO_VERB;
}

static enum fm_code read_words(struct job *job, struct fm_error *error) {
    bool done = false;
    enum fm_code code = job->has_earlier && job->before.asked ? answer_question(job, &done, error) : FM_OK;
    if (code != FM_OK || done) {
        return code;
    }
    if (job->has_earlier && job->before.asked && is_which(&job->words)) {
        job->reading.standing = SY_ASK;
        code = read_together(job, error);
        if (code != FM_OK || job->reading.standing == SY_CLEAR) {
            return code;
        }
    }
    code = sy_lexical(&job->index, &job->words, job->has_earlier ? &job->before : NULL, &job->reading, error);
    if (code == FM_OK && job->reading.standing != SY_CLEAR && job->has_earlier && job->before.asked) {
        code = read_together(job, error);
    }
    if (code == FM_OK && job->reading.standing != SY_CLEAR) {
        code = read_boldly(job, error);
    }
    return code;
}

/* ---- the model ---- */

static bool lexical_agrees(const struct sy_reading *reading, const struct sy_found *found) {
    return reading->standing == SY_CLEAR && reading->count == 1 && sy_found_equal(&reading->found[0], found);
}

/* The model would close something that the words do not clearly ask for: proposes it, so that the user decides. */
static void propose(struct sy_reading *reading, struct sy_found *found) {
    reading->standing = SY_ASK;
    if (reading->count > 0) {
        sy_found_free(found); /* a "yes" would not include the other commands */
        return;
    }
    if (found->name) {
        char name[164];
        sy_plain(found->name, 40, name, sizeof name);
        snprintf(reading->reason, sizeof reading->reason, "Is %s to be closed? Say yes, or what you mean", name);
    } else {
        char list[160] = "";
        size_t used = 0;
        for (size_t i = 0; i < found->tab_count; i++) {
            used += (size_t)snprintf(list + used, sizeof list - used, "%s%zu", i ? ", " : "", found->tabs[i]);
        }
        snprintf(reading->reason, sizeof reading->reason, "Do you mean tab %s? Say yes, or what you mean", list);
    }
    reading->found[reading->count++] = *found;
    reading->proposes = true;
}

static void take_pick(struct job *job, const struct sy_reading *lexical, struct sy_found *found) {
    struct sy_reading *reading = &job->reading;
    job->matched->by = SY_BY_MODEL;
    if (sy_found_destroys(found) && !lexical_agrees(lexical, found)) {
        propose(reading, found);
        return;
    }
    if (reading->count == SY_STEPS_MAX) {
        sy_found_free(found);
        return;
    }
    memmove(&reading->found[reading->open + 1], &reading->found[reading->open],
            (reading->count - reading->open) * sizeof *found);
    reading->found[reading->open] = *found;
    reading->count++;
    reading->standing = SY_CLEAR;
}

/*
 * Asks the model for its pick; type NULL: the model picks nothing. If the model fails, the reason is noted, and the
 * user is asked.
 */
static enum fm_code pick_once(struct job *job, const struct sy_menu *menu, const char *words, struct sy_found *found,
                              struct fm_error *error) {
    const struct sy_picker *picker = job->options->picker;
    struct json_object *answer = NULL;
    struct fm_buf prompt;
    struct fm_buf schema;
    char said[SY_TEXT_MAX + 1];
    fm_buf_init(&prompt, PROMPT_MAX);
    fm_buf_init(&schema, PROMPT_MAX);
    snprintf(said, sizeof said, "%s", words);
    sy_drop_queries(said);
    sy_prompt_write(menu, said, &prompt);
    sy_schema_write(menu, &schema);
    int64_t left = job->until_ms - fm_now_ms();
    const struct sy_question question = {sy_instructions, sy_examples, sy_example_count, &prompt, &schema, left};
    enum fm_code code = prompt.failed || schema.failed ? fm_fail_no_memory(error) : FM_OK;
    *found = (struct sy_found){.type = NULL};
    if (code == FM_OK && left <= 0) {
        (void)fm_fail(&job->matched->no_model, FM_TIMEOUT, "the model did not answer in time");
    } else if (code == FM_OK && picker->pick(picker->self, &question, &answer, &job->matched->no_model) == FM_OK) {
        code = sy_pick_read(&job->index, menu, answer, &job->reading.where, job->words.text, found, error);
    }
    json_object_put(answer);
    fm_buf_free(&prompt);
    fm_buf_free(&schema);
    return code;
}

/*
 * Whether the pick comes from the words. A small model that does not know the answer gives the same pick for any words,
 * or picks by the place in the list. So a pick counts only if words without meaning give another pick, and reversed
 * lists give the same one. (These prompts cost little: most of their text is already in the model's cache.)
 */
static enum fm_code hold(struct job *job, struct sy_menu *menu, const struct sy_found *found, bool *holds,
                         struct fm_error *error) {
    struct sy_found other = {.type = NULL};
    enum fm_code code = pick_once(job, menu, job->reading.nonsense, &other, error);
    *holds = !other.type || !sy_found_equal(found, &other);
    sy_found_free(&other);
    if (code == FM_OK && *holds) {
        sy_menu_turn(menu);
        code = pick_once(job, menu, job->words.text, &other, error);
        *holds = other.type && sy_found_equal(found, &other);
        sy_found_free(&other);
    }
    return code;
}

/* Whether the words name a thing but have no known verb, such as "buy the neck pillow". No model is asked about such
 * words. */
static bool names_only(const struct sy_reading *reading) {
    const double some = 0.3;
    return reading->verb == SY_NO_VERB && ((reading->tabs.count > 0 && reading->tabs.at[0].score >= some) ||
                                           (reading->apps.count > 0 && reading->apps.at[0].score >= some) ||
                                           (reading->presets.count > 0 && reading->presets.at[0].score >= some));
}

/* Finds the thing whose meaning is nearest to the words, by a model that embeds. */
static enum fm_code ask_meaning(struct job *job, const struct sy_reading *lexical, struct fm_error *error) {
    struct sy_found found;
    enum fm_code code = sy_meaning(&job->index, &job->reading, job->words.text, job->options->picker, job->until_ms,
                                   &found, &job->matched->no_model, error);
    if (code == FM_OK && found.type && (may_close(job) || !sy_found_destroys(&found))) {
        take_pick(job, lexical, &found);
    } else {
        sy_found_free(&found);
    }
    return code;
}

/* Asks the model about the clause that is not clear. With SY_MODEL_ALONE its first pick counts without a check. */
static enum fm_code ask_model(struct job *job, const struct sy_reading *lexical, struct fm_error *error) {
    struct sy_menu menu;
    struct sy_found found;
    bool alone = job->options->way == SY_MODEL_ALONE;
    bool holds = alone;
    int64_t ms = job->options->model_ms > 0 ? job->options->model_ms : SY_MODEL_MS;
    job->until_ms = fm_now_ms() + ms;
    if (job->options->picker->embed) {
        return ask_meaning(job, lexical, error);
    }
    sy_menu_make(&job->index, &job->reading, may_close(job), &menu);
    enum fm_code code = pick_once(job, &menu, job->words.text, &found, error);
    if (code == FM_OK && found.type && !alone) {
        code = hold(job, &menu, &found, &holds, error);
    }
    if (code == FM_OK && found.type && holds) {
        take_pick(job, lexical, &found); /* takes the contents of `found` */
    } else {
        sy_found_free(&found);
    }
    return code;
}

static enum fm_code model_alone(struct job *job, struct fm_error *error) {
    struct sy_reading lexical;
    enum fm_code code = sy_lexical(&job->index, &job->words, NULL, &lexical, error);
    code = code ? code : sy_lexical_rank(&job->index, &job->words, &job->reading, error);
    code = code ? code : ask_model(job, &lexical, error);
    sy_reading_free(&lexical);
    return code;
}

/* ---- the envelope ---- */

/* The last check: nothing is closed unless the user's own words ask to close something. */
static void guard(struct job *job) {
    struct sy_reading *reading = &job->reading;
    for (size_t i = 0; i < reading->count && !may_close(job); i++) {
        if (sy_found_destroys(&reading->found[i])) {
            reading->standing = SY_ASK;
            reading->proposes = false;
            snprintf(reading->reason, sizeof reading->reason, "Is something to be closed? Say so, and what");
            return;
        }
    }
}

static void write_envelope(const struct job *job, struct fm_json_writer *w) {
    const struct sy_reading *reading = &job->reading;
    bool clear = reading->standing == SY_CLEAR && reading->count > 0;
    size_t count = clear || reading->proposes ? reading->count : 0;
    fm_json_object_begin(w);
    fm_json_key(w, "commands");
    fm_json_array_begin(w);
    for (size_t i = 0; i < count; i++) {
        sy_found_write(&reading->found[i], job->scene->snapshot, w);
    }
    fm_json_array_end(w);
    fm_json_key_bool(w, "needs_clarification", !clear);
    fm_json_key_str(w, "clarification_reason",
                    clear                ? NULL
                    : reading->reason[0] ? reading->reason
                                         : "What is to be done?");
    fm_json_object_end(w);
}

static enum fm_code run_job(struct job *job, const char *words, struct fm_json_writer *w, struct fm_error *error) {
    enum fm_code code = sy_words_read(words, &job->whole, error);
    if (code == FM_OK) {
        sy_context_drop(&job->index, &job->whole, false, &job->words);
        code = read_earlier(job, error);
    }
    if (code == FM_OK && job->options->way == SY_MODEL_ALONE && job->options->picker) {
        code = model_alone(job, error);
    } else if (code == FM_OK) {
        code = read_words(job, error);
        if (code == FM_OK && job->reading.standing == SY_UNSURE && job->options->picker && !names_only(&job->reading)) {
            code = ask_model(job, &job->reading, error);
        }
    }
    if (code == FM_OK) {
        guard(job);
        write_envelope(job, w);
    }
    return code;
}

enum fm_code sy_match(const struct sy_scene *scene, const char *words, const struct sy_match_options *options,
                      struct fm_json_writer *w, struct sy_matched *matched, struct fm_error *error) {
    static const struct sy_match_options none = {.picker = NULL};
    struct sy_matched ignored;
    struct job *job = calloc(1, sizeof *job);
    if (!job) {
        return fm_fail_no_memory(error);
    }
    job->scene = scene;
    job->options = options ? options : &none;
    job->matched = matched ? matched : &ignored;
    *job->matched = (struct sy_matched){.by = SY_BY_WORDS};
    enum fm_code code = sy_index_make(scene, &job->index) ? run_job(job, words, w, error) : fm_fail_no_memory(error);
    sy_reading_free(&job->reading);
    sy_reading_free(&job->earlier);
    sy_found_free(&job->before.last);
    sy_index_free(&job->index);
    free(job);
    return code;
}
