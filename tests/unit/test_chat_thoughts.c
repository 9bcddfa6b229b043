/* Reasoning: which part of an answer is reasoning, however the answer is split, and how a template marks this part. */
#include "engine/chat/thoughts.h"
#include "wire.h"

#define TAGS                                                                                                           \
    { .thinks = true, .begin = "<think>", .end = "</think>", .gap = "\n\n", .prompts = true }

static const struct fm_thought_form tags = TAGS;
/* The end mark may start again inside itself, and a text without a thought has a different mark. */
static const struct fm_thought_form channels = {.thinks = true,
                                                .begin = "<|c|>analysis<|m|>",
                                                .end = "<|e|><|s|><|c|>final<|m|>",
                                                .lead = "<|c|>final<|m|>",
                                                .preamble = "<|c|>commentary<|m|>",
                                                .prompts = true};

/* The model never thinks, and its texts have a mark. */
static const struct fm_thought_form recipient = {.lead = "all\n", .prompts = true};
static const struct fm_thought_form spaced = {
    .thinks = true, .begin = " to=self|", .end = "#s to=user|", .lead = " to=user|", .prompts = true};

/* ---- parser ---- */

struct row {
    const char *name;
    const struct fm_thought_form *form;
    enum fm_thought_state state;
    const char *answer;
    const char *thought;
    const char *text;
};

#define AT_START FM_THOUGHT_AT_START
#define BEGUN    FM_THOUGHT_BEGUN

static const struct row rows[] = {
    {"a thought and a text", &tags, AT_START, "<think>\nhm\n</think>\n\nHi.", "hm", "Hi."},
    {"no white space", &tags, AT_START, "<think>hm</think>Hi.", "hm", "Hi."},
    {"white space before", &tags, AT_START, "\n <think>hm</think>Hi.", "hm", "Hi."},
    {"white space inside", &tags, AT_START, "<think>\n a \n\n b\t\n</think>Hi. ", "a \n\n b", "Hi. "},
    {"an empty one", &tags, AT_START, "<think>\n\n</think>\n\nHi.", "", "Hi."},
    {"an empty one, closed at once", &tags, AT_START, "<think></think>Hi.", "", "Hi."},
    {"none", &tags, AT_START, "Hi.", "", "Hi."},
    {"none, white space before the text", &tags, AT_START, "\n Hi.", "", "\n Hi."},
    {"no answer", &tags, AT_START, "", "", ""},
    {"white space alone", &tags, AT_START, " \n", "", " \n"},
    {"text before", &tags, AT_START, "a<think>hm</think>Hi.", "", "a<think>hm</think>Hi."},
    {"another tag", &tags, AT_START, "<thin>hm</think>", "", "<thin>hm</think>"},
    {"a beginning alone", &tags, AT_START, "<thi", "", "<thi"},
    {"a look-alike after the text", &tags, AT_START, "<think>hm</think>a</think><think>b", "hm", "a</think><think>b"},
    {"never closed", &tags, AT_START, "<think>hm\nno", "hm\nno", ""},
    {"never closed, white space last", &tags, AT_START, "<think>hm \n", "hm", ""},
    {"cut in its end", &tags, AT_START, "<think>hm\n</thi", "hm\n</thi", ""},
    {"nested", &tags, AT_START, "<think>a <think> b</think>c", "a\n\nb", "c"},
    {"begun twice", &tags, AT_START, "<think>\n<think>\nb</think>c", "b", "c"},
    {"two", &tags, AT_START, "<think>a</think>\n\n<think>b</think>\n\nc", "a\n\nb", "c"},
    {"an empty one first", &tags, AT_START, "<think>\n</think><think>b</think>c", "b", "c"},
    {"closed twice", &tags, AT_START, "<think>a</think>\n\n</think>\n\nc", "a", "c"},
    {"an end alone", &tags, AT_START, "\n</think>\n\nc", "", "c"},
    {"an end, then a thought", &tags, AT_START, "</think><think>a</think>c", "a", "c"},
    {"a beginning of a mark after it", &tags, AT_START, "<think>a</think>\n <thin", "a", "<thin"},
    {"another tag after it", &tags, AT_START, "<think>a</think>\n<b>", "a", "<b>"},
    {"look-alikes", &tags, AT_START, "<think>a</thin b</think c<</think>d", "a</thin b</think c<", "d"},
    {"white space in a look-alike", &tags, AT_START, "<think>a </thi \n</think>d", "a </thi", "d"},
    {"opened by the prompt", &tags, BEGUN, "\nhm\n</think>\nHi.", "hm", "Hi."},
    {"opened, and a tag of its own", &tags, BEGUN, "<think>hm</think>Hi.", "hm", "Hi."},
    {"closed by the prompt", &tags, FM_THOUGHT_AFTER, "\n\nHi.", "", "Hi."},
    {"closed by the prompt, and one of its own", &tags, FM_THOUGHT_AFTER, "\n<think>hm</think>Hi.", "hm", "Hi."},
    {"over", &tags, FM_THOUGHT_OVER, "\n<think>hm</think>", "", "\n<think>hm</think>"},
    {"channels", &channels, AT_START, "<|c|>analysis<|m|>hm<|e|><|s|><|c|>final<|m|>Hi.", "hm", "Hi."},
    {"no channel", &channels, AT_START, "<|c|>final<|m|>Hi.", "", "Hi."},
    {"a preamble", &channels, AT_START, "<|c|>commentary<|m|>Hi.", "", "Hi."},
    {"a thought, then a preamble", &channels, BEGUN, "a<|e|><|s|><|c|>commentary<|m|>Hi.", "a", "Hi."},
    {"two in channels", &channels, BEGUN, "a<|e|><|s|><|c|>analysis<|m|>b<|e|><|s|><|c|>final<|m|>Hi.", "a\n\nb", "Hi."},
    {"ends twice", &channels, BEGUN, "hm<|e|><|s|><|e|><|s|><|c|>final<|m|>Hi.", "hm", "Hi."},
    {"a recipient", &recipient, AT_START, "all\nHi.", "", "Hi."},
    {"no recipient", &recipient, AT_START, "allow", "", "allow"},
    {"a mark after a space", &spaced, AT_START, " to=user|Hi.", "", "Hi."},
    {"a thought after a space", &spaced, AT_START, " to=self|hm#s to=user|Hi.", "hm", "Hi."},
    {"a mark without its space", &spaced, AT_START, "to=self|hm#sto=user|Hi.", "hm", "Hi."},
    {"a look-alike of an end", &channels, BEGUN, "a<|e|><|e|><|s|><|c|>final<|m|>Hi.", "a<|e|>", "Hi."},
};

