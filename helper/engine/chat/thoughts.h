/*
 * Thoughts. Some models think before they answer, between two texts:
 *
 *     <think>\nThe user greets me.\n</think>\n\nHello!
 *
 * A *thought form* is what those texts are, and what the model's chat template does about them; it is read off the
 * template and the vocabulary. The *thought parser* tells what of an answer is thought. Pure, and without llama.cpp;
 * engine thread only.
 */
#ifndef FM_ENGINE_CHAT_THOUGHTS_H
#define FM_ENGINE_CHAT_THOUGHTS_H

#include "engine/chat/tools.h"
#include "engine/kit/kit.h"

/* ---- form ---- */

#define FM_THOUGHT_MARK_MAX  96u /* bytes, NUL included */
#define FM_THOUGHT_SPACE_MAX 64u /* bytes of white space that are held back: more are told as they are */
#define FM_THOUGHT_HELD_MAX  (FM_THOUGHT_SPACE_MAX + 2 * FM_THOUGHT_MARK_MAX)
#define FM_THOUGHT_EFFORTS   3u
#define FM_THOUGHT_MORE_MAX  (4 * FM_THOUGHT_MARK_MAX) /* bytes that fm_thought_prompt appends at most */

struct fm_thought_form {
    bool thinks;
    char begin[FM_THOUGHT_MARK_MAX]; /* the marks, NUL-terminated, with control tokens as the vocabulary writes them */
    char end[FM_THOUGHT_MARK_MAX];   /* these two are not empty where the model thinks */
    char gap[FM_THOUGHT_MARK_MAX];   /* what stands between `end` and a text */
    char lead[FM_THOUGHT_MARK_MAX];  /* what stands before each text, and ends `end`; mostly empty */
    char preamble[FM_THOUGHT_MARK_MAX]; /* the same, where calls follow the text */
    bool ends_texts;                  /* a text ends with a control token that does not end the turn: */
    int32_t text_end;                 /* this one */
    bool turns_off;                   /* the template can */
    bool off_by_effort;               /* and is asked to by the effort "none" */
    bool efforts[FM_THOUGHT_EFFORTS]; /* of "low", "medium" and "high": those that the template takes */
    bool prompts;                     /* a prompt ends with the template's own text */
};

/*
 * Reads the form off what `from` makes of a conversation with a thought, and of those to be answered with thinking and
 * without. FM_INTERNAL: out of memory. Renders eight conversations. Allocates nothing that stays.
 */
FM_MUST_USE enum fm_code fm_thought_form_read(const struct fm_tool_template *from, struct fm_thought_form *form,
                                              struct fm_error *error);

/*
 * A prompt that ends as `text` (`len` bytes) has closed a thought: with its end or, where texts have a lead, with an
 * empty thought, since its end may be no more than the beginning of another message there.
 */
bool fm_thought_is_closed(const struct fm_thought_form *form, const char *text, size_t len);

/* What the template is told for `job`. Nothing, where the model does not think. */
void fm_thought_ask(const struct fm_thought_form *form, const struct fm_kit_job *job, struct fm_chat *chat);

/* ---- parser ---- */

enum fm_thought_state {
    FM_THOUGHT_AT_START, /* a thought may begin */
    FM_THOUGHT_BEGUN,    /* it has, and is white space so far */
    FM_THOUGHT_INSIDE,
    FM_THOUGHT_AFTER, /* white space before the text, or another thought */
    FM_THOUGHT_OVER,  /* text */
};

/*
 * Where an answer to the rendered prompt `text` begins: within a thought that the prompt opens, or after one that it
 * closes. Appends to `more` what is to be put after the prompt, so that `job` is answered without a thought where that
 * is asked for and the template does not see to it.
 */
enum fm_thought_state fm_thought_prompt(const struct fm_thought_form *form, const struct fm_kit_job *job,
                                        const char *text, size_t len, struct fm_buf *more);

struct fm_thought_parser {
    const struct fm_thought_form *form;
    enum fm_thought_state state;
    size_t space;                                          /* bytes of white space after the thought so far */
    char held[FM_THOUGHT_HELD_MAX]; /* what may become a mark, and the white space before it */
    bool held_control[FM_THOUGHT_HELD_MAX]; /* the byte is of a control token, and never given out */
    size_t held_len;
    bool thought_told; /* a part of a thought */
    bool joins;        /* a blank line comes before the next part */
    struct fm_buf thought; /* what fm_thought_read told of last */
    struct fm_buf text;
};

/* From `state` on. Allocates nothing; `form` must outlive it. */
void fm_thought_parser_init(struct fm_thought_parser *parser, const struct fm_thought_form *form,
                            enum fm_thought_state state);
void fm_thought_parser_free(struct fm_thought_parser *parser); /* harmless on one that is all zero */

/*
 * Takes `len` bytes, cut anywhere, and fills `thought` and `text` anew: what of them, and of bytes held before, is the
 * one and the other. White space at the ends of a thought, and after it, is dropped; so are an end mark that nothing
 * has begun, before a text, and a mark of beginning within a thought. Several thoughts before a text are one, with a
 * blank line between them. With `control` the bytes are those of a control token: a part of a mark, or nothing. False
 * when out of memory.
 */
FM_MUST_USE bool fm_thought_read(struct fm_thought_parser *parser, const char *bytes, size_t len, bool control);

enum fm_thought_start {
    FM_THOUGHT_NO_START,
    FM_THOUGHT_MAY_START, /* they may become a mark, or are white space before one */
    FM_THOUGHT_START,     /* they begin with a mark */
};

/* What `len` bytes before a text are, without their parser. */
enum fm_thought_start fm_thought_match_start(const struct fm_thought_form *form, const char *bytes, size_t len);

/* A mark that may come before a text, and what follows it. */
struct fm_thought_mark {
    const char *text; /* in the form; not NUL-terminated */
    size_t len;       /* 0: the form has no such mark */
    size_t space;     /* bytes of white space that it begins with, which may be others */
    enum fm_thought_state next;
};

#define FM_THOUGHT_BEGIN        0u /* which of the marks a thought begins with */
#define FM_THOUGHT_MARKS        4u
#define FM_THOUGHT_MARKS_INSIDE 2u /* the first ones, which count within a thought, too */

/*
 * The marks of `form`: a thought's beginning; its end, without the mark that a text begins with; that mark; and the one
 * of a text before calls.
 */
void fm_thought_marks(const struct fm_thought_form *form, struct fm_thought_mark marks[FM_THOUGHT_MARKS]);

/* The answer ends: the same for what is held. */
FM_MUST_USE bool fm_thought_end(struct fm_thought_parser *parser);

#endif
