/*
 * A runner on the loop. It has ended when its exit is known and its two streams have ended. A descendant that escaped
 * from a killed runner may keep the output open, so after the exit the streams' end is waited for only for a moment.
 * `ended` is called when every handle is closed, so no callback comes after it.
 */
#include "tools/process.h"
#include "base/buf.h"
#include "protocol/json_check.h"
#include "protocol/json_tree.h"
#include "tools/runner/wire.h"

#include <json-c/json.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ANSWER_MAX  8192u
#define PIECE       65536u
#define LATE_MS     2000u /* after the runner's exit */
#define HANDLES_MAX 6u

struct gw_process {
    struct gw_process_handlers handlers;
    uv_process_t runner;
    uv_pipe_t control;
    uv_pipe_t output;
    uv_pipe_t to_command;
    uv_pipe_t from_command;
    uv_timer_t late;
    uv_handle_t *handles[HANDLES_MAX]; /* the handles that are initialised */
    size_t handle_count;
    size_t open; /* handles whose closing has not been seen */
    bool pipes;
    bool exited;
    bool control_ended;
    bool output_ended;
    bool closing;
    bool started; /* false: `ended` is not called */
    struct fm_buf answer;
    char *piece;
};

/* ---- the end ---- */

static void read_end(const struct gw_process *process, struct gw_process_end *end) {
    static const struct {
        const char *word;
        enum gw_process_why why;
    } ends[] = {{"exit", GW_PROCESS_EXIT},
                {"timeout", GW_PROCESS_TIMEOUT},
                {"aborted", GW_PROCESS_ABORTED},
                {"failed", GW_PROCESS_FAILED}};
    struct json_object *root = NULL;
    struct json_object *value = NULL;
    struct fm_buf scratch;
    size_t offset;
    *end = (struct gw_process_end){.why = GW_PROCESS_LOST};
    fm_buf_init(&scratch, ANSWER_MAX);
    if (process->answer.len && !fm_json_check(process->answer.data, process->answer.len, 64, &offset) &&
        fm_json_tree(process->answer.data, process->answer.len, &scratch, &root)) {
        const char *word = json_object_object_get_ex(root, "end", &value) ? json_object_get_string(value) : "";
        for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
            end->why = strcmp(ends[i].word, word) == 0 ? ends[i].why : end->why;
        }
        end->pid_namespace = json_object_object_get_ex(root, "namespace", &value) && json_object_get_boolean(value);
        end->exit_code = json_object_object_get_ex(root, "status", &value)   ? json_object_get_int(value)
                         : json_object_object_get_ex(root, "signal", &value) ? 128 + json_object_get_int(value)
                                                                             : 0;
        if (json_object_object_get_ex(root, "error", &value)) {
            snprintf(end->error, sizeof end->error, "%s", json_object_get_string(value));
        }
    }
    json_object_put(root);
    fm_buf_free(&scratch);
}

static void free_process(struct gw_process *process) {
    fm_buf_free(&process->answer);
    free(process->piece);
    free(process);
}

static void on_closed(uv_handle_t *handle) {
    struct gw_process *process = handle->data;
    struct gw_process_end end;
    if (--process->open > 0) {
        return;
    }
    struct gw_process_handlers handlers = process->handlers;
    bool told = process->started;
    read_end(process, &end);
    free_process(process);
    if (told) {
        handlers.ended(handlers.context, &end);
    }
}

static void close_all(struct gw_process *process) {
    if (process->closing) {
        return;
    }
    process->closing = true;
    process->open = process->handle_count;
    for (size_t i = 0; i < process->handle_count; i++) {
        uv_close(process->handles[i], on_closed);
    }
}

static void close_when_over(struct gw_process *process) {
    if (process->exited && process->control_ended && process->output_ended) {
        close_all(process);
    }
}

static void on_late(uv_timer_t *timer) {
    close_all(timer->data);
}

static void on_runner_exit(uv_process_t *runner, int64_t status, int number) {
    struct gw_process *process = runner->data;
    (void)status; /* the runner's answer says why */
    (void)number;
    process->exited = true;
    uv_timer_start(&process->late, on_late, LATE_MS, 0);
    close_when_over(process);
}

/* ---- streams ---- */

/* All streams share one buffer, because its bytes are passed on before the next read. */
static void allocate_piece(uv_handle_t *handle, size_t wanted, uv_buf_t *buf) {
    struct gw_process *process = handle->data;
    (void)wanted;
    *buf = uv_buf_init(process->piece, PIECE);
}

static void on_output(uv_stream_t *stream, ssize_t got, const uv_buf_t *buf) {
    struct gw_process *process = stream->data;
    if (got > 0) {
        process->handlers.output(process->handlers.context, buf->base, (size_t)got);
    } else if (got < 0) {
        uv_read_stop(stream);
        process->output_ended = true;
        close_when_over(process);
    }
}

static void on_control(uv_stream_t *stream, ssize_t got, const uv_buf_t *buf) {
    struct gw_process *process = stream->data;
    if (got > 0) {
        fm_buf_append(&process->answer, buf->base, (size_t)got);
    } else if (got < 0) {
        uv_read_stop(stream);
        process->control_ended = true;
        close_when_over(process);
    }
}

static void on_from_command(uv_stream_t *stream, ssize_t got, const uv_buf_t *buf) {
    struct gw_process *process = stream->data;
    if (got > 0) {
        process->handlers.message(process->handlers.context, buf->base, (size_t)got);
    } else if (got < 0) {
        uv_read_stop(stream);
    }
}