struct state {
    struct fm_thought_parser parser;
    struct transcript thought;
    struct transcript text;
};

static void take(struct state *state) {
    if (state->parser.thought.len > 0) {
        note(&state->thought, "%.*s", (int)state->parser.thought.len, state->parser.thought.data);
    }
    if (state->parser.text.len > 0) {
        note(&state->text, "%.*s", (int)state->parser.text.len, state->parser.text.data);
    }
}

/* Feeds the answer in pieces: the first ends at `first`, each later one has `step` bytes. */
static void check_row(const struct row *row, size_t first, size_t step) {
    static struct state state;
    size_t len = strlen(row->answer);
    state = (struct state){.thought = {.len = 0}};
    fm_thought_parser_init(&state.parser, row->form, row->state);
    for (size_t at = 0; at < len;) {
        size_t end = at == 0 ? first : at + step;
        end = end < len ? end : len;
        char *piece = exact_copy(row->answer + at, end - at);
        assert_true(fm_thought_read(&state.parser, piece, end - at, false));
        free(piece);
        take(&state);
        at = end;
    }
    assert_true(fm_thought_end(&state.parser));
    take(&state);
    expect_text(row->name, "thought", first, row->thought, state.thought.text);
    expect_text(row->name, "text", first, row->text, state.text.text);
    fm_thought_parser_free(&state.parser);
}

static void answers(void **unused) {
    (void)unused;
    for (size_t i = 0; i < COUNT(rows); i++) {
        for (size_t first = 1; first <= strlen(rows[i].answer) + 1; first++) {
            check_row(&rows[i], first, SIZE_MAX / 2);
            check_row(&rows[i], first, 1);
        }
    }
}

