/*
 * What query needs besides the desktop: a model, and the memory of conversations. Code answers questions about counts,
 * duplicates and the oldest pages, if it understands every word. The model answers all other questions. Its data has
 * URLs without their queries.
 */
#ifndef SY_QUERY_H
#define SY_QUERY_H

#include "base/buf.h"
#include "desktop/snapshot.h"

#define SY_TALKS_MAX    16   /* conversations; the least recently used one is forgotten */
#define SY_TURNS_MAX    8    /* questions with answers of one conversation */
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
     * Waits for the model's answer to `messages`, and appends it to `text`. FM_CANCELLED: the request that needs the
     * answer was cancelled. Other errors are the model's. The command then refuses with model_unavailable, except after
     * a timeout or a cancel.
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
    struct sy_talk at[SY_TALKS_MAX]; /* the most recently used one is the last */
    size_t count;
};

/* The conversation with this handle; NULL: there is none. */
const struct sy_talk *sy_talks_find(const struct sy_talks *talks, const char *handle);

/*
 * Adds a question and its answer to the conversation, or to a new one if `handle` is NULL. Returns the handle, valid
 * until the next call; NULL when out of memory: then nothing has changed.
 */
const char *sy_talks_add(struct sy_talks *talks, const char *handle, const char *question, const char *answer);
void sy_talks_free(struct sy_talks *talks);

/*
 * Answers by code. sy_understand returns false if it does not understand every word of the question.
 * sy_answer_by_code writes the answer as text, and its numbers as members. Pure, except for the wall clock.
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
    size_t limit;   /* how many pages to name; 0: not said */
    char site[254]; /* only tabs of this site; "": all */
};

/* Data that a prompt may have besides the snapshot. Paths are absolute, the latest first. The paths are owned. */
#define SY_NEAR_MAX 20
struct sy_near {
    char *files[SY_NEAR_MAX];
    size_t file_count;
    char *folders[SY_NEAR_MAX]; /* folders with a .git */
    size_t folder_count;
};

/*
 * The messages for a model: how to answer, what was said before (`talk` NULL: nothing), and the data with the question.
 * They have at most about 14 KB together, which fits into a context of 8,192 tokens. The caller frees each text.
 * Returns how many there are, at most SY_MESSAGES_MAX; 0 when out of memory. Pure, except for the wall clock.
 */
#define SY_MESSAGES_MAX (2 + 2 * SY_TURNS_MAX)
size_t sy_make_prompt(const char *question, const struct sy_snapshot *snapshot, const struct sy_near *near,
                      const struct sy_talk *talk, struct sy_message messages[SY_MESSAGES_MAX]);

#endif
