/*
 * The kit as a whole: an engine program of this test runs in a child process, and the tests send it frames. The linker
 * wraps the allocations and a few system calls, so that each can fail in the child.
 */
#include "base/clock.h"
#include "base/platform.h"
#include "engine/kit/kit.h"
#include "protocol/frame.h"
#include "wire.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#define WAIT_MS                  120000
#define HEAD                     "{\"jsonrpc\":\"2.0\","
#define INIT                     HEAD "\"id\":1,\"method\":\"engine.initialize\",\"params\":{\"protocol_version\":1}}"
#define LOAD                     HEAD "\"id\":2,\"method\":\"engine.load\",\"params\":{\"model\":null}}"
#define CALL(id, method, params) "{\"jsonrpc\":\"2.0\",\"id\":" #id ",\"method\":\"" method "\",\"params\":" params "}"
#define NOTE(method, params)     "{\"jsonrpc\":\"2.0\",\"method\":\"" method "\",\"params\":" params "}"
#define MESSAGES(text)           "\"messages\":[{\"role\":\"user\",\"content\":\"" text "\"}]"
#define JOB(number, text, end)   NOTE("job.start", "{\"job\":" #number "," MESSAGES(text) end "}")

#ifdef FM_SANITIZE
/* Otherwise TSan waits for a second at each of the many ends. */
const char *__tsan_default_options(void);
const char *__tsan_default_options(void) {
    return "atexit_sleep_ms=0";
}
#endif

/* ---- calls that fail, in the child alone ---- */

struct faults {
    bool memory;      /* allocations fail */
    bool for_good;    /* all later allocations fail, not only one */
    int allocations;  /* this many allocations succeed first */
    const char *call; /* a system call that fails once */
    int skip;
};

static struct faults planned; /* the faults for the next start of the child */
static struct faults faults;  /* the faults of this process */

static bool refuse(void) {
    if (!faults.memory) {
        return false;
    }
    int left = __atomic_fetch_sub(&faults.allocations, 1, __ATOMIC_RELAXED);
    return left == 0 || (faults.for_good && left < 0);
}

static bool fails(const char *call) {
    bool named = faults.call && strcmp(faults.call, call) == 0;
    return named && __atomic_fetch_sub(&faults.skip, 1, __ATOMIC_RELAXED) == 0;
}

void *__real_realloc(void *block, size_t size);
void *__wrap_realloc(void *block, size_t size);
void *__wrap_realloc(void *block, size_t size) {
    return refuse() ? NULL : __real_realloc(block, size);
}

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size) {
    return refuse() ? NULL : __real_calloc(count, size);
}

int __real_pipe2(int fds[2], int flags);
int __wrap_pipe2(int fds[2], int flags);
int __wrap_pipe2(int fds[2], int flags) {
    errno = EMFILE;
    return fails("pipe2") ? -1 : __real_pipe2(fds, flags);
}

int __real_dup2(int from, int to);
int __wrap_dup2(int from, int to);
int __wrap_dup2(int from, int to) {
    errno = EBADF;
    return fails("dup2") ? -1 : __real_dup2(from, to);
}

int __real_poll(struct pollfd *fds, nfds_t count, int timeout);
int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout);
int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout) {
    if (fails("poll")) {
        errno = EINTR;
        return -1;
    }
    return __real_poll(fds, count, timeout);
}

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*body)(void *), void *argument);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*body)(void *), void *argument);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*body)(void *), void *argument) {
    return fails("pthread_create") ? EAGAIN : __real_pthread_create(thread, attr, body, argument);
}

int __real_pthread_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *attr);
int __wrap_pthread_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *attr);
int __wrap_pthread_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *attr) {
    return fails("pthread_mutex_init") ? ENOMEM : __real_pthread_mutex_init(mutex, attr);
}

int __real_pthread_condattr_init(pthread_condattr_t *attr);
int __wrap_pthread_condattr_init(pthread_condattr_t *attr);
int __wrap_pthread_condattr_init(pthread_condattr_t *attr) {
    return fails("pthread_condattr_init") ? ENOMEM : __real_pthread_condattr_init(attr);
}

static atomic_int writes; /* the child's writes to any descriptor; atomic, because several threads write */

ssize_t __real_write(int fd, const void *data, size_t len);
ssize_t __wrap_write(int fd, const void *data, size_t len);
ssize_t __wrap_write(int fd, const void *data, size_t len) {
    atomic_fetch_add(&writes, 1);
    return __real_write(fd, data, len);
}

/* ---- the engine under test ---- */

static bool is(const struct fm_message *message, const char *text) {
    return message->content_len == strlen(text) && memcmp(message->content, text, message->content_len) == 0;
}

/* One token of `len` bytes. */
static enum fm_reason long_token(struct fm_kit_job *job, char c, size_t len) {
    char *text = malloc(len);
    memset(text, c, len);
    enum fm_reason reason = fm_kit_job_token(job, text, len);
    free(text);
    return reason;
}

/* Gathers two tokens, one that is too long to gather, and one more. Then reports how many writes there were after the
 * second token, after the last one, and after the flush. */
static enum fm_reason gather(struct fm_kit *kit, struct fm_kit_job *job) {
    char text[64];
    int before = writes;
    fm_kit_gather(kit);
    enum fm_reason reason = fm_kit_job_token(job, "a", 1);
    reason = reason ? reason : fm_kit_job_token(job, "b", 1);
    int two = writes - before;
    reason = reason ? reason : long_token(job, 'x', 20000);
    reason = reason ? reason : fm_kit_job_token(job, "c", 1);
    int all = writes - before;
    fm_kit_flush(kit);
    int len = snprintf(text, sizeof text, "%d %d %d", two, all, writes - before);
    return reason ? reason : fm_kit_job_token(job, text, (size_t)len);
}

static void append_many(struct fm_buf *buf, size_t len) {
    while (len--) {
        fm_buf_append_char(buf, 'x');
    }
}

/* Calls g, then h, each with its arguments byte by byte. `before` is a text before the calls. */
static enum fm_reason call_tools(struct fm_kit_job *job, const char *before) {
    static const char *const calls[][2] = {{"g", "{\"a\":\"\xC3\xA9\"}"}, {"h", "\xC3"}};
    enum fm_reason reason =
        fm_kit_job_tool_arguments(job, "x", 1) == FM_REASON_ERROR ? FM_REASON_NONE : FM_REASON_ERROR;
    for (const char *at = before; *at && !reason; at++) {
        reason = fm_kit_job_token(job, at, 1);
    }
    for (size_t i = 0; i < sizeof calls / sizeof calls[0] && !reason; i++) {
        reason = fm_kit_job_tool_call(job, calls[i][0]);
        for (const char *at = calls[i][1]; *at && !reason; at++) {
            reason = fm_kit_job_tool_arguments(job, at, 1);
        }
        reason = reason ? reason : fm_kit_job_token(job, "", 0);
    }
    return reason ? reason : fm_kit_job_token(job, "x", 1) == FM_REASON_ERROR ? FM_REASON_STOP : FM_REASON_ERROR;
}

/* Text and arguments that come before their token, and text at the end. */
static enum fm_reason tell_held(struct fm_kit_job *job, bool call) {
    enum fm_reason reason = fm_kit_job_text(job, "a", 1);
    reason = reason ? reason : fm_kit_job_text(job, "b", 1);
    reason = reason ? reason : fm_kit_job_token(job, "", 0);
    if (!call) {
        return reason ? reason : fm_kit_job_text(job, "c", 1);
    }
    reason = reason ? reason : fm_kit_job_tool_call(job, "g");
    reason = reason ? reason : fm_kit_job_text(job, "{", 1);
    reason = reason ? reason : fm_kit_job_token(job, "", 0);
    return reason ? reason : fm_kit_job_text(job, "}", 1);
}

