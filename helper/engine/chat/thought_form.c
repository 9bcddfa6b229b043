/*
 * Reads a thought form off a chat template. Most templates put the thought of the last answer between tags, which can
 * be read off. Others leave the thought out and only show their tags in the prompt, and some have marks that are not
 * tags. So there is a table of known forms. A row of the table is used if the template or the vocabulary shows the
 * marks of the row.
 */
#include "engine/chat/thoughts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define THOUGHT "fm_thought"
#define TEXT    "fm_text"

#define LENGTH_OF(literal) (sizeof(literal) - 1)

static const struct row {
    const char *begin;
    const char *end;
    const char *gap;
    const char *lead;
    const char *preamble;
} rows[] = {
    {"<think>", "</think>", "\n\n", "", ""},
    {"<thinking>", "</thinking>", "\n\n", "", ""},
    {"[THINK]", "[/THINK]", "", "", ""},
    {"<|START_THINKING|>", "<|END_THINKING|>", "", "", ""},
    {"<|channel>thought", "<channel|>", "", "", ""},
    {"<|channel|>analysis<|message|>", "<|end|><|start|>assistant<|channel|>final<|message|>", "",
     "<|channel|>final<|message|>", "<|channel|>commentary<|message|>"},
    {"<|think|>", "<|end|><|begin|>assistant<|content|>", "", "<|content|>", ""},
    {"<|open|>think<|sep|>", "<|close|>think<|sep|><|open|>response<|sep|>", "", "<|open|>response<|sep|>", ""},
    {"Here are my reasoning steps:", "[BEGIN FINAL RESPONSE]", "\n", "", ""},
};

/* ---- the conversations ---- */

static const struct fm_chat_message question = {.role = "user", .content = "hi", .content_len = 2};
static const struct fm_chat_message plain = {.role = "assistant", .content = TEXT, .content_len = LENGTH_OF(TEXT)};
static const struct fm_chat_message thoughtful = {.role = "assistant",
                                                  .content = TEXT,
                                                  .content_len = LENGTH_OF(TEXT),
                                                  .reasoning = THOUGHT,
                                                  .reasoning_len = LENGTH_OF(THOUGHT)};

enum conversation { OPEN, OFF, NONE, PLAIN, THOUGHTFUL, EFFORTS, CONVERSATIONS = EFFORTS + FM_THOUGHT_EFFORTS };

static const char *const efforts[FM_THOUGHT_EFFORTS] = {"low", "medium", "high"};

static const struct {
    const struct fm_chat_message *answer; /* NULL: there is no answer yet */
    enum fm_chat_thinking thinking;
    const char *effort;
} conversations[CONVERSATIONS] = {
    [OPEN] = {NULL, FM_CHAT_THINKING_DEFAULT, NULL},
    [OFF] = {NULL, FM_CHAT_THINKING_OFF, NULL},
    [NONE] = {NULL, FM_CHAT_THINKING_OFF, "none"},
    [PLAIN] = {&plain, FM_CHAT_THINKING_DEFAULT, NULL},
    [THOUGHTFUL] = {&thoughtful, FM_CHAT_THINKING_DEFAULT, NULL},
    [EFFORTS] = {NULL, FM_CHAT_THINKING_ON, "low"},
    [EFFORTS + 1] = {NULL, FM_CHAT_THINKING_ON, "medium"},
    [EFFORTS + 2] = {NULL, FM_CHAT_THINKING_ON, "high"},
};

/* `*text` is malloc'd; NULL if the template refuses the conversation. */
static enum fm_code render(const struct fm_tool_template *from, enum conversation which, char **text,
                           struct fm_error *error) {
    struct fm_chat_message messages[2] = {question};
    struct fm_chat chat = {.messages = messages,
                           .count = 1,
                           .thinking = conversations[which].thinking,
                           .effort = conversations[which].effort};
    size_t len;
    if (conversations[which].answer) {
        messages[chat.count++] = *conversations[which].answer;
        chat.closed = true;
    }
    enum fm_code code = from->render(from->argument, &chat, text, &len, error);
    return code == FM_INTERNAL ? code : FM_OK;
}

