/* A build without libmtmd: no projector loads, so nothing else of vision.h is ever called with one. */
#include "engine/llama/vision.h"

bool fm_vision_supported(void) {
    return false;
}

bool fm_span_equal(const struct fm_span *a, const struct fm_span *b) {
    (void)a, (void)b;
    return false;
}

enum fm_code fm_vision_load(struct fm_vision **vision, const char *path, const struct llama_model *weights, int threads,
                            struct fm_error *error) {
    (void)weights, (void)threads;
    *vision = NULL;
    return fm_fail(error, FM_UNAVAILABLE,
                   "%s: this build has no models that see: run sh packaging/setup.sh in its clone", path);
}

void fm_vision_free(struct fm_vision *vision) {
    (void)vision;
}

bool fm_vision_needs_whole_spans(const struct fm_vision *vision) {
    (void)vision;
    return false;
}

size_t fm_vision_positions(const struct fm_vision *vision) {
    (void)vision;
    return 1;
}

void fm_vision_log_to(ggml_log_callback callback) {
    (void)callback;
}

static enum fm_code without(struct fm_error *error) {
    return fm_fail(error, FM_INTERNAL, "this build has no models that see");
}

enum fm_code fm_picture_new(const struct fm_vision *vision, const struct fm_image *image, struct fm_picture **picture,
                            struct fm_error *error) {
    (void)vision, (void)image;
    *picture = NULL;
    return without(error);
}

void fm_picture_free(struct fm_picture *picture) {
    (void)picture;
}

void fm_picture_write(const struct fm_picture *picture, struct fm_buf *tokens, struct fm_buf *spans) {
    (void)picture, (void)tokens, (void)spans;
}

enum fm_code fm_picture_check(const struct fm_picture *picture, fm_image_go_on *go_on, void *state,
                              struct fm_error *error) {
    (void)picture, (void)go_on, (void)state;
    return without(error);
}

enum fm_code fm_picture_encode(struct fm_vision *vision, struct fm_picture *picture, const struct fm_span *span,
                               fm_image_go_on *go_on, void *state, float **states, struct fm_error *error) {
    (void)vision, (void)picture, (void)span, (void)go_on, (void)state;
    *states = NULL;
    return without(error);
}

void fm_picture_positions(const struct fm_vision *vision, const struct fm_picture *picture, const struct fm_span *span,
                          llama_pos start, llama_pos *positions) {
    (void)vision, (void)picture, (void)span, (void)start, (void)positions;
}
