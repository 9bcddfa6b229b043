/* Puts messages in any order into a form that a chat template takes, and checks the text that the template renders. */
#include "engine/chat/turns.h"
#include "base/hash.h"
#include "base/platform.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BETWEEN "\n\n" /* between two texts that are joined */

/* ---- shape ---- */

static bool is_role(const struct fm_chat_message *message, const char *role) {
    return strcmp(message->role, role) == 0;
}

/* Whether there is content: text or images. */
static bool says_something(const struct fm_chat_message *message) {
    return message->content_len > 0 || message->image_count > 0;
}

/* A hash of everything that may matter to a template, except texts and names. */
static uint64_t shape_of(const struct fm_chat *chat) {
    const char *effort = chat->effort ? chat->effort : "";
    const size_t all[] = {chat->count, chat->tool_count, chat->thinking, chat->closed, chat->effort != NULL};
    uint64_t shape = fm_hash(fm_hash(FM_HASH_START, all, sizeof all), effort, strlen(effort));
    for (size_t i = 0; i < chat->count; i++) {
        const struct fm_chat_message *message = &chat->messages[i];
        const size_t has[] = {says_something(message), message->reasoning_len > 0, message->call_count,
                              message->answered_id != NULL};
        shape = fm_hash(fm_hash(shape, message->role, strlen(message->role) + 1), has, sizeof has);
    }
    return shape;
}

static const struct fm_turns_known *remembered(const struct fm_turns *turns) {
    for (size_t i = 0; i < FM_TURNS_KNOWN; i++) {
        const struct fm_turns_known *known = &turns->memory->known[i];
        if (known->known && known->shape == turns->shape) {
            return known;
        }
    }
    return NULL;
}

static void remember(const struct fm_turns *turns, size_t step) {
    struct fm_turns_memory *memory = turns->memory;
    if (!remembered(turns)) {
        memory->known[memory->next] = (struct fm_turns_known){turns->shape, step, true};
        memory->next = (memory->next + 1) % FM_TURNS_KNOWN;
    }
}

/* ---- memory ---- */

struct fm_turns_block {
    struct fm_turns_block *next;
    max_align_t bytes[];
};

/* Zeroed memory that is freed with `turns`. NULL: out of memory. */
static void *keep_block(struct fm_turns *turns, size_t size) {
    struct fm_turns_block *block = calloc(1, sizeof *block + size);
    if (!block) {
        return NULL;
    }
    block->next = turns->blocks;
    turns->blocks = block;
    return block->bytes;
}

enum fm_code fm_turns_init(struct fm_turns *turns, const struct fm_chat *chat, struct fm_turns_memory *memory,
                           struct fm_error *error) {
    *turns = (struct fm_turns){.memory = memory,
                               .shape = shape_of(chat),
                               .chat = *chat,
                               .messages = calloc(2 * chat->count + 2, sizeof *turns->messages)};
    if (!turns->messages) {
        return fm_fail_no_memory(error);
    }
    memcpy(turns->messages, chat->messages, chat->count * sizeof *turns->messages);
    turns->chat.messages = turns->messages;
    return FM_OK;
}

void fm_turns_free(struct fm_turns *turns) {
    while (turns->blocks) {
        struct fm_turns_block *next = turns->blocks->next;
        free(turns->blocks);
        turns->blocks = next;
    }
    free(turns->messages);
    *turns = (struct fm_turns){.step = 0};
}

/* ---- joining ---- */

/* Appends `more`, with an empty line before it if both texts are not empty. */
static void append_text(char *text, size_t *len, const char *more, size_t more_len) {
    if (*len > 0 && more_len > 0) {
        memcpy(text + *len, BETWEEN, strlen(BETWEEN));
        *len += strlen(BETWEEN);
    }
    memcpy(text + *len, more_len > 0 ? more : "", more_len);
    *len += more_len;
}

/* Adds `message` to `to`, whose lists have room for it. */
static void add_message(struct fm_chat_message *to, const struct fm_chat_message *message) {
    struct fm_chat_image *images = (struct fm_chat_image *)to->images;
    struct fm_chat_call *calls = (struct fm_chat_call *)to->calls;
    append_text((char *)to->content, &to->content_len, message->content, message->content_len);
    append_text((char *)to->reasoning, &to->reasoning_len, message->reasoning, message->reasoning_len);
    if (message->controls_len > 0) {
        to->controls_at = message->controls_at + to->content_len - message->content_len;
        to->controls_len = message->controls_len;
    }
    for (size_t i = 0; i < message->image_count; i++) {
        images[to->image_count] = message->images[i];
        images[to->image_count++].at += to->content_len - message->content_len;
    }
    for (size_t i = 0; i < message->call_count; i++) {
        calls[to->call_count++] = message->calls[i];
    }
}

