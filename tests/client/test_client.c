/*
 * Tests the client of protocol/client against the real fm-proxy with the fake engine, and against stand-ins: shell
 * scripts that send what no helper would send. This process adopts the processes that its children leave, so that each
 * test can check that no process is left.
 */
#include "base/clock.h"
#include "protocol/client/client.h"

#include <errno.h>
#include <json-c/json.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
/* the last one */
#include <cmocka.h>

#define WAIT_MS (120 * 1000) /* no working step takes as long */

/* What a call has received. */
struct heard {
    struct fm_client *client;
    int events;
    int settled;
    int events_after; /* events that came after the call's end */
    enum fm_code code;
    struct fm_error error;
    char last[64];  /* type of the last event */
    char text[128]; /* the result's member "said" */
    bool again;     /* make another call when this call settles: */
    struct heard *next;
};

/* What a client has reported about itself. */
struct told {
    char states[256]; /* a letter for each state: i, s, r, e */
    char why[1024];
    char errors[256];
};

static void on_state(void *context, enum fm_client_state state, const char *why) {
    struct told *told = context;
    size_t len = strlen(told->states);
    assert_true(len + 1 < sizeof told->states);
    told->states[len] = "isre"[state];
    assert_int_equal(why != NULL, state == FM_CLIENT_IDLE);
    if (why) {
        snprintf(told->why, sizeof told->why, "%s", why);
    }
}

static void on_stderr(void *context, const char *bytes, size_t len) {
    struct told *told = context;
    size_t used = strlen(told->errors);
    size_t room = sizeof told->errors - 1 - used;
    memcpy(told->errors + used, bytes, len < room ? len : room);
}

static const char *text_of(struct json_object *object, const char *name) {
    struct json_object *value;
    return json_object_object_get_ex(object, name, &value) ? json_object_get_string(value) : "";
}

static void on_event(void *context, const char *method, struct json_object *body) {
    struct heard *heard = context;
    assert_non_null(method);
    heard->events++;
    heard->events_after += heard->settled;
    snprintf(heard->last, sizeof heard->last, "%s", text_of(body, "type"));
}

static void on_settled(void *context, const struct fm_client_reply *reply);

static void call(struct fm_client *client, struct heard *heard, const char *method, const char *params) {
    const struct fm_client_handler handler = {heard, on_event, on_settled};
    struct fm_error error = {.code = FM_OK};
    enum fm_code code = fm_client_call(client, method, params, strlen(params), &handler, NULL, &error);
    if (code != FM_OK) {
        fail_msg("%s: %s", method, error.detail);
    }
}

static void on_settled(void *context, const struct fm_client_reply *reply) {
    struct heard *heard = context;
    heard->settled++;
    heard->code = reply->code;
    assert_int_equal(reply->error != NULL, reply->code != FM_OK);
    if (reply->error) {
        assert_int_equal(reply->error->code, reply->code);
        heard->error = *reply->error;
    }
    snprintf(heard->text, sizeof heard->text, "%s", text_of(reply->result, "said"));
    if (heard->next) {
        call(heard->client, heard->next, "health.ping", "{}");
    }
}

/* ---- helpers to talk to ---- */

/*
 * take: reads a message; frame: writes one; hello: the handshake. The handshake has the id 1, the first call the id 2.
 */
#define STAND_IN                                                                                                       \
    "take() { read -r a b; b=${b%?}; read -r e; dd bs=1 count=$b >/dev/null 2>&1; }\n"                                 \
    "frame() { printf 'Content-Length: %d\\r\\n\\r\\n%s' ${#1} \"$1\"; }\n"                                            \
    "hello() { take; frame '{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"ok\":true,\"protocol_version\":1}}'; }\n"      \
    "answer() { take; frame '{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"ok\":true,\"said\":\"yes\"}}'; }\n"

