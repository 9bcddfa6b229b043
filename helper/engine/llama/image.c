/* stb_image under image.h, with a limit on what it may allocate, because untrusted files are decoded here. */
#include "engine/llama/image.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/*
 * A file may claim few pixels and hold gigabytes of packed data, so no allocation may be larger than the pixels of this
 * image can need: 4 channels of 16 bits, doubled because buffers grow by doubling. Small allocations are always
 * allowed.
 */
#define BYTES_PER_PIXEL 16
#define BYTES_ALWAYS    (4u << 20)

static size_t allocation_max = BYTES_ALWAYS;

/* Zeroed: a JPEG may leave pixels out, and old contents of the memory must not show. */
static void *allocate_limited(size_t size) {
    return size <= allocation_max ? calloc(1, size) : NULL;
}

static void *reallocate(void *memory, size_t size) {
    return size <= allocation_max ? realloc(memory, size) : NULL;
}

#define STBI_MALLOC(size)          allocate_limited(size)
#define STBI_REALLOC(memory, size) reallocate(memory, size)
#define STBI_FREE(memory)          free(memory)
#define STBI_ONLY_PNG
#define STBI_ONLY_JPEG
#define STBI_ONLY_GIF
#define STBI_ONLY_BMP
#define STBI_NO_STDIO
#define STBI_NO_LINEAR
#define STBI_NO_HDR
#define STBI_MAX_DIMENSIONS FM_IMAGE_SIDE_MAX
#define STB_IMAGE_STATIC
#define STB_IMAGE_IMPLEMENTATION
#include <stb_image.h>

#define JPEG_SCANS_MAX 100 /* scans: a progressive JPEG has some ten, and each costs as much as a whole picture */

/* Counts the two bytes of a scan's marker, which rarely occur by chance: in packed data an FF is followed by 00. */
static bool has_too_many_scans(const unsigned char *bytes, size_t len) {
    size_t scans = 0;
    for (size_t i = 0; i + 1 < len && scans <= JPEG_SCANS_MAX; i++) {
        scans += bytes[i] == 0xFF && bytes[i + 1] == 0xDA;
    }
    return len > 2 && bytes[0] == 0xFF && bytes[1] == 0xD8 && scans > JPEG_SCANS_MAX;
}

/* The file as a stream: the decoder must ask for more bytes, so it can be stopped. */
struct source {
    const unsigned char *bytes;
    size_t left;
    fm_image_go_on *go_on;
    void *state;
    bool stopped;
    bool over; /* the file ended before the image; the decoder would invent the rest */
};

static int read_some(void *user, char *data, int size) {
    struct source *source = user;
    source->stopped = source->stopped || !source->go_on(source->state);
    source->over = source->over || source->left == 0;
    size_t count = source->stopped ? 0 : source->left;
    count = count < (size_t)size ? count : (size_t)size;
    memcpy(data, source->bytes, count);
    source->bytes += count;
    source->left -= count;
    return (int)count;
}

static void skip(void *user, int count) {
    struct source *source = user;
    size_t skipped = count > 0 ? (size_t)count : 0;
    skipped = skipped < source->left ? skipped : source->left;
    source->bytes += skipped;
    source->left -= skipped;
}

static int at_end(void *user) {
    struct source *source = user;
    return source->stopped || source->left == 0;
}

static const stbi_io_callbacks callbacks = {.read = read_some, .skip = skip, .eof = at_end};

static enum fm_code refuse_image(struct fm_error *error) {
    const char *reason = stbi_failure_reason();
    return fm_fail(error, FM_INVALID_REQUEST, "the image can't be read: %s", reason ? reason : "it is damaged");
}

enum fm_code fm_image_look(const unsigned char *bytes, size_t len, struct fm_pixels *pixels, struct fm_error *error) {
    int width = 0;
    int height = 0;
    int channels;
    *pixels = (struct fm_pixels){0};
    allocation_max = BYTES_ALWAYS;
    if (len > INT_MAX || !stbi_info_from_memory(bytes, (int)len, &width, &height, &channels)) {
        return fm_fail(error, FM_INVALID_REQUEST,
                       "the image can't be read: it is no PNG, JPEG, GIF or BMP, or has more than %u pixels a side",
                       FM_IMAGE_SIDE_MAX);
    }
    if (width < 1 || height < 1 || (unsigned)width > FM_IMAGE_SIDE_MAX || (unsigned)height > FM_IMAGE_SIDE_MAX ||
        (uint64_t)width * (uint64_t)height > FM_IMAGE_PIXELS_MAX) {
        return fm_fail(error, FM_INVALID_REQUEST,
                       "the image has %d by %d pixels; %u a side and %u in all are the most: send a smaller one", width,
                       height, FM_IMAGE_SIDE_MAX, FM_IMAGE_PIXELS_MAX);
    }
    pixels->width = (uint32_t)width;
    pixels->height = (uint32_t)height;
    return FM_OK;
}

enum fm_code fm_image_decode(const unsigned char *bytes, size_t len, fm_image_go_on *go_on, void *state,
                             struct fm_pixels *pixels, struct fm_error *error) {
    struct source source = {.bytes = bytes, .left = len, .go_on = go_on, .state = state};
    int width = 0;
    int height = 0;
    int channels;
    enum fm_code code = fm_image_look(bytes, len, pixels, error);
    if (code != FM_OK) {
        return code;
    }
    if (has_too_many_scans(bytes, len)) {
        return fm_fail(error, FM_INVALID_REQUEST, "the image can't be read: it has more than %d scans", JPEG_SCANS_MAX);
    }
    allocation_max = BYTES_ALWAYS + (size_t)pixels->width * pixels->height * BYTES_PER_PIXEL;
    pixels->rgb = stbi_load_from_callbacks(&callbacks, &source, &width, &height, &channels, 3);
    if (source.stopped) {
        fm_pixels_free(pixels);
        return fm_fail(error, FM_CANCELLED, "the job was aborted");
    }
    if (pixels->rgb && source.over) {
        fm_pixels_free(pixels);
        return fm_fail(error, FM_INVALID_REQUEST, "the image can't be read: it is cut short");
    }
    if (!pixels->rgb || (uint32_t)width != pixels->width || (uint32_t)height != pixels->height) {
        fm_pixels_free(pixels);
        return refuse_image(error);
    }
    return FM_OK;
}

void fm_pixels_free(struct fm_pixels *pixels) {
    free(pixels->rgb);
    *pixels = (struct fm_pixels){0};
}