/* Joins the messages into one message with the role of the last one. False when out of memory. */
static bool join_messages(struct fm_turns *turns, const struct fm_chat_message *messages, size_t count,
                          struct fm_chat_message *to) {
    size_t between = count * strlen(BETWEEN);
    struct fm_chat_message room = {.content_len = between, .reasoning_len = between};
    for (size_t i = 0; i < count; i++) {
        room.content_len += messages[i].content_len;
        room.reasoning_len += messages[i].reasoning_len;
        room.image_count += messages[i].image_count;
        room.call_count += messages[i].call_count;
    }
    struct fm_chat_message joined = {.role = messages[count - 1].role,
                                     .content = keep_block(turns, room.content_len),
                                     .reasoning = keep_block(turns, room.reasoning_len),
                                     .images = keep_block(turns, room.image_count * sizeof *joined.images),
                                     .calls = keep_block(turns, room.call_count * sizeof *joined.calls)};
    turns->changed = true;
    if (!joined.content || !joined.reasoning || !joined.images || !joined.calls) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        add_message(&joined, &messages[i]);
    }
    joined.reasoning = joined.reasoning_len > 0 ? joined.reasoning : NULL;
    *to = joined;
    return true;
}

/* ---- steps: each changes the result of the one before ---- */

/* How many of `count` messages, from the first on, are to be joined; 1: the first message stays separate. */
typedef size_t run_fn(const struct fm_chat_message *messages, size_t count);

static size_t run_of_system(const struct fm_chat_message *messages, size_t count) {
    size_t run = 1;
    while (run < count && is_role(&messages[0], "system") && is_role(&messages[run], "system")) {
        run++;
    }
    return run;
}

/*
 * How many messages, from the first on, have one role and can be joined. Outcomes stay separate. No text is joined
 * after calls, because the calls come after the text of their message.
 */
static size_t run_of_role(const struct fm_chat_message *messages, size_t count) {
    size_t run = 1;
    bool called = messages[0].call_count > 0;
    while (run < count && !is_role(&messages[0], "tool") && is_role(&messages[run], messages[0].role) &&
           !(called && (says_something(&messages[run]) || messages[run].reasoning_len > 0))) {
        called = called || messages[run].call_count > 0;
        run++;
    }
    return run;
}

static size_t system_and_user(const struct fm_chat_message *messages, size_t count) {
    return count > 1 && is_role(&messages[0], "system") && is_role(&messages[1], "user") ? 2 : 1;
}

static bool join_runs(struct fm_turns *turns, run_fn *run_of) {
    size_t kept = 0;
    bool ok = true;
    for (size_t at = 0, run; at < turns->chat.count && ok; at += run) {
        run = run_of(turns->messages + at, turns->chat.count - at);
        struct fm_chat_message *to = &turns->messages[kept++];
        if (run > 1) {
            ok = join_messages(turns, turns->messages + at, run, to);
        } else {
            *to = turns->messages[at];
        }
    }
    turns->chat.count = kept;
    return ok;
}

static bool join_system(struct fm_turns *turns) {
    struct fm_chat_message *others = calloc(turns->chat.count + 1, sizeof *others);
    size_t system_count = 0;
    size_t other_count = 0;
    if (!others) {
        return false;
    }
    for (size_t i = 0; i < turns->chat.count; i++) {
        const struct fm_chat_message *message = &turns->messages[i];
        if (is_role(message, "system")) {
            turns->changed = turns->changed || other_count > 0;
            turns->messages[system_count++] = *message;
        } else {
            others[other_count++] = *message;
        }
    }
    memcpy(turns->messages + system_count, others, other_count * sizeof *others);
    free(others);
    return join_runs(turns, run_of_system);
}

static bool join_neighbours(struct fm_turns *turns) {
    return join_runs(turns, run_of_role);
}

static void make_room(struct fm_turns *turns, size_t at) {
    memmove(turns->messages + at + 1, turns->messages + at, (turns->chat.count - at) * sizeof *turns->messages);
    turns->changed = true;
    turns->chat.count++;
}