static struct fm_client *new_client(struct told *told, const char *path, const char *const *arguments,
                                    const char *const *environment, struct fm_client_options more) {
    more.path = path;
    more.arguments = arguments;
    more.environment = environment;
    more.context = told;
    more.on_state = told ? on_state : NULL;
    more.on_stderr = told ? on_stderr : NULL;
    struct fm_client *client = fm_client_new(&more);
    assert_non_null(client);
    return client;
}

static struct fm_client *stand_in(struct told *told, const char *script, struct fm_client_options more) {
    char text[4096];
    snprintf(text, sizeof text, "%s%s\n", STAND_IN, script);
    const char *const arguments[] = {"-c", text, NULL};
    return new_client(told, "/bin/sh", arguments, NULL, more);
}

static struct fm_client *real_helper(struct told *told) {
    static char path[4096];
    const char *bin = getenv("FM_BIN");
    static const char *const arguments[] = {"--engine", "fake", NULL};
    static const char *const environment[] = {"FM_PROXY_NO_KV_CACHE_FILES=1", NULL};
    assert_non_null(bin);
    snprintf(path, sizeof path, "%s/fm-proxy", bin);
    return new_client(told, path, arguments, environment, (struct fm_client_options){.path = NULL});
}

/* Works until *counter has reached `count`. */
static void await(struct fm_client *client, const int *counter, int count) {
    int64_t end = fm_now_ms() + WAIT_MS;
    while (*counter < count) {
        assert_true(fm_now_ms() < end);
        if (!fm_client_wait(client, 1000) && fm_client_state_get(client) == FM_CLIENT_IDLE) {
            fail_msg("nothing comes any more: %d of %d", *counter, count);
        }
    }
}

static void await_state(struct fm_client *client, enum fm_client_state state) {
    int64_t end = fm_now_ms() + WAIT_MS;
    while (fm_client_state_get(client) != state) {
        assert_true(fm_now_ms() < end);
        fm_client_wait(client, 1000);
    }
}

static void end_client(struct fm_client *client) {
    fm_client_free(client);
    int64_t end = fm_now_ms() + WAIT_MS;
    pid_t pid;
    while ((pid = waitpid(-1, NULL, WNOHANG)) >= 0) { /* engines end by themselves, and become our children */
        assert_true(fm_now_ms() < end);
        fm_sleep_ms(5);
    }
    assert_int_equal(errno, ECHILD);
}

/* ---- stand-ins ---- */

