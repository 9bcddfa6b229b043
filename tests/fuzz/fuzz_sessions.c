/*
 * Fuzzes session mode without its threads. The first bytes choose the limits and the size of pieces; the rest are lines
 * of a host. A session_id of one digit stands for the id of an open session. A message is answered at once: with the
 * prompt "r", its content is the front's reply; otherwise it is the model's text.
 */
#include "base/utf8.h"
#include "protocol/json_tree.h"
#include "protocol/line.h"
#include "sessions/reply.h"
#include "sessions/session.h"
#include "surface/surface.h"
#include "tests/fuzz/fuzz.h"

#define OUTPUT_MAX 20
#define ROOM       (64u << 20)

struct gateway {
    struct fm_session_options options;
    struct fm_session_table table;
    struct fm_buf scratch;
    struct fm_buf answer; /* the answer to the last line; empty if there was no answer */
    bool ended;
};

/* ---- what must hold of the sessions ---- */

static void check_conversation(const struct fm_session *session) {
    struct fm_buf array;
    fm_buf_init(&array, ROOM);
    fm_buf_append_char(&array, '[');
    fm_buf_append(&array, session->items.data, session->items.len - 1);
    fm_buf_append_char(&array, ']');
    HOLDS(!array.failed && session->items.data[session->items.len - 1] == ',');
    struct json_object *items = json_must_parse(array.data, array.len);
    HOLDS((int64_t)json_object_array_length(items) == 1 + 2 * session->turns);
    json_object_put(items);
    fm_buf_free(&array);
}

static void check_table(const struct gateway *gateway) {
    HOLDS(gateway->table.count <= (size_t)gateway->options.max_sessions);
    for (size_t i = 0; i < gateway->table.count; i++) {
        const struct fm_session *session = &gateway->table.sessions[i];
        struct fm_text id = {session->id, strlen(session->id)};
        HOLDS(fm_session_find(&gateway->table, id) == session); /* no id occurs twice */
        HOLDS(session->items.len > 0 && !session->items.failed && !session->turn.data);
        HOLDS(session->items.len <= (size_t)gateway->options.max_bytes);
        HOLDS(session->turns <= gateway->options.max_turns);
        check_conversation(session);
    }
}

/* ---- a turn ---- */

/* The params are for the surface, which must accept them. */
static void check_params(const struct gateway *gateway, const struct fm_session *session,
                         const struct fm_attempt *attempt) {
    struct fm_buf params;
    struct fm_request request;
    struct fm_error error;
    fm_buf_init(&params, ROOM);
    struct fm_json_writer w = fm_json_writer_on(&params);
    fm_session_write_params(&gateway->table, session, attempt, &w);
    HOLDS(!params.failed);
    struct json_object *tree = json_must_parse(params.data, params.len);
    HOLDS_OR(fm_surface_responses.parse(tree, &request, &error) == FM_OK, "%s", error.detail);
    HOLDS(!request.store && !request.stream);
    fm_request_free(&request);
    json_object_put(tree);
    fm_buf_free(&params);
}

/* Writes the front's reply for an engine that writes `text`. */
static void write_reply(struct fm_text text, struct fm_buf *reply) {
    struct fm_json_writer w = fm_json_writer_on(reply);
    fm_buf_append_str(reply,
                      "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"ok\":true,\"response\":{\"status\":\"completed\","
                      "\"output\":[{\"content\":[{\"text\":");
    fm_json_string(&w, text.data, text.len);
    fm_buf_append_str(reply, "}]}],\"usage\":{\"output_tokens\":5}}}}");
}

static void check_availability(const struct fm_rpc_message *message) {
    char reason[80];
    bool available = fm_reply_read_availability(message, reason, sizeof reason);
    HOLDS(available == (reason[0] == '\0'));
    HOLDS(is_utf8(reason, strlen(reason)) && strlen(reason) < sizeof reason);
}

/* Checks the outcome after a reply was read: a result with the requested shape, or a fault and nothing to free. */
static enum fm_fault_code end_turn(struct gateway *gateway, struct fm_session *session, enum fm_output_format format,
                                   const struct fm_rpc_message *message, struct fm_fault *fault) {
    struct fm_turn_result result;
    enum fm_fault_code code = fm_reply_read_turn(message, format, OUTPUT_MAX, &gateway->scratch, &result, fault);
    HOLDS((code == FM_FAULT_NONE) == (result.value != NULL));
    if (code != FM_FAULT_NONE) {
        HOLDS(!result.ran_on || result.output_tokens >= OUTPUT_MAX);
        return code;
    }
    HOLDS(json_object_is_type(result.value, format == FM_OUTPUT_TEXT ? json_type_string : json_type_array));
    HOLDS(!result.ran_on);
    code = fm_session_keep_turn(&gateway->table, session, result.answer, fault);
    if (code == FM_FAULT_NONE) {
        struct fm_json_writer w = fm_json_writer_on(&gateway->answer);
        fm_json_object_begin(&w);
        fm_json_key_bool(&w, "ok", true);
        fm_json_key_value(&w, "result", result.value);
        fm_json_object_end(&w);
    }
    fm_turn_result_free(&result);
    return code;
}

