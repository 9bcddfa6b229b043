/* Sessions and their conversations. A turn that fails leaves its session as it was before that turn. */
#include "sessions/session.h"
#include "base/clock.h"
#include "base/utf8.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUF_MAX      (128u << 20) /* bytes; an escaped line never exceeds this: each of its bytes takes up to six */
#define LOOP_PENALTY 0.5          /* lowers a token's logit each time that the answer has it, which ends any loop */

/* see SESSIONS.md, open-session */
static const char default_instructions[] =
    "You are a helpful assistant. Follow the prompt instructions precisely.";

static const char between[] = "\n\nContent:\n";

#define LIST_GUIDE "list of text items as requested in the prompt"
#define TEXT_GUIDE "text output as requested in the prompt"

/*
 * The schema of the answer. It is an object with one member, because a schema's root must be an object (as in OpenAI's
 * API). Engines that show schemas to their model show the guide in the schema. For a model that sees only its prompt,
 * the guide is in the system message (JSON text without quotes). Without a guide a small model answers with an empty
 * list.
 */
static const struct {
    const char *schema;
    const char *guide;
} formats[] = {
    [FM_OUTPUT_TEXT] = {"{\"type\":\"json_schema\",\"name\":\"text\",\"strict\":true,\"schema\":{\"type\":\"object\","
                        "\"properties\":{\"result\":{\"type\":\"string\",\"description\":\"the " TEXT_GUIDE "\"}},"
                        "\"required\":[\"result\"],\"additionalProperties\":false}}",
                        "\\n\\nAnswer with a JSON object, {\\\"result\\\":\\\"...\\\"}: \\\"result\\\" is the " TEXT_GUIDE
                        "."},
    [FM_OUTPUT_STRING_LIST] = {"{\"type\":\"json_schema\",\"name\":\"string_list\",\"strict\":true,\"schema\":{\"type\":"
                               "\"object\",\"properties\":{\"result\":{\"type\":\"array\",\"items\":{\"type\":\"string\"},"
                               "\"description\":\"the " LIST_GUIDE "\"}},\"required\":[\"result\"],"
                               "\"additionalProperties\":false}}",
                               "\\n\\nAnswer with a JSON object, {\\\"result\\\":[\\\"...\\\",\\\"...\\\"]}: \\\"result\\\" "
                               "is the " LIST_GUIDE "."},
};

/* ---- the table ---- */

void fm_session_table_init(struct fm_session_table *table, const struct fm_session_options *options) {
    *table = (struct fm_session_table){.options = options};
}

void fm_session_table_free(struct fm_session_table *table) {
    while (table->count > 0) {
        fm_session_close(table, &table->sessions[table->count - 1]);
    }
    free(table->sessions);
    *table = (struct fm_session_table){.options = table->options};
}

static bool reserve(struct fm_session_table *table) {
    if (table->count < table->cap) {
        return true;
    }
    size_t cap = table->cap ? 2 * table->cap : 8;
    struct fm_session *sessions = realloc(table->sessions, cap * sizeof *sessions);
    if (!sessions) {
        return false;
    }
    table->sessions = sessions;
    table->cap = cap;
    return true;
}

#define ITEM_END "\"},"

/* Appends `role` and `content` as an item, which ends with ITEM_END. */
static void write_item(struct fm_buf *buf, const char *role, struct fm_text content) {
    struct fm_json_writer w = fm_json_writer_on(buf);
    fm_json_object_begin(&w);
    fm_json_key_str(&w, "role", role);
    fm_json_key(&w, "content");
    fm_json_string(&w, content.data, content.len);
    fm_json_object_end(&w);
    fm_buf_append_char(buf, ',');
}