static const struct {
    const char *name;
    const char *script;
    const char *detail; /* a part of the error's detail; NULL: the call succeeds */
    enum fm_code code;
    int events;
    const char *states;
} stand_in_rows[] = {
    {"an answer", "hello; answer; cat", NULL, FM_OK, 0, "sr"},
    {"an answer in pieces",
     "hello; take; m='{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"ok\":true,\"said\":\"yes\"}}';"
     "printf 'Content-'; sleep 0.05; printf 'Length: %d\\r\\n\\r\\n{' ${#m}; sleep 0.05; printf '%s' \"${m#?}\"; cat",
     NULL, FM_OK, 0, "sr"},
    {"what nobody asked for is skipped",
     "hello; frame '{\"jsonrpc\":\"2.0\",\"id\":99,\"result\":{\"ok\":true}}'; frame "
     "'{\"jsonrpc\":\"2.0\",\"method\":\"new\"}';"
     "frame '{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"ask\"}'; frame "
     "'{\"jsonrpc\":\"2.0\",\"method\":\"responses.event\",\"params\":{\"id\":98,\"event\":{}}}';"
     "frame '{\"jsonrpc\":\"2.0\",\"method\":\"responses.event\",\"params\":7}'; answer; cat",
     NULL, FM_OK, 0, "sr"},
    {"events, two answers, and an event too late",
     "hello; take; for i in 1 2; do frame "
     "'{\"jsonrpc\":\"2.0\",\"method\":\"responses.event\",\"params\":{\"id\":2,\"event\":{\"type\":\"a\"}}}'; done;"
     "for i in 1 2; do frame '{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"ok\":true,\"said\":\"yes\"}}'; done;"
     "frame '{\"jsonrpc\":\"2.0\",\"method\":\"responses.event\",\"params\":{\"id\":2,\"event\":{\"type\":\"b\"}}}'; "
     "cat",
     NULL, FM_OK, 2, "sr"},
    {"another version",
     "take; frame '{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"ok\":true,\"protocol_version\":2}}'; sleep 600",
     "speaks version 2", FM_UNAVAILABLE, 0, "si"},
    {"no version",
     "take; frame '{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32601,\"message\":\"no\"}}'; sleep 600",
     "speaks version 0", FM_UNAVAILABLE, 0, "si"},
    {"no handshake", "exec sleep 600", "did not tell its version within 300 ms", FM_UNAVAILABLE, 0, "si"},
    {"no frame", "hello; take; printf 'Hello!\\r\\n\\r\\n'; sleep 600", "is no frame", FM_UNAVAILABLE, 0, "sri"},
    {"no JSON", "hello; take; frame '{'; sleep 600", "is no message", FM_UNAVAILABLE, 0, "sri"},
    {"an error about no call",
     "hello; take; frame '{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32700,\"message\":\"odd\"}}'; sleep "
     "600",
     "refused a message: odd", FM_UNAVAILABLE, 0, "sri"},
    {"it ends", "hello; take; exit 3", "exit status 3", FM_UNAVAILABLE, 0, "srei"},
    {"it ends inside a frame", "hello; take; printf 'Content-Length: 99\\r\\n\\r\\n{'; exit 76", "exit status 76",
     FM_UNAVAILABLE, 0, "srei"},
    {"it ends before the handshake", "exit 64", "exit status 64", FM_UNAVAILABLE, 0, "sei"},
    {"it dies", "hello; take; kill -SEGV $$", "signal 11", FM_UNAVAILABLE, 0, "srei"},
    {"an answer, then the end", "hello; answer; exit 0", NULL, FM_OK, 0, "srei"},
    {"its output is closed", "hello; take; exec >&-; exec sleep 600", "did not end within 2500 ms", FM_UNAVAILABLE, 0,
     "srei"},
    {"somebody else has its output", "hello; take; sleep 600 & exit 5", "exit status 5", FM_UNAVAILABLE, 0, "sri"},
    {"an answer without ok", "hello; take; frame '{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":[]}'; cat", "`ok`",
     FM_INTERNAL, 0, "sr"},
    {"an error of the wire",
     "hello; take; frame '{\"jsonrpc\":\"2.0\",\"id\":2,\"error\":{\"code\":-32601,\"message\":\"no such method\"}}'; "
     "cat",
     "no such method", FM_INVALID_REQUEST, 0, "sr"},
    {"an error",
     "hello; take; frame "
     "'{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"ok\":false,\"said\":\"part\",\"error\":{\"code\":\"TIMEOUT\","
     "\"detail\":\"slow\",\"limit\":\"queue\",\"limit_ms\":7,\"retry_after_ms\":8,\"reason_code\":\"OFFLINE\","
     "\"openai\":{\"param\":\"input\"}}}}'; cat",
     "slow", FM_TIMEOUT, 0, "sr"},
    {"an unknown error without a text",
     "hello; take; frame '{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"ok\":false,\"error\":{\"code\":\"ODD\"}}}'; cat",
     "no reason", FM_INTERNAL, 0, "sr"},
};