/* ---- reading it ---- */

/* Whether the text ends with `mark`; false if there is no text. */
static bool ends_with(const char *text, size_t len, const char *mark) {
    return text && fm_tool_ends_with(text, len, mark, strlen(mark));
}

static bool all_ends_with(const char *text, const char *mark) {
    return text && ends_with(text, strlen(text), mark);
}

static const char *skip_space(const char *text) {
    while (fm_tool_is_space(*text)) {
        text++;
    }
    return text;
}

/* Copies a mark. False if the mark is too long. */
static bool set_mark(char mark[FM_THOUGHT_MARK_MAX], const char *text, size_t len) {
    snprintf(mark, FM_THOUGHT_MARK_MAX, "%.*s", (int)len, text);
    return len < FM_THOUGHT_MARK_MAX;
}

/* The text around a rendered thought. */
struct around {
    const char *text;   /* the text before the thought */
    size_t before;      /* bytes of `text`, without the white space at its end */
    const char *after;  /* the text after the thought, without leading white space */
    const char *answer; /* the answer's text after the thought */
};

static bool find_thought(const char *text, struct around *around) {
    const char *thought = text ? strstr(text, THOUGHT) : NULL;
    const char *answer = thought ? strstr(thought, TEXT) : NULL;
    if (!answer) {
        return false;
    }
    *around = (struct around){.text = text,
                              .before = fm_tool_trimmed(text, (size_t)(thought - text)),
                              .after = skip_space(thought + LENGTH_OF(THOUGHT)),
                              .answer = answer};
    return true;
}

/* Reads the text between the end mark and the answer's text. */
static bool set_gap(const struct around *around, struct fm_thought_form *form) {
    const char *gap = around->after + strlen(form->end);
    return gap <= around->answer && set_mark(form->gap, gap, (size_t)(around->answer - gap));
}

/* Tags: "<name>" before the thought and "</name>" after it, or "[name]" and "[/name]". */
static bool read_tags(const struct around *around, struct fm_thought_form *form) {
    size_t at = around->before;
    char closing = at > 0 ? around->text[at - 1] : '\0';
    char opening = closing == '>' ? '<' : '[';
    while (at > 0 && around->text[at - 1] != opening && !fm_tool_is_space(around->text[at - 1])) {
        at--;
    }
    if ((closing != '>' && closing != ']') || at == 0 || around->text[at - 1] != opening) {
        return false;
    }
    size_t name_len = around->before - at; /* with the closing bracket */
    int end_len = snprintf(form->end, sizeof form->end, "%c/%.*s", opening, (int)name_len, around->text + at);
    return end_len > 0 && (size_t)end_len < sizeof form->end && name_len > 1 &&
           set_mark(form->begin, around->text + at - 1, name_len + 1) &&
           strncmp(around->after, form->end, (size_t)end_len) == 0 && set_gap(around, form);
}

/* The number of bytes before the text of the answer that has no thought. */
static size_t before_text(const char *text) {
    const char *answer = text ? strstr(text, TEXT) : NULL;
    return answer ? (size_t)(answer - text) : 0;
}

/* Whether the template shows the marks of `row`, or the vocabulary has them. */
static bool shows(const struct fm_tool_template *from, char *const texts[CONVERSATIONS], const struct row *row) {
    size_t before = before_text(texts[PLAIN]);
    struct around around;
    bool around_thought =
        find_thought(texts[THOUGHTFUL], &around) &&
        (ends_with(around.text, around.before, row->begin) || strncmp(around.after, row->end, strlen(row->end)) == 0);
    bool around_nothing = ends_with(texts[PLAIN], before, row->end) || all_ends_with(texts[OFF], row->end) ||
                          all_ends_with(texts[NONE], row->end);
    bool words = row->begin[0] != '<' && row->begin[0] != '['; /* the prompt need not contain such a mark */
    bool in_prompt = all_ends_with(texts[OPEN], row->begin) ||
                     (texts[OPEN] && (words || strstr(texts[OPEN], row->begin)) && strstr(texts[OPEN], row->end));
    return around_thought || around_nothing || in_prompt || ends_with(texts[PLAIN], before, row->lead) ||
           (from->is_token(from->argument, row->begin) && from->is_token(from->argument, row->end));
}

