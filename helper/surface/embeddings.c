/*
 * The embeddings API. Each vector is written as JSON when it comes, so building the reply is quick however many vectors
 * there are. This matters because no other call is answered while a reply is built.
 */
#include "protocol/frame.h"
#include "protocol/vector.h"
#include "surface/answer.h"
#include "surface/request.h"
#include "surface/usage.h"

#include <stdio.h>
#include <stdlib.h>

#define DATA_MAX    (FM_FRAME_BODY_MAX - 16384u) /* most bytes of the vectors as JSON; a frame has other members */
#define ENTRY_SIZE  64u /* bytes: {"object":"embedding","index":2047,"embedding":""}, and a comma */
#define NUMBER_SIZE 16u /* bytes: -1.23456789e-38 and a comma */

/* ---- the size of the reply ---- */

/*
 * Computes the room for the vectors. The reply also lists the ignored paths, in the worst case with each byte escaped.
 */
static size_t data_max(const struct fm_request *request) {
    return DATA_MAX - sizeof "\\u0000" * request->ignored.len;
}

static size_t entry_size(bool base64, size_t dimension) {
    return ENTRY_SIZE + (base64 ? fm_vector_text_size(dimension) : dimension * NUMBER_SIZE);
}

static enum fm_code check_size(const struct fm_request *request, size_t dimension, struct fm_error *error) {
    size_t room = data_max(request);
    size_t most = room / entry_size(request->base64, dimension);
    if (request->input_count <= most) {
        return FM_OK;
    }
    char hint[96] = "";
    if (!request->base64) {
        snprintf(hint, sizeof hint, ", with the encoding_format 'base64' %zu", room / entry_size(true, dimension));
    }
    fm_fail(error, FM_INVALID_REQUEST,
            "Invalid 'input': %zu vectors of %zu numbers are too much for one reply. At most %zu fit%s.",
            request->input_count, dimension, most, hint);
    snprintf(error->param, sizeof error->param, "input");
    return error->code;
}

static enum fm_code reject_dimensions(size_t dimension, struct fm_error *error) {
    fm_fail(
        error, FM_INVALID_REQUEST,
        "Invalid 'dimensions': integer above maximum value. Expected a value <= %zu, which the model's vectors have.",
        dimension);
    error->reason = "integer_above_max_value";
    snprintf(error->param, sizeof error->param, "dimensions");
    return error->code;
}

/* The number of values of a vector in the reply. */
static size_t wanted(const struct fm_answer *answer) {
    return answer->request.dimensions ? (size_t)answer->request.dimensions : answer->dimension;
}

enum fm_code fm_answer_expect_vectors(struct fm_answer *answer, int64_t dimension, struct fm_error *error) {
    if (dimension < 1 || dimension > FM_VECTOR_MAX) {
        return fm_fail(error, FM_INTERNAL, "the engine does not say how many numbers its vectors have");
    }
    answer->dimension = (size_t)dimension;
    if (answer->request.dimensions > dimension) {
        return reject_dimensions(answer->dimension, error);
    }
    fm_buf_init(&answer->output, data_max(&answer->request));
    return check_size(&answer->request, wanted(answer), error);
}

/* ---- the vectors ---- */

static void write_numbers(const float *values, size_t count, struct fm_json_writer *w) {
    fm_json_array_begin(w);
    for (size_t i = 0; i < count; i++) {
        char text[32];
        int len = snprintf(text, sizeof text, "%.9g", (double)values[i]); /* 9 digits restore the same float */
        fm_json_raw(w, text, (size_t)len);
    }
    fm_json_array_end(w);
}

static void write_entry(struct fm_answer *answer, const float *values) {
    struct fm_json_writer w = fm_json_writer_on(&answer->output);
    w.comma = answer->entry_count > 0;
    fm_json_object_begin(&w);
    fm_json_key_str(&w, "object", "embedding");
    fm_json_key_int(&w, "index", (int64_t)answer->entry_count);
    fm_json_key(&w, "embedding");
    if (answer->request.base64) {
        fm_vector_write(values, wanted(answer), &w);
    } else {
        write_numbers(values, wanted(answer), &w);
    }
    fm_json_object_end(&w);
}

static enum fm_code add_vector(struct fm_answer *answer, const char *text, size_t len, float *values,
                               struct fm_error *error) {
    size_t count = wanted(answer);
    if (!fm_vector_read(text, len, values, answer->dimension)) {
        return fm_fail(error, FM_INTERNAL, "the engine sent something other than a vector of %zu numbers",
                       answer->dimension);
    }
    if (count < answer->dimension && !fm_vector_normalise(values, count)) {
        fm_fail(error, FM_INVALID_REQUEST,
                "Invalid 'dimensions': the first %zu numbers of a vector are all 0. Ask for more.", count);
        snprintf(error->param, sizeof error->param, "dimensions");
        return error->code;
    }
    size_t before = answer->output.len;
    write_entry(answer, values);
    if (answer->output.failed) {
        answer->output.len = before; /* keeps only whole entries */
        return fm_fail_no_memory(error);
    }
    answer->entry_count++;
    return FM_OK;
}

enum fm_code fm_answer_vector(struct fm_answer *answer, const char *text, size_t len, struct fm_error *error) {
    if (answer->entry_count == answer->request.input_count) {
        return fm_fail(error, FM_INTERNAL, "the engine sent more vectors than there are inputs");
    }
    float *values = calloc(answer->dimension, sizeof *values);
    if (!values) {
        return fm_fail_no_memory(error);
    }
    enum fm_code code = add_vector(answer, text, len, values, error);
    free(values);
    return code;
}

/* ---- the object ---- */

static void embeddings_write(const struct fm_answer *answer, struct fm_json_writer *w) {
    fm_json_object_begin(w);
    fm_json_key_str(w, "object", "list");
    fm_json_key(w, "data");
    fm_json_array_begin(w);
    if (answer->output.len > 0) {
        fm_json_raw(w, answer->output.data, answer->output.len);
    }
    fm_json_array_end(w);
    fm_json_key_str(w, "model", answer->model);
    fm_embeddings_write_usage(&answer->usage, w);
    fm_answer_write_report(answer, FM_MOMENT_NOW, w);
    fm_json_object_end(w);
}

const struct fm_surface fm_surface_embeddings = {
    .result_member = "embeddings",
    .id_prefix = "embd_",
    .parse = fm_embeddings_parse,
    .write = embeddings_write,
};