static void stand_ins(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof stand_in_rows / sizeof stand_in_rows[0]; i++) {
        struct told told = {.states = ""};
        struct heard heard = {.settled = 0};
        bool silent = strcmp(stand_in_rows[i].name, "no handshake") == 0;
        struct fm_client *client = stand_in(&told, stand_in_rows[i].script,
                                            (struct fm_client_options){.handshake_ms = silent ? 300 : WAIT_MS});
        call(client, &heard, "health.ping", "{}");
        await(client, &heard.settled, 1);
        if (strchr(stand_in_rows[i].states, 'i')) {
            await_state(client, FM_CLIENT_IDLE);
        }
        const char *detail = stand_in_rows[i].detail;
        bool ok = heard.code == stand_in_rows[i].code && heard.events == stand_in_rows[i].events &&
                  strcmp(told.states, stand_in_rows[i].states) == 0 &&
                  (detail ? strstr(heard.error.detail, detail) != NULL : strcmp(heard.text, "yes") == 0);
        fm_client_wait(client, 100); /* for events that come too late */
        end_client(client);
        if (!ok || heard.settled != 1 || heard.events_after) {
            fail_msg("%s: %s, \"%s\", %d events, %d too late, settled %d times, states %s", stand_in_rows[i].name,
                     fm_code_name(heard.code), heard.error.detail, heard.events, heard.events_after, heard.settled,
                     told.states);
        }
        if (heard.code == FM_TIMEOUT) {
            assert_string_equal(heard.error.limit, "queue");
            assert_int_equal(heard.error.limit_ms, 7);
            assert_int_equal(heard.error.retry_ms, 8);
            assert_string_equal(heard.error.reason_code, "OFFLINE");
            assert_string_equal(heard.error.param, "input");
            assert_string_equal(heard.text, "part"); /* text that came before the failure is kept */
        }
    }
}

static void params_that_are_wrong_are_never_sent(void **state) {
    (void)state;
    char deep[129] = "{\"a\":";
    memset(deep + 5, '[', 63);
    memset(deep + 68, ']', 60);
    const char *const rows[] = {
        "", " ", "[]", "7", "{", "{}}", "{} {}", "{},\"id\":99", "{}},{", "{\"a\":NaN}", "{\"a\":\"\xff\"}", deep};
    struct fm_client *client = stand_in(NULL, "hello; answer; cat", (struct fm_client_options){.path = NULL});
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct fm_error error = {.code = FM_OK};
        enum fm_code code = fm_client_call(client, "m", rows[i], strlen(rows[i]), NULL, NULL, &error);
        if (code != FM_INVALID_REQUEST || !strstr(error.detail, "JSON object")) {
            fail_msg("row %zu: %s, %s", i, fm_code_name(code), error.detail);
        }
    }
    struct fm_error error = {.code = FM_OK};
    assert_int_equal(fm_client_call(client, "m", "", 20000000, NULL, NULL, &error), FM_INVALID_REQUEST);
    assert_non_null(strstr(error.detail, "20000000 bytes"));
    struct heard heard = {.settled = 0};
    call(client, &heard, "m", "{}"); /* this is the first message that goes out */
    await(client, &heard.settled, 1);
    assert_string_equal(heard.text, "yes");
    end_client(client);
}

/* A host with the default action for SIGPIPE, and a helper that does not read, or has stopped reading. */
static void the_queue_ends_and_nothing_blocks(void **state) {
    (void)state;
    enum { BYTES = 1000000, COUNT = 40 };
    char *params = malloc(BYTES);
    assert_non_null(params);
    memset(params, ' ', BYTES);
    memcpy(params, "{}", 2);
    static const char *const scripts[] = {"hello; exec sleep 600", "hello; exec <&-; exec sleep 600"};
    for (int i = 0; i < 2; i++) {
        struct heard heard[COUNT] = {{.settled = 0}};
        int taken = 0;
        struct fm_error error = {.code = FM_OK};
        struct fm_client *client = stand_in(NULL, scripts[i], (struct fm_client_options){.queue_bytes = 5000000});
        alarm(WAIT_MS / 1000);
        enum fm_code code = fm_client_start(client, &error);
        assert_int_equal(code, FM_OK);
        while (code == FM_OK && taken < COUNT) {
            const struct fm_client_handler handler = {&heard[taken], on_event, on_settled};
            code = fm_client_call(client, "m", params, BYTES, &handler, NULL, &error);
            taken += code == FM_OK;
            fm_client_process(client);
        }
        assert_true(code == FM_OVERLOADED ||
                    (i == 1 && code == FM_UNAVAILABLE)); /* as soon as it sees the closed pipe */
        assert_in_range(taken, i == 0 ? 4 : 0, 5);
        if (i == 1) {
            await_state(client, FM_CLIENT_IDLE);
        } else {
            await_state(client, FM_CLIENT_READY);
            fm_client_process(client);
            assert_true(fm_client_cancel(client, 2)); /* there is room for the cancel */
            assert_false(fm_client_cancel(client, 2));
        }
        end_client(client);
        for (int at = 0; at < COUNT; at++) {
            assert_int_equal(heard[at].settled, at < taken);
            assert_int_equal(heard[at].code, at >= taken ? FM_OK : i == 0 ? FM_CANCELLED : FM_UNAVAILABLE);
        }
        alarm(0);
    }
    free(params);
}

