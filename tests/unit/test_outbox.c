/*
 * The writer: whole frames in order over a pipe, and what happens if the other side is slow, silent or gone. No test
 * waits for a fixed time: a reader blocks in read(), and a failure is awaited on a condition variable.
 */
#include "base/clock.h"
#include "base/platform.h"
#include "front/outbox.h"
#include "wire.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#define PATIENCE_MS 120000 /* far longer than anything in this file takes; only a bug reaches this limit */
#define NEVER_MS    (24 * 60 * 60 * 1000LL)

/* Counts the calls of on_fail and on_room, and lets a test wait for them. */
struct failures {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int count;
    int rooms;
};

static struct failures failures;
static struct fm_outbox outbox;
static int read_end = -1;

static void count_failure(void *context, enum fm_outbox_failure failure) {
    assert_int_equal(failure, FM_OUTBOX_GONE);
    struct failures *counted = context;
    assert_true(fm_outbox_has_room(&outbox)); /* the outbox's lock must not be held during this call */
    pthread_mutex_lock(&counted->lock);
    counted->count++;
    pthread_cond_broadcast(&counted->changed);
    pthread_mutex_unlock(&counted->lock);
}

static void count_room(void *context) {
    struct failures *counted = context;
    pthread_mutex_lock(&counted->lock);
    counted->rooms++;
    pthread_cond_broadcast(&counted->changed);
    pthread_mutex_unlock(&counted->lock);
}

/* Waits until there is room. With the room that start() sets, this means until nothing is queued. */
static void await_room(void) {
    int64_t deadline = fm_now_ms() + PATIENCE_MS;
    pthread_mutex_lock(&failures.lock);
    while (!fm_outbox_has_room(&outbox) && fm_now_ms() < deadline) {
        fm_cond_wait_until(&failures.changed, &failures.lock, deadline);
    }
    assert_true(fm_now_ms() < deadline);
    pthread_mutex_unlock(&failures.lock);
}

static int failure_count(void) {
    pthread_mutex_lock(&failures.lock);
    int count = failures.count;
    pthread_mutex_unlock(&failures.lock);
    return count;
}

static void await_failure(void) {
    int64_t deadline = fm_now_ms() + PATIENCE_MS;
    pthread_mutex_lock(&failures.lock);
    while (!failures.count && fm_now_ms() < deadline) {
        fm_cond_wait_until(&failures.changed, &failures.lock, deadline);
    }
    int count = failures.count;
    pthread_mutex_unlock(&failures.lock);
    assert_int_equal(count, 1);
}

static int ignore_sigpipe(void **state) {
    (void)state;
    signal(SIGPIPE, SIG_IGN);
    pthread_mutex_init(&failures.lock, NULL);
    return fm_cond_init(&failures.changed);
}

static void start_on(int write_end, size_t max, int64_t stall_ms, size_t room) {
    failures.count = 0;
    failures.rooms = 0;
    const struct fm_outbox_options options = {
        .fd = write_end,
        .max = max,
        .room = room,
        .stall_ms = stall_ms,
        .on_fail = count_failure,
        .on_room = count_room,
        .context = &failures,
    };
    assert_int_equal(fm_outbox_start(&outbox, &options), 0);
}

/* Makes a pipe: the test reads its read end, the outbox writes to it. Returns the bytes that the pipe holds. */
static size_t start_with_room(size_t max, int64_t stall_ms, size_t room) {
    int write_end;
    assert_int_equal(fm_pipe(&read_end, &write_end), 0);
    start_on(write_end, max, stall_ms, room);
#ifdef F_GETPIPE_SZ
    return (size_t)fcntl(write_end, F_GETPIPE_SZ);
#else
    return 65536;
#endif
}

/* There is room only when nothing is queued. */
static size_t start(size_t max, int64_t stall_ms) {
    return start_with_room(max, stall_ms, 1);
}

static void expect_read(const char *expected, size_t len) {
    char *got = malloc(len ? len : 1);
    size_t have = 0;
    while (have < len) {
        ssize_t more = fm_read(read_end, got + have, len - have);
        assert_true(more > 0);
        have += (size_t)more;
    }
    assert_memory_equal(got, expected, len);
    free(got);
}