enum fm_fault_code fm_session_open(struct fm_session_table *table, struct fm_text instructions,
                                   struct fm_session **session, struct fm_fault *fault) {
    const struct fm_session_options *options = table->options;
    if (table->count == (size_t)options->max_sessions) {
        return fm_fault_fill(fault, FM_FAULT_FAILED_TO_OPEN,
                             "%lld sessions are open already: close one, or raise --max-sessions",
                             (long long)options->max_sessions);
    }
    if (!reserve(table)) {
        return fm_fault_fill(fault, FM_FAULT_FAILED_TO_OPEN, "out of memory");
    }
    struct fm_text given = instructions;
    if (!given.data) {
        given = (struct fm_text){default_instructions, sizeof default_instructions - 1};
    }
    struct fm_session *opened = &table->sessions[table->count];
    *opened = (struct fm_session){.used_ms = fm_now_ms()};
    fm_buf_init(&opened->items, BUF_MAX);
    fm_buf_init(&opened->turn, BUF_MAX);
    write_item(&opened->items, "system", given);
    if (opened->items.failed) {
        fm_buf_free(&opened->items);
        return fm_fault_fill(fault, FM_FAULT_FAILED_TO_OPEN, "out of memory");
    }
    if (opened->items.len > (size_t)options->max_bytes) {
        fm_buf_free(&opened->items);
        return fm_fault_fill(fault, FM_FAULT_FAILED_TO_OPEN,
                             "the instructions have %zu bytes, and a session's conversation may have %lld: shorten them, "
                             "or raise --max-session-bytes",
                             given.len, (long long)options->max_bytes);
    }
    opened->instructions_end = opened->items.len - strlen(ITEM_END);
    fm_id_draw(opened->id, "sess_");
    table->count++;
    *session = opened;
    return FM_FAULT_NONE;
}

struct fm_session *fm_session_find(const struct fm_session_table *table, struct fm_text id) {
    for (size_t i = 0; i < table->count; i++) {
        struct fm_session *session = &table->sessions[i];
        if (strlen(session->id) == id.len && memcmp(session->id, id.data, id.len) == 0) {
            return session;
        }
    }
    return NULL;
}

void fm_session_close(struct fm_session_table *table, struct fm_session *session) {
    fm_log(FM_LOG_INFO, "Session closed: %s", session->id);
    fm_buf_free(&session->items);
    fm_buf_free(&session->turn);
    *session = table->sessions[--table->count];
}

void fm_session_close_idle(struct fm_session_table *table) {
    int64_t now = fm_now_ms();
    for (size_t i = 0; i < table->count;) {
        struct fm_session *session = &table->sessions[i];
        int64_t idle = now - session->used_ms;
        if (idle < table->options->idle_ms) {
            i++;
            continue;
        }
        fm_log(FM_LOG_WARN, "Session %s idle timeout, closing after %lld ms without activity", session->id,
               (long long)idle);
        fm_session_close(table, session);
    }
}

/* ---- turns ---- */

/* Writes the user's message as the model sees it: the prompt, an empty line, and the content. */
static bool write_user_text(const struct fm_command *command, struct fm_buf *text) {
    fm_buf_init(text, BUF_MAX);
    fm_buf_append(text, command->prompt.data, command->prompt.len);
    fm_buf_append_str(text, between);
    fm_buf_append(text, command->content.data,
                  fm_utf8_prefix(command->content.data, command->content.len, FM_CONTENT_MAX));
    return !text->failed;
}

static enum fm_fault_code no_memory(struct fm_fault *fault) {
    return fm_fault_fill(fault, FM_FAULT_EXECUTION_FAILED, "out of memory");
}