static void what_it_sees(void **state) {
    (void)state;
    struct told told = {.states = ""};
    setenv("A_SECRET", "1", 1);
    setenv("FM_PROXY_SHOWN", "1", 1);
    setenv("TZ", "ours", 1);
    const char *const arguments[] = {"-c", "echo \"$A_SECRET/$FM_PROXY_SHOWN/$TZ/$EXTRA/$1\" >&2", "name",
                                     "an \"argument\" \\", NULL};
    const char *const environment[] = {"EXTRA=2", "TZ=theirs", NULL};
    struct fm_client *client =
        new_client(&told, "/bin/sh", arguments, environment, (struct fm_client_options){.path = NULL});
    struct heard heard = {.settled = 0};
    call(client, &heard, "m", "{}");
    await(client, &heard.settled, 1);
    assert_string_equal(told.errors, "/1/theirs/2/an \"argument\" \\\n");
    end_client(client);
    unsetenv("A_SECRET");
    unsetenv("FM_PROXY_SHOWN");
    unsetenv("TZ");
}

static void no_such_program(void **state) {
    (void)state;
    struct fm_error error = {.code = FM_OK};
    struct fm_client *client =
        new_client(NULL, "/no/such/program", NULL, NULL, (struct fm_client_options){.path = NULL});
    for (int i = 0; i < 2; i++) {
        assert_int_equal(fm_client_call(client, "m", NULL, 0, NULL, NULL, &error), FM_UNAVAILABLE);
        assert_non_null(strstr(error.detail, "/no/such/program can't be started: No such file"));
    }
    assert_int_equal(fm_client_call(client, "m", NULL, 0, NULL, NULL, &error), FM_UNAVAILABLE);
    assert_non_null(strstr(error.detail, "died 2 times"));
    assert_in_range(error.retry_ms, 1, FM_CLIENT_FIRST_PAUSE_MS);
    assert_int_equal(fm_client_fds(client, (struct fm_waited[FM_WAITED_MAX]){{.fd = -1}}), 0);
    assert_int_equal(fm_client_timeout(client), -1);
    end_client(client);
}

static void a_callback_starts_the_next_helper(void **state) {
    (void)state;
    struct told told = {.states = ""};
    struct fm_client *client = stand_in(&told, "hello; take; take; exit 1", (struct fm_client_options){.path = NULL});
    struct heard next = {.settled = 0};
    struct heard first = {.client = client, .next = &next};
    struct heard second = {.settled = 0};
    call(client, &first, "m", "{}");
    call(client, &second, "m", "{}");
    await(client, &second.settled, 1);
    assert_int_equal(first.settled, 1);
    assert_int_equal(next.settled, 0); /* it belongs to the next helper, and did not end with the first */
    assert_int_equal(fm_client_open_calls(client), 1);
    assert_string_equal(told.states, "sreis");
    end_client(client);
    assert_int_equal(next.settled, 1);
    assert_int_equal(next.code, FM_CANCELLED);
}