static void expect_end_of_input(void) {
    char byte;
    assert_int_equal(fm_read(read_end, &byte, 1), 0);
    close(read_end);
}

static void order_and_flush(void **state) {
    (void)state;
    start(1u << 20, NEVER_MS);
    fm_outbox_send(&outbox, BYTES("one"));
    fm_outbox_send(&outbox, BYTES(""));
    fm_outbox_send(&outbox, BYTES("two\0"));
    expect_read(BYTES("onetwo\0"));
    fm_outbox_send(&outbox, BYTES("three"));
    assert_true(fm_outbox_stop(&outbox, PATIENCE_MS));
    expect_read(BYTES("three"));
    expect_end_of_input(); /* the descriptor is closed */
    assert_int_equal(failure_count(), 0);
}

static void stop_of_an_idle_one(void **state) {
    (void)state;
    start(1u << 20, NEVER_MS);
    assert_true(fm_outbox_stop(&outbox, PATIENCE_MS));
    expect_end_of_input();
    assert_int_equal(failure_count(), 0);
}

#define SENDERS     4
#define FRAMES_EACH 2000

/* Frame I of sender S: "S:I:" and filler. Both sides can compute its length. */
static size_t make_frame(char *frame, int sender, int number) {
    size_t len = (size_t)snprintf(frame, 64, "%d:%d:", sender, number);
    size_t fill = (size_t)(number * 7 + sender) % 300;
    memset(frame + len, 'a' + sender, fill);
    frame[len + fill] = '\n';
    return len + fill + 1;
}

static void *sender_main(void *argument) {
    char frame[400];
    int sender = *(int *)argument;
    for (int i = 0; i < FRAMES_EACH; i++) {
        size_t len = make_frame(frame, sender, i);
        await_room();
        fm_outbox_send(&outbox, frame, len);
    }
    return NULL;
}

static void senders_never_mix(void **state) {
    (void)state;
    pthread_t threads[SENDERS];
    int numbers[SENDERS];
    start_with_room(1u << 20, NEVER_MS, 65536);
    for (int i = 0; i < SENDERS; i++) {
        numbers[i] = i;
        assert_int_equal(pthread_create(&threads[i], NULL, sender_main, &numbers[i]), 0);
    }
    FILE *stream = fdopen(read_end, "r");
    int next[SENDERS] = {0};
    char line[400];
    char expected[400];
    for (int i = 0; i < SENDERS * FRAMES_EACH; i++) {
        assert_non_null(fgets(line, sizeof line, stream));
        int sender = line[0] - '0';
        assert_in_range(sender, 0, SENDERS - 1);
        expected[make_frame(expected, sender, next[sender]++)] = '\0';
        assert_string_equal(line, expected);
    }
    for (int i = 0; i < SENDERS; i++) {
        pthread_join(threads[i], NULL);
    }
    assert_true(fm_outbox_stop(&outbox, PATIENCE_MS));
    assert_int_equal(fgetc(stream), EOF);
    fclose(stream);
    assert_int_equal(failure_count(), 0);
}

/* Fills the pipe and `queued` bytes of the outbox, and waits until the pipe is full. */
static void stuff(size_t pipe_bytes, size_t queued) {
    char *bytes = calloc(1, pipe_bytes + queued);
    fm_outbox_send(&outbox, bytes, pipe_bytes);
    await_room();
    for (size_t sent = 0; sent < queued; sent += 1000) {
        fm_outbox_send(&outbox, bytes, queued - sent < 1000 ? queued - sent : 1000);
    }
    free(bytes);
}

/* After the first frame, frames up to the maximum may be queued. One byte more fails the outbox, once, and drops all
 * frames. */
static void cap(void **state) {
    (void)state;
    size_t holds = start(100000, NEVER_MS);
    stuff(holds, 1000 + 100000);
    assert_int_equal(failure_count(), 0);
    fm_outbox_send(&outbox, BYTES("x"));
    await_failure();
    for (int i = 0; i < 100; i++) {
        fm_outbox_send(&outbox, BYTES("dropped"));
    }
    assert_int_equal(failure_count(), 1);
    await_room();
    assert_true(fm_outbox_stop(&outbox, PATIENCE_MS));
    assert_int_equal(failure_count(), 1);
    close(read_end);
}