/* One vector per input: its length and 4; some inputs give a vector without a length. */
static enum fm_reason embed(struct fm_kit_job *job, struct fm_error *error) {
    job->dimension = 2;
    enum fm_reason reason = fm_kit_job_accept(job, 9);
    for (size_t i = 0; !reason; i++) {
        float values[2] = {(float)job->inputs[i].len, 4};
        values[1] = job->inputs[i].text[0] == '0' ? 0 : values[1];
        values[0] = values[1] > 0 ? values[0] : 0;
        reason = fm_kit_job_embedding(job, values, error);
    }
    return reason;
}

/*
 * Thinks, with a character that is split over two tokens, and then writes text unless it is `cut`; then a thought is
 * refused.
 */
static enum fm_reason think(struct fm_kit_job *job, bool cut) {
    static const char *const parts[] = {"", "abc\xC3", "\xA9 abc\xC3"};
    enum fm_reason reason = FM_REASON_NONE;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0] && !reason; i++) {
        reason = fm_kit_job_reasoning(job, parts[i], strlen(parts[i]));
        reason = reason ? reason : fm_kit_job_token(job, "", 0);
    }
    if (cut) {
        return reason ? reason : FM_REASON_LENGTH;
    }
    reason = reason ? reason : fm_kit_job_token(job, "", 0); /* the closing tag */
    reason = reason ? reason : fm_kit_job_text(job, "", 0);
    reason = reason ? reason : fm_kit_job_token(job, "", 0);
    reason = reason ? reason : fm_kit_job_token(job, "xabc", 4);
    return fm_kit_job_reasoning(job, "x", 1) == FM_REASON_ERROR ? reason : FM_REASON_ERROR;
}

/*
 * Sends a thought, its state, a text in two pieces and a refusal, without counts. Wrong calls between them are refused.
 */
static enum fm_reason say_pieces(struct fm_kit_job *job) {
    const struct fm_kit_usage usage = {.input = 7, .cached = FM_UNCOUNTED, .output = 3, .reasoning = FM_UNCOUNTED};
    enum fm_reason reason = fm_kit_job_accept(job, FM_UNCOUNTED);
    reason = reason ? reason : fm_kit_job_piece(job, FM_PIECE_REASONING, "hm", 2);
    reason = reason ? reason : fm_kit_job_state(job, "S", 1);
    reason = reason ? reason : fm_kit_job_piece(job, FM_PIECE_TEXT, "a\xC3", 2);
    reason = reason ? reason : fm_kit_job_piece(job, FM_PIECE_TEXT, "\xA9", 1);
    if (fm_kit_job_piece(job, FM_PIECE_REASONING, "x", 1) != FM_REASON_ERROR ||
        fm_kit_job_piece(job, FM_PIECE_ARGUMENTS, "x", 1) != FM_REASON_ERROR) {
        return FM_REASON_LENGTH;
    }
    reason = reason ? reason : fm_kit_job_piece(job, FM_PIECE_REFUSAL, "no", 2);
    if (fm_kit_job_piece(job, FM_PIECE_TEXT, "x", 1) != FM_REASON_ERROR) {
        return FM_REASON_LENGTH;
    }
    fm_kit_job_usage(job, &usage);
    return reason ? reason : FM_REASON_STOP;
}

/* Calls in any order, with text after one; a stop string counts only in text. */
static enum fm_reason say_in_any_order(struct fm_kit_job *job) {
    enum fm_reason reason = fm_kit_job_accept(job, FM_UNCOUNTED);
    reason = reason ? reason : fm_kit_job_piece(job, FM_PIECE_TEXT, "a", 1);
    reason = reason ? reason : fm_kit_job_tool_call(job, "g");
    reason = reason ? reason : fm_kit_job_piece(job, FM_PIECE_ARGUMENTS, "\"END\"", 5);
    reason = reason ? reason : fm_kit_job_piece(job, FM_PIECE_REASONING, "hm", 2);
    reason = reason ? reason : fm_kit_job_piece(job, FM_PIECE_TEXT, "b EN", 4);
    return reason ? reason : fm_kit_job_piece(job, FM_PIECE_TEXT, "D c", 3);
}

/*
 * Thinks, calls, holds back a part of a stop string and of a character, and restarts. After two restarts it runs to the
 * end.
 */
static enum fm_reason say_anew(struct fm_kit_job *job) {
    const struct fm_error why = {.code = FM_OVERLOADED, .detail = "gone"};
    enum fm_reason reason = fm_kit_job_accept(job, 7);
    reason = reason ? reason : fm_kit_job_piece(job, FM_PIECE_REASONING, "hm", 2);
    reason = reason ? reason : fm_kit_job_piece(job, FM_PIECE_TEXT, "a EN", 4);
    bool begun = fm_kit_job_restart(job, &why);
    reason = reason ? reason : fm_kit_job_accept(job, 8);
    reason = reason ? reason : fm_kit_job_piece(job, FM_PIECE_TEXT, "D b", 3);
    reason = reason ? reason : fm_kit_job_tool_call(job, "g");
    reason = reason ? reason : fm_kit_job_piece(job, FM_PIECE_ARGUMENTS, "{\xC3", 2);
    begun &= fm_kit_job_restart(job, &why);
    reason = reason ? reason : fm_kit_job_accept(job, 9);
    reason = reason ? reason : fm_kit_job_token(job, "c", 1);
    reason = reason ? reason : fm_kit_job_token(job, " END", 4);
    return begun ? reason : FM_REASON_ERROR;
}

/* A call before any other output; only the prompt is counted. */
static enum fm_reason call_at_once(struct fm_kit_job *job) {
    enum fm_reason reason = fm_kit_job_accept(job, 7);
    reason = reason ? reason : fm_kit_job_tool_call(job, "g");
    return reason ? reason : fm_kit_job_piece(job, FM_PIECE_ARGUMENTS, "{}", 2);
}

/* The prompt is a command; any other prompt is repeated byte by byte. */
static enum fm_reason work(struct fm_kit *kit, struct fm_kit_job *job) {
    const struct fm_message *message = &job->messages[job->message_count - 1];
    enum fm_reason reason = FM_REASON_NONE;
    if (job->format.kind == FM_FORMAT_JSON_SCHEMA) {
        fm_buf_append_str(&job->schema_report, "{\"enforced\":[\"type\"],\"checked\":[]}");
    }
    if (is(message, "long report")) {
        append_many(&job->schema_report, FM_SCHEMA_REPORT_MAX + 1);
    }
    if (is(message, "pieces")) {
        return say_pieces(job);
    } else if (is(message, "any order")) {
        return say_in_any_order(job);
    } else if (is(message, "anew")) {
        return say_anew(job);
    } else if (is(message, "call at once")) {
        return call_at_once(job);
    }
    if (fm_kit_job_accept(job, 5) != FM_REASON_NONE) {
        return FM_REASON_LENGTH;
    }
    fm_kit_job_progress(job, 5, 2);
    if (is(message, "wait")) {
        return fm_kit_job_sleep(job, WAIT_MS) ? FM_REASON_ABORTED : FM_REASON_STOP;
    } else if (is(message, "think")) {
        return think(job, false);
    } else if (is(message, "think on")) {
        return think(job, true);
    } else if (is(message, "hang")) {
        for (;;) {
            fm_sleep_ms(WAIT_MS);
        }
    } else if (is(message, "long")) {
        reason = long_token(job, 'x', 300000);
    } else if (is(message, "too long")) {
        reason = long_token(job, 'x', 18u << 20);
    } else if (is(message, "too long as JSON")) {
        reason = long_token(job, '\x01', 1900000);
    } else if (is(message, "mismatch")) {
        fm_buf_append_str(&job->schema_error, "a \"b\"");
        snprintf(job->unknown_tool, sizeof job->unknown_tool, "get_wether");
    } else if (is(message, "long mismatch")) {
        append_many(&job->schema_error, FM_SCHEMA_ERROR_MAX + 1);
    } else if (is(message, "call")) {
        reason = call_tools(job, "ab");
    } else if (is(message, "held") || is(message, "held call")) {
        reason = tell_held(job, is(message, "held call"));
    } else if (is(message, "gather")) {
        reason = gather(kit, job);
    } else if (is(message, "raw")) {
        fm_kit_write_raw(kit, "raw", 3);
    } else {
        for (size_t i = 0; i < message->content_len && !reason; i++) {
            reason = fm_kit_job_token(job, &message->content[i], 1);
        }
    }
    return reason ? reason : FM_REASON_STOP;
}

