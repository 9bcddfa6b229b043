#include "surface/answer.h"
#include "base/clock.h"
#include "base/platform.h"

#include <stdlib.h>
#include <string.h>

#define TEXT_MAX (4u << 20)

/* The longest event is the terminal one: the text with every byte escaped (six times as long) and the echo. */
#define EVENT_MAX (48u << 20)

#define ID_RANDOM 16 /* bytes; each is two hex digits */

static void draw_id(char id[FM_ID_SIZE], const char *prefix) {
    static const char digits[] = "0123456789abcdef";
    unsigned char bytes[ID_RANDOM];
    fm_random(bytes, sizeof bytes);
    size_t len = strlen(prefix);
    memcpy(id, prefix, len);
    for (size_t i = 0; i < sizeof bytes; i++) {
        id[len++] = digits[bytes[i] >> 4];
        id[len++] = digits[bytes[i] & 15];
    }
    id[len] = '\0';
}

enum fm_code fm_answer_init(struct fm_answer *answer, const struct fm_surface *surface, struct fm_request *request,
                            const char *model, fm_emit_fn *emit, void *emit_context, struct fm_error *error) {
    *answer = (struct fm_answer){
        .surface = surface,
        .request = *request,
        .model = strdup(model),
        .created_at = fm_wall_seconds(),
        .emit = emit,
        .emit_context = emit_context,
    };
    *request = (struct fm_request){0};
    fm_buf_init(&answer->text, TEXT_MAX);
    fm_buf_init(&answer->scratch, EVENT_MAX);
    draw_id(answer->id, surface->id_prefix);
    if (surface->item_prefix) {
        draw_id(answer->item_id, surface->item_prefix);
    }
    if (!answer->model) {
        fm_answer_free(answer);
        return fm_fail_no_memory(error);
    }
    return FM_OK;
}

void fm_answer_free(struct fm_answer *answer) {
    fm_request_free(&answer->request);
    free(answer->model);
    answer->model = NULL;
    fm_buf_free(&answer->text);
    fm_buf_free(&answer->scratch);
}

void fm_answer_open(struct fm_answer *answer, int64_t input_tokens) {
    answer->usage.input = input_tokens;
    answer->opened = true;
    if (answer->request.stream) {
        answer->surface->open(answer);
    }
}

bool fm_answer_delta(struct fm_answer *answer, const char *text, size_t len) {
    fm_buf_append(&answer->text, text, len);
    if (answer->text.failed) {
        return false;
    }
    if (answer->request.stream && len > 0) {
        answer->surface->delta(answer, text, len);
    }
    return !answer->lost;
}

void fm_answer_finish(struct fm_answer *answer, enum fm_finish finish, const struct fm_error *error) {
    static const struct fm_error unknown = {.code = FM_INTERNAL, .detail = "The engine failed."};
    answer->finish = finish;
    answer->finished = true;
    answer->completed_at = fm_wall_seconds();
    if (answer->request.stream && answer->opened) {
        answer->surface->close(answer, finish == FM_FINISH_FAILED && !error ? &unknown : error);
    }
}

struct fm_json_writer fm_event_begin(struct fm_answer *answer) {
    fm_buf_reset(&answer->scratch);
    return fm_json_writer_on(&answer->scratch);
}

void fm_event_send(struct fm_answer *answer) {
    if (answer->scratch.failed) {
        answer->lost = true;
    } else {
        answer->emit(answer->emit_context, answer->scratch.data, answer->scratch.len);
    }
}

void fm_answer_write_text(const struct fm_answer *answer, struct fm_json_writer *w) {
    fm_json_string(w, answer->text.len > 0 ? answer->text.data : "", answer->text.len);
}