/* ---- the real helper ---- */

#define STREAM(script) "{\"stream\":true,\"store\":false,\"input\":" script "}"

static void a_stream(void **state) {
    (void)state;
    struct told told = {.states = ""};
    struct fm_client *client = real_helper(&told);
    struct heard heard[3] = {{.settled = 0}};
    call(client, &heard[0], "responses.create", STREAM("\"[\\\"Hello\\\",\\\" you\\\"]\""));
    call(client, &heard[1], "chat.completions.create",
         "{\"stream\":true,\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"}]}");
    call(client, &heard[2], "responses.create", "{\"input\":\"[\\\"Hello\\\"]\",\"tempreature\":7,\"temperature\":7}");
    for (int i = 0; i < 3; i++) {
        await(client, &heard[i].settled, 1);
    }
    assert_int_equal(heard[0].code, FM_OK);
    assert_string_equal(heard[0].last, "response.completed");
    assert_int_equal(heard[1].code, FM_OK);
    assert_true(heard[1].events > 1);
    assert_int_equal(heard[2].code, FM_INVALID_REQUEST);
    assert_string_equal(heard[2].error.param, "temperature");
    assert_string_equal(told.states, "sr");
    end_client(client);
}

static void a_cancel(void **state) {
    (void)state;
    struct fm_client *client = real_helper(NULL);
    struct heard heard = {.settled = 0};
    const struct fm_client_handler handler = {&heard, on_event, on_settled};
    const char params[] = STREAM("\"[{\\\"repeat\\\":[\\\" a\\\",10]},{\\\"hang\\\":\\\"soft\\\"}]\"");
    struct fm_error error;
    int64_t id;
    assert_int_equal(fm_client_call(client, "responses.create", params, sizeof params - 1, &handler, &id, &error),
                     FM_OK);
    await(client, &heard.events, 3);
    assert_false(fm_client_cancel(client, id + 1));
    assert_true(fm_client_cancel(client, id));
    assert_false(fm_client_cancel(client, id));
    await(client, &heard.settled, 1);
    assert_int_equal(heard.code, FM_CANCELLED);
    assert_string_equal(heard.last, "response.incomplete");
    assert_false(fm_client_cancel(client, id));
    end_client(client);
    assert_int_equal(heard.settled, 1);
}

static void the_helper_is_killed(void **state) {
    (void)state;
    struct told told = {.states = ""};
    struct fm_client *client = real_helper(&told);
    for (int death = 1; death <= 4; death++) {
        struct heard heard[10] = {{.settled = 0}};
        struct fm_error error = {.code = FM_OK};
        enum fm_code code;
        while ((code = fm_client_start(client, &error)) == FM_UNAVAILABLE) { /* the pause after a death */
            assert_true(death > 2);
            assert_in_range(error.retry_ms, 1, FM_CLIENT_FIRST_PAUSE_MS << (death - 3));
            fm_sleep_ms(error.retry_ms);
        }
        assert_int_equal(code, FM_OK);
        for (int i = 0; i < 10; i++) {
            call(client, &heard[i], "responses.create", STREAM("\"[\\\"Hello\\\",{\\\"hang\\\":\\\"soft\\\"}]\""));
        }
        await(client, &heard[0].events, 3);
        kill(fm_client_pid(client), SIGKILL);
        for (int i = 0; i < 10; i++) {
            await(client, &heard[i].settled, 1);
            assert_int_equal(heard[i].code, FM_UNAVAILABLE);
            assert_non_null(strstr(heard[i].error.detail, "died (signal 9)"));
        }
        assert_int_equal(fm_client_state_get(client), FM_CLIENT_IDLE);
        assert_int_equal(fm_client_pid(client), 0);
    }
    assert_string_equal(told.states, "sreisreisreisrei");
    end_client(client);
}

