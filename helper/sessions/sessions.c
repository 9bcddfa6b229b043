/*
 * Session mode's only thread. It serves one line at a time: the next line is served when the last one has its answer.
 * While a call to the front is pending, lines are still read, so that the end of the input is noticed.
 */
#include "sessions/sessions.h"
#include "base/clock.h"
#include "base/platform.h"
#include "base/utf8.h"
#include "protocol/line.h"
#include "sessions/command.h"
#include "sessions/link.h"
#include "sessions/reply.h"
#include "sessions/session.h"

#include <errno.h>
#include <json-c/json.h>
#include <stdatomic.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#define AVAILABILITY_MS 1900        /* less than 2 s, the time for the answer */
#define CHECK_AGAIN_MS  30          /* how long to wait before asking the front again while an engine is being asked */
#define FRONT_MS        5000        /* added to a message's limit: the front's watchdog has reported by then */
#define OUTPUT_MAX      (64u << 20) /* most bytes of an answer, which is one line */
#define ROOM            (64u << 10) /* bytes that wait for the host: above this no line is served */
#define FLUSH_MS        300         /* time for the host to take the last answers when we were asked to end */
#define FLUSH_LOOK_MS   20          /* at other ends: how often to check whether the host has taken the answers */
#define SHOWN           700         /* bytes of a user's text in a log line */

enum pending { NOTHING, A_TURN, AVAILABILITY, ENGINE_CHECK };

struct gateway {
    const struct fm_options *options;
    const struct fm_wire *wire;
    struct fm_link link;
    struct fm_outbox outbox;
    struct fm_lines lines;
    struct fm_session_table table;
    struct fm_buf scratch;
    struct fm_buf line; /* the answer that is being written */
    int room_read;      /* becomes readable when the host has taken the bytes that waited */
    int room_write;
    bool reading;            /* the input has not ended */
    bool drained;            /* all lines that were read are answered */
    bool hung_up;            /* the other side has closed the input; earlier bytes may still wait to be read */
    bool end_seen;           /* wire->end_fd is readable */
    bool told_to_end;        /* by a signal, shutdown or parent's death: answers that the host does not take are lost */
    bool ended;              /* no more lines are served */
    atomic_bool failed;      /* an answer was lost, which the exit status reports to the host */
    atomic_bool host_gone;   /* an answer was lost because the host takes nothing */
    int64_t last_message_ms; /* messages are generated until this time; INT64_MAX: no end is set */
    int64_t last_answer_ms;  /* answers of all kinds are made until this time; INT64_MAX: no end is set */
    int64_t check_ms;        /* when to look for idle sessions next */

    enum pending pending;
    int64_t call;               /* the id of the pending call */
    int64_t deadline_ms;        /* when to stop waiting for the front */
    int64_t ask_again_ms;       /* ENGINE_CHECK, an engine is being asked: when to ask the front again */
    char reason[640];           /* ENGINE_CHECK: why there is no model, as far as is known */
    int64_t started_ms;         /* when serving the command began */
    struct fm_session *session; /* the session whose turn is under way */
    struct fm_attempt attempt;
    size_t prompt_characters;
    size_t content_characters;
};

/* Ends session mode because memory or the front is gone, so that an answer is lost that must not be lost. */
static void fail_gateway(struct gateway *gateway, const char *why) {
    fm_log(FM_LOG_ERROR, "%s", why);
    atomic_store(&gateway->failed, true);
    gateway->ended = true;
}

/* ---- answers ---- */

static void send_line(struct gateway *gateway) {
    fm_buf_append_char(&gateway->line, '\n');
    if (gateway->line.failed) {
        fail_gateway(gateway, "out of memory");
        return;
    }
    fm_outbox_send(&gateway->outbox, gateway->line.data, gateway->line.len);
    if (gateway->line.cap > ROOM) {
        fm_buf_free(&gateway->line);
    }
}