static void on_written(uv_write_t *request, int status) {
    (void)status; /* the runner's end says more */
    free(request);
}

static bool write_copy(uv_pipe_t *pipe, const char *data, size_t len) {
    uv_write_t *request = malloc(sizeof *request + len);
    if (!request) {
        return false;
    }
    memcpy(request + 1, data, len);
    uv_buf_t buf = uv_buf_init((char *)(request + 1), (unsigned)len);
    if (uv_write(request, (uv_stream_t *)pipe, &buf, 1, on_written) != 0) {
        free(request);
        return false;
    }
    return true;
}

bool gw_process_write(struct gw_process *process, const char *data, size_t len) {
    return process->pipes && !process->closing && write_copy(&process->to_command, data, len);
}

void gw_process_abort(struct gw_process *process) {
    if (!process->closing && !process->exited && !write_copy(&process->control, "a", 1)) {
        uv_process_kill(&process->runner, SIGKILL); /* there is no memory to send a byte: kills the runner instead */
    }
}

/* ---- the start ---- */

static uv_pipe_t *add_pipe(struct gw_process *process, uv_loop_t *loop, uv_pipe_t *pipe) {
    uv_pipe_init(loop, pipe, 0);
    pipe->data = process;
    process->handles[process->handle_count++] = (uv_handle_t *)pipe;
    return pipe;
}

static struct gw_process *create_process(const struct gw_process_start *start,
                                         const struct gw_process_handlers *handlers) {
    struct gw_process *process = calloc(1, sizeof *process);
    if (!process || !(process->piece = malloc(PIECE))) {
        free(process);
        return NULL;
    }
    process->handlers = *handlers;
    process->pipes = start->pipes;
    fm_buf_init(&process->answer, ANSWER_MAX);
    uv_timer_init(start->loop, &process->late);
    process->late.data = process;
    process->handles[process->handle_count++] = (uv_handle_t *)&process->late;
    add_pipe(process, start->loop, &process->control);
    add_pipe(process, start->loop, &process->output);
    if (start->pipes) {
        add_pipe(process, start->loop, &process->to_command);
        add_pipe(process, start->loop, &process->from_command);
    }
    process->runner.data = process;
    return process;
}

static void inherit(uv_stdio_container_t *at, int fd) {
    at->flags = UV_INHERIT_FD;
    at->data.fd = fd;
}

static void make_pipe(uv_stdio_container_t *at, int flags, uv_pipe_t *pipe) {
    at->flags = (uv_stdio_flags)(UV_CREATE_PIPE | flags);
    at->data.stream = (uv_stream_t *)pipe;
}

static int spawn(struct gw_process *process, const struct gw_process_start *start, int output) {
    char *args[] = {(char *)start->runner, NULL};
    char *environment[] = {NULL}; /* the runner needs no environment: the job has the command's */
    uv_stdio_container_t stdio[GW_RUN_PIPE_OUT + 1] = {{.flags = UV_IGNORE}};
    uv_process_options_t options = {
        .exit_cb = on_runner_exit, .file = start->runner, .args = args, .env = environment, .stdio = stdio};
    options.stdio_count = start->pipes ? GW_RUN_PIPE_OUT + 1 : GW_RUN_FOLDER + 1;
    inherit(&stdio[1], output);
    inherit(&stdio[2], output);
    make_pipe(&stdio[GW_RUN_CONTROL], UV_READABLE_PIPE | UV_WRITABLE_PIPE, &process->control);
    inherit(&stdio[GW_RUN_JOB], start->job);
    inherit(&stdio[GW_RUN_FOLDER], start->folder);
    if (start->pipes) {
        make_pipe(&stdio[GW_RUN_PIPE_IN], UV_READABLE_PIPE, &process->to_command);
        make_pipe(&stdio[GW_RUN_PIPE_OUT], UV_WRITABLE_PIPE, &process->from_command);
    }
    int failure = uv_spawn(start->loop, &process->runner, &options);
    process->handles[process->handle_count++] = (uv_handle_t *)&process->runner; /* initialised, even if it failed */
    return failure;
}

enum fm_code gw_process_start(const struct gw_process_start *start, const struct gw_process_handlers *handlers,
                              struct gw_process **result, struct fm_error *error) {
    int ends[2] = {-1, -1};
    struct gw_process *process = create_process(start, handlers);
    if (!process) {
        return fm_fail_no_memory(error);
    }
    int failure = uv_pipe(ends, UV_NONBLOCK_PIPE, 0);
    if (failure == 0) {
        failure = spawn(process, start, ends[1]);
        close(ends[1]);
    }
    if (failure == 0) {
        failure = uv_pipe_open(&process->output, ends[0]);
    } else if (ends[0] >= 0) {
        close(ends[0]);
    }
    if (failure == 0 && !write_copy(&process->control, start->digest, GW_RUN_DIGEST)) {
        failure = UV_ENOMEM;
    }
    if (failure != 0) {
        close_all(process); /* a runner that was started ends with its control socket */
        return fm_fail(error, FM_UNAVAILABLE, "%s can't be started: %s", start->runner, uv_strerror(failure));
    }
    uv_read_start((uv_stream_t *)&process->control, allocate_piece, on_control);
    uv_read_start((uv_stream_t *)&process->output, allocate_piece, on_output);
    if (start->pipes) {
        uv_read_start((uv_stream_t *)&process->from_command, allocate_piece, on_from_command);
    }
    process->started = true;
    *result = process;
    return FM_OK;
}