static void take_row(const struct row *row, const char *thoughtful_text, struct fm_thought_form *form) {
    struct around around;
    *form = (struct fm_thought_form){.thinks = true};
    snprintf(form->begin, sizeof form->begin, "%s", row->begin);
    snprintf(form->end, sizeof form->end, "%s", row->end);
    snprintf(form->lead, sizeof form->lead, "%s", row->lead);
    snprintf(form->preamble, sizeof form->preamble, "%s", row->preamble);
    bool shown = find_thought(thoughtful_text, &around) && strncmp(around.after, row->end, strlen(row->end)) == 0;
    if (!shown || !set_gap(&around, form)) {
        snprintf(form->gap, sizeof form->gap, "%s", row->gap);
    }
}

static void read_marks(const struct fm_tool_template *from, char *const texts[CONVERSATIONS],
                       struct fm_thought_form *form) {
    struct around around;
    form->thinks = find_thought(texts[THOUGHTFUL], &around) && read_tags(&around, form);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0] && !form->thinks; i++) {
        if (shows(from, texts, &rows[i])) {
            take_row(&rows[i], texts[THOUGHTFUL], form);
        }
    }
}

/*
 * Finds where the answer begins in a closed conversation. The conversation begins with the prompt, or with the prompt
 * without the thought that the prompt opens. NULL: the conversation begins in another way.
 */
static const char *find_answer(char *const texts[CONVERSATIONS], const char *closed, const struct fm_thought_form *form) {
    const char *prompt = texts[OPEN];
    size_t len = prompt ? strlen(prompt) : 0;
    if (!prompt || !closed) {
        return NULL;
    }
    if (strncmp(closed, prompt, len) != 0 && ends_with(prompt, len, form->begin)) {
        len = fm_tool_trimmed(prompt, len) - strlen(form->begin);
    }
    return strncmp(closed, prompt, len) == 0 ? closed + len : NULL;
}

/* The part of `text` after a thought, possibly an empty one, that ends before `end`. */
static const char *after_thought(const char *text, const char *end, const struct fm_thought_form *form) {
    const char *mark = form->thinks ? strstr(text, form->end) : NULL;
    return mark && mark < end ? mark + strlen(form->end) : text;
}

/* Makes the lead before each text a part of the end mark. */
static void end_with_lead(struct fm_thought_form *form) {
    char end[FM_THOUGHT_MARK_MAX];
    size_t gap_len = strlen(form->gap);
    if (ends_with(form->gap, gap_len, form->lead)) {
        gap_len -= strlen(form->lead);
    }
    int len = snprintf(end, sizeof end, "%s%.*s%s", form->end, (int)gap_len, form->gap, form->lead);
    if (len > 0 && (size_t)len < sizeof end) {
        memcpy(form->end, end, sizeof end);
        form->gap[0] = '\0';
    } else {
        form->lead[0] = '\0';
    }
}

/*
 * Handles models for which a thought and a text are two messages: " to=self<|message|>" and "<|eom|><|start|>assistant
 * to=user<|message|>".
 */
static void read_messages(char *const texts[CONVERSATIONS], struct fm_thought_form *form) {
    const char *begin = find_answer(texts, texts[THOUGHTFUL], form);
    const char *thought = begin ? strstr(begin, THOUGHT) : NULL;
    const char *end = thought ? thought + LENGTH_OF(THOUGHT) : NULL;
    const char *text = end ? strstr(end, TEXT) : NULL;
    size_t lead_len = strlen(form->lead);
    form->thinks = text && thought > begin && (size_t)(text - end) > lead_len &&
                   memcmp(text - lead_len, form->lead, lead_len) == 0 &&
                   set_mark(form->begin, begin, (size_t)(thought - begin)) &&
                   set_mark(form->end, end, (size_t)(text - end));
}