static struct fm_json_writer line_begin(struct gateway *gateway) {
    fm_buf_reset(&gateway->line);
    return fm_json_writer_on(&gateway->line);
}

/* Begins the answer {"ok":true,...}; the caller writes the other members. */
static struct fm_json_writer answer_begin(struct gateway *gateway) {
    struct fm_json_writer w = line_begin(gateway);
    fm_json_object_begin(&w);
    fm_json_key_bool(&w, "ok", true);
    return w;
}

static void answer_end(struct gateway *gateway, struct fm_json_writer *w) {
    fm_json_object_end(w);
    send_line(gateway);
}

static void answer_ok(struct gateway *gateway) {
    struct fm_json_writer w = answer_begin(gateway);
    answer_end(gateway, &w);
}

/* Answers with a fault. `name` is the command's name; NULL when the line has none. */
static void answer_fault(struct gateway *gateway, const char *name, const struct fm_fault *fault) {
    struct fm_json_writer w = line_begin(gateway);
    fm_fault_write(fault, &w);
    send_line(gateway);
    bool hides = fault->quotes && !gateway->options->sessions.log_user_text;
    fm_log(FM_LOG_ERROR, "%s: %s after %lld ms: %s", name ? name : "a line", fm_fault_name(fault->code),
           (long long)(fm_now_ms() - gateway->started_ms),
           hides ? "the answer has the details, which may have user text; --log-user-text logs them" : fault->detail);
}

static void log_text(const struct gateway *gateway, const char *what, struct fm_text text) {
    struct fm_buf shown;
    if (!gateway->options->sessions.log_user_text) {
        return;
    }
    fm_buf_init(&shown, OUTPUT_MAX);
    struct fm_json_writer w = fm_json_writer_on(&shown);
    fm_json_string(&w, text.data, text.len < SHOWN ? text.len : SHOWN);
    if (!shown.failed) {
        size_t len = fm_utf8_whole_prefix(shown.data, shown.len < SHOWN ? shown.len : SHOWN);
        fm_log(FM_LOG_INFO, "%s, %zu bytes: %.*s", what, text.len, (int)len, shown.data);
    }
    fm_buf_free(&shown);
}

/* ---- calls to the front ---- */

static void pend(struct gateway *gateway, enum pending pending) {
    gateway->pending = pending;
    if (!fm_link_call_send(&gateway->link, &gateway->call)) {
        fail_gateway(gateway, "the front can't be asked: it is gone, or out of memory");
    }
}

static void ask_for_availability(struct gateway *gateway) {
    struct fm_json_writer w = fm_link_call_begin(&gateway->link, "capabilities.get");
    fm_json_object_begin(&w);
    fm_json_object_end(&w);
    pend(gateway, AVAILABILITY);
}

static void tell_availability(struct gateway *gateway, bool available) {
    struct fm_json_writer w = answer_begin(gateway);
    gateway->pending = NOTHING;
    fm_json_key_bool(&w, "available", available);
    fm_json_key_str(&w, "reason", available ? NULL : gateway->reason);
    answer_end(gateway, &w);
}

/* Logs the end of a turn. `outcome`: "processed" or "failed". */
static void log_turn(const struct gateway *gateway, const char *outcome, const struct fm_turn_result *result) {
    fm_log(FM_LOG_INFO,
           "Message %s: session=%s, format=%s, content_length=%zu, time=%.2fs, prompt_length=%zu, input_tokens=%lld, "
           "cached_tokens=%lld, output_tokens=%lld",
           outcome, gateway->session->id, fm_output_format_name(gateway->attempt.format), gateway->content_characters,
           (double)(fm_now_ms() - gateway->started_ms) / 1000, gateway->prompt_characters,
           (long long)result->input_tokens, (long long)result->cached_tokens, (long long)result->output_tokens);
    log_text(gateway, "answer", result->answer);
}

