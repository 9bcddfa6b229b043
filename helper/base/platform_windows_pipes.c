/*
 * The descriptors of platform.h on Windows. Windows has no call that waits for pipes. And on a pipe that a host gives
 * us, a read may block every other call. So a pipe here is a buffer in memory. A thread, the pump, moves the bytes
 * between the buffer and the system's pipe, if there is one, and fm_wait only looks at buffers.
 *
 * Descriptors from FIRST on are ours; those below are files of the C library.
 */
#include "base/clock.h"
#include "base/platform.h"
#include "base/platform_windows.h"

#include <errno.h>
#include <io.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define FIRST      1000
#define COUNT      256
#define PIPE_BYTES 65536u
#define PUMP_BYTES 16384u
#define FLUSH_MS   200 /* for the last lines on stderr */

struct pipe {
    char *bytes; /* a ring of PIPE_BYTES */
    size_t start;
    size_t len;
    int users;     /* how many use the pipe: its open ends, its pump, and the threads that wait for its end */
    bool ended;    /* the writing end is closed */
    bool unread;   /* the reading end is closed */
    bool busy;     /* the pump is writing bytes that it took out */
    bool pumping;  /* a pump empties the pipe */
    HANDLE handle; /* owned by the pump, whose thread closes it */
};

struct descriptor {
    struct pipe *pipe; /* NULL: there is only `handle`, or the row is free */
    HANDLE handle;
    bool used;
    bool writes;
    bool blocks;
};

/* One lock and one condition for all: there are a few pipes, and their threads sleep most of the time. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct descriptor descriptors[COUNT];

/* ---- pipes; the lock is held ---- */

static struct pipe *new_pipe(void) {
    struct pipe *pipe = calloc(1, sizeof *pipe);
    if (pipe && !(pipe->bytes = malloc(PIPE_BYTES))) {
        free(pipe);
        pipe = NULL;
    }
    return pipe;
}

static void release_pipe(struct pipe *pipe) {
    if (--pipe->users == 0) {
        free(pipe->bytes);
        free(pipe);
    }
    pthread_cond_broadcast(&changed);
}

static size_t put_into_pipe(struct pipe *pipe, const char *data, size_t len) {
    size_t room = PIPE_BYTES - pipe->len;
    len = len < room ? len : room;
    for (size_t done = 0; done < len;) {
        size_t at = (pipe->start + pipe->len) % PIPE_BYTES;
        size_t step = PIPE_BYTES - at < len - done ? PIPE_BYTES - at : len - done;
        memcpy(pipe->bytes + at, data + done, step);
        pipe->len += step;
        done += step;
    }
    pthread_cond_broadcast(&changed);
    return len;
}

static size_t take_from_pipe(struct pipe *pipe, char *data, size_t len) {
    len = len < pipe->len ? len : pipe->len;
    for (size_t done = 0; done < len;) {
        size_t step = PIPE_BYTES - pipe->start < len - done ? PIPE_BYTES - pipe->start : len - done;
        memcpy(data + done, pipe->bytes + pipe->start, step);
        pipe->start = (pipe->start + step) % PIPE_BYTES;
        pipe->len -= step;
        done += step;
    }
    pthread_cond_broadcast(&changed);
    return len;
}

/* Waits until something has changed, or until `deadline_ms`; -1: without a limit. */
static void wait_for_change(int64_t deadline_ms) {
    if (deadline_ms < 0) {
        pthread_cond_wait(&changed, &lock);
    } else {
        fm_cond_wait_until(&changed, &lock, deadline_ms);
    }
}

/* ---- descriptors; the lock is held ---- */

static struct descriptor *find_descriptor(int fd) {
    return fd >= FIRST && fd < FIRST + COUNT && descriptors[fd - FIRST].used ? &descriptors[fd - FIRST] : NULL;
}