/* A frame larger than the maximum is accepted only if there is room. Other frames may follow it. */
static void one_frame_of_any_size(void **state) {
    (void)state;
    size_t large = 3000000;
    char *bytes = malloc(large);
    memset(bytes, 'y', large);
    start(1000, NEVER_MS);
    fm_outbox_send(&outbox, bytes, large);
    expect_read(bytes, large);
    await_room();
    for (int i = 0; i < 2; i++) { /* twice, because queue and writer alternate two buffers */
        fm_outbox_send(&outbox, bytes, 1000);
        expect_read(bytes, 1000);
        await_room();
    }
    fm_outbox_send(&outbox, bytes, large); /* more than the pipe holds: the rest stays in the outbox */
    assert_int_equal(failure_count(), 0);
    expect_read(bytes, 1); /* now the writer has taken the first frame, and the next frame uses the other buffer */
    fm_outbox_send(&outbox, bytes, 1000);
    assert_int_equal(failure_count(), 0);
    fm_outbox_send(&outbox, bytes, large);
    await_failure();
    assert_true(fm_outbox_stop(&outbox, PATIENCE_MS));
    close(read_end);
    free(bytes);
}

/* If the reader closes the pipe, queued frames are lost, on_fail is called once, and SIGPIPE ends no process. */
static void reader_gone(void **state) {
    (void)state;
    size_t holds = start(1u << 20, NEVER_MS);
    stuff(holds, 5000);
    close(read_end);
    await_failure();
    fm_outbox_send(&outbox, BYTES("dropped"));
    assert_true(fm_outbox_stop(&outbox, PATIENCE_MS));
    assert_int_equal(failure_count(), 1);
}

static void reader_gone_before_the_first(void **state) {
    (void)state;
    start(1u << 20, NEVER_MS);
    close(read_end);
    fm_outbox_send(&outbox, BYTES("lost"));
    await_failure();
    assert_true(fm_outbox_stop(&outbox, PATIENCE_MS));
    assert_int_equal(failure_count(), 1);
}

static void reader_stalls(void **state) {
    (void)state;
    size_t holds = start(1u << 20, 200);
    int64_t before = fm_now_ms();
    stuff(holds, 5000);
    await_failure();
    assert_true(fm_now_ms() - before >= 200);
    assert_true(fm_outbox_stop(&outbox, PATIENCE_MS));
    assert_int_equal(failure_count(), 1);
    close(read_end);
}

static void *read_all(void *argument) {
    size_t *left = argument;
    static char sink[65536];
    while (*left) {
        ssize_t got = fm_read(read_end, sink, *left < sizeof sink ? *left : sizeof sink);
        if (got <= 0) {
            break;
        }
        *left -= (size_t)got;
    }
    return NULL;
}

/*
 * A socket pair, as Node makes them, whose reader takes 4 KiB every 50 ms: the socket polls writable again only after
 * some 180 KiB, which is later than the stall limit.
 */
static void slow_reader_of_a_socket(void **state) {
    (void)state;
    const int64_t stall_ms = 1500;
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    read_end = ends[0];
    start_on(ends[1], 1u << 20, stall_ms, 1);
    static char bytes[600000];
    size_t left = sizeof bytes;
    fm_outbox_send(&outbox, bytes, left);
    int64_t before = fm_now_ms();
    while (fm_now_ms() - before < 2 * stall_ms) {
        static char sink[4096];
        ssize_t got = fm_read(read_end, sink, sizeof sink);
        assert_true(got > 0);
        left -= (size_t)got;
        poll(NULL, 0, 50);
    }
    assert_int_equal(failure_count(), 0);
    read_all(&left);
    assert_int_equal(left, 0);
    assert_true(fm_outbox_stop(&outbox, PATIENCE_MS));
    close(read_end);
}