/* Ends the turn under way without an answer. */
static void fail_turn(struct gateway *gateway, const struct fm_turn_result *result, const struct fm_fault *fault) {
    gateway->pending = NOTHING;
    fm_session_drop_turn(gateway->session);
    log_turn(gateway, "failed", result);
    answer_fault(gateway, fm_command_name(FM_COMMAND_MESSAGE), fault);
}

static void end_turn(struct gateway *gateway, const struct fm_turn_result *result) {
    log_turn(gateway, "processed", result);
    struct fm_json_writer w = answer_begin(gateway);
    gateway->pending = NOTHING;
    fm_json_key_value(&w, "result", result->value);
    answer_end(gateway, &w);
}

static void ask_for_turn(struct gateway *gateway, bool again) {
    int64_t used = again ? fm_now_ms() - gateway->started_ms : 0;
    int64_t left = gateway->options->sessions.timeout_ms - used;
    gateway->attempt.again = again;
    gateway->attempt.timeout_ms = left > 0 ? left : 1;
    gateway->deadline_ms = fm_now_ms() + gateway->attempt.timeout_ms + FRONT_MS;
    struct fm_json_writer w = fm_link_call_begin(&gateway->link, "responses.create");
    fm_session_write_params(&gateway->table, gateway->session, &gateway->attempt, &w);
    pend(gateway, A_TURN);
}

/*
 * Generates an answer once more. A small model may repeat itself without end, so the second try has a penalty on
 * repetition.
 */
static bool try_again(struct gateway *gateway, const struct fm_turn_result *result) {
    if (!result->ran_on || gateway->attempt.again) {
        return false;
    }
    ask_for_turn(gateway, true);
    fm_log(FM_LOG_WARN, "message: the answer ran on to %lld tokens, so it is generated again",
           (long long)result->output_tokens);
    return true;
}

static void on_turn(struct gateway *gateway, const struct fm_rpc_message *message) {
    struct fm_turn_result result;
    struct fm_fault fault;
    int64_t max_output = gateway->options->sessions.max_output_tokens;
    enum fm_fault_code code =
        fm_reply_read_turn(message, gateway->attempt.format, max_output, &gateway->scratch, &result, &fault);
    if (code != FM_FAULT_NONE && try_again(gateway, &result)) {
        return;
    }
    if (code == FM_FAULT_NONE) {
        code = fm_session_keep_turn(&gateway->table, gateway->session, result.answer, &fault);
    }
    if (code == FM_FAULT_NONE) {
        end_turn(gateway, &result);
    } else {
        fail_turn(gateway, &result, &fault);
    }
    fm_turn_result_free(&result);
}

/* Asks the front again while an engine is being asked. When the time is over, the host gets the last reason. */
static void on_availability(struct gateway *gateway, const struct fm_rpc_message *message) {
    static const char checking[] = "CHECKING:";
    bool available = fm_reply_read_availability(message, gateway->reason, sizeof gateway->reason);
    int64_t again_ms = fm_now_ms() + CHECK_AGAIN_MS;
    if (!available && strncmp(gateway->reason, checking, sizeof checking - 1) == 0 && again_ms < gateway->deadline_ms) {
        gateway->pending = ENGINE_CHECK;
        gateway->ask_again_ms = again_ms;
    } else {
        tell_availability(gateway, available);
    }
}

/* Whether `message` is the reply to the pending call. Replies to earlier calls, or to none, are dropped. */
static bool is_ours(const struct gateway *gateway, const struct fm_rpc_message *message) {
    struct fm_rpc_id call = fm_rpc_id_int(gateway->call);
    bool unread = message->id.len == 0 && message->error; /* the pending call could not be read */
    return message->kind == FM_RPC_RESPONSE && (unread || fm_rpc_id_equal(&message->id, &call));
}

static void on_message(void *context, const struct fm_rpc_message *message, struct json_object *root) {
    struct gateway *gateway = context;
    (void)root;
    if (!is_ours(gateway, message)) {
        return;
    }
    if (gateway->pending == A_TURN) {
        on_turn(gateway, message);
    } else if (gateway->pending == AVAILABILITY) {
        on_availability(gateway, message);
    }
}