static void run(struct fm_kit *kit, struct fm_kit_job *job) {
    struct fm_error error;
    bool embeds = job->inputs != NULL;
    enum fm_reason reason = embeds ? embed(job, &error) : work(kit, job);
    fm_kit_job_finish(job, reason, embeds ? &error : NULL);
}

static void serve(void *state, struct fm_kit *kit) {
    struct fm_kit_job *job;
    (void)state;
    while ((job = fm_kit_take(kit, true))) {
        struct fm_kit_job *other = fm_kit_take(kit, false);
        run(kit, job);
        if (other) {
            run(kit, other);
        }
    }
}

static void *wake(void *kit) {
    fm_kit_wake(kit);
    return NULL;
}

/* Runs one job at a time. The job ends when it is aborted, or at a wake. */
static void serve_within(void *state, struct fm_kit *kit) {
    struct fm_kit_job *held = NULL;
    (void)state;
    while (!fm_kit_ending(kit)) {
        struct fm_kit_job *job = fm_kit_take_within(kit, WAIT_MS);
        if (job) {
            held = fm_kit_job_accept(job, 1) == FM_REASON_NONE ? job : NULL;
            if (is(&job->messages[0], "wake") && fm_thread_start(wake, kit) != 0) {
                _exit(1);
            }
        } else if (held) {
            fm_kit_job_finish(held, fm_kit_job_aborted(held) ? FM_REASON_ABORTED : FM_REASON_STOP, NULL);
            held = NULL;
        }
    }
}

static void tell_available(void *state, struct fm_kit *kit, struct fm_availability *out) {
    static const struct fm_listed_model models[] = {{"a", 9}, {"b", 0}};
    (void)state;
    (void)kit;
    out->available = true;
    out->models = models;
    out->model_count = 2;
    out->ttl_ms = 5;
}

static enum fm_code load(void *state, struct fm_kit *kit, const struct fm_model_files *files,
                         struct fm_model_info *info, struct fm_error *error) {
    (void)state;
    fm_kit_load_progress(kit, 0.5);
    if (files->model) {
        enum fm_code code = fm_fail(error, FM_UNAVAILABLE, "%s: no such model", files->model);
        snprintf(error->param, sizeof error->param, "model");
        return code;
    }
    *info = (struct fm_model_info){.context_length = 100, .slots = 2};
    return FM_OK;
}

static struct fm_engine_ops ops = {
    .name = "test",
    .version = "7",
    .slots = 2,
    .features = FM_FEATURES_OF_SAMPLING | FM_FEATURE_GRAMMARS | FM_FEATURE_INPUT_TOKENS | FM_FEATURE_TRUNCATION |
                FM_FEATURE_PREFILL | FM_FEATURE_DECISIONS,
    .extras = true,
    .load = load,
    .serve = serve,
};

/* ---- the front's side ---- */

struct engine {
    pid_t pid;
    int to;
    int from;
    struct fm_framer framer;
    char bytes[65536];
    const char *at;
    size_t left;
};

static struct engine engine;

static void start(void) {
    int in[2];
    int out[2];
    engine = (struct engine){.left = 0};
    assert_int_equal(fm_pipe(&in[0], &in[1]), 0);
    assert_int_equal(fm_pipe(&out[0], &out[1]), 0);
    fflush(NULL);
    engine.pid = fork();
    assert_true(engine.pid >= 0);
    if (engine.pid == 0) {
        signal(SIGPIPE, SIG_DFL);
        (void)__real_dup2(in[0], STDIN_FILENO);
        (void)__real_dup2(out[1], STDOUT_FILENO);
        close(in[1]);
        close(out[0]);
        faults = planned;
        _exit(fm_kit_main(&ops, 0, NULL));
    }
    close(in[0]);
    close(out[1]);
    engine.to = in[1];
    engine.from = out[0];
    fm_framer_init(&engine.framer);
}

static void say_raw(const char *bytes, size_t len) {
    assert_true(fm_write_all(engine.to, bytes, len));
}

static void say(const char *json) {
    char frame[4096];
    int len = snprintf(frame, sizeof frame, "Content-Length: %zu\r\n\r\n%s", strlen(json), json);
    assert_true(len > 0 && (size_t)len < sizeof frame);
    say_raw(frame, (size_t)len);
}

/* The next body, NUL-terminated; NULL at the end of the engine's output, which must not be inside a frame. */
static const char *hear(void) {
    static char *text;
    const char *body;
    size_t len;
    enum fm_frame_event event;
    free(text);
    text = NULL;
    while ((event = fm_framer_next(&engine.framer, &engine.at, &engine.left, &body, &len)) == FM_FRAME_MORE) {
        struct pollfd poll_fd = {.fd = engine.from, .events = POLLIN};
        assert_int_equal(__real_poll(&poll_fd, 1, WAIT_MS), 1);
        ssize_t got = fm_read(engine.from, engine.bytes, sizeof engine.bytes);
        if (got <= 0) {
            assert_true(fm_framer_at_boundary(&engine.framer));
            return NULL;
        }
        engine.at = engine.bytes;
        engine.left = (size_t)got;
    }
    assert_int_equal(event, FM_FRAME_BODY);
    text = strndup(body, len);
    assert_non_null(text);
    return text;
}

/*
 * Returns the next body, but skips progress reports about tokens whose text is held back. Except for the first token,
 * these reports come after 100 ms without an event, so by chance.
 */
static const char *hear_past_signs(void) {
    const char *body = hear();
    while (body && strstr(body, "job.progress") && strstr(body, "\"output_tokens\":") &&
           !strstr(body, "\"output_tokens\":1}")) {
        body = hear();
    }
    return body;
}

/* Checks that the next body contains all of these words. */
#define expect(...) expect_words((const char *const[]){__VA_ARGS__, NULL})

static void expect_words(const char *const *words) {
    const char *body = hear_past_signs();
    for (; *words; words++) {
        if (!body || !strstr(body, *words)) {
            fail_msg("no %s in %.300s", *words, body ? body : "nothing");
        }
    }
}