/* If senders found no room, on_room is called once when less than `room` bytes are queued, and not otherwise. */
static void room(void **state) {
    (void)state;
    size_t holds = start_with_room(1u << 20, NEVER_MS, 50000);
    assert_true(fm_outbox_has_room(&outbox));
    char *bytes = calloc(1, holds + 1000000);
    fm_outbox_send(&outbox, bytes, holds);
    await_room();
    failures.rooms = 0; /* the writer is idle */
    fm_outbox_send(&outbox, bytes, 49999);
    assert_true(fm_outbox_has_room(&outbox));
    fm_outbox_send(&outbox, bytes, 1);
    assert_int_equal(failures.rooms, 0);
    assert_false(fm_outbox_has_room(&outbox));
    assert_false(fm_outbox_has_room(&outbox));
    size_t left = holds + 50000;
    pthread_t reader;
    assert_int_equal(pthread_create(&reader, NULL, read_all, &left), 0);
    await_room();
    pthread_join(reader, NULL);
    assert_int_equal(left, 0);
    assert_int_equal(failures.rooms, 1);
    free(bytes);
    assert_true(fm_outbox_stop(&outbox, PATIENCE_MS));
    expect_end_of_input();
}

static void stop_flushes_to_a_slow_reader(void **state) {
    (void)state;
    size_t holds = start(1u << 20, NEVER_MS);
    stuff(holds, 500000);
    size_t left = holds + 500000;
    pthread_t reader;
    assert_int_equal(pthread_create(&reader, NULL, read_all, &left), 0);
    assert_true(fm_outbox_stop(&outbox, PATIENCE_MS));
    pthread_join(reader, NULL);
    assert_int_equal(left, 0);
    expect_end_of_input();
    assert_int_equal(failure_count(), 0);
}

/* The flush has a limit. Giving up then is intended, so it is not a failure. */
static void stop_gives_up_on_a_silent_reader(void **state) {
    (void)state;
    size_t holds = start(1u << 20, NEVER_MS);
    stuff(holds, 5000);
    int64_t before = fm_now_ms();
    assert_true(fm_outbox_stop(&outbox, 50));
    assert_in_range(fm_now_ms() - before, 50, PATIENCE_MS);
    assert_int_equal(failure_count(), 0);
    size_t left = holds + 5000;
    read_all(&left);
    assert_int_equal(left, 5000); /* the pipe has these bytes, and then its end */
    close(read_end);
}

/* A caller may ignore failures. */
static void without_on_fail(void **state) {
    (void)state;
    int write_end;
    assert_int_equal(fm_pipe(&read_end, &write_end), 0);
    close(read_end);
    const struct fm_outbox_options options = {.fd = write_end, .max = 1000, .room = 1, .stall_ms = NEVER_MS};
    assert_int_equal(fm_outbox_start(&outbox, &options), 0);
    fm_outbox_send(&outbox, BYTES("lost"));
    assert_true(fm_outbox_stop(&outbox, PATIENCE_MS));
}

/* ---- frames that are pulled ---- */

/* What `next` returns, one after the other. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    const char *frames[3];
    size_t lens[3];
    unsigned count;
    unsigned taken;
    bool marks; /* whether something is queued before and after a frame is chosen */
} source = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool next_frame(void *context, const char **frame, size_t *len) {
    assert_ptr_equal(context, &failures);
    pthread_mutex_lock(&source.lock);
    bool more = source.taken < source.count;
    if (more && source.marks) {
        fm_outbox_send(&outbox, BYTES("earlier "));
        fm_outbox_mark(&outbox);
        fm_outbox_send(&outbox, BYTES("later "));
    }
    if (more) {
        *frame = source.frames[source.taken];
        *len = source.lens[source.taken++];
    }
    pthread_cond_broadcast(&source.changed);
    pthread_mutex_unlock(&source.lock);
    return more;
}

static void offer(const char *frame, size_t len) {
    pthread_mutex_lock(&source.lock);
    source.frames[source.count] = frame;
    source.lens[source.count++] = len;
    pthread_mutex_unlock(&source.lock);
}

static void await_taken(unsigned count) {
    int64_t deadline = fm_now_ms() + PATIENCE_MS;
    pthread_mutex_lock(&source.lock);
    while (source.taken < count && fm_now_ms() < deadline) {
        fm_cond_wait_until(&source.changed, &source.lock, deadline);
    }
    assert_int_equal(source.taken, count);
    pthread_mutex_unlock(&source.lock);
}