/* Ends on an invalid frame. The front writes valid frames, so this happens only when memory runs out. */
static void on_fault(void *context, const struct fm_rpc_id *id, enum fm_rpc_error code, const char *detail) {
    struct gateway *gateway = context;
    (void)id;
    (void)code;
    fail_gateway(gateway, detail);
}

/* ---- commands ---- */

static void serve_open(struct gateway *gateway, const struct fm_command *command, struct fm_fault *fault) {
    struct fm_session *session;
    if (fm_session_open(&gateway->table, command->instructions, &session, fault) != FM_FAULT_NONE) {
        answer_fault(gateway, fm_command_name(command->kind), fault);
        return;
    }
    struct fm_json_writer w = answer_begin(gateway);
    fm_json_key_str(&w, "session_id", session->id);
    answer_end(gateway, &w);
    fm_log(FM_LOG_INFO, "Session opened: %s (instructions_length=%zu, open=%zu)", session->id,
           fm_utf8_characters(command->instructions.data, command->instructions.len), gateway->table.count);
    log_text(gateway, "instructions", command->instructions);
}

static void serve_message(struct gateway *gateway, const struct fm_command *command, struct fm_fault *fault) {
    struct fm_session *session = gateway->session;
    enum fm_fault_code code = gateway->started_ms >= gateway->last_message_ms
                                  ? fm_fault_fill(fault, FM_FAULT_EXECUTION_FAILED, "cancelled: the input has ended")
                                  : fm_session_begin_turn(&gateway->table, session, command, fault);
    if (code != FM_FAULT_NONE) {
        answer_fault(gateway, fm_command_name(command->kind), fault);
        return;
    }
    gateway->attempt.format = command->format;
    gateway->prompt_characters = fm_utf8_characters(command->prompt.data, command->prompt.len);
    gateway->content_characters = fm_utf8_characters(command->content.data, command->content.len);
    log_text(gateway, "prompt", command->prompt);
    log_text(gateway, "content", command->content);
    ask_for_turn(gateway, false);
}

static void serve_close(struct gateway *gateway) {
    fm_session_close(&gateway->table, gateway->session);
    answer_ok(gateway);
}

static void serve_check(struct gateway *gateway) {
    gateway->deadline_ms = gateway->started_ms + AVAILABILITY_MS;
    snprintf(gateway->reason, sizeof gateway->reason, "HELPER_UNHEALTHY: no answer within 2 s");
    ask_for_availability(gateway);
}

static void serve_command(struct gateway *gateway, struct fm_command *command) {
    struct fm_fault fault;
    gateway->session = fm_session_find(&gateway->table, command->session_id);
    bool of_session = command->kind == FM_COMMAND_MESSAGE || command->kind == FM_COMMAND_CLOSE;
    bool lacks_session = of_session && !gateway->session;
    enum fm_fault_code code = lacks_session ? fm_fault_fill(&fault, FM_FAULT_SESSION_NOT_FOUND,
                                                            "\"session_id\" names no open session; open one")
                                            : fm_command_read_rest(command, &fault);
    if (of_session && gateway->session) {
        gateway->session->used_ms = gateway->started_ms;
    }
    if (code != FM_FAULT_NONE) {
        answer_fault(gateway, fm_command_name(command->kind), &fault);
        return;
    }
    switch (command->kind) {
    case FM_COMMAND_OPEN: serve_open(gateway, command, &fault); break;
    case FM_COMMAND_MESSAGE: serve_message(gateway, command, &fault); break;
    case FM_COMMAND_CLOSE: serve_close(gateway); break;
    case FM_COMMAND_CHECK: serve_check(gateway); break;
    case FM_COMMAND_SHUTDOWN:
        fm_log(FM_LOG_INFO, "Shutting down");
        answer_ok(gateway);
        gateway->ended = true;
        gateway->told_to_end = true;
        break;
    }
}