/* Splits a text from the calls of its message. The next step joins them again. */
static bool part_calls(struct fm_turns *turns) {
    for (size_t at = 0; at < turns->chat.count; at++) {
        struct fm_chat_message *message = &turns->messages[at];
        if (message->call_count > 0 && says_something(message)) {
            make_room(turns, at);
            message[0].calls = NULL;
            message[0].call_count = message[0].reasoning_len = 0;
            message[0].reasoning = NULL;
            message[1].content = "";
            message[1].images = NULL;
            message[1].content_len = message[1].image_count = 0;
        }
    }
    return true;
}

static void insert_user(struct fm_turns *turns, size_t at) {
    make_room(turns, at);
    turns->messages[at] = (struct fm_chat_message){.role = "user", .content = ""};
}

static bool begin_with_user(struct fm_turns *turns) {
    size_t at = turns->chat.count > 0 && is_role(&turns->messages[0], "system") ? 1 : 0;
    if (at == turns->chat.count || !is_role(&turns->messages[at], "user")) {
        insert_user(turns, at);
    }
    return true;
}

static bool end_with_user(struct fm_turns *turns) {
    if (is_role(&turns->messages[turns->chat.count - 1], "assistant")) {
        insert_user(turns, turns->chat.count);
    }
    return true;
}

static bool join_system_to_user(struct fm_turns *turns) {
    return join_runs(turns, system_and_user);
}

static bool (*const steps[])(struct fm_turns *) = {
    NULL, join_system, part_calls, join_neighbours, begin_with_user, end_with_user, join_system_to_user};

#define STEPS (sizeof steps / sizeof steps[0])

/* ---- marks: texts that must be in the prompt ---- */

#define MARK_DIGITS 20 /* not guessable; digits, since some templates change the case of letters */
#define MARK_MAX    64

struct mark {
    char text[MARK_MAX]; /* for a call's arguments: with JSON around the mark */
    size_t owner;        /* index of the message; SIZE_MAX for a tool */
    bool seen;
};

/* The conversation with marks in it. */
struct probe {
    struct fm_chat chat;
    struct fm_chat_message *messages;
    struct fm_chat_call *calls;
    struct fm_chat_tool *tools;
    struct mark *marks;
    size_t count;
    /* the beginning of each mark, up to a "_"; after it come the mark's index and another "_" */
    char begin[MARK_DIGITS + 2];
};

static const char *add_mark(struct probe *probe, size_t owner, const char *before, const char *after) {
    struct mark *mark = &probe->marks[probe->count];
    snprintf(mark->text, sizeof mark->text, "%s%s%zu_%s", before, probe->begin, probe->count, after);
    mark->owner = owner;
    probe->count++;
    return mark->text;
}

static void mark_tools(struct probe *probe, const struct fm_chat *chat) {
    static const char any[] = "{\"type\":\"object\",\"properties\":{}}";
    for (size_t i = 0; i < chat->tool_count; i++) {
        probe->tools[i] = (struct fm_chat_tool){.name = add_mark(probe, SIZE_MAX, "", ""),
                                                .description = chat->tools[i].description ? "d" : NULL,
                                                .parameters = any,
                                                .parameters_len = strlen(any)};
    }
}

/* The mark that stands for `name` in the probe. */
static const char *marked_name(const struct probe *probe, const struct fm_chat *chat, const char *name) {
    for (size_t i = 0; name && i < chat->tool_count; i++) {
        if (strcmp(chat->tools[i].name, name) == 0) {
            return probe->tools[i].name;
        }
    }
    return name;
}

static void mark_messages(struct probe *probe, const struct fm_chat *chat) {
    struct fm_chat_call *call = probe->calls;
    for (size_t i = 0; i < chat->count; i++) {
        struct fm_chat_message *message = &probe->messages[i];
        *message = chat->messages[i];
        message->answered_name = marked_name(probe, chat, message->answered_name);
        message->calls = call;
        if (says_something(message)) {
            message->content = add_mark(probe, i, "", "");
            message->content_len = strlen(message->content);
        }
        for (size_t k = 0; k < message->call_count; k++) {
            *call = chat->messages[i].calls[k];
            call->name = marked_name(probe, chat, call->name);
            call->arguments = add_mark(probe, i, "{\"a\":\"", "\"}");
            call->arguments_len = strlen(call->arguments);
            call++;
        }
    }
}

static void probe_free(struct probe *probe) {
    free(probe->messages);
    free(probe->calls);
    free(probe->tools);
    free(probe->marks);
}