/* -1 with errno. */
static int new_descriptor(struct pipe *pipe, HANDLE handle, bool writes) {
    for (int i = 0; i < COUNT; i++) {
        if (!descriptors[i].used) {
            descriptors[i] =
                (struct descriptor){.pipe = pipe, .handle = handle, .used = true, .writes = writes, .blocks = true};
            if (pipe) {
                pipe->users++;
            }
            return FIRST + i;
        }
    }
    errno = EMFILE;
    return -1;
}

static void free_descriptor(struct descriptor *descriptor) {
    struct pipe *pipe = descriptor->pipe;
    *descriptor = (struct descriptor){.used = false};
    if (pipe) {
        release_pipe(pipe);
    }
}

/* ---- pumps ---- */

/* Handles that were opened for overlapped calls need an OVERLAPPED; other pipes accept it too. */
static bool transfer(HANDLE handle, bool writes, void *data, DWORD len, DWORD *done) {
    OVERLAPPED overlapped = {.hEvent = NULL};
    bool is_pipe = GetFileType(handle) == FILE_TYPE_PIPE;
    if (is_pipe && !(overlapped.hEvent = CreateEventW(NULL, TRUE, FALSE, NULL))) {
        return false;
    }
    OVERLAPPED *how = is_pipe ? &overlapped : NULL;
    *done = 0;
    BOOL ok = writes ? WriteFile(handle, data, len, done, how) : ReadFile(handle, data, len, done, how);
    if (!ok && is_pipe && GetLastError() == ERROR_IO_PENDING) {
        ok = GetOverlappedResult(handle, &overlapped, done, TRUE);
    }
    if (overlapped.hEvent) {
        CloseHandle(overlapped.hEvent);
    }
    return ok;
}

static bool write_handle(HANDLE handle, char *data, size_t len) {
    DWORD done;
    for (size_t at = 0; at < len; at += done) {
        if (!transfer(handle, true, data + at, (DWORD)(len - at), &done) || done == 0) {
            return false;
        }
    }
    return true;
}

/* Reads what has come. False at the end of input. A pipe can hold an empty message, which is not its end. */
static bool read_handle(HANDLE handle, char *data, DWORD len, DWORD *got) {
    return transfer(handle, false, data, len, got) && (*got || GetFileType(handle) == FILE_TYPE_PIPE);
}

/* Moves bytes from the handle into the pipe. */
static void *fill_pipe(void *argument) {
    struct pipe *pipe = argument;
    char bytes[PUMP_BYTES];
    DWORD got;
    bool wanted = true;
    while (wanted && read_handle(pipe->handle, bytes, sizeof bytes, &got)) {
        pthread_mutex_lock(&lock);
        for (DWORD at = 0; at < got && !pipe->unread;) {
            at += (DWORD)put_into_pipe(pipe, bytes + at, got - at);
            if (at < got) {
                wait_for_change(-1);
            }
        }
        wanted = !pipe->unread;
        pthread_mutex_unlock(&lock);
    }
    CloseHandle(pipe->handle);
    pthread_mutex_lock(&lock);
    pipe->ended = true;
    release_pipe(pipe);
    pthread_mutex_unlock(&lock);
    return NULL;
}

/* Moves bytes from the pipe to the handle. */
static void *empty(void *argument) {
    struct pipe *pipe = argument;
    char bytes[PUMP_BYTES];
    bool ok = true;
    pthread_mutex_lock(&lock);
    while (ok && (pipe->len || !pipe->ended)) {
        size_t len = take_from_pipe(pipe, bytes, sizeof bytes);
        if (len == 0) {
            wait_for_change(-1);
            continue;
        }
        pipe->busy = true;
        pthread_mutex_unlock(&lock);
        ok = write_handle(pipe->handle, bytes, len);
        pthread_mutex_lock(&lock);
        pipe->busy = false;
        pthread_cond_broadcast(&changed);
    }
    pipe->unread = true;
    pipe->pumping = false;
    CloseHandle(pipe->handle);
    release_pipe(pipe);
    pthread_mutex_unlock(&lock);
    return NULL;
}