static void serve_line(struct gateway *gateway, const char *line, size_t len) {
    struct fm_command command;
    struct fm_fault fault;
    if (fm_command_read(line, len, &gateway->scratch, &command, &fault) == FM_FAULT_NONE) {
        serve_command(gateway, &command);
        fm_command_free(&command);
    } else {
        answer_fault(gateway, NULL, &fault);
    }
    if (gateway->scratch.cap > ROOM) {
        fm_buf_free(&gateway->scratch);
    }
    if (len > ROOM) {
        fm_memory_trim();
    }
}

/* Serves the lines that have come, as long as nothing is pending and the host takes the answers. */
static void serve_lines(struct gateway *gateway) {
    while (!gateway->ended && gateway->pending == NOTHING && fm_outbox_has_room(&gateway->outbox)) {
        const char *line;
        size_t len;
        struct fm_fault fault;
        enum fm_line_event event = fm_lines_next(&gateway->lines, &line, &len);
        gateway->started_ms = fm_now_ms();
        gateway->ended = gateway->started_ms >= gateway->last_answer_ms;
        gateway->drained = event == FM_LINE_NONE;
        if (gateway->drained) {
            gateway->ended = !gateway->reading; /* all lines are answered */
            return;
        }
        if (event == FM_LINE_TOO_LONG) {
            fm_fault_fill(&fault, FM_FAULT_INVALID_JSON, "a line has at most %u bytes", FM_LINE_MAX);
            answer_fault(gateway, NULL, &fault);
        } else if (!fm_command_is_blank(line, len)) {
            serve_line(gateway, line, len);
        }
    }
}

/* ---- the end ---- */

static int64_t earlier(int64_t a, int64_t b) {
    return a < b ? a : b;
}

/* Limits how long messages are generated: for `wait_ms` from now on, or less if less was set before. */
static void set_last_message(struct gateway *gateway, int64_t wait_ms) {
    gateway->last_message_ms = earlier(gateway->last_message_ms, fm_now_ms() + wait_ms);
}

/* Handles the end of the input: no more lines will come. */
static void end_input(struct gateway *gateway, int64_t wait_ms) {
    gateway->reading = false;
    fm_lines_end(&gateway->lines);
    set_last_message(gateway, wait_ms);
}

static void read_input(struct gateway *gateway) {
    static char bytes[FM_LINE_FEED];
    ssize_t got = fm_read(gateway->wire->in, bytes, sizeof bytes);
    gateway->drained = false;
    if (got < 0) {
        fm_log(FM_LOG_WARN, "the input can't be read: error %d", errno);
    }
    if (got <= 0) {
        end_input(gateway, gateway->options->sessions.eof_wait_ms);
    } else if (!fm_lines_feed(&gateway->lines, bytes, (size_t)got)) {
        fail_gateway(gateway, "out of memory");
    }
}

static bool is_readable(int fd) {
    struct fm_waited waited = {.fd = fd, .input = true};
    return fm_wait(&waited, 1, 0) > 0;
}

/*
 * Handles a signal or the parent's death. The lines that have come still get answers, if the host takes them in time.
 */
static void end_soon(struct gateway *gateway) {
    bool asked = !atomic_load(&gateway->host_gone);
    if (asked) {
        fm_log(FM_LOG_INFO, "Signal received, or the parent has ended: shutting down");
    }
    gateway->told_to_end = gateway->told_to_end || asked;
    gateway->end_seen = true;
    while (gateway->reading && fm_lines_has_room(&gateway->lines) && is_readable(gateway->wire->in)) {
        read_input(gateway);
    }
    end_input(gateway, 0);
    gateway->last_answer_ms = fm_now_ms() + FLUSH_MS;
}

