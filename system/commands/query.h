/*
 * What query needs besides the desktop: a model, and the memory of conversations. Counts, duplicates and the oldest
 * pages are answered by code, where every word of the question is understood; the model answers the rest, from data
 * that has no queries of URLs in it.
 */
#ifndef SY_QUERY_H
#define SY_QUERY_H

#include "base/buf.h"
#include "desktop/snapshot.h"

#define SY_TALKS_MAX    16   /* conversations; the one that was used longest ago is forgotten */
#define SY_TURNS_MAX    8    /* questions and answers of one */
#define SY_QUESTION_MAX 2000 /* bytes */
#define SY_ANSWER_MAX   4000 /* characters of a model's answer */

struct fm_json_writer;

enum sy_role { SY_SYSTEM, SY_USER, SY_ASSISTANT };

struct sy_message {
    enum sy_role role;
    char *text;
};

/* A language model. */
struct sy_model {
    void *self;
    /*
     * Appends its answer to `messages`. Waits for it; FM_CANCELLED when the call that this is for was cancelled, and
     * other errors as the model has them. They are refused as model_unavailable, but for a timeout and a cancel.
     */
    enum fm_code (*answer)(void *self, const struct sy_message *messages, size_t count, struct fm_buf *text,
                           struct fm_error *error);
};

struct sy_turn {
    char *question;
    char *answer;
};

struct sy_talk {
    char handle[SY_HANDLE_SIZE];
    struct sy_turn turns[SY_TURNS_MAX]; /* the oldest first */
    size_t count;
};

/* Zeroed, it is empty. */
struct sy_talks {
    struct sy_talk at[SY_TALKS_MAX]; /* the one that was used last is the last */
    size_t count;
};

/* NULL: there is none of this handle. */
const struct sy_talk *sy_talks_find(const struct sy_talks *talks, const char *handle);

/*
 * Adds a question and its answer to the conversation, or without a handle (NULL) to a new one. Returns the handle,
 * valid until the next call; NULL when out of memory: nothing has changed then.
 */
const char *sy_talks_add(struct sy_talks *talks, const char *handle, const char *question, const char *answer);
void sy_talks_free(struct sy_talks *talks);

/*
 * Answers by code. False: not every word of the question is understood. With `answer` NULL nothing is written; else the
 * answer, and members that have it as numbers. Pure but for the wall clock.
 */
struct sy_understood;
bool sy_understand(const char *question, const struct sy_snapshot *snapshot, struct sy_understood *understood);
FM_MUST_USE enum fm_code sy_answer_by_code(const struct sy_understood *understood, const struct sy_snapshot *snapshot,
                                           struct fm_buf *answer, struct fm_json_writer *w, struct fm_error *error);

/* What the question asks for. */
struct sy_understood {
    unsigned topic;
    unsigned noun;
    bool chrome;
    bool installed;
    size_t limit;   /* pages to name; 0: not said */
    char site[254]; /* tabs of this site alone; "": all */
};

/* Data that a prompt may have besides the snapshot. Paths are absolute, the latest first; owned. */
#define SY_NEAR_MAX 20
struct sy_near {
    char *files[SY_NEAR_MAX];
    size_t file_count;
    char *folders[SY_NEAR_MAX]; /* that have a .git */
    size_t folder_count;
};

/*
 * The messages for a model: how to answer, what was said before (`talk` NULL: nothing), the data with the question.
 * They have about 14 KB at most, of which a model with a context of 8,192 tokens reads all. The
 * caller frees each text. Returns how many, at most SY_MESSAGES_MAX; 0 when out of memory. Pure but for the wall clock.
 */
#define SY_MESSAGES_MAX (2 + 2 * SY_TURNS_MAX)
size_t sy_make_prompt(const char *question, const struct sy_snapshot *snapshot, const struct sy_near *near,
                      const struct sy_talk *talk, struct sy_message messages[SY_MESSAGES_MAX]);

#endif