/* Makes a pipe whose other end is a pump, which owns `handle` from now on. NULL with errno. */
static struct pipe *start_pump(HANDLE handle, void *(*pump)(void *)) {
    struct pipe *pipe = new_pipe();
    if (!pipe) {
        errno = ENOMEM;
        return NULL;
    }
    pipe->handle = handle;
    pipe->pumping = pump == empty;
    pipe->users = 2; /* the pump, and the caller */
    int error = fm_thread_start(pump, pipe);
    if (error) {
        pipe->users = 1;
        release_pipe(pipe);
        errno = error;
        return NULL;
    }
    return pipe;
}

int fm_windows_reader(HANDLE handle) {
    pthread_mutex_lock(&lock);
    int fd = new_descriptor(NULL, NULL, false);
    struct pipe *pipe = fd < 0 ? NULL : start_pump(handle, fill_pipe);
    if (pipe) {
        find_descriptor(fd)->pipe = pipe;
    } else if (fd >= 0) {
        free_descriptor(find_descriptor(fd));
        fd = -1;
    }
    pthread_mutex_unlock(&lock);
    return fd;
}

int fm_windows_writer(HANDLE handle) {
    pthread_mutex_lock(&lock);
    int fd = new_descriptor(NULL, handle, true);
    pthread_mutex_unlock(&lock);
    return fd;
}

void fm_set_nonblocking(int fd) {
    pthread_mutex_lock(&lock);
    struct descriptor *descriptor = find_descriptor(fd);
    if (descriptor && !descriptor->pipe && GetFileType(descriptor->handle) == FILE_TYPE_PIPE) {
        descriptor->pipe = start_pump(descriptor->handle, empty);
    }
    if (descriptor && descriptor->pipe) {
        descriptor->handle = NULL; /* the pump's now */
        descriptor->blocks = false;
    }
    pthread_mutex_unlock(&lock);
}

/* ---- platform.h ---- */

int fm_pipe(int *read_end, int *write_end) {
    struct pipe *pipe = new_pipe();
    if (!pipe) {
        return ENOMEM;
    }
    pthread_mutex_lock(&lock);
    pipe->users = 1; /* until both ends use it */
    int from = new_descriptor(pipe, NULL, false);
    int to = from < 0 ? -1 : new_descriptor(pipe, NULL, true);
    if (from >= 0 && to < 0) {
        free_descriptor(find_descriptor(from));
    }
    release_pipe(pipe);
    pthread_mutex_unlock(&lock);
    if (to < 0) {
        return EMFILE;
    }
    *read_end = from;
    *write_end = to;
    return 0;
}

void fm_close(int fd) {
    pthread_mutex_lock(&lock);
    struct descriptor *descriptor = find_descriptor(fd);
    struct pipe *pipe = descriptor ? descriptor->pipe : NULL;
    HANDLE handle = descriptor ? descriptor->handle : NULL;
    if (pipe && descriptor->writes) {
        pipe->ended = true;
        pthread_cond_broadcast(&changed);
        while (pipe->pumping) {
            wait_for_change(-1);
        }
    } else if (pipe) {
        pipe->unread = true;
    }
    if (descriptor) {
        free_descriptor(descriptor);
    }
    pthread_mutex_unlock(&lock);
    if (handle) {
        CloseHandle(handle);
    }
    if (fd < FIRST) {
        _close(fd);
    }
}

bool fm_is_terminal(int fd) {
    DWORD mode;
    return fd < FIRST && GetConsoleMode((HANDLE)_get_osfhandle(fd), &mode);
}

static bool is_ready(const struct fm_waited *waited) {
    const struct descriptor *descriptor = find_descriptor(waited->fd);
    const struct pipe *pipe = descriptor ? descriptor->pipe : NULL;
    if (!pipe) {
        return waited->fd >= 0; /* a file, or a descriptor that blocks */
    }
    if (descriptor->writes) {
        return pipe->unread || (waited->room && pipe->len < PIPE_BYTES);
    }
    return pipe->ended || (waited->input && pipe->len);
}