enum fm_fault_code fm_session_begin_turn(const struct fm_session_table *table, struct fm_session *session,
                                         const struct fm_command *command, struct fm_fault *fault) {
    const struct fm_session_options *options = table->options;
    struct fm_buf text;
    if (session->turns == options->max_turns) {
        return fm_fault_fill(fault, FM_FAULT_EXECUTION_FAILED, "session full: it has had %lld turns; open a new one",
                             (long long)session->turns);
    }
    fm_buf_reset(&session->turn);
    if (write_user_text(command, &text)) {
        write_item(&session->turn, "user", (struct fm_text){text.data, text.len});
    }
    session->turn.failed = session->turn.failed || text.failed;
    fm_buf_free(&text);
    enum fm_fault_code code = FM_FAULT_NONE;
    if (session->turn.failed) {
        code = no_memory(fault);
    } else if (session->items.len + session->turn.len > (size_t)options->max_bytes) {
        code = fm_fault_fill(fault, FM_FAULT_EXECUTION_FAILED,
                             "session full: %zu bytes and a message of %zu, of %lld that it may have; open a new one",
                             session->items.len, session->turn.len, (long long)options->max_bytes);
    }
    if (code != FM_FAULT_NONE) {
        fm_buf_free(&session->turn);
    }
    return code;
}

void fm_session_drop_turn(struct fm_session *session) {
    fm_buf_free(&session->turn);
    session->used_ms = fm_now_ms();
}

enum fm_fault_code fm_session_keep_turn(const struct fm_session_table *table, struct fm_session *session,
                                        struct fm_text answer, struct fm_fault *fault) {
    const struct fm_session_options *options = table->options;
    size_t before = session->items.len;
    enum fm_fault_code code = FM_FAULT_NONE;
    fm_buf_append(&session->items, session->turn.data, session->turn.len);
    write_item(&session->items, "assistant", answer);
    if (session->items.failed) {
        code = no_memory(fault);
    } else if (session->items.len > (size_t)options->max_bytes) {
        code = fm_fault_fill(fault, FM_FAULT_EXECUTION_FAILED,
                             "session full: %zu bytes with the answer, of %lld that it may have; open a new one",
                             session->items.len, (long long)options->max_bytes);
    }
    if (code == FM_FAULT_NONE) {
        session->turns++;
    } else {
        session->items.len = before;
        session->items.failed = false;
    }
    fm_session_drop_turn(session);
    return code;
}

/* Writes the items of the session and of its turn, with `guide` at the end of the first item's text. */
static void write_conversation(const struct fm_session *session, const char *guide, struct fm_json_writer *w) {
    const struct fm_buf *items = &session->items;
    size_t at = session->instructions_end;
    struct fm_buf *out = w->buf;
    fm_buf_append(out, items->data, at);
    fm_buf_append_str(out, guide);
    fm_buf_append(out, items->data + at, items->len - at);
    fm_json_raw(w, session->turn.data, session->turn.len - 1); /* without the last comma */
}

void fm_session_write_params(const struct fm_session_table *table, const struct fm_session *session,
                             const struct fm_attempt *attempt, struct fm_json_writer *w) {
    const struct fm_session_options *options = table->options;
    fm_json_object_begin(w);
    fm_json_key(w, "input");
    fm_json_array_begin(w);
    write_conversation(session, formats[attempt->format].guide, w);
    fm_json_array_end(w);
    fm_json_key(w, "text");
    fm_json_object_begin(w);
    fm_json_key(w, "format");
    fm_json_raw(w, formats[attempt->format].schema, strlen(formats[attempt->format].schema));
    fm_json_object_end(w);
    fm_json_key_bool(w, "store", false);
    if (options->temperature != 1) { /* the default is not sent, because some servers' models refuse it */
        fm_json_key_double(w, "temperature", options->temperature);
    }
    if (attempt->again) {
        fm_json_key_double(w, "frequency_penalty", LOOP_PENALTY);
    }
    fm_json_key_int(w, "max_output_tokens", options->max_output_tokens);
    fm_json_key_str(w, "truncation", options->truncation);
    fm_json_key(w, "fm");
    fm_json_object_begin(w);
    fm_json_key_int(w, "timeout_ms", attempt->timeout_ms);
    fm_json_object_end(w);
    fm_json_object_end(w);
}