/* An answer with more white space than the parser holds back. */
static void much_white_space(void **unused) {
    (void)unused;
    char space[3 * FM_THOUGHT_SPACE_MAX];
    char answer[2 * sizeof space + 64];
    char thought[sizeof space + 64];
    memset(space, ' ', sizeof space - 1);
    space[sizeof space - 1] = '\0';
    snprintf(answer, sizeof answer, "%sHi.", space);
    check_row(&(struct row){"before a text", &tags, AT_START, answer, "", answer}, 1, 1);
    snprintf(answer, sizeof answer, "<think>a%sb</think>Hi.", space);
    snprintf(thought, sizeof thought, "a%sb", space);
    check_row(&(struct row){"in a thought", &tags, AT_START, answer, thought, "Hi."}, 1, 1);
    snprintf(answer, sizeof answer, "<think>%sa</think>%sHi.", space, space);
    check_row(&(struct row){"around it", &tags, AT_START, answer, "a", "Hi."}, 1, 1);
}

/* An incomplete mark is passed on as text or thought, without its control tokens. */
static void control_tokens(void **unused) {
    (void)unused;
    static const char *const pieces[] = {"<|c|>", "analysis", "<|m|>", "a", "<|e|>", "b", "<|e|>", "<|s|>", "<|c|>", "x"};
    static struct state state;
    state = (struct state){.thought = {.len = 0}};
    fm_thought_parser_init(&state.parser, &channels, AT_START);
    for (size_t i = 0; i < COUNT(pieces); i++) {
        assert_true(fm_thought_read(&state.parser, pieces[i], strlen(pieces[i]), pieces[i][0] == '<'));
        take(&state);
    }
    assert_true(fm_thought_end(&state.parser));
    take(&state);
    expect_text("control tokens", "thought", 0, "ab", state.thought.text);
    expect_text("control tokens", "text", 0, "x", state.text.text);
    fm_thought_parser_free(&state.parser);
}

static void starts(void **unused) {
    (void)unused;
    static const struct {
        const struct fm_thought_form *form;
        const char *bytes;
        enum fm_thought_start start;
    } table[] = {
        {&tags, "", FM_THOUGHT_MAY_START},           {&tags, "\n ", FM_THOUGHT_MAY_START},
        {&tags, "\n<thi", FM_THOUGHT_MAY_START},     {&tags, "<think>", FM_THOUGHT_START},
        {&tags, " <think>\nhm", FM_THOUGHT_START},   {&tags, "</think>", FM_THOUGHT_START},
        {&tags, "<thing>", FM_THOUGHT_NO_START},     {&tags, "Hi <think>", FM_THOUGHT_NO_START},
        {&channels, "<|c|>", FM_THOUGHT_MAY_START},  {&channels, "<|c|>commentary", FM_THOUGHT_MAY_START},
        {&channels, "<|c|>final<|m|>", FM_THOUGHT_START}, {&channels, "<|c|>commentary to=", FM_THOUGHT_NO_START},
    };
    char space[FM_THOUGHT_SPACE_MAX + 2];
    for (size_t i = 0; i < COUNT(table); i++) {
        char *bytes = exact_copy(table[i].bytes, strlen(table[i].bytes));
        assert_int_equal(fm_thought_match_start(table[i].form, bytes, strlen(table[i].bytes)), table[i].start);
        free(bytes);
    }
    memset(space, ' ', sizeof space);
    assert_int_equal(fm_thought_match_start(&tags, space, FM_THOUGHT_SPACE_MAX), FM_THOUGHT_MAY_START);
    assert_int_equal(fm_thought_match_start(&tags, space, FM_THOUGHT_SPACE_MAX + 1), FM_THOUGHT_NO_START);
}

/* ---- where an answer begins ---- */