static int count_ready(struct fm_waited *waited, size_t count) {
    int ready = 0;
    for (size_t i = 0; i < count; i++) {
        waited[i].ready = is_ready(&waited[i]);
        ready += waited[i].ready;
    }
    return ready;
}

int fm_wait(struct fm_waited *waited, size_t count, int ms) {
    int64_t deadline = ms < 0 ? -1 : fm_now_ms() + ms;
    pthread_mutex_lock(&lock);
    int ready = count_ready(waited, count);
    while (ready == 0 && (ms < 0 || fm_now_ms() < deadline)) {
        wait_for_change(deadline);
        ready = count_ready(waited, count);
    }
    pthread_mutex_unlock(&lock);
    return ready;
}

/* The pipe of a descriptor; NULL with errno when it is not ours. */
static struct pipe *pipe_of(int fd, bool *blocks) {
    const struct descriptor *descriptor = find_descriptor(fd);
    if (!descriptor || !descriptor->pipe) {
        errno = EBADF;
        return NULL;
    }
    *blocks = descriptor->blocks;
    return descriptor->pipe;
}

ssize_t fm_read(int fd, void *data, size_t len) {
    if (fd < FIRST) {
        return _read(fd, data, len < INT_MAX ? (unsigned)len : INT_MAX);
    }
    bool blocks;
    ssize_t got = -1;
    pthread_mutex_lock(&lock);
    struct pipe *pipe = pipe_of(fd, &blocks);
    while (pipe && !pipe->len && !pipe->ended) {
        wait_for_change(-1);
    }
    if (pipe) {
        got = (ssize_t)take_from_pipe(pipe, data, len);
    }
    pthread_mutex_unlock(&lock);
    return got;
}

/* Writes to a descriptor without a pipe. */
static ssize_t write_through(HANDLE handle, const void *data, size_t len) {
    if (!write_handle(handle, (char *)data, len)) {
        errno = EPIPE;
        return -1;
    }
    return (ssize_t)len;
}

/* Writes into a pipe as much as there is room for. With `all`: everything, or nothing if there is not enough room. */
static ssize_t write_pipe(int fd, const void *data, size_t len, bool all) {
    bool blocks;
    ssize_t sent = -1;
    struct pipe *pipe = pipe_of(fd, &blocks);
    while (pipe && blocks && !pipe->unread && pipe->len == PIPE_BYTES) {
        wait_for_change(-1);
    }
    if (pipe && pipe->unread) {
        errno = EPIPE;
    } else if (pipe && PIPE_BYTES - pipe->len < (all ? len : 1)) {
        errno = EAGAIN;
    } else if (pipe) {
        sent = (ssize_t)put_into_pipe(pipe, data, len);
    }
    return sent;
}

ssize_t fm_write(int fd, const void *data, size_t len) {
    pthread_mutex_lock(&lock);
    const struct descriptor *descriptor = find_descriptor(fd);
    HANDLE handle = descriptor ? descriptor->handle : NULL;
    ssize_t sent = handle ? -1 : write_pipe(fd, data, len, false);
    pthread_mutex_unlock(&lock);
    return handle ? write_through(handle, data, len) : sent;
}

ssize_t fm_write_quiet(int fd, const void *data, size_t len) {
    return fm_write(fd, data, len); /* Windows has no SIGPIPE */
}

bool fm_write_all(int fd, const void *data, size_t len) {
    struct fm_waited waited = {.fd = fd, .room = true};
    for (const char *at = data; len;) {
        ssize_t sent = fm_write(fd, at, len);
        if (sent >= 0) {
            at += sent;
            len -= (size_t)sent;
        } else if (errno != EAGAIN || fm_wait(&waited, 1, -1) == 0) {
            return false;
        }
    }
    return true;
}

/* On Windows it is not known how much the other side has not read. */
size_t fm_socket_unread(int fd) {
    (void)fd;
    return 0;
}

