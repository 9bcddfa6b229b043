/* Reads and writes lines. If a line can't be read or sent, the driver ends with status 3. */
#include "driver.h"
#include "base/platform.h"
#include "protocol/line.h"

#include <json-c/json.h>
#include <signal.h>
#include <stdlib.h>

#define LINE_MAX_BYTES (64u << 20)

static uv_pipe_t input;
static struct fm_lines lines;
static char piece[FM_LINE_FEED];
static void (*take_line)(struct json_object *line);
static void (*on_end)(void);

struct json_object *driver_member(struct json_object *line, const char *name) {
    return json_object_object_get(line, name);
}

const char *driver_text(struct json_object *line, const char *name) {
    return json_object_get_string(driver_member(line, name));
}

int64_t driver_number(struct json_object *line, const char *name) {
    return json_object_get_int64(driver_member(line, name));
}

struct fm_json_writer driver_begin(struct fm_buf *line, int id) {
    fm_buf_init(line, LINE_MAX_BYTES);
    struct fm_json_writer w = fm_json_writer_on(line);
    fm_json_object_begin(&w);
    fm_json_key_int(&w, "id", id);
    return w;
}

void driver_end(struct fm_json_writer *w) {
    fm_json_object_end(w);
    fm_buf_append_char(w->buf, '\n');
    if (w->buf->failed || !fm_write_all(1, w->buf->data, w->buf->len)) {
        exit(3);
    }
    fm_buf_free(w->buf);
}

void driver_report(int id, const struct fm_error *error) {
    struct fm_buf line;
    struct fm_json_writer w = driver_begin(&line, id);
    fm_json_key_str(&w, "error", fm_code_name(error->code));
    fm_json_key_str(&w, "reason", error->reason_code);
    fm_json_key_str(&w, "param", error->param);
    fm_json_key_str(&w, "detail", error->detail);
    driver_end(&w);
}

static void allocate(uv_handle_t *handle, size_t wanted, uv_buf_t *buf) {
    (void)handle;
    (void)wanted;
    *buf = uv_buf_init(piece, sizeof piece);
}

static void on_input(uv_stream_t *stream, ssize_t got, const uv_buf_t *buf) {
    const char *line;
    size_t len;
    if (got < 0) {
        uv_close((uv_handle_t *)stream, NULL);
        if (on_end) {
            on_end();
        }
        return;
    }
    if (!fm_lines_feed(&lines, buf->base, (size_t)got)) {
        exit(3);
    }
    while (fm_lines_next(&lines, &line, &len) == FM_LINE_READY) {
        struct json_tokener *tokener = json_tokener_new();
        struct json_object *root = json_tokener_parse_ex(tokener, line, (int)len);
        take_line(root);
        json_object_put(root);
        json_tokener_free(tokener);
    }
}

void driver_run(uv_loop_t *loop, void (*take)(struct json_object *line), void (*ended)(void)) {
    signal(SIGPIPE, SIG_IGN); /* as in the gateway, because an abort may come just after the child has ended */
    take_line = take;
    on_end = ended;
    fm_lines_init(&lines);
    uv_pipe_init(loop, &input, 0);
    uv_pipe_open(&input, 0);
    uv_read_start((uv_stream_t *)&input, allocate, on_input);
    uv_run(loop, UV_RUN_DEFAULT);
    fm_lines_free(&lines);
}
