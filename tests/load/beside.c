/*
 * Pings during large work, all on one processor: answers of 4 MB, instructions of 4 MB, 8 streams, and with --model a
 * prompt of 2,000 tokens that a real engine reads. The host only reads the head of a message, and times begin when the
 * ping has been written, so that they are the front's times.
 */
#include "base/clock.h"
#include "figures.h"
#include "parts.h"
#include "session.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

#define STREAMS    8
#define STEPS      60 /* steps of a stream, one every TICK_MS */
#define TICK_MS    20
#define LARGE      4000000u /* bytes */
#define PROMPT     2000     /* words of one token each */
#define PARAMS_MAX (2 * LARGE)
#define PAUSE_US   2000     /* from a pong to the next ping */

#define PAUSE_LARGE_US 1000000 /* from the end of a large message to the next one of its kind */

#define P99_MS     5
#define MAX_MS     20
#define LATE_MS    30000 /* for work that is still running at the end */
#define MODEL_SIZE 256

struct work;
struct beside;

/* Work that is repeated all the time. */
struct work {
    const char *name;
    void (*write)(const struct beside *beside, const struct work *work, struct fm_json_writer *w); /* params */
    int64_t pause_us; /* from an end to the next start */
    int64_t id; /* the call's id; 0: none */
    int64_t next_us;
    unsigned times;
    bool stream;
    bool varies; /* its params are new each time */
    struct fm_buf params;
};

struct beside {
    struct host host;
    struct work works[5 + STREAMS];
    size_t count;
    int64_t last_id;
    int64_t probe;
    bool probe_out;
    int64_t probe_next_us;
    struct samples probes;
    struct fm_buf text; /* LARGE bytes of prose */
    char model[MODEL_SIZE];
};

/* ---- the calls ---- */

static const char sentence[] = "The-\"quick\"-brown-fox,-caf\xC3\xA9-in-hand,-jumps-over-the-lazy-dog.\n";

/* Many texts one after the other: each delta is a chunk of prose. */
static void write_script(struct fm_json_writer *w) {
    struct fm_buf script;
    char chunk[sizeof sentence * 20];
    size_t len = 0;
    for (int i = 0; i < 16; i++) {
        len += (size_t)snprintf(chunk + len, sizeof chunk - len, "%s", sentence);
    }
    fm_buf_init(&script, LARGE);
    struct fm_json_writer inner = fm_json_writer_on(&script);
    fm_json_array_begin(&inner);
    fm_json_object_begin(&inner);
    fm_json_key(&inner, "repeat");
    fm_json_array_begin(&inner);
    fm_json_string(&inner, chunk, len);
    fm_json_int(&inner, LARGE / (int64_t)(len + 16 * 3)); /* the length as JSON, with escapes */
    fm_json_array_end(&inner);
    fm_json_object_end(&inner);
    fm_json_array_end(&inner);
    fm_json_key(w, "input");
    fm_json_string(w, script.data, script.len);
    fm_buf_free(&script);
}

static void write_answer(const struct beside *beside, const struct work *work, struct fm_json_writer *w) {
    (void)beside;
    (void)work;
    write_script(w);
}

static void write_instructions(const struct beside *beside, const struct work *work, struct fm_json_writer *w) {
    (void)work;
    fm_json_key(w, "instructions");
    fm_json_string(w, beside->text.data, beside->text.len);
    fm_json_key_str(w, "input", "hello");
}

static void write_ticks(const struct beside *beside, const struct work *work, struct fm_json_writer *w) {
    char script[STEPS * 40];
    size_t len = 0;
    (void)beside;
    (void)work;
    for (int i = 0; i < STEPS; i++) {
        len += (size_t)snprintf(script + len, sizeof script - len, "%c\"tick \",{\"sleep_ms\":%d}", i ? ',' : '[',
                                TICK_MS);
    }
    snprintf(script + len, sizeof script - len, "]");
    fm_json_key_str(w, "input", script);
}

/* A prompt that begins unlike all earlier ones, so that the engine reads all of it. */
static void write_prompt(const struct beside *beside, const struct work *work, struct fm_json_writer *w) {
    static const char *const words[] = {" one", " two", " red", " blue", " cat", " dog", " sun", " sea"};
    char prompt[PROMPT * 6 + 16];
    size_t len = (size_t)snprintf(prompt, sizeof prompt, "%u:", work->times);
    for (unsigned i = 0; i < PROMPT; i++) {
        len += (size_t)snprintf(prompt + len, sizeof prompt - len, "%s", words[(i * 7 + work->times) % 8]);
    }
    fm_json_key_str(w, "model", beside->model);
    fm_json_key_str(w, "input", prompt);
    fm_json_key_int(w, "max_output_tokens", 16);
}

static void write_params(const struct beside *beside, struct work *work) {
    fm_buf_reset(&work->params);
    struct fm_json_writer w = fm_json_writer_on(&work->params);
    fm_json_object_begin(&w);
    work->write(beside, work, &w);
    fm_json_key_bool(&w, "stream", work->stream);
    fm_json_object_end(&w);
}

/* The text of a large message is kept and copied, because writing it again would take longer than a ping. */
static void begin(struct beside *beside, struct work *work) {
    work->id = ++beside->last_id;
    if (work->varies || !work->params.len) {
        write_params(beside, work);
    }
    struct fm_json_writer w = host_begin(&beside->host, work->id, "responses.create");
    fm_json_raw(&w, work->params.data, work->params.len);
    host_send(&beside->host);
}

static void add(struct beside *beside, const struct work *work) {
    struct work *added = &beside->works[beside->count++];
    *added = *work;
    fm_buf_init(&added->params, PARAMS_MAX);
}

/* ---- what comes ---- */