/* Returns the bytes that the pipe holds. */
static size_t start_pulling(void) {
    int write_end;
    assert_int_equal(fm_pipe(&read_end, &write_end), 0);
    source.count = 0;
    source.taken = 0;
    source.marks = false;
    assert_int_equal(fm_cond_init(&source.changed), 0);
    failures.count = 0;
    failures.rooms = 0;
    const struct fm_outbox_options options = {.fd = write_end,
                                              .max = 1000,
                                              .room = 1,
                                              .stall_ms = NEVER_MS,
                                              .on_fail = count_failure,
                                              .on_room = count_room,
                                              .next = next_frame,
                                              .context = &failures};
    assert_int_equal(fm_outbox_start(&outbox, &options), 0);
    return (size_t)fcntl(write_end, F_GETPIPE_SZ);
}

/* Frames that are queued while a large frame is written are sent before the next pulled frame, and are counted
 * separately. */
static void pulled_between_queued(void **state) {
    (void)state;
    size_t large = start_pulling() + 100000;
    char *bytes = malloc(large);
    memset(bytes, 'L', large);
    offer(bytes, large);
    offer(BYTES("second"));
    fm_outbox_poke(&outbox);
    expect_read(bytes, 1); /* the writer is busy with this frame */
    assert_true(fm_outbox_has_room(&outbox));
    assert_false(fm_outbox_is_empty(&outbox));
    fm_outbox_send(&outbox, BYTES("queued"));
    expect_read(bytes, large - 1);
    expect_read(BYTES("queuedsecond"));
    fm_outbox_poke(&outbox); /* there is no frame to pull */
    fm_outbox_send(&outbox, BYTES("last"));
    expect_read(BYTES("last"));
    assert_true(fm_outbox_stop(&outbox, PATIENCE_MS));
    expect_end_of_input();
    assert_int_equal(failure_count(), 0);
    free(bytes);
}

/* A stream whose frames were queued until now, and are pulled from now on. */
static void marked_before_pulled(void **state) {
    (void)state;
    start_pulling();
    source.marks = true;
    offer(BYTES("first "));
    offer(BYTES("second "));
    fm_outbox_poke(&outbox);
    expect_read(BYTES("earlier first later earlier second later "));
    assert_true(fm_outbox_stop(&outbox, PATIENCE_MS));
    expect_end_of_input();
    assert_int_equal(failure_count(), 0);
}

/* After a failure of the outbox, a source of pulled frames does not wait. */
static void pulled_after_a_failure(void **state) {
    (void)state;
    start_pulling();
    close(read_end);
    offer(BYTES("lost"));
    fm_outbox_poke(&outbox);
    await_failure();
    offer(BYTES("lost too"));
    fm_outbox_poke(&outbox);
    await_taken(2);
    assert_true(fm_outbox_stop(&outbox, PATIENCE_MS));
    assert_int_equal(failure_count(), 1);
}

/* The other side sees the end of a failed outbox at once, although it has not been stopped yet. */
static void failed_one_is_shut(void **state) {
    (void)state;
    size_t holds = start(1000, NEVER_MS);
    stuff(holds, 2000);
    fm_outbox_send(&outbox, BYTES("x"));
    await_failure();
    size_t left = holds + 2000;
    read_all(&left);
    expect_end_of_input();
    assert_true(fm_outbox_stop(&outbox, PATIENCE_MS));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(order_and_flush),
        cmocka_unit_test(stop_of_an_idle_one),
        cmocka_unit_test(senders_never_mix),
        cmocka_unit_test(cap),
        cmocka_unit_test(one_frame_of_any_size),
        cmocka_unit_test(reader_gone),
        cmocka_unit_test(reader_gone_before_the_first),
        cmocka_unit_test(reader_stalls),
        cmocka_unit_test(slow_reader_of_a_socket),
        cmocka_unit_test(room),
        cmocka_unit_test(stop_flushes_to_a_slow_reader),
        cmocka_unit_test(stop_gives_up_on_a_silent_reader),
        cmocka_unit_test(without_on_fail),
        cmocka_unit_test(pulled_between_queued),
        cmocka_unit_test(marked_before_pulled),
        cmocka_unit_test(pulled_after_a_failure),
        cmocka_unit_test(failed_one_is_shut),
    };
    return cmocka_run_group_tests_name("outbox", tests, ignore_sigpipe, NULL);
}