/* Reads the lead, which comes before each text, if the table has no lead. */
static void read_lead(char *const texts[CONVERSATIONS], struct fm_thought_form *form) {
    const char *answer = find_answer(texts, texts[PLAIN], form);
    const char *text = answer ? strstr(answer, TEXT) : NULL;
    const char *lead = text ? after_thought(answer, text, form) : NULL;
    if (form->lead[0] || !lead || skip_space(lead) == text) {
        return;
    }
    if (!set_mark(form->lead, lead, (size_t)(text - lead))) {
        form->lead[0] = '\0';
    } else if (form->thinks) {
        end_with_lead(form);
    } else {
        read_messages(texts, form);
    }
}

/* Reads the control token that ends a text but not the turn. Here the end of the turn must follow this token. */
static void read_text_end(const struct fm_tool_template *from, const char *closed, struct fm_thought_form *form) {
    const char *text = closed ? strstr(closed, TEXT) : NULL;
    bool ends_turn = true;
    size_t len = text ? strlen(text) : 0;
    size_t at = LENGTH_OF(TEXT);
    form->ends_texts = at < len && from->control(from->argument, text + at, len - at, &form->text_end, &ends_turn) > 0;
    form->ends_texts &= !ends_turn;
    for (int32_t token; form->ends_texts && at < len && !ends_turn; at++) {
        (void)from->control(from->argument, text + at, len - at, &token, &ends_turn);
    }
    form->ends_texts &= ends_turn;
}

/* Reads how the template handles a request not to think, or to think with a certain effort. */
static void read_settings(char *const texts[CONVERSATIONS], struct fm_thought_form *form) {
    const char *none = texts[NONE];
    bool open = texts[OPEN] != NULL;
    form->prompts = open && !all_ends_with(texts[OPEN], "hi");
    form->turns_off = open && texts[OFF] && strcmp(texts[OFF], texts[OPEN]) != 0;
    form->off_by_effort = !form->turns_off && none && fm_thought_is_closed(form, none, strlen(none));
    form->turns_off |= form->off_by_effort;
    for (size_t i = 0; i < FM_THOUGHT_EFFORTS; i++) {
        form->efforts[i] = texts[EFFORTS + i] != NULL;
    }
}

enum fm_code fm_thought_form_read(const struct fm_tool_template *from, struct fm_thought_form *form,
                                  struct fm_error *error) {
    char *texts[CONVERSATIONS] = {NULL};
    enum fm_code code = FM_OK;
    *form = (struct fm_thought_form){.thinks = false};
    for (size_t i = 0; i < CONVERSATIONS && code == FM_OK; i++) {
        code = render(from, (enum conversation)i, &texts[i], error);
    }
    if (code == FM_OK) {
        read_marks(from, texts, form);
        read_lead(texts, form);
    }
    if (code == FM_OK) {
        read_text_end(from, texts[PLAIN], form);
    }
    if (form->thinks || form->lead[0] || form->ends_texts) {
        read_settings(texts, form);
    } else {
        *form = (struct fm_thought_form){.thinks = false};
    }
    for (size_t i = 0; i < CONVERSATIONS; i++) {
        free(texts[i]);
    }
    return code;
}

/* ---- asking ---- */

/* The effort nearest to the wanted one; NULL if the template takes none. */
static const char *nearest_effort(const struct fm_thought_form *form, enum fm_effort effort) {
    size_t wanted = effort <= FM_EFFORT_LOW ? 0 : effort == FM_EFFORT_MEDIUM ? 1 : 2;
    for (size_t i = 0; i < FM_THOUGHT_EFFORTS; i++) {
        size_t which = (wanted + i) % FM_THOUGHT_EFFORTS;
        if (form->efforts[which]) {
            return efforts[which];
        }
    }
    return NULL;
}

void fm_thought_ask(const struct fm_thought_form *form, const struct fm_kit_job *job, struct fm_chat *chat) {
    if (!form->thinks || job->effort == FM_EFFORT_DEFAULT) {
        return;
    }
    if (job->effort != FM_EFFORT_NONE) {
        chat->thinking = FM_CHAT_THINKING_ON;
        chat->effort = nearest_effort(form, job->effort);
    } else if (form->turns_off) {
        chat->thinking = FM_CHAT_THINKING_OFF;
        chat->effort = form->off_by_effort ? "none" : NULL;
    }
}