static void take_pong(struct beside *beside, int64_t id) {
    if (id != beside->probe || !beside->probe_out) {
        report_fault("an answer to ping %lld, not %lld", (long long)id, (long long)beside->probe);
    }
    beside->probe_out = false;
    beside->probe_next_us = fm_now_us() + PAUSE_US;
    samples_add(&beside->probes, fm_now_us() - beside->host.mark_us);
}

static void take(void *context, const char *body, size_t len) {
    static const char ok[] = "\"result\":{\"ok\":true";
    struct beside *beside = context;
    int64_t id = reply_id(body, len);
    if (id >= PROBE_FIRST) {
        take_pong(beside, id);
    }
    for (size_t i = 0; i < beside->count && id > 0; i++) {
        struct work *work = &beside->works[i];
        if (work->id != id) {
            continue;
        }
        if (!memmem(body, len < 64 ? len : 64, ok, sizeof ok - 1)) {
            report_fault("%s: %.*s", work->name, len < 400 ? (int)len : 400, body);
        }
        work->id = 0;
        work->times++;
        work->next_us = fm_now_us() + work->pause_us;
    }
}

/* ---- the run ---- */

static void turn(struct beside *beside, bool more) {
    int64_t now = fm_now_us();
    int64_t wake = now + 10000;
    for (size_t i = 0; i < beside->count && more; i++) {
        struct work *work = &beside->works[i];
        if (work->id == 0 && now >= work->next_us) {
            begin(beside, work);
        } else if (work->id == 0 && work->next_us < wake) {
            wake = work->next_us;
        }
    }
    if (!beside->probe_out && now >= beside->probe_next_us) {
        beside->probe_out = true;
        host_call(&beside->host, ++beside->probe, "health.ping");
        host_mark(&beside->host); /* it may have to wait for our own large messages */
    } else if (!beside->probe_out && beside->probe_next_us < wake) {
        wake = beside->probe_next_us;
    }
    host_turn(&beside->host, wake - now);
}

static bool is_busy(const struct beside *beside) {
    bool busy = beside->probe_out;
    for (size_t i = 0; i < beside->count; i++) {
        busy = busy || beside->works[i].id != 0;
    }
    return busy;
}

/* Lets everything run for a while, then waits until nothing is in flight. */
static void run(struct beside *beside, int64_t ms) {
    int64_t end = fm_now_ms() + ms;
    int64_t late = end + (int64_t)(LATE_MS * bounds.slow);
    while ((fm_now_ms() < end || is_busy(beside)) && fm_now_ms() < late && !beside->host.ended) {
        turn(beside, fm_now_ms() < end);
    }
    if (is_busy(beside)) {
        report_fault("some calls have no answer");
    }
}

/* Restricts this program, and what it starts from now on, to one processor. */
static void keep_to_one_processor(void) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    if (sched_setaffinity(0, sizeof one, &one)) {
        perror("sched_setaffinity");
    }
}

static void prepare(struct beside *beside, const struct scale *scale) {
    beside->probe = PROBE_FIRST;
    fm_buf_init(&beside->text, LARGE);
    for (int i = 1; beside->text.len + sizeof sentence < LARGE; i++) {
        bool last = i % 20 == 0; /* few lines: the fake engine's context holds 4,096 words */
        fm_buf_append(&beside->text, sentence, sizeof sentence - 1 - !last);
    }
    const struct work works[] = {
        {.name = "answers of 4 MB, streamed", .write = write_answer, .pause_us = PAUSE_LARGE_US, .stream = true},
        {.name = "answers of 4 MB, whole", .write = write_answer, .pause_us = PAUSE_LARGE_US},
        {.name = "instructions of 4 MB, streamed", .write = write_instructions, .pause_us = PAUSE_LARGE_US, .stream = true},
        {.name = "instructions of 4 MB", .write = write_instructions, .pause_us = PAUSE_LARGE_US},
    };
    for (size_t i = 0; i < sizeof works / sizeof works[0]; i++) {
        add(beside, &works[i]);
    }
    for (int i = 0; i < STREAMS; i++) {
        add(beside, &(struct work){.name = "streams", .write = write_ticks, .stream = true});
    }
    if (host_model) {
        const char *name = strrchr(host_model, '/');
        name = name ? name + 1 : host_model;
        snprintf(beside->model, sizeof beside->model, "%.*s", (int)(strlen(name) - strlen(".gguf")), name);
        add(beside, &(struct work){.name = "prompts of 2,000 tokens", .write = write_prompt, .stream = true, .varies = true});
    }
    (void)scale;
}

void part_beside(const struct scale *scale) {
    static struct beside beside;
    report_part("beside");
    prepare(&beside, scale);
    keep_to_one_processor();
    host_start(&beside.host, WIRE_SOCKET, take, &beside);
    run(&beside, 2000); /* meanwhile engines start, and memory is allocated */
    samples_free(&beside.probes);
    run(&beside, scale->beside_ms);
    for (size_t i = 0; i < beside.count; i++) {
        report_note(beside.works[i].name, beside.works[i].times, "");
    }
    report_note("MB read", (double)(beside.host.bytes_in / 1000000), "");
    report_times("ping", &beside.probes, scale->quick ? 100 : P99_MS);
    if (!scale->quick) {
        report_at_most("ping, the longest", samples_ms(&beside.probes, 1), MAX_MS, "ms");
    }
    report_note("peak RSS", (double)footprint_of(beside.host.pid).peak_kib, "KiB");
    host_hang_up(&beside.host);
    report_exactly("exit status", host_end(&beside.host, (int64_t)(2000 * bounds.slow)), 0);
    report_part_end();
    samples_free(&beside.probes);
    for (size_t i = 0; i < beside.count; i++) {
        fm_buf_free(&beside.works[i].params);
    }
    fm_buf_free(&beside.text);
}