/* Fails the pending call when it has taken too long. */
static void look_at_clock(struct gateway *gateway) {
    static const struct fm_turn_result nothing = {.answer = {"", 0}};
    struct fm_fault fault;
    int64_t now = fm_now_ms();
    if (gateway->pending == ENGINE_CHECK && now >= gateway->ask_again_ms) {
        ask_for_availability(gateway);
    }
    if (gateway->pending == AVAILABILITY && now >= gateway->deadline_ms) {
        tell_availability(gateway, false);
    }
    bool cancelled = now >= gateway->last_message_ms;
    if (gateway->pending == A_TURN && (cancelled || now >= gateway->deadline_ms)) {
        const char *why = cancelled ? "cancelled: the input has ended" : "the helper gives no answer";
        fm_fault_fill(&fault, FM_FAULT_EXECUTION_FAILED, "%s", why);
        fail_turn(gateway, &nothing, &fault);
    }
    gateway->ended = gateway->ended || now >= gateway->last_answer_ms;
}

/* Closes idle sessions, but only when every line has its answer: a session that waits for an answer is not idle. */
static void close_idle(struct gateway *gateway) {
    int64_t now = fm_now_ms();
    if (gateway->drained && gateway->pending == NOTHING && now >= gateway->check_ms) {
        fm_session_close_idle(&gateway->table);
        gateway->check_ms = now + gateway->options->sessions.check_ms;
    }
}

/* ---- the loop ---- */

/* The timeout for fm_wait: until the next time limit; -1: none. */
static int next_timeout(const struct gateway *gateway) {
    static const int most = 1 << 30;
    int64_t next = gateway->last_answer_ms;
    if (gateway->pending != NOTHING) {
        next = earlier(next, gateway->deadline_ms);
    } else if (gateway->drained && gateway->table.count > 0) {
        next = earlier(next, gateway->check_ms);
    }
    if (gateway->pending == A_TURN) {
        next = earlier(next, gateway->last_message_ms);
    } else if (gateway->pending == ENGINE_CHECK) {
        next = earlier(next, gateway->ask_again_ms);
    }
    if (next == INT64_MAX) {
        return -1;
    }
    int64_t left = next - fm_now_ms();
    return left < 0 ? 0 : left < most ? (int)left : most;
}

static void wait_for_news(struct gateway *gateway) {
    enum { INPUT, END, FRONT, ROOM_MADE, COUNT };
    char ignored[64];
    const struct fm_inbound_handler handler = {.context = gateway, .message = on_message, .fault = on_fault};
    bool reads = fm_lines_has_room(&gateway->lines);
    bool looks = gateway->reading && (reads || !gateway->hung_up); /* without room, polls only for the end of input */
    struct fm_waited waited[COUNT] = {
        [INPUT] = {.fd = looks ? gateway->wire->in : -1, .input = reads},
        [END] = {.fd = gateway->end_seen ? -1 : gateway->wire->end_fd, .input = true},
        [FRONT] = {.fd = gateway->link.from_front, .input = true},
        [ROOM_MADE] = {.fd = gateway->room_read, .input = true},
    };
    fm_wait(waited, COUNT, next_timeout(gateway));
    if (waited[ROOM_MADE].ready) {
        fm_read(gateway->room_read, ignored, sizeof ignored);
    }
    if (waited[FRONT].ready && !fm_link_receive(&gateway->link, &handler)) {
        fail_gateway(gateway, "the front has ended");
    }
    if (waited[END].ready) {
        end_soon(gateway);
    } else if (waited[INPUT].ready && reads) {
        read_input(gateway);
    } else if (waited[INPUT].ready) {
        gateway->hung_up = true;
        set_last_message(gateway, gateway->options->sessions.eof_wait_ms);
    } else {
        close_idle(gateway);
    }
}

static void serve_sessions(struct gateway *gateway) {
    while (!gateway->ended) {
        serve_lines(gateway);
        if (!gateway->ended) {
            wait_for_news(gateway);
            look_at_clock(gateway);
        }
    }
}

/* ---- start and end ---- */