static void prompts(void **unused) {
    (void)unused;
    struct fm_thought_form can_stop = TAGS;
    struct fm_thought_form bare = TAGS;
    can_stop.turns_off = true;
    bare.prompts = false;
    static const struct fm_thought_form none = {.thinks = false};
    enum { NO_THOUGHT = 1, TOOLS = 2 };
    const struct {
        const struct fm_thought_form *form;
        unsigned wanted;
        const char *prompt;
        enum fm_thought_state state;
        const char *more;
    } starts[] = {
        {&tags, 0, "assistant\n", FM_THOUGHT_AT_START, ""},
        {&tags, 0, "assistant\n<think>\n", FM_THOUGHT_BEGUN, ""},
        {&tags, 0, "assistant\n<think>\n\n</think>\n\n", FM_THOUGHT_AFTER, ""},
        {&tags, 0, "<think>", FM_THOUGHT_BEGUN, ""},
        {&tags, 0, "", FM_THOUGHT_AT_START, ""},
        {&tags, NO_THOUGHT, "assistant\n", FM_THOUGHT_AFTER, "<think>\n\n</think>\n\n"},
        {&tags, NO_THOUGHT, "assistant\n<think>\n", FM_THOUGHT_AFTER, "</think>\n\n"},
        {&tags, NO_THOUGHT, "assistant\n<think></think>", FM_THOUGHT_AFTER, ""},
        {&can_stop, NO_THOUGHT, "assistant\n", FM_THOUGHT_AT_START, ""},
        {&can_stop, NO_THOUGHT, "assistant\n<think>\n", FM_THOUGHT_AFTER, "</think>\n\n"},
        {&tags, NO_THOUGHT | TOOLS, "assistant\n", FM_THOUGHT_AFTER, "<think>\n\n</think>\n\n"},
        {&channels, NO_THOUGHT, "assistant", FM_THOUGHT_OVER, "<|c|>final<|m|>"},
        {&channels, 0, "assistant<|c|>analysis<|m|><|e|><|s|>", FM_THOUGHT_AFTER, ""},
        {&channels, 0, "hi<|e|><|s|>", FM_THOUGHT_AT_START, ""}, /* as at the beginning of each turn of the assistant */
        {&channels, NO_THOUGHT, "<|c|>analysis<|m|>", FM_THOUGHT_AFTER, "<|e|><|s|><|c|>final<|m|>"},
        {&channels, NO_THOUGHT | TOOLS, "<|c|>analysis<|m|>", FM_THOUGHT_AFTER, "<|e|><|s|>"},
        {&recipient, 0, ">>>", FM_THOUGHT_AT_START, ""},
        {&recipient, NO_THOUGHT, ">>>", FM_THOUGHT_AT_START, ""},
        {&channels, NO_THOUGHT | TOOLS, "assistant", FM_THOUGHT_AT_START, ""}, /* a call has another header */
        {&bare, 0, "what is <think>", FM_THOUGHT_AT_START, ""}, /* these are the user's words */
        {&none, NO_THOUGHT, "assistant\n<think>", FM_THOUGHT_OVER, ""},
    };
    for (size_t i = 0; i < COUNT(starts); i++) {
        struct fm_kit_job job = {.effort = starts[i].wanted & NO_THOUGHT ? FM_EFFORT_NONE : FM_EFFORT_DEFAULT,
                                 .tool_count = starts[i].wanted & TOOLS ? 1 : 0};
        struct fm_buf more;
        fm_buf_init(&more, FM_THOUGHT_MORE_MAX);
        size_t len = strlen(starts[i].prompt);
        char *prompt = exact_copy(starts[i].prompt, len);
        enum fm_thought_state state = fm_thought_prompt(starts[i].form, &job, prompt, len, &more);
        free(prompt);
        fm_buf_append(&more, "", 1);
        expect_text(starts[i].prompt, "more", i, starts[i].more, more.data);
        assert_int_equal(state, starts[i].state);
        fm_buf_free(&more);
    }
}

/* ---- form ---- */

/* The template's output for the conversations; NULL: it refuses them. "%s" is the thought. */
struct style {
    const char *name;
    const char *open;
    const char *off;  /* if asked not to think */
    const char *none; /* if asked not to think, also by the effort */
    const char *plain;
    const char *thoughtful;
    const char *refused; /* an effort that the template refuses */
    const char *token;   /* a mark that the vocabulary has as a token; it also has the closing mark */
    const char *form;    /* begin|end|gap|lead and the template's abilities; "": it does not think */
};