static int exit_status(void) {
    int status = 0;
    int64_t deadline = fm_now_ms() + WAIT_MS;
    while (waitpid(engine.pid, &status, WNOHANG) == 0) {
        if (fm_now_ms() > deadline) {
            kill(engine.pid, SIGKILL);
        }
        fm_sleep_ms(1);
    }
    close(engine.from);
    fm_framer_free(&engine.framer);
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

/* Reads the rest of the output, but only checks its frames. */
static int hang_up(void) {
    close(engine.to);
    while (hear()) {
    }
    return exit_status();
}

static void start_loaded(void) {
    start();
    say(INIT);
    expect("\"id\":1,\"result\":{\"ok\":true,\"protocol_version\":1,\"name\":\"test\",\"version\":\"7\",\"slots\":2,"
           "\"models\":\"own\",\"features\":[",
           ops.extras ? "\"parameters\":[\"top_k\",\"min_p\",\"repeat_penalty\",\"ignore_eos\"],\"sandbox\":{"
                      : "\"parameters\":[],\"sandbox\":{");
    say(LOAD);
    expect("engine.load_progress", "0.5");
    expect("\"id\":2,\"result\":{\"ok\":true,\"context_length\":100,\"slots\":2}");
}

/* ---- engines that count no tokens, or that wait outside of the kit ---- */

static void pieces(void **state) {
    (void)state;
    start_loaded();
    say(JOB(1, "pieces", ""));
    expect("job.accepted", "{\"job\":1}");
    expect("job.reasoning", "{\"job\":1,\"text\":\"hm\"}");
    expect("job.state", "{\"job\":1,\"state\":\"S\"}");
    expect("job.delta", "{\"job\":1,\"text\":\"a\"}");
    expect("job.delta", "{\"job\":1,\"text\":\"\xC3\xA9\"}");
    expect("job.refusal", "{\"job\":1,\"text\":\"no\"}");
    expect("job.finished", "\"reason\":\"stop\"", "\"usage\":{\"input_tokens\":7,\"output_tokens\":3}");
    assert_int_equal(hang_up(), 0);
}

static void an_answer_that_is_made_anew(void **state) {
    (void)state;
    ops.features |= FM_FEATURE_TOOLS;
    ops.features |= FM_FEATURE_RESTARTS;
    start_loaded();
    say(JOB(1, "anew", ",\"restartable\":true,\"stop\":[\"END\"],\"tools\":[{\"name\":\"g\"}]"));
    expect("job.accepted", "{\"job\":1,\"input_tokens\":7}");
    expect("job.reasoning", "\"text\":\"hm\"");
    expect("job.delta", "\"text\":\"a \"");
    expect("job.restarted", "{\"job\":1,\"error\":{\"code\":\"OVERLOADED\",\"detail\":\"gone\"}}");
    expect("job.accepted", "{\"job\":1,\"input_tokens\":8}");
    expect("job.delta", "\"text\":\"D b\"");
    expect("job.tool_call", "{\"job\":1,\"index\":0,\"name\":\"g\"}");
    expect("job.tool_delta", "\"arguments\":\"{\"");
    expect("job.restarted");
    expect("job.accepted", "{\"job\":1,\"input_tokens\":9}");
    expect("job.delta", "{\"job\":1,\"text\":\"c\",\"output_tokens\":1}");
    expect("job.delta", "{\"job\":1,\"text\":\" \",\"output_tokens\":2}");
    expect("job.finished", "\"reason\":\"stop\"",
           "\"usage\":{\"input_tokens\":9,\"cached_tokens\":0,\"output_tokens\":2,\"reasoning_tokens\":0}");
    ops.features &= ~(unsigned)FM_FEATURE_TOOLS;
    ops.features &= ~(unsigned)FM_FEATURE_RESTARTS;
    assert_int_equal(hang_up(), 0);
}

static void parts_in_any_order(void **state) {
    (void)state;
    ops.features |= FM_FEATURE_TOOLS;
    ops.any_order = true;
    start_loaded();
    say(JOB(1, "any order", ",\"stop\":[\"END\"],\"tools\":[{\"name\":\"g\"}]"));
    expect("job.accepted");
    expect("job.delta", "\"text\":\"a\"");
    expect("job.tool_call", "{\"job\":1,\"index\":0,\"name\":\"g\"}");
    expect("job.tool_delta", "{\"job\":1,\"index\":0,\"arguments\":\"\\\"END\\\"\"}");
    expect("job.reasoning", "\"text\":\"hm\"");
    expect("job.delta", "\"text\":\"b \"");
    expect("job.finished", "\"reason\":\"stop\"", "\"usage\":{}");
    say(JOB(2, "call at once", ",\"tools\":[{\"name\":\"g\"}]"));
    expect("job.accepted", "{\"job\":2,\"input_tokens\":7}");
    expect("job.tool_call", "{\"job\":2,\"index\":0,\"name\":\"g\"}");
    expect("job.tool_delta", "{\"job\":2,\"index\":0,\"arguments\":\"{}\"}");
    expect("job.finished");
    ops.features &= ~(unsigned)FM_FEATURE_TOOLS;
    ops.any_order = false;
    assert_int_equal(hang_up(), 0);
}

static void aborts_and_wakes_end_the_wait(void **state) {
    (void)state;
    ops.serve = serve_within;
    start_loaded();
    say(JOB(1, "x", ""));
    expect("job.accepted");
    say(NOTE("job.abort", "{\"job\":1}"));
    expect("job.finished", "aborted");
    say(JOB(2, "wake", ""));
    expect("job.accepted");
    expect("job.finished", "\"reason\":\"stop\"");
    ops.serve = serve;
    assert_int_equal(hang_up(), 0);
}

static void availability(void **state) {
    (void)state;
    start();
    say(CALL(1, "engine.available", "{}"));
    expect("\"id\":1", "engine.available came before engine.initialize");
    say(INIT);
    expect("\"id\":1");
    say(CALL(2, "engine.available", "{}"));
    expect("\"id\":2,\"result\":{\"ok\":true,\"available\":true}");
    assert_int_equal(hang_up(), 0);
    ops.available = tell_available;
    start();
    say(INIT);
    expect("\"availability\"");
    say(CALL(2, "engine.available", "{}"));
    expect("{\"ok\":true,\"available\":true,\"models\":[{\"id\":\"a\",\"context_length\":9},{\"id\":\"b\"}],\"ttl_ms\":"
           "5}");
    ops.available = NULL;
    assert_int_equal(hang_up(), 0);
}

/* Each refusal names the member that the engine does not support, and says that another engine may do the job. */
static void what_an_engine_lacks(void **state) {
    static const struct {
        unsigned lack; /* 0: the extras */
        const char *job;
        const char *param;
    } rows[] = {
        {FM_FEATURE_SEEDS, JOB(1, "x", ",\"seed\":1"), "seed"},
        {FM_FEATURE_STOPS, JOB(1, "x", ",\"stop\":[\"a\"]"), "stop"},
        {FM_FEATURE_PENALTIES, JOB(1, "x", ",\"presence_penalty\":1"), "presence_penalty"},
        {FM_FEATURE_PENALTIES, JOB(1, "x", ",\"frequency_penalty\":1"), "frequency_penalty"},
        {FM_FEATURE_LOGIT_BIAS, JOB(1, "x", ",\"logit_bias\":[[1,1]]"), "logit_bias"},
        {FM_FEATURE_LOGPROBS, JOB(1, "x", ",\"logprobs\":0"), "logprobs"},
        {FM_FEATURE_INPUT_TOKENS, JOB(1, "x", ",\"max_tokens\":0"), "max_tokens"},
        {FM_FEATURE_PREFILL, JOB(1, "x", ",\"generate\":false"), "generate"},
        {FM_FEATURE_DECISIONS, JOB(1, "x", ",\"questions\":[{\"text\":\"q\",\"choices\":[\"a\",\"b\"]}]"), "questions"},
        {0, JOB(1, "x", ",\"top_k\":1"), "top_k"},
        {0, JOB(1, "x", ",\"min_p\":0"), "min_p"},
        {0, JOB(1, "x", ",\"repeat_penalty\":1.5"), "repeat_penalty"},
        {0, JOB(1, "x", ",\"ignore_eos\":true"), "ignore_eos"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        char param[64];
        snprintf(param, sizeof param, "\"param\":\"%s\",\"elsewhere\":true}", rows[i].param);
        ops.features ^= rows[i].lack;
        ops.extras = rows[i].lack != 0;
        start_loaded();
        say(rows[i].job);
        expect("job.finished", "INVALID_REQUEST", param);
        ops.features ^= rows[i].lack;
        ops.extras = true;
        assert_int_equal(hang_up(), 0);
    }
}

/* Extras with neutral values need no support. */
static void neutral_extras(void **state) {
    (void)state;
    ops.extras = false;
    start_loaded();
    say(JOB(1, "x", ",\"top_k\":-1,\"repeat_penalty\":1.0,\"ignore_eos\":false"));
    expect("job.accepted");
    ops.extras = true;
    assert_int_equal(hang_up(), 0);
}

/* ---- calls ---- */

static void calls_and_their_answers(void **state) {
    (void)state;
    static const struct {
        const char *sent;
        const char *expected; /* NULL: there is no answer; the next row's answer shows this */
    } rows[] = {
        {CALL(1, "engine.load", "{\"model\":null}"), "engine.load came before engine.initialize"},
        {JOB(1, "x", ""), "job.start came before a model was loaded"},
        {JOB(2, "x", ",\"max_tokens\":-1"), "job.start: max_tokens: an integer from 0 is expected"},
        {CALL(2, "engine.initialize", "{}"), "protocol_version: an integer is expected"},
        {CALL(3, "engine.initialize", "{\"protocol_version\":\"1\"}"), "protocol_version: an integer is expected"},
        {CALL(4, "engine.initialize", "{\"protocol_version\":2}"), "speaks engine protocol version 1, not 2"},
        {CALL(5, "engine.initialize", "{\"protocol_version\":1,\"log_level\":5}"), "log_level: a level's name"},
        {CALL(6, "engine.initialize", "{\"protocol_version\":1,\"log_level\":\"loud\"}"), "log_level: a level's name"},
        {CALL(7, "engine.initialize", "[]"), "\"id\":7,\"error\":{\"code\":-32602"},
        {"{\"jsonrpc\":\"2.0\",\"id\":8,\"method\":\"engine.load\"}", "\"id\":8,\"error\":{\"code\":-32602"},
        {CALL(9, "engine.nonsense", "{}"), "\"id\":9,\"error\":{\"code\":-32601"},
        {CALL(10, "engine.loaD", "{}"), "\"id\":10,\"error\":{\"code\":-32601"},
        {CALL(11, "job.start", "{}"), "\"id\":11,\"error\":{\"code\":-32601"},
        {NOTE("engine.initialize", "{\"protocol_version\":1}"), NULL},
        {NOTE("engine.nonsense", "{}"), NULL},
        {NOTE("job.start", "[]"), NULL},
        {NOTE("job.start", "{" MESSAGES("x") "}"), NULL},
        {NOTE("job.start", "{\"job\":\"1\"," MESSAGES("x") "}"), NULL},
        {NOTE("job.abort", "{}"), NULL},
        {NOTE("job.abort", "{\"job\":99}"), NULL},
        {"{\"jsonrpc\":\"2.0\",\"id\":5,\"result\":{}}", NULL},
        {"{\"jsonrpc\":\"2.0\",\"id\":", "\"id\":null,\"error\":{\"code\":-32700"},
        {"[]", "\"id\":null,\"error\":{\"code\":-32600"},
        {CALL(20, "engine.initialize", "{\"protocol_version\":1,\"log_level\":\"error\"}"),
         "\"id\":20,\"result\":{\"ok\":true"},
        {CALL(21, "engine.initialize", "{\"protocol_version\":1}"), "engine.initialize was called before"},
        {CALL(22, "engine.load", "{\"model\":5}"), "model: a path or null is expected"},
        {CALL(23, "engine.load", "{\"model\":\"a\\u0000b\"}"), "model: a path or null is expected"},
        {CALL(24, "engine.load", "{\"model\":\"/m\"}"), "engine.load_progress"},
        {"", "\"code\":\"UNAVAILABLE\",\"detail\":\"/m: no such model\",\"param\":\"model\""},
        {CALL(25, "engine.load", "{}"), "engine.load_progress"},
        {"", "\"id\":25,\"result\":{\"ok\":true"},
        {CALL(26, "engine.load", "{\"model\":null}"), "a model is loaded already"},
    };
    start();
    for (size_t i = 0; i < COUNT(rows); i++) {
        if (rows[i].sent[0]) {
            say(rows[i].sent);
        }
        if (rows[i].expected) {
            expect(rows[i].expected);
        }
    }
    assert_int_equal(hang_up(), 0);
}

/* ---- jobs ---- */

static void a_job_tells_all(void **state) {
    (void)state;
    start_loaded();
    say(JOB(1, "ab", ""));
    expect("job.accepted", "{\"job\":1,\"input_tokens\":5}");
    expect("job.progress", "{\"job\":1,\"processed\":5,\"cached\":2}");
    expect("job.delta", "\"text\":\"a\",\"output_tokens\":1");
    expect("job.delta", "\"text\":\"b\",\"output_tokens\":2");
    expect("job.finished", "\"reason\":\"stop\"",
           "\"usage\":{\"input_tokens\":5,\"cached_tokens\":2,\"output_tokens\":2,\"reasoning_tokens\":0}");
    assert_int_equal(hang_up(), 0);
}

static void reasons(void **state) {
    (void)state;
    static const struct {
        const char *job;
        const char *text; /* the text of the one delta that matters; NULL: none */
        bool held;        /* the first token has no text yet */
        const char *end;
    } rows[] = {
        {JOB(1, "abc", ",\"max_tokens\":1"), "\"a\"", false, "\"reason\":\"length\""},
        {JOB(2, "abc", ",\"stop\":[\"b\"]"), "\"a\"", false, "\"reason\":\"stop\""},
        {JOB(3, "", ""), NULL, false, "\"reason\":\"stop\""},
        {JOB(4, "ab", ",\"stop\":[\"abc\"]"), "\"ab\"", true, "\"reason\":\"stop\""},
        {JOB(5, "too long", ""), NULL, false, "\"reason\":\"error\""},
        {JOB(6, "too long as JSON", ""), NULL, false, "\"reason\":\"error\""},
    };
    start_loaded();
    for (size_t i = 0; i < COUNT(rows); i++) {
        say(rows[i].job);
        expect("job.accepted");
        expect("job.progress");
        if (rows[i].held) {
            expect("job.progress", "\"processed\":5,\"cached\":2,\"output_tokens\":1}");
        }
        if (rows[i].text) {
            expect("job.delta", rows[i].text);
        }
        expect("job.finished", rows[i].end);
    }
    say(JOB(7, "abc", ",\"max_tokens\":0"));
    expect("job.accepted");
    expect("job.finished", "\"reason\":\"length\"");
    say(JOB(8, "a", "")); /* the kit continues after all these jobs */
    expect("job.accepted");
    assert_int_equal(hang_up(), 0);
}

static void a_long_delta_is_one_frame(void **state) {
    (void)state;
    start_loaded();
    say(JOB(1, "long", ""));
    expect("job.accepted");
    expect("job.progress");
    const char *body = hear();
    assert_non_null(body);
    assert_true(strlen(body) > 300000);
    expect("job.finished", "\"reason\":\"stop\"");
    assert_int_equal(hang_up(), 0);
}

/* Frames come in their order, and in as few writes as possible. */
static void gathered_frames(void **state) {
    (void)state;
    start_loaded();
    say(JOB(1, "gather", ""));
    expect("job.accepted");
    expect("job.progress");
    expect("job.delta", "\"text\":\"a\"");
    expect("job.delta", "\"text\":\"b\"");
    const char *body = hear();
    assert_non_null(body);
    assert_true(strlen(body) > 20000);
    expect("job.delta", "\"text\":\"c\"");
    expect("job.delta", "\"text\":\"0 2 3\"");
    expect("job.finished", "\"reason\":\"stop\"");
    assert_int_equal(hang_up(), 0);
}

/* With an interval, the first token is reported at once and the rest at the end. */
static void deltas_are_an_interval_apart(void **state) {
    (void)state;
    ops.delta_ms = INT64_MAX / 2; /* longer than the machine has been running */
    start_loaded();
    ops.delta_ms = 0;
    say(JOB(1, "abcdef", ""));
    expect("job.accepted");
    expect("job.progress");
    expect("job.delta", "\"text\":\"a\",\"output_tokens\":1");
    expect("job.delta", "\"text\":\"bcdef\",\"output_tokens\":6");
    expect("job.finished", "\"reason\":\"stop\"");
    assert_int_equal(hang_up(), 0);
}

#define SCHEMA ",\"format\":{\"type\":\"json_schema\",\"schema\":{}}"

static void formats(void **state) {
    (void)state;
    ops.features |= FM_FEATURE_STRUCTURED_OUTPUT;
    start_loaded();
    ops.features &= ~(unsigned)FM_FEATURE_STRUCTURED_OUTPUT;
    say(JOB(1, "", SCHEMA));
    expect("job.accepted", "\"input_tokens\":5,\"schema_report\":{\"enforced\":[\"type\"],\"checked\":[]}}");
    expect("job.progress");
    expect("job.finished", "\"reason\":\"stop\"", "\"reasoning_tokens\":0}}}");
    say(JOB(2, "mismatch", SCHEMA));
    expect("job.accepted");
    expect("job.progress");
    expect("job.finished", "\"reason\":\"stop\"",
           "\"schema_error\":\"a \\\"b\\\"\",\"unknown_tool\":\"get_wether\"}");
    say(JOB(3, "", ",\"format\":{\"type\":\"json_object\"}"));
    expect("job.accepted", "\"input_tokens\":5}");
    expect("job.progress");
    expect("job.finished");
    say(JOB(4, "", ",\"format\":{\"type\":\"xml\"}"));
    expect("job.finished", "\"code\":\"INVALID_REQUEST\"", "\"param\":\"format.type\"");
    say(JOB(5, "xyz", SCHEMA ",\"stop\":[\"y\"]"));
    expect("job.accepted");
    expect("job.progress");
    expect("job.delta", "\"text\":\"x\"");
    expect("job.finished", "\"reason\":\"stop\"",
           "\"schema_error\":\"a stop string cut the text before it was whole\"}");
    say(JOB(6, "xyz", ",\"format\":{\"type\":\"json_object\"},\"stop\":[\"y\"]"));
    expect("job.accepted");
    expect("job.progress");
    expect("job.delta", "\"text\":\"x\"");
    expect("job.finished", "\"reason\":\"stop\"", "\"reasoning_tokens\":0}}}");
    assert_int_equal(hang_up(), 0);
}

/* An engine without formats never gets a job with one. */
static void an_engine_without_formats(void **state) {
    (void)state;
    static const char *const jobs[] = {
        JOB(1, "x", SCHEMA), JOB(2, "x", ",\"format\":{\"type\":\"json_object\"}"),
        JOB(3, "x", ",\"format\":{\"type\":\"grammar\",\"syntax\":\"regex\",\"definition\":\"x\"}")};
    start_loaded();
    for (size_t i = 0; i < COUNT(jobs); i++) {
        say(jobs[i]);
        expect(
            "job.finished", "\"reason\":\"error\"",
            "\"error\":{\"code\":\"INVALID_REQUEST\",\"detail\":\"the engine test can't hold its output to a format; "
            "the llama engine can if it is built with Rust: run sh packaging/setup.sh in its clone\","
            "\"param\":\"format\",\"elsewhere\":true}");
    }
    say(NOTE("job.start", "{\"job\":4,\"prompt\":\"a\"}"));
    expect("job.finished",
           "\"detail\":\"the engine test takes only messages\",\"param\":\"prompt\",\"elsewhere\":true}");
    say(JOB(5, "", ",\"format\":null"));
    expect("job.accepted");
    assert_int_equal(hang_up(), 0);
}

#define TOOLS ",\"tools\":[{\"name\":\"g\"},{\"name\":\"h\"}]"

/* Arguments come in whole characters, and stop strings have no effect in them; text that was held back comes before. */
static void tool_calls(void **state) {
    (void)state;
    ops.features |= FM_FEATURE_TOOLS;
    start_loaded();
    ops.features &= ~(unsigned)FM_FEATURE_TOOLS;
    say(JOB(1, "call", TOOLS ",\"stop\":[\"abc\",\"{\"]"));
    expect("job.accepted");
    expect("job.progress");
    expect("job.progress", "\"output_tokens\":1}"); /* the text is held back */
    expect("job.delta", "{\"job\":1,\"text\":\"ab\",\"output_tokens\":2}");
    expect("job.tool_call", "{\"job\":1,\"index\":0,\"name\":\"g\",\"output_tokens\":2}");
    static const char *const pieces[] = {"{", "\\\"", "a", "\\\"", ":", "\\\"", "\xC3\xA9", "\\\"", "}"};
    for (size_t i = 0; i < COUNT(pieces); i++) {
        char event[128];
        snprintf(event, sizeof event, "{\"job\":1,\"index\":0,\"arguments\":\"%s\",\"output_tokens\":%zu}", pieces[i],
                 i + (i < 6 ? 3 : 4));
        expect("job.tool_delta", event);
    }
    expect("job.tool_call", "{\"job\":1,\"index\":1,\"name\":\"h\",\"output_tokens\":13}");
    expect("job.finished", "\"reason\":\"stop\"", "\"output_tokens\":15");
    say(JOB(2, "call", TOOLS ",\"max_tokens\":4")); /* this is the second token of the arguments */
    expect("job.accepted");
    expect("job.progress");
    expect("job.delta", "\"a\"");
    expect("job.delta", "\"b\"");
    expect("job.tool_call", "\"g\"");
    expect("job.tool_delta", "{");
    expect("job.tool_delta", "\\\"", "\"output_tokens\":4");
    expect("job.finished", "\"reason\":\"length\"");
    assert_int_equal(hang_up(), 0);
}

/* Thoughts are reported like text. Stop strings have no effect in them; their tokens, tags included, are counted. An
 * incomplete character at the end is dropped. */
static void reasoning(void **state) {
    (void)state;
    start_loaded();
    say(JOB(1, "think", ",\"stop\":[\"abc\"]"));
    expect("job.accepted");
    expect("job.progress");
    expect("job.progress", "\"output_tokens\":1}");
    expect("job.reasoning", "{\"job\":1,\"text\":\"abc\",\"output_tokens\":2}");
    expect("job.reasoning", "{\"job\":1,\"text\":\"\xC3\xA9 abc\",\"output_tokens\":3}");
    expect("job.delta", "{\"job\":1,\"text\":\"x\",\"output_tokens\":6}");
    expect("job.finished", "\"reason\":\"stop\"", "\"output_tokens\":6,\"reasoning_tokens\":4}");
    say(JOB(2, "think on", ""));
    expect("job.accepted");
    expect("job.progress");
    expect("job.progress", "\"output_tokens\":1}");
    expect("job.reasoning", "\"abc\"");
    expect("job.reasoning", "\"\xC3\xA9 abc\"");
    expect("job.finished", "\"reason\":\"length\"", "\"reasoning_tokens\":3}");
    assert_int_equal(hang_up(), 0);
}

/*
 * Text that an engine holds back is not a token. It is sent with the next token, or at the end, and stop strings apply
 * to it.
 */
static void held_text(void **state) {
    (void)state;
    ops.features |= FM_FEATURE_TOOLS;
    start_loaded();
    ops.features &= ~(unsigned)FM_FEATURE_TOOLS;
    say(JOB(1, "held", ""));
    expect("job.accepted");
    expect("job.progress");
    expect("job.delta", "\"text\":\"ab\",\"output_tokens\":1}");
    expect("job.delta", "\"text\":\"c\",\"output_tokens\":1}");
    expect("job.finished", "\"reason\":\"stop\"", "\"output_tokens\":1");
    say(JOB(2, "held", ",\"stop\":[\"b\"]"));
    expect("job.accepted");
    expect("job.progress");
    expect("job.delta", "\"text\":\"a\",\"output_tokens\":0}");
    expect("job.finished", "\"reason\":\"stop\"", "\"output_tokens\":0");
    say(JOB(3, "held call", TOOLS ",\"stop\":[\"{\"]"));
    expect("job.accepted");
    expect("job.progress");
    expect("job.delta", "\"text\":\"ab\"");
    expect("job.tool_call", "\"name\":\"g\"");
    expect("job.tool_delta", "\"arguments\":\"{\",\"output_tokens\":2}");
    expect("job.tool_delta", "\"arguments\":\"}\",\"output_tokens\":2}");
    expect("job.finished", "\"reason\":\"stop\"", "\"output_tokens\":2");
    assert_int_equal(hang_up(), 0);
}

/* With an interval, a call is reported at once, together with the text before it. */
static void tool_calls_with_an_interval(void **state) {
    (void)state;
    ops.delta_ms = INT64_MAX / 2;
    ops.features |= FM_FEATURE_TOOLS;
    start_loaded();
    ops.delta_ms = 0;
    ops.features &= ~(unsigned)FM_FEATURE_TOOLS;
    say(JOB(1, "call", TOOLS));
    expect("job.accepted");
    expect("job.progress");
    expect("job.delta", "\"text\":\"a\"");
    expect("job.delta", "\"text\":\"b\"");
    expect("job.tool_call", "\"index\":0");
    expect("job.tool_delta", "\"index\":0", "\"{\\\"a\\\":\\\"\xC3\xA9\\\"}\"", "\"output_tokens\":13");
    expect("job.tool_call", "\"index\":1");
    expect("job.finished", "\"reason\":\"stop\"");
    assert_int_equal(hang_up(), 0);
}

/* Such an engine never gets a job with tools, nor one whose messages have calls. */
static void an_engine_without_tools(void **state) {
    (void)state;
    static const char *const jobs[] = {
        JOB(1, "x", TOOLS), JOB(2, "x", TOOLS ",\"tool_choice\":{\"mode\":\"none\"}"),
        NOTE("job.start", "{\"job\":3,\"messages\":[{\"role\":\"tool\",\"content\":\"\",\"tool_call_id\":\"1\"}]}"),
        NOTE("job.start",
             "{\"job\":4,\"messages\":[{\"role\":\"assistant\",\"tool_calls\":[{\"id\":\"1\",\"name\":\"f\","
             "\"arguments\":\"{}\"}]}]}")};
    start_loaded();
    for (size_t i = 0; i < COUNT(jobs); i++) {
        say(jobs[i]);
        expect("job.finished", "\"reason\":\"error\"",
               "\"error\":{\"code\":\"INVALID_REQUEST\",\"detail\":\"the engine test can't use tools; "
               "the llama engine can if it is built with Rust: run sh packaging/setup.sh in its clone\","
               "\"param\":\"tools\",\"elsewhere\":true}");
    }
    say(JOB(5, "", ",\"parallel_tool_calls\":false"));
    expect("job.accepted");
    assert_int_equal(hang_up(), 0);
}

#define EMBED(id, texts) NOTE("job.start", "{\"job\":" #id ",\"embed\":" texts "}")

static void vectors(void **state) {
    (void)state;
    ops.features |= FM_FEATURE_EMBEDDINGS;
    start_loaded();
    ops.features &= ~(unsigned)FM_FEATURE_EMBEDDINGS;
    say(EMBED(1, "[\"abc\",\"abc\"]"));
    expect("job.accepted", "{\"job\":1,\"input_tokens\":9,\"dimension\":2}");
    expect("job.embedding", "{\"job\":1,\"index\":0,\"vector\":\"mpkZP83MTD8=\"}"); /* 0.6 and 0.8 */
    expect("job.embedding", "{\"job\":1,\"index\":1,\"vector\":\"mpkZP83MTD8=\"}");
    expect("job.finished", "\"reason\":\"stop\"", "\"input_tokens\":9", "\"output_tokens\":0");
    say(EMBED(2, "[\"abc\",\"0\",\"abc\"]"));
    expect("job.accepted");
    expect("job.embedding", "\"index\":0");
    expect("job.finished", "\"reason\":\"error\"", "\"INTERNAL\"", "\"param\":\"embed[1]\"");
    assert_int_equal(hang_up(), 0);
}

/* An engine whose model does not support images never gets a job with images. */
static void a_model_that_does_not_see(void **state) {
    (void)state;
    start_loaded();
    say(NOTE("job.start",
             "{\"job\":1,\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"image\",\"data\":\"AA==\"}]}]}"));
    expect("job.finished", "\"detail\":\"the model does not see images\",\"param\":\"images[0]\",\"elsewhere\":true}");
    assert_int_equal(hang_up(), 0);
}

static void an_engine_without_embeddings(void **state) {
    (void)state;
    start_loaded();
    say(EMBED(1, "[\"abc\"]"));
    expect("job.finished", "\"reason\":\"error\"",
           "\"error\":{\"code\":\"INVALID_REQUEST\",\"detail\":\"the engine test can't embed texts\","
           "\"param\":\"embed\",\"elsewhere\":true}");
    assert_int_equal(hang_up(), 0);
}

/* A report that does not fit is not left out: otherwise the front would misunderstand its absence. */
static void a_report_that_does_not_fit(void **state) {
    (void)state;
    static const char *const jobs[] = {JOB(1, "long report", ""), JOB(1, "long mismatch", "")};
    for (size_t i = 0; i < COUNT(jobs); i++) {
        start_loaded();
        say(jobs[i]);
        while (hear()) {
        }
        assert_int_equal(exit_status(), FM_EXIT_NO_MEMORY);
        close(engine.to);
    }
}

static void aborts(void **state) {
    (void)state;
    start_loaded();
    say(JOB(1, "wait", ""));
    expect("job.accepted");
    expect("job.progress");
    say(JOB(2, "x", "")); /* this job is aborted while it waits for the first one: the engine never sees it */
    say(NOTE("job.abort", "{\"job\":2}"));
    say(NOTE("job.abort", "{\"job\":1}"));
    expect("job.finished", "\"job\":1", "\"reason\":\"aborted\"");
    expect("job.finished", "\"job\":2", "\"reason\":\"aborted\"", "\"input_tokens\":0");
    assert_int_equal(hang_up(), 0);
}

static void raw_bytes_stand_between_frames(void **state) {
    (void)state;
    start_loaded();
    say(JOB(1, "raw", ""));
    expect("job.accepted");
    expect("job.progress");
    const char *body;
    size_t len;
    enum fm_frame_event event;
    char bytes[512];
    while ((event = fm_framer_next(&engine.framer, &engine.at, &engine.left, &body, &len)) == FM_FRAME_MORE) {
        ssize_t got = fm_read(engine.from, bytes, sizeof bytes);
        assert_true(got > 0);
        engine.at = bytes;
        engine.left = (size_t)got;
    }
    assert_int_equal(event, FM_FRAME_BROKEN); /* "rawContent-Length: ..." is not a valid length */
    close(engine.to);
    assert_int_equal(exit_status(), 0);
}

/* ---- the end ---- */

static void ends(void **state) {
    (void)state;
    static const struct {
        const char *name;
        const char *last;
        size_t len;
        int status;
    } rows[] = {
        {"end of input", BYTES(""), 0},
        {"in a header", BYTES("Content-"), FM_EXIT_PROTOCOL},
        {"in a body", BYTES("Content-Length: 5\r\n\r\n{"), FM_EXIT_PROTOCOL},
        {"a broken header", BYTES("nonsense\r\n"), FM_EXIT_PROTOCOL},
        {"shutdown", BYTES("Content-Length: 44\r\n\r\n{\"jsonrpc\":\"2.0\",\"method\":\"engine.shutdown\"}"), 0},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        for (int busy = 0; busy < 3; busy++) { /* idle, with a job that notices its abort, with one that does not */
            static const char *const jobs[] = {NULL, JOB(1, "wait", ""), JOB(1, "hang", "")};
            start_loaded();
            if (jobs[busy]) {
                say(jobs[busy]);
                expect("job.accepted");
            }
            bool shutdown = strcmp(rows[i].name, "shutdown") == 0; /* after a shutdown, the input need not end */
            say_raw(rows[i].last, rows[i].len);
            int64_t before = fm_now_ms();
            if (!shutdown) {
                close(engine.to);
            }
            while (hear()) {
            }
            int status = exit_status();
            if (shutdown) {
                close(engine.to);
            }
            if (status != rows[i].status || fm_now_ms() - before > WAIT_MS / 2) {
                fail_msg("%s, %s: status %d after %lld ms", rows[i].name, jobs[busy] ? jobs[busy] : "idle", status,
                         (long long)(fm_now_ms() - before));
            }
        }
    }
}

static void ends_with_its_front(void **state) {
    (void)state;
    start_loaded();
    int null_fd = engine.from; /* nobody reads the engine's events any more */
    close(null_fd);
    int fds[2];
    assert_int_equal(fm_pipe(&fds[0], &fds[1]), 0);
    engine.from = fds[0];
    say(JOB(1, "abc", ""));
    int64_t deadline = fm_now_ms() + WAIT_MS;
    int status;
    while (waitpid(engine.pid, &status, WNOHANG) == 0 && fm_now_ms() < deadline) {
        fm_sleep_ms(1);
    }
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    close(engine.to);
    close(fds[0]);
    close(fds[1]);
    fm_framer_free(&engine.framer);
}

static void sigterm_ends_it(void **state) {
    (void)state;
    start_loaded();
    kill(engine.pid, SIGTERM);
    while (hear()) {
    }
    assert_int_equal(exit_status(), 0);
    close(engine.to);
}

/* ---- what the system refuses ---- */

static void a_start_that_fails(void **state) {
    (void)state;
    static const struct {
        const char *call;
        int skip;
    } rows[] = {
        {"pipe2", 0},
        {"pipe2", 1},
        {"dup2", 0},
        {"pthread_create", 0},
        {"pthread_create", 1},
        {"pthread_create", 2},
        {"pthread_mutex_init", 0},
        {"pthread_mutex_init", 1},
        {"pthread_condattr_init", 0},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        planned = (struct faults){.call = rows[i].call, .skip = rows[i].skip};
        start();
        planned = (struct faults){.call = NULL};
        int status = hang_up();
        if (status != FM_EXIT_NO_MEMORY) {
            fail_msg("%s %d: exit status %d", rows[i].call, rows[i].skip, status);
        }
    }
}

static void an_interrupted_watch_goes_on(void **state) {
    (void)state;
    /* the polls of the watch on the parent, of the watch for the end, and of the reader */
    for (int skip = 0; skip < 3; skip++) {
        planned = (struct faults){.call = "poll", .skip = skip};
        start_loaded();
        planned = (struct faults){.call = NULL};
        assert_int_equal(hang_up(), 0);
    }
}

/*
 * Runs a whole session in which the Nth allocation fails. It must end normally, or with the status for missing memory.
 */
static bool session(int allocations, bool all_after) {
    planned = (struct faults){.memory = true, .for_good = all_after, .allocations = allocations};
    ops.features |= FM_FEATURE_TOOLS;
    ops.features |= FM_FEATURE_EMBEDDINGS;
    start();
    ops.features &= ~(unsigned)FM_FEATURE_TOOLS;
    ops.features &= ~(unsigned)FM_FEATURE_EMBEDDINGS;
    planned = (struct faults){.call = NULL};
    signal(SIGPIPE, SIG_IGN);
    static const char *const messages[] = {
        INIT,
        LOAD,
        JOB(1, "ab", ",\"stop\":[\"xyz\",\"b\"]"),
        "{\"jsonrpc\":",
        JOB(2, "long", ""),
        JOB(3, "call", TOOLS),
        EMBED(4, "[\"abc\"]"),
    };
    char bytes[4096];
    size_t len = 0;
    for (size_t i = 0; i < COUNT(messages); i++) {
        len += (size_t)snprintf(bytes + len, sizeof bytes - len, "Content-Length: %zu\r\n\r\n%s", strlen(messages[i]),
                                messages[i]);
    }
    bool taken = fm_write_all(engine.to, bytes, len);
    int finished = 0;
    int errors = 0;
    const char *body;
    while ((finished < 4 || errors < 1) && (body = hear())) {
        finished += strstr(body, "job.finished") != NULL;
        errors += strstr(body, "-32700") != NULL;
    }
    int status = hang_up();
    assert_true(status == 0 || status == FM_EXIT_NO_MEMORY);
    bool whole = taken && status == 0 && finished == 4 && errors == 1;
    assert_true(whole || status == FM_EXIT_NO_MEMORY); /* nothing is lost without a report */
    return whole;
}

static void each_allocation(void **state) {
    (void)state;
    int failed = 0;
    for (int all_after = 0; all_after < 2; all_after++) {
        int whole = 0;
        for (int i = 0; i < 200 && whole < 20; i++) { /* the kit recovers from some failures */
            bool ok = session(i, all_after);
            whole = ok ? whole + 1 : 0;
            failed += !ok;
        }
        assert_int_equal(whole, 20);
    }
    assert_true(failed > 10);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces),
        cmocka_unit_test(parts_in_any_order),
        cmocka_unit_test(an_answer_that_is_made_anew),
        cmocka_unit_test(aborts_and_wakes_end_the_wait),
        cmocka_unit_test(availability),
        cmocka_unit_test(what_an_engine_lacks),
        cmocka_unit_test(neutral_extras),
        cmocka_unit_test(calls_and_their_answers),
        cmocka_unit_test(a_job_tells_all),
        cmocka_unit_test(reasons),
        cmocka_unit_test(a_long_delta_is_one_frame),
        cmocka_unit_test(gathered_frames),
        cmocka_unit_test(deltas_are_an_interval_apart),
        cmocka_unit_test(formats),
        cmocka_unit_test(an_engine_without_formats),
        cmocka_unit_test(a_model_that_does_not_see),
        cmocka_unit_test(tool_calls),
        cmocka_unit_test(held_text),
        cmocka_unit_test(tool_calls_with_an_interval),
        cmocka_unit_test(reasoning),
        cmocka_unit_test(an_engine_without_tools),
        cmocka_unit_test(vectors),
        cmocka_unit_test(an_engine_without_embeddings),
        cmocka_unit_test(a_report_that_does_not_fit),
        cmocka_unit_test(aborts),
        cmocka_unit_test(raw_bytes_stand_between_frames),
        cmocka_unit_test(ends),
        cmocka_unit_test(ends_with_its_front),
        cmocka_unit_test(sigterm_ends_it),
        cmocka_unit_test(a_start_that_fails),
        cmocka_unit_test(an_interrupted_watch_goes_on),
        cmocka_unit_test(each_allocation),
    };
    return cmocka_run_group_tests_name("kit", tests, NULL, NULL);
}