static bool probe_init(struct probe *probe, const struct fm_chat *chat) {
    size_t calls = 0;
    unsigned char random[MARK_DIGITS];
    for (size_t i = 0; i < chat->count; i++) {
        calls += chat->messages[i].call_count;
    }
    *probe = (struct probe){.chat = *chat,
                            .messages = calloc(chat->count + 1, sizeof *probe->messages),
                            .calls = calloc(calls + 1, sizeof *probe->calls),
                            .tools = calloc(chat->tool_count + 1, sizeof *probe->tools),
                            .marks = calloc(chat->count + calls + chat->tool_count + 1, sizeof *probe->marks)};
    if (!probe->messages || !probe->calls || !probe->tools || !probe->marks) {
        probe_free(probe);
        return false;
    }
    fm_random(random, sizeof random);
    for (size_t i = 0; i < MARK_DIGITS; i++) {
        probe->begin[i] = (char)('0' + random[i] % 10);
    }
    probe->begin[MARK_DIGITS] = '_';
    mark_tools(probe, chat);
    mark_messages(probe, chat);
    probe->chat.messages = probe->messages;
    probe->chat.tools = probe->tools;
    return true;
}

/* Returns the next mark from `*at` on, and moves `*at` past it. NULL: no mark is left. */
static struct mark *next_mark(const struct probe *probe, const char **at, const char *end) {
    while ((*at = memmem(*at, (size_t)(end - *at), probe->begin, MARK_DIGITS + 1))) {
        char *after;
        *at += MARK_DIGITS + 1;
        unsigned long index = strtoul(*at, &after, 10); /* a NUL follows the text */
        if (after > *at && *after == '_' && index < probe->count) {
            *at = after + 1;
            return &probe->marks[index];
        }
    }
    return NULL;
}

/* Whether each mark is in `text` (a NUL follows), and those of messages are in order. A template may repeat a mark. */
static bool is_whole(const struct probe *probe, const char *text, size_t len) {
    bool system_first = is_role(&probe->messages[0], "system");
    const char *at = text;
    size_t last = 0;
    struct mark *mark;
    while ((mark = next_mark(probe, &at, text + len))) {
        bool moves = mark->seen || mark->owner == SIZE_MAX || (mark->owner == 0 && system_first);
        if (!moves && mark->owner < last) {
            return false;
        }
        mark->seen = true;
        last = moves ? last : mark->owner;
    }
    for (size_t i = 0; i < probe->count; i++) {
        if (!probe->marks[i].seen) {
            return false;
        }
    }
    return true;
}

/* FM_INVALID_REQUEST: the template refuses the conversation, or does not render it whole. */
static enum fm_code look(const struct fm_chat *chat, const struct fm_tool_template *from, struct fm_error *error) {
    struct probe probe;
    char *text;
    size_t len;
    if (!probe_init(&probe, chat)) {
        return fm_fail_no_memory(error);
    }
    enum fm_code code = from->render(from->argument, &probe.chat, &text, &len, error);
    if (code == FM_OK) {
        if (!is_whole(&probe, text, len)) {
            code = fm_fail(error, FM_INVALID_REQUEST, "%s",
                           "the model's chat template (--chat-template gives another) leaves out some of these "
                           "messages, or changes their order");
        }
        free(text);
    }
    probe_free(&probe);
    return code;
}

/* ---- all ---- */

/* FM_INTERNAL: out of memory. */
static enum fm_code go_to(struct fm_turns *turns, size_t step, struct fm_error *error) {
    turns->changed = turns->step == 0;
    while (turns->step <= step) {
        bool (*change)(struct fm_turns *) = steps[turns->step++];
        if (change && !change(turns)) {
            return fm_fail_no_memory(error);
        }
    }
    return FM_OK;
}

enum fm_code fm_turns_next(struct fm_turns *turns, const struct fm_tool_template *from, struct fm_error *error) {
    const struct fm_turns_known *known = turns->step == 0 ? remembered(turns) : NULL;
    enum fm_code code = FM_INVALID_REQUEST;
    if (known) {
        return go_to(turns, known->step, error);
    }
    while (turns->step < STEPS && code == FM_INVALID_REQUEST) {
        size_t step = turns->step;
        struct fm_error later;
        if (go_to(turns, step, error) != FM_OK) {
            return FM_INTERNAL;
        }
        code = turns->changed ? look(&turns->chat, from, step == 0 ? error : &later) : code;
        if (code == FM_OK) {
            remember(turns, step);
        }
    }
    return code == FM_INTERNAL ? fm_fail_no_memory(error) : code;
}