static enum fm_code render_style(const void *argument, const struct fm_chat *chat, char **text, size_t *len,
                                 struct fm_error *error) {
    const struct style *style = argument;
    const char *made = style->open;
    if (chat->count == 2) {
        made = chat->messages[1].reasoning ? style->thoughtful : style->plain;
    } else if (chat->thinking == FM_CHAT_THINKING_OFF) {
        made = chat->effort ? style->none : style->off;
    } else if (chat->effort && style->refused && strcmp(chat->effort, style->refused) == 0) {
        made = NULL;
    }
    *text = made ? strdup(made) : NULL;
    *len = made ? strlen(made) : 0;
    return made ? FM_OK : fm_fail(error, FM_INVALID_REQUEST, "no");
}

static bool is_token_of_style(const void *argument, const char *text) {
    const struct style *style = argument;
    return style->token && strstr(style->token, text);
}

/* "<t>" is 1, "<e>" is 2 and ends a turn. */
static size_t control_of_style(const void *argument, const char *text, size_t len, int32_t *token, bool *ends_turn) {
    (void)argument;
    bool is_one = len >= 3 && (memcmp(text, "<t>", 3) == 0 || memcmp(text, "<e>", 3) == 0);
    *token = is_one && text[1] == 'e' ? 2 : 1;
    *ends_turn = *token == 2 && is_one;
    return is_one ? 3 : 0;
}

#define A "assistant\n"
#define Q "hi " A

#define ENDLESS                                                                                                        \
    "----------------------------------------------------------------------------------------------------------------"