/* A reply that is not a response is not for session mode; then the turn has failed. */
static enum fm_fault_code take_reply(struct gateway *gateway, struct fm_session *session,
                                     const struct fm_command *command, struct fm_text reply, struct fm_fault *fault) {
    struct fm_rpc_message message;
    struct json_object *root = NULL;
    size_t offset;
    enum fm_fault_code code = fm_fault_fill(fault, FM_FAULT_EXECUTION_FAILED, "no reply");
    if (!fm_json_check(reply.data, reply.len, FM_JSON_VALUES_MAX, &offset)) {
        HOLDS(fm_json_tree(reply.data, reply.len, &gateway->scratch, &root));
        if (fm_rpc_read(root, &message) == FM_RPC_OK && message.kind == FM_RPC_RESPONSE) {
            check_availability(&message);
            code = end_turn(gateway, session, command->format, &message, fault);
        }
        json_object_put(root);
    }
    fm_session_drop_turn(session);
    return code;
}

static enum fm_fault_code serve_message(struct gateway *gateway, struct fm_session *session,
                                        const struct fm_command *command, struct fm_fault *fault) {
    HOLDS(command->prompt.len > 0 && command->content.len > 0);
    struct fm_attempt attempt = {.format = command->format, .timeout_ms = 1};
    enum fm_fault_code code = fm_session_begin_turn(&gateway->table, session, command, fault);
    if (code != FM_FAULT_NONE) {
        return code;
    }
    HOLDS(fm_utf8_characters(command->content.data, command->content.len) <= command->content.len);
    check_params(gateway, session, &attempt);
    attempt.again = true;
    check_params(gateway, session, &attempt);
    if (command->prompt.len == 1 && command->prompt.data[0] == 'r') {
        return take_reply(gateway, session, command, command->content, fault);
    }
    struct fm_buf reply;
    fm_buf_init(&reply, ROOM);
    write_reply(command->content, &reply);
    HOLDS(!reply.failed);
    code = take_reply(gateway, session, command, (struct fm_text){reply.data, reply.len}, fault);
    fm_buf_free(&reply);
    return code;
}

/* ---- a line ---- */

static struct fm_session *find_session(const struct gateway *gateway, struct fm_text id) {
    if (id.data && id.len == 1 && id.data[0] >= '0' && id.data[0] <= '9' && gateway->table.count > 0) {
        return &gateway->table.sessions[(size_t)(id.data[0] - '0') % gateway->table.count];
    }
    return fm_session_find(&gateway->table, id);
}

/* Returns FM_FAULT_NONE if the command succeeded; if nothing was written yet, the answer is then "ok". */
static enum fm_fault_code serve_command(struct gateway *gateway, struct fm_command *command, struct fm_fault *fault) {
    bool of_session = command->kind == FM_COMMAND_MESSAGE || command->kind == FM_COMMAND_CLOSE;
    struct fm_session *session = find_session(gateway, command->session_id);
    if (of_session && !session) {
        return fm_fault_fill(fault, FM_FAULT_SESSION_NOT_FOUND, "no session");
    }
    enum fm_fault_code code = fm_command_read_rest(command, fault);
    if (code != FM_FAULT_NONE) {
        return code;
    }
    switch (command->kind) {
    case FM_COMMAND_OPEN: return fm_session_open(&gateway->table, command->instructions, &session, fault);
    case FM_COMMAND_MESSAGE: return serve_message(gateway, session, command, fault);
    case FM_COMMAND_CLOSE: fm_session_close(&gateway->table, session); return FM_FAULT_NONE;
    case FM_COMMAND_CHECK: fm_session_close_idle(&gateway->table); return FM_FAULT_NONE;
    case FM_COMMAND_SHUTDOWN: gateway->ended = true; return FM_FAULT_NONE;
    }
    return FM_FAULT_NONE;
}