/* The outbox calls this on its thread. */
static void on_room(void *context) {
    const struct gateway *gateway = context;
    ssize_t ignored = fm_write(gateway->room_write, "r", 1); /* if the pipe is full, it is readable already */
    (void)ignored;
}

/* Called when the host is gone, or when there is no memory for an answer; on either thread. */
static void on_outbox_failure(void *context, enum fm_outbox_failure failure) {
    struct gateway *gateway = context;
    if (failure == FM_OUTBOX_NO_MEMORY) {
        atomic_store(&gateway->failed, true);
    } else {
        fm_log(FM_LOG_ERROR, "the host takes no answers any more");
        atomic_store(&gateway->host_gone, true);
    }
    fm_ask_for_end();
}

static int start_gateway(struct gateway *gateway, struct fm_front *front) {
    const struct fm_outbox_options outbox = {
        .fd = gateway->wire->out,
        .max = FM_HOST_QUEUE_MAX,
        .room = ROOM,
        .stall_ms = FM_STALL_MS,
        .on_fail = on_outbox_failure,
        .on_room = on_room,
        .context = gateway,
    };
    fm_lines_init(&gateway->lines);
    fm_buf_init(&gateway->scratch, OUTPUT_MAX);
    fm_buf_init(&gateway->line, OUTPUT_MAX);
    fm_session_table_init(&gateway->table, &gateway->options->sessions);
    int error = fm_pipe(&gateway->room_read, &gateway->room_write);
    if (error) {
        return error;
    }
    fm_set_nonblocking(gateway->room_write);
    error = fm_outbox_start(&gateway->outbox, &outbox);
    return error ? error : fm_link_start(&gateway->link, front, gateway->options);
}

/* Waits until the host has taken the last answers. Stops if the host takes none, or if we are asked to end. */
static void wait_for_host(struct gateway *gateway) {
    while (!gateway->end_seen && !fm_outbox_is_empty(&gateway->outbox)) {
        struct fm_waited end = {.fd = gateway->wire->end_fd, .input = true};
        if (fm_wait(&end, 1, FLUSH_LOOK_MS) > 0) {
            end_soon(gateway);
        }
    }
}

static int exit_status(struct gateway *gateway) {
    bool untold = !gateway->told_to_end && atomic_load(&gateway->host_gone);
    bool failed = atomic_load(&gateway->failed) || atomic_load(&gateway->link.front->out_of_memory);
    return untold || failed ? EX_SOFTWARE : EX_OK;
}

int fm_sessions_run(struct fm_front *front, const struct fm_options *options, const struct fm_wire *wire) {
    static struct gateway gateway;
    gateway = (struct gateway){
        .options = options,
        .wire = wire,
        .reading = true,
        .last_message_ms = INT64_MAX,
        .last_answer_ms = INT64_MAX,
        .check_ms = fm_now_ms() + options->sessions.check_ms,
    };
    int failure = start_gateway(&gateway, front);
    if (failure) {
        fm_log(FM_LOG_ERROR, "can't start: %s; free memory, or raise the user's limits (ulimit -a)",
               strerror(failure));
        return EX_OSERR;
    }
    fm_log(FM_LOG_INFO, "IntelligenceKit server ready");
    serve_sessions(&gateway);
    fm_session_table_free(&gateway.table);
    bool quiet = fm_link_end(&gateway.link);
    wait_for_host(&gateway);
    quiet = fm_outbox_stop(&gateway.outbox, FLUSH_MS) && quiet;
    int status = exit_status(&gateway);
    fm_log(FM_LOG_INFO, "IntelligenceKit shutdown complete");
    if (!quiet) {
        _exit(status); /* another thread still uses the state */
    }
    fm_close(gateway.room_read);
    fm_close(gateway.room_write);
    fm_lines_free(&gateway.lines);
    fm_buf_free(&gateway.scratch);
    fm_buf_free(&gateway.line);
    return status;
}