static const struct style styles[] = {
    {"tags", Q, Q "<think>\n\n</think>\n\n", Q "<think>\n\n</think>\n\n", Q "<think>\n\n</think>\n\nfm_text",
     Q "<think>\nfm_thought\n</think>\n\nfm_text", NULL, NULL, "<think>|</think>|\n\n|| off prompts low medium high"},
    {"tags in the prompt", Q "<x:think>", Q "</x:think>", Q "</x:think>", Q "fm_text",
     Q "<x:think>fm_thought</x:think>fm_text", "medium", NULL, "<x:think>|</x:think>||| off prompts low high"},
    {"brackets", Q, Q, Q, Q "fm_text", Q "[T]fm_thought[/T]fm_text", NULL, NULL, "[T]|[/T]||| prompts low medium high"},
    {"left out, opened", Q "<think>\n", Q "<think>\n", Q "<think>\n", Q "fm_text", Q "fm_text", NULL, NULL,
     "<think>|</think>|\n\n|| prompts low medium high"},
    {"left out, closed", Q, Q "<think>\n</think>\n", NULL, Q "fm_text", Q "fm_text", NULL, NULL,
     "<think>|</think>|\n\n|| off prompts low medium high"},
    {"in the instructions", "[THINK]say[/THINK]" Q, "[THINK]say[/THINK]" Q, NULL, Q "fm_text", Q "fm_text", NULL, NULL,
     "[THINK]|[/THINK]||| prompts low medium high"},
    {"in the vocabulary", Q, Q, Q, Q "fm_text", Q "fm_text", NULL, "<think></think>",
     "<think>|</think>|\n\n|| prompts low medium high"},
    {"half in the vocabulary", Q, Q, Q, Q "fm_text", Q "fm_text", NULL, "<think>", ""},
    {"by effort", Q "<|START_THINKING|>", Q "<|START_THINKING|>", Q "<|START_THINKING|><|END_THINKING|>", Q "fm_text",
     Q "<|START_THINKING|>fm_thought<|END_THINKING|><|START_TEXT|>fm_text", NULL, NULL,
     "<|START_THINKING|>|<|END_THINKING|>|<|START_TEXT|>|| off by_effort prompts low medium high"},
    {"channels", Q, Q, "Reasoning: none" Q, Q "<|channel|>final<|message|>fm_text",
     Q "<|channel|>final<|message|>fm_text", NULL, NULL,
     "<|channel|>analysis<|message|>|<|end|><|start|>assistant<|channel|>final<|message|>||"
     "<|channel|>final<|message|>| prompts low medium high"},
    {"a mark before texts", Q, Q "<|START_THINKING|><|END_THINKING|>", NULL, Q "<|START_RESPONSE|>fm_text<e>",
     Q "<|START_RESPONSE|>fm_text<e>", NULL, NULL,
     "<|START_THINKING|>|<|END_THINKING|><|START_RESPONSE|>||<|START_RESPONSE|>| off prompts low medium high"},
    {"the same after an opened thought", Q "<|START_THINKING|>", NULL, Q "<|START_THINKING|><|END_THINKING|>",
     Q "<|START_TEXT|>fm_text", Q "<|START_THINKING|>fm_thought<|END_THINKING|><|START_TEXT|>fm_text", NULL, NULL,
     "<|START_THINKING|>|<|END_THINKING|><|START_TEXT|>||<|START_TEXT|>| off by_effort prompts low medium high"},
    {"the same after an empty one", Q, Q, Q, Q "<think></think>\n<text>fm_text",
     Q "<think>fm_thought</think>\n<text>fm_text", NULL, NULL,
     "<think>|</think>\n<text>||\n<text>| prompts low medium high"},
    {"messages", Q, Q, NULL, Q " to=user|fm_text", Q " to=self|fm_thought<end> to=user|fm_text", NULL, NULL,
     " to=self||<end> to=user||| to=user|| prompts low medium high"},
    {"a mark after texts", Q, Q, NULL, Q "fm_text<t>\n<e>", Q "fm_text<t>\n<e>", NULL, NULL,
     "||||(1) prompts low medium high"},
    {"a mark that ends no turn", Q, Q, NULL, Q "fm_text<t>\n", Q "fm_text<t>\n", NULL, NULL, ""},
    {"a mark alone", Q, Q, NULL, Q "all\nfm_text", Q "all\nfm_text", NULL, NULL, "|||all\n| prompts low medium high"},
    {"an endless mark", Q, Q, NULL, Q ENDLESS "fm_text", Q "fm_text", NULL, NULL, ""},
    {"a mark in another place", Q, Q, NULL, "hi all\nfm_text", "hi all\nfm_text", NULL, NULL, ""},
    {"other tags around it", Q, Q, Q, Q "fm_text", Q "<a>fm_thought</b>fm_text", NULL, NULL, ""},
    {"no tags around it", Q, Q, Q, Q "fm_text", Q "fm_thought fm_text", NULL, NULL, ""},
    {"an empty tag", Q, Q, Q, Q "fm_text", Q "<>fm_thought</>fm_text", NULL, NULL, ""},
    {"after the text", Q, Q, Q, Q "fm_text", Q "fm_text<think>fm_thought</think>", NULL, NULL, ""},
    {"nothing", Q, Q, Q, Q "fm_text", Q "fm_text", NULL, NULL, ""},
    {"no prompt", "hi", "hi", "hi", "hi fm_text", "hi <think>fm_thought</think>fm_text", NULL, NULL,
     "<think>|</think>||| low medium high"},
    {"refuses all", NULL, NULL, NULL, NULL, NULL, "low", NULL, ""},
    {"an endless gap", Q, Q, Q, Q "fm_text", Q "<x>fm_thought</x>" ENDLESS "fm_text", NULL, NULL, ""},
    {"an endless tag", Q, Q, Q, Q "fm_text",
     Q "<aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa>"
       "fm_thought</aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa>"
       "fm_text",
     NULL, NULL, ""},
};

static void note_form(struct transcript *log, const struct fm_thought_form *form) {
    static const char *const names[] = {" low", " medium", " high"};
    if (!form->thinks && !form->lead[0] && !form->ends_texts) {
        return;
    }
    note(log, "%s|%s|%s|%s|%s%s%s%s", form->begin, form->end, form->gap, form->lead, form->ends_texts ? "(1)" : "",
         form->turns_off ? " off" : "",
         form->off_by_effort ? " by_effort" : "", form->prompts ? " prompts" : "");
    for (size_t i = 0; i < FM_THOUGHT_EFFORTS; i++) {
        note(log, "%s", form->efforts[i] ? names[i] : "");
    }
}

