/*
 * Thoughts. Some models think before they answer, between two texts:
 *
 *     <think>\nThe user greets me.\n</think>\n\nHello!
 *
 * A *thought form* says what those two texts are, and how the model's chat template handles them; it is read off the
 * template and the vocabulary. The *thought parser* says which part of an answer is thought. Pure, and without
 * llama.cpp; engine thread only.
 */
#ifndef FM_ENGINE_CHAT_THOUGHTS_H
#define FM_ENGINE_CHAT_THOUGHTS_H

#include "engine/chat/tools.h"
#include "engine/kit/kit.h"

/* ---- form ---- */

#define FM_THOUGHT_MARK_MAX  96u /* bytes, NUL included */
#define FM_THOUGHT_SPACE_MAX 64u /* bytes of white space that are held back; more than that is passed on */
#define FM_THOUGHT_HELD_MAX  (FM_THOUGHT_SPACE_MAX + 2 * FM_THOUGHT_MARK_MAX)
#define FM_THOUGHT_EFFORTS   3u
#define FM_THOUGHT_MORE_MAX  (4 * FM_THOUGHT_MARK_MAX) /* bytes that fm_thought_prompt appends at most */

struct fm_thought_form {
    bool thinks;
    char begin[FM_THOUGHT_MARK_MAX]; /* before a thought; NUL-terminated, control tokens as in the vocabulary */
    char end[FM_THOUGHT_MARK_MAX];   /* after a thought; neither of the two marks is empty if the model thinks */
    char gap[FM_THOUGHT_MARK_MAX];   /* the text between `end` and the answer's text */
    char lead[FM_THOUGHT_MARK_MAX];  /* comes before each text, and is the last part of `end`; mostly empty */
    char preamble[FM_THOUGHT_MARK_MAX]; /* comes, in place of `lead`, before a text that calls follow */
    bool ends_texts;                  /* a text ends with a control token that does not end the turn */
    int32_t text_end;                 /* that token */
    bool turns_off;                   /* the template can turn thinking off */
    bool off_by_effort;               /* the template turns thinking off for the effort "none" */
    bool efforts[FM_THOUGHT_EFFORTS]; /* whether the template takes "low", "medium" and "high" */
    bool prompts;                     /* the prompt ends with text of the template */
};

/*
 * Reads the form off what `from` renders for a conversation with a thought, and for conversations that are to be
 * answered with and without thinking. FM_INTERNAL: out of memory. Renders eight conversations. Keeps no memory.
 */
FM_MUST_USE enum fm_code fm_thought_form_read(const struct fm_tool_template *from, struct fm_thought_form *form,
                                              struct fm_error *error);

/*
 * Whether a prompt has closed a thought, judged by its end, `text` (`len` bytes). The end mark closes a thought. If
 * texts have a lead, only an empty thought counts, because there the end mark may also be the beginning of another
 * message.
 */
bool fm_thought_is_closed(const struct fm_thought_form *form, const char *text, size_t len);

/* Sets in `chat` what the template gets about thinking for `job`. Changes nothing if the model does not think. */
void fm_thought_ask(const struct fm_thought_form *form, const struct fm_kit_job *job, struct fm_chat *chat);

/* ---- parser ---- */

enum fm_thought_state {
    FM_THOUGHT_AT_START, /* a thought may begin */
    FM_THOUGHT_BEGUN,    /* a thought has begun, with only white space so far */
    FM_THOUGHT_INSIDE,
    FM_THOUGHT_AFTER, /* white space before the text, or another thought */
    FM_THOUGHT_OVER,  /* text */
};

/*
 * Returns the state in which an answer to the rendered prompt `text` begins: inside a thought that the prompt opens, or
 * after a thought that the prompt closes. If `job` asks for an answer without a thought and the template can't do that,
 * appends to `more` the text to put after the prompt.
 */
enum fm_thought_state fm_thought_prompt(const struct fm_thought_form *form, const struct fm_kit_job *job,
                                        const char *text, size_t len, struct fm_buf *more);

struct fm_thought_parser {
    const struct fm_thought_form *form;
    enum fm_thought_state state;
    size_t space;                                          /* bytes of white space after the thought so far */
    char held[FM_THOUGHT_HELD_MAX]; /* bytes that may become a mark, and the white space before them */
    bool held_control[FM_THOUGHT_HELD_MAX]; /* the byte belongs to a control token, and is never passed on */
    size_t held_len;
    bool thought_told; /* a part of a thought was passed on */
    bool joins;        /* a blank line comes before the next part */
    struct fm_buf thought; /* the thought in the result of the last fm_thought_read */
    struct fm_buf text;
};

/* Starts in `state`. Allocates nothing; `form` must outlive the parser. */
void fm_thought_parser_init(struct fm_thought_parser *parser, const struct fm_thought_form *form,
                            enum fm_thought_state state);
void fm_thought_parser_free(struct fm_thought_parser *parser); /* harmless on one that is all zero */

/*
 * Takes `len` bytes, which may be cut anywhere. Splits them, and the bytes held before, into `thought` and `text`.
 * Drops white space at both ends of a thought and after it, an end mark before a text without a thought, and a begin
 * mark inside a thought. Several thoughts before a text become one thought, with a blank line between them. With
 * `control` the bytes belong to a control token: they are a part of a mark, or are dropped. False when out of memory.
 */
FM_MUST_USE bool fm_thought_read(struct fm_thought_parser *parser, const char *bytes, size_t len, bool control);

enum fm_thought_start {
    FM_THOUGHT_NO_START,
    FM_THOUGHT_MAY_START, /* the bytes may become a mark, or are white space before a mark */
    FM_THOUGHT_START,     /* the bytes begin with a mark */
};

/* Whether `len` bytes before a text are a mark, or may become one. Does not use the parser. */
enum fm_thought_start fm_thought_match_start(const struct fm_thought_form *form, const char *bytes, size_t len);

/* A mark that may come before a text, and what follows it. */
struct fm_thought_mark {
    const char *text; /* in the form; not NUL-terminated */
    size_t len;       /* 0: the form does not have this mark */
    /* how many bytes of white space the mark begins with; an answer may have other white space there */
    size_t space;
    enum fm_thought_state next;
};

#define FM_THOUGHT_BEGIN        0u /* the mark that begins a thought */
#define FM_THOUGHT_MARKS        4u
#define FM_THOUGHT_MARKS_INSIDE 2u /* how many of the first marks also count inside a thought */

/*
 * The marks of `form`: the beginning of a thought; the end of a thought, without the lead of a text; the lead of a
 * text; and the lead of a text before calls.
 */
void fm_thought_marks(const struct fm_thought_form *form, struct fm_thought_mark marks[FM_THOUGHT_MARKS]);

/* Call it when the answer has ended: sets `thought` and `text` to the bytes that are still held. */
FM_MUST_USE bool fm_thought_end(struct fm_thought_parser *parser);

#endif