static void serve_line(struct gateway *gateway, const char *line, size_t len) {
    struct fm_command command;
    struct fm_fault fault = {.code = FM_FAULT_NONE};
    enum fm_fault_code code = fm_command_read(line, len, &gateway->scratch, &command, &fault);
    HOLDS(code == FM_FAULT_NONE || !command.root);
    if (code == FM_FAULT_NONE) {
        code = serve_command(gateway, &command, &fault);
        fm_command_free(&command);
    }
    struct fm_json_writer w = fm_json_writer_on(&gateway->answer);
    if (code != FM_FAULT_NONE) {
        HOLDS(fault.code == code && is_utf8(fault.detail, strlen(fault.detail)));
        HOLDS(fault.detail[0] || code == FM_FAULT_GUARDRAIL_BLOCKED || code == FM_FAULT_MODEL_UNAVAILABLE ||
              code == FM_FAULT_EXECUTION_FAILED); /* the front's text may be empty */
        fm_fault_write(&fault, &w);
    } else if (gateway->answer.len == 0) {
        fm_buf_append_str(&gateway->answer, "{\"ok\":true}");
    }
}

/* Checks that the answer is one line of JSON with the outcome. */
static void check_answer(const struct gateway *gateway) {
    HOLDS(!gateway->answer.failed && !memchr(gateway->answer.data, '\n', gateway->answer.len));
    struct json_object *answer = json_must_parse(gateway->answer.data, gateway->answer.len);
    bool ok = json_object_get_boolean(json_object_object_get(answer, "ok"));
    HOLDS(ok != json_object_is_type(json_object_object_get(answer, "error"), json_type_string));
    json_object_put(answer);
}

/* Each line that is not blank gets one answer. */
static void on_line(struct gateway *gateway, const char *line, size_t len) {
    char *exact = exact_copy(line, len);
    fm_buf_reset(&gateway->answer);
    if (fm_command_is_blank(exact, len)) {
        for (size_t i = 0; i < len; i++) {
            HOLDS(strchr(" \t\r", exact[i]) && exact[i]);
        }
    } else if (!gateway->ended) {
        serve_line(gateway, exact, len);
        check_answer(gateway);
        check_table(gateway);
    }
    free(exact);
}

/* ---- an input ---- */

/* Takes the lines that are ready, which must be the beginning of `rest`. */
static void take_lines(struct gateway *gateway, struct fm_lines *lines, struct choices *rest) {
    const char *line;
    size_t len;
    enum fm_line_event event;
    while ((event = fm_lines_next(lines, &line, &len)) != FM_LINE_NONE) {
        /* no input is long enough for FM_LINE_TOO_LONG */
        HOLDS(event == FM_LINE_READY && len <= choices_left(rest));
        HOLDS(len == 0 || (memcmp(line, rest->at, len) == 0 && !memchr(line, '\n', len)));
        rest->at += len;
        HOLDS(choices_left(rest) == 0 ? lines->ended : *rest->at == '\n');
        rest->at += choices_left(rest) > 0;
        on_line(gateway, line, len);
    }
}

static void feed(struct gateway *gateway, struct choices *from, size_t step) {
    struct fm_lines lines;
    struct choices rest = *from;
    fm_lines_init(&lines);
    while (choices_left(from) > 0) {
        size_t len = step;
        const char *piece = choose_bytes(from, &len);
        char *exact = exact_copy(piece, len);
        HOLDS(fm_lines_has_room(&lines) && fm_lines_feed(&lines, exact, len));
        free(exact);
        take_lines(gateway, &lines, &rest);
    }
    fm_lines_end(&lines);
    take_lines(gateway, &lines, &rest);
    HOLDS(choices_left(&rest) == 0); /* nothing is lost */
    fm_lines_free(&lines);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct choices from = {data, data + size};
    struct gateway gateway = {.options = {.idle_ms = 86400000, .max_output_tokens = OUTPUT_MAX}};
    unsigned limits = choose(&from);
    size_t step = 1 + choose(&from);
    gateway.options.max_sessions = 1 + limits % 4;
    gateway.options.max_turns = 1 + limits / 4 % 4;
    gateway.options.max_bytes = 256 << limits / 16 % 8;
    gateway.options.temperature = limits / 128 ? 0.7 : 2;
    gateway.options.truncation = limits / 128 ? "auto" : "disabled";
    fm_session_table_init(&gateway.table, &gateway.options);
    fm_buf_init(&gateway.scratch, ROOM);
    fm_buf_init(&gateway.answer, ROOM);
    feed(&gateway, &from, step);
    fm_session_table_free(&gateway.table);
    fm_buf_free(&gateway.scratch);
    fm_buf_free(&gateway.answer);
    return 0;
}