static void forms(void **unused) {
    (void)unused;
    for (size_t i = 0; i < COUNT(styles); i++) {
        const struct fm_tool_template from = {
            .render = render_style, .control = control_of_style, .is_token = is_token_of_style, .argument = &styles[i]};
        struct fm_thought_form form;
        struct fm_error error;
        static struct transcript log;
        log = (struct transcript){.len = 0};
        assert_int_equal(fm_thought_form_read(&from, &form, &error), FM_OK);
        note_form(&log, &form);
        expect_text(styles[i].name, "form", i, styles[i].form, log.text);
    }
}

static enum fm_code render_nothing(const void *argument, const struct fm_chat *chat, char **text, size_t *len,
                                   struct fm_error *error) {
    (void)argument;
    (void)chat;
    *text = NULL;
    *len = 0;
    return fm_fail_no_memory(error);
}

static void no_memory(void **unused) {
    (void)unused;
    const struct fm_tool_template from = {.render = render_nothing, .is_token = is_token_of_style};
    struct fm_thought_form form;
    struct fm_error error;
    assert_int_equal(fm_thought_form_read(&from, &form, &error), FM_INTERNAL);
    assert_false(form.thinks);
}

static void asking(void **unused) {
    (void)unused;
    struct fm_thought_form form = TAGS;
    static const struct {
        enum fm_effort effort;
        bool efforts[FM_THOUGHT_EFFORTS];
        bool turns_off;
        bool off_by_effort;
        enum fm_chat_thinking thinking;
        const char *said;
    } asked[] = {
        {FM_EFFORT_DEFAULT, {true, true, true}, true, false, FM_CHAT_THINKING_DEFAULT, "-"},
        {FM_EFFORT_NONE, {true, true, true}, true, false, FM_CHAT_THINKING_OFF, "-"},
        {FM_EFFORT_NONE, {true, true, true}, true, true, FM_CHAT_THINKING_OFF, "none"},
        {FM_EFFORT_NONE, {true, true, true}, false, false, FM_CHAT_THINKING_DEFAULT, "-"},
        {FM_EFFORT_MINIMAL, {true, true, true}, true, false, FM_CHAT_THINKING_ON, "low"},
        {FM_EFFORT_LOW, {true, true, true}, true, false, FM_CHAT_THINKING_ON, "low"},
        {FM_EFFORT_MEDIUM, {true, true, true}, true, false, FM_CHAT_THINKING_ON, "medium"},
        {FM_EFFORT_MEDIUM, {true, false, true}, true, false, FM_CHAT_THINKING_ON, "high"},
        {FM_EFFORT_HIGH, {true, true, true}, true, false, FM_CHAT_THINKING_ON, "high"},
        {FM_EFFORT_XHIGH, {true, true, true}, true, false, FM_CHAT_THINKING_ON, "high"},
        {FM_EFFORT_MAX, {true, false, false}, true, false, FM_CHAT_THINKING_ON, "low"},
        {FM_EFFORT_MAX, {false, false, false}, true, false, FM_CHAT_THINKING_ON, "-"},
    };
    for (size_t i = 0; i < COUNT(asked); i++) {
        struct fm_kit_job job = {.effort = asked[i].effort};
        struct fm_chat chat = {.count = 0};
        memcpy(form.efforts, asked[i].efforts, sizeof form.efforts);
        form.turns_off = asked[i].turns_off;
        form.off_by_effort = asked[i].off_by_effort;
        fm_thought_ask(&form, &job, &chat);
        assert_int_equal(chat.thinking, asked[i].thinking);
        expect_text("effort", "row", i, asked[i].said, chat.effort ? chat.effort : "-");
    }
    static const struct fm_thought_form none = {.thinks = false};
    struct fm_kit_job job = {.effort = FM_EFFORT_HIGH};
    struct fm_chat chat = {.count = 0};
    fm_thought_ask(&none, &job, &chat);
    assert_true(chat.thinking == FM_CHAT_THINKING_DEFAULT && !chat.effort);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers), cmocka_unit_test(much_white_space),
        cmocka_unit_test(control_tokens),
        cmocka_unit_test(starts), cmocka_unit_test(prompts),
        cmocka_unit_test(forms),   cmocka_unit_test(no_memory),        cmocka_unit_test(asking),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