/* A host that does not read for a while: nothing is lost. */
static void a_slow_host(void **state) {
    (void)state;
    struct fm_client *client = real_helper(NULL);
    struct heard heard = {.settled = 0};
    struct heard ping = {.settled = 0};
    call(client, &heard, "responses.create",
         STREAM("\"[{\\\"repeat\\\":[\\\" aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\\\",20000]}]\""));
    await(client, &heard.events, 1);
    fm_sleep_ms(300); /* meanwhile the pipe gets full */
    call(client, &ping, "health.ping", "{}");
    await(client, &heard.settled, 1);
    assert_int_equal(heard.code, FM_OK);
    assert_string_equal(heard.last, "response.completed");
    await(client, &ping.settled, 1);
    assert_int_equal(ping.code, FM_OK);
    end_client(client);
}

static void more_calls_than_it_takes(void **state) {
    (void)state;
    static struct heard heard[FM_CLIENT_CALLS_MAX];
    struct fm_client *client = real_helper(NULL);
    struct fm_error error = {.code = FM_OK};
    int codes[FM_GUARDRAIL + 1] = {0};
    for (size_t i = 0; i < FM_CLIENT_CALLS_MAX; i++) {
        call(client, &heard[i], "responses.create",
             "{\"store\":false,\"input\":\"[{\\\"sleep_ms\\\":20},\\\"a\\\"]\"}");
    }
    assert_int_equal(fm_client_call(client, "m", NULL, 0, NULL, NULL, &error), FM_RATE_LIMITED);
    for (size_t i = 0; i < FM_CLIENT_CALLS_MAX; i++) {
        await(client, &heard[i].settled, 1);
        codes[heard[i].code]++;
    }
    assert_in_range(codes[FM_OK], 64, FM_CLIENT_CALLS_MAX); /* PROTOCOL.md, All limits: requests */
    assert_int_equal(codes[FM_OK] + codes[FM_RATE_LIMITED], FM_CLIENT_CALLS_MAX);
    end_client(client);
    for (size_t i = 0; i < FM_CLIENT_CALLS_MAX; i++) {
        assert_int_equal(heard[i].settled, 1);
    }
}

static void one_answer(void **state) {
    (void)state;
    struct told told = {.states = ""};
    struct fm_client *client = real_helper(&told);
    struct json_object *result;
    struct fm_error error = {.code = FM_OK};
    struct heard heard = {.settled = 0};
    const struct fm_client_handler events = {&heard, on_event, on_settled};
    const char hangs[] = STREAM("\"[\\\"Hello\\\",{\\\"hang\\\":\\\"soft\\\"}]\"");
    assert_int_equal(fm_client_ask(client, "health.ping", NULL, 0, NULL, 0, &result, &error), FM_OK);
    assert_string_equal(text_of(result, "protocol_version"), "1");
    json_object_put(result);
    assert_int_equal(fm_client_ask(client, "models.retrieve", "{\"id\":\"odd\"}", 12, NULL, WAIT_MS, NULL, &error),
                     FM_NOT_FOUND);
    assert_non_null(strstr(error.detail, "odd"));
    assert_int_equal(fm_client_ask(client, "health.ping", "7", 1, NULL, 0, &result, &error), FM_INVALID_REQUEST);
    assert_null(result);
    assert_int_equal(fm_client_ask(client, "responses.create", hangs, sizeof hangs - 1, &events, 500, &result, &error),
                     FM_TIMEOUT);
    assert_string_equal(error.limit, "total");
    assert_int_equal(error.limit_ms, 500);
    assert_non_null(result); /* it has what was produced so far */
    json_object_put(result);
    assert_int_equal(heard.settled, 0);
    assert_string_equal(heard.last, "response.incomplete");
    kill(fm_client_pid(client), SIGSTOP); /* a helper that hangs answers no cancel */
    assert_int_equal(fm_client_ask(client, "health.ping", NULL, 0, NULL, 100, &result, &error), FM_UNAVAILABLE);
    assert_non_null(strstr(error.detail, "did not answer a cancel"));
    assert_int_equal(fm_client_ask(client, "health.ping", NULL, 0, NULL, 0, NULL, &error), FM_OK);
    assert_string_equal(told.states, "srisr");
    end_client(client);
}