/* ---- the tail of a pipe ---- */

struct fm_windows_tail {
    struct pipe *pipe;
};

struct fm_windows_tail *fm_windows_tail_new(int fd) {
    struct fm_windows_tail *tail = malloc(sizeof *tail);
    bool ignored;
    if (!tail) {
        return NULL;
    }
    pthread_mutex_lock(&lock);
    tail->pipe = pipe_of(fd, &ignored);
    tail->pipe->users++;
    pthread_mutex_unlock(&lock);
    return tail;
}

void fm_windows_tail_wait(struct fm_windows_tail *tail, int ms, bool past_full) {
    const struct pipe *pipe = tail->pipe;
    int64_t deadline = ms < 0 ? -1 : fm_now_ms() + ms;
    pthread_mutex_lock(&lock);
    while (!pipe->ended && !pipe->unread && (past_full || pipe->len < PIPE_BYTES) &&
           (ms < 0 || fm_now_ms() < deadline)) {
        wait_for_change(deadline);
    }
    pthread_mutex_unlock(&lock);
}

void fm_windows_tail_free(struct fm_windows_tail *tail) {
    pthread_mutex_lock(&lock);
    release_pipe(tail->pipe);
    pthread_mutex_unlock(&lock);
    free(tail);
}

/* ---- the standard descriptors ---- */

static INIT_ONCE stderr_once = INIT_ONCE_STATIC_INIT;
static int stderr_fd = -1;

/* Runs at exit: writes the last lines, if they are read at once. */
static void flush_stderr(void) {
    int64_t deadline = fm_now_ms() + FLUSH_MS;
    bool ignored;
    pthread_mutex_lock(&lock);
    const struct pipe *pipe = pipe_of(stderr_fd, &ignored);
    while (pipe && (pipe->len || pipe->busy) && pipe->pumping && fm_now_ms() < deadline) {
        wait_for_change(deadline);
    }
    pthread_mutex_unlock(&lock);
}

/* Copies the C library's handle for that descriptor. No child inherits the copy. NULL with errno. */
static HANDLE copy_of(int standard) {
    HANDLE here = GetCurrentProcess();
    HANDLE copy;
    if (!DuplicateHandle(here, (HANDLE)_get_osfhandle(standard), here, &copy, 0, FALSE, DUPLICATE_SAME_ACCESS)) {
        errno = fm_windows_errno(GetLastError());
        return NULL;
    }
    return copy;
}

static BOOL CALLBACK start_stderr(INIT_ONCE *once, void *unused, void **result) {
    (void)once;
    (void)unused;
    (void)result;
    HANDLE handle = copy_of(2);
    if (handle) {
        stderr_fd = fm_windows_writer(handle);
        fm_set_nonblocking(stderr_fd);
        atexit(flush_stderr);
    }
    return TRUE;
}

bool fm_stderr_try_write(const char *data, size_t len) {
    InitOnceExecuteOnce(&stderr_once, start_stderr, NULL, NULL);
    pthread_mutex_lock(&lock);
    const struct descriptor *descriptor = find_descriptor(stderr_fd);
    HANDLE handle = descriptor ? descriptor->handle : NULL;
    bool sent = descriptor && !handle && write_pipe(stderr_fd, data, len, true) >= 0;
    pthread_mutex_unlock(&lock);
    return handle ? write_through(handle, data, len) >= 0 : sent;
}

int fm_claim_stdin(void) {
    HANDLE handle = copy_of(0);
    int fd = handle ? fm_windows_reader(handle) : -1;
    if (fd < 0 && handle) {
        CloseHandle(handle);
    }
    return fd;
}

int fm_claim_stdout(void) {
    HANDLE handle = copy_of(1);
    int fd = handle && _dup2(2, 1) == 0 ? fm_windows_writer(handle) : -1;
    if (fd < 0 && handle) {
        CloseHandle(handle);
    }
    return fd;
}