static void it_stops(void **state) {
    (void)state;
    struct told told = {.states = ""};
    struct fm_client *client = real_helper(&told);
    for (int round = 0; round < 3; round++) { /* no pause, because this does not count as a death */
        struct heard heard = {.settled = 0};
        call(client, &heard, "responses.create", STREAM("\"[\\\"Hello\\\",{\\\"hang\\\":\\\"soft\\\"}]\""));
        await(client, &heard.events, 2);
        fm_client_stop(client);
        struct fm_error error;
        assert_int_equal(fm_client_call(client, "m", NULL, 0, NULL, NULL, &error), FM_UNAVAILABLE);
        assert_true(error.retry_ms > 0);
        await(client, &heard.settled, 1);
        assert_int_equal(heard.code, FM_CANCELLED);
        await_state(client, FM_CLIENT_IDLE);
        assert_string_equal(told.why, "the helper was stopped");
    }
    assert_string_equal(told.states, "sreisreisrei");
    end_client(client);
}

/* The descriptors are enough for the host's own loop: it only needs poll(). */
static void a_loop_of_the_host(void **state) {
    (void)state;
    struct fm_client *client = real_helper(NULL);
    struct heard heard = {.settled = 0};
    call(client, &heard, "responses.create", STREAM("\"[{\\\"repeat\\\":[\\\" a\\\",2000]}]\""));
    int64_t end = fm_now_ms() + WAIT_MS;
    while (!heard.settled) {
        struct fm_waited fds[FM_WAITED_MAX];
        size_t count = fm_client_fds(client, fds);
        int64_t ms = fm_client_timeout(client);
        assert_true(count > 0 && fm_now_ms() < end);
        if (fm_wait(fds, count, (int)(ms < 0 ? WAIT_MS : ms)) == 0) {
            assert_true(ms >= 0); /* the client never needs a call without an event or a deadline */
        }
        fm_client_process(client);
    }
    assert_int_equal(heard.code, FM_OK);
    fm_client_stop(client);
    while (fm_client_state_get(client) != FM_CLIENT_IDLE) {
        assert_true(fm_now_ms() < end);
        struct fm_waited fds[FM_WAITED_MAX];
        int64_t ms = fm_client_timeout(client);
        fm_wait(fds, fm_client_fds(client, fds), (int)ms);
        fm_client_process(client);
    }
    end_client(client);
}

static void a_client_closes(void **state) {
    (void)state;
    struct heard heard = {.settled = 0};
    struct fm_client *client = real_helper(NULL);
    call(client, &heard, "responses.create", STREAM("\"[\\\"Hello\\\",{\\\"hang\\\":\\\"soft\\\"}]\""));
    await(client, &heard.events, 2);
    end_client(client);
    assert_int_equal(heard.settled, 1);
    assert_int_equal(heard.code, FM_CANCELLED);
    end_client(real_helper(NULL)); /* a client that never started */
    fm_client_free(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stand_ins),
        cmocka_unit_test(params_that_are_wrong_are_never_sent),
        cmocka_unit_test(the_queue_ends_and_nothing_blocks),
        cmocka_unit_test(what_it_sees),
        cmocka_unit_test(no_such_program),
        cmocka_unit_test(a_callback_starts_the_next_helper),
        cmocka_unit_test(a_stream),
        cmocka_unit_test(a_cancel),
        cmocka_unit_test(the_helper_is_killed),
        cmocka_unit_test(a_slow_host),
        cmocka_unit_test(more_calls_than_it_takes),
        cmocka_unit_test(one_answer),
        cmocka_unit_test(it_stops),
        cmocka_unit_test(a_loop_of_the_host),
        cmocka_unit_test(a_client_closes),
    };
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) {
        return 1;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
