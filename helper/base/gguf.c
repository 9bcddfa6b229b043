/*
 * Reads the first key-value pairs of a GGUF header. The bytes are untrusted: every read is checked against their
 * end.
 */
#include "base/gguf.h"
#include "base/buf.h"
#include "base/file.h"

#include <string.h>

#define MAGIC       "GGUF"
#define VERSION_MIN 2 /* version 1 had other lengths; llama.cpp does not read it either */
#define VERSION_MAX 3

/* Types of values. */
enum { TYPE_U8, TYPE_BOOL = 7, TYPE_STRING, TYPE_ARRAY, TYPE_COUNT = 13 };

/* Bytes of a value of each type; 0: the value contains its length. */
static const size_t sizes[TYPE_COUNT] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

/* The bytes that have not been read yet. */
struct rest {
    const unsigned char *at;
    size_t len;
};

struct text {
    const char *bytes;
    size_t len;
};

static bool take_bytes(struct rest *rest, uint64_t len, const unsigned char **bytes) {
    if (len > rest->len) {
        return false;
    }
    *bytes = rest->at;
    rest->at += len;
    rest->len -= len;
    return true;
}

/* Reads a little-endian number of `size` bytes, at most 8. */
static bool take_number(struct rest *rest, size_t size, uint64_t *number) {
    const unsigned char *bytes;
    *number = 0;
    if (!take_bytes(rest, size, &bytes)) {
        return false;
    }
    for (size_t i = size; i > 0; i--) {
        *number = *number << 8 | bytes[i - 1];
    }
    return true;
}

static bool take_text(struct rest *rest, struct text *text) {
    const unsigned char *bytes;
    uint64_t len;
    if (!take_number(rest, sizeof len, &len) || !take_bytes(rest, len, &bytes)) {
        return false;
    }
    *text = (struct text){(const char *)bytes, len};
    return true;
}

/*
 * Counts the items of an array and adds up its numbers. False also for arrays of arrays, which do not occur in real
 * files.
 */
static bool take_array(struct rest *rest, uint64_t *count, double *sum) {
    uint64_t type;
    uint64_t number;
    struct text text;
    *count = 0;
    *sum = 0;
    if (!take_number(rest, 4, &type) || !take_number(rest, 8, count) || type >= TYPE_COUNT || type == TYPE_ARRAY) {
        return false;
    }
    for (uint64_t i = 0; i < *count; i++) {
        if (type == TYPE_STRING ? !take_text(rest, &text) : !take_number(rest, sizes[type], &number)) {
            return false;
        }
        *sum += type == TYPE_STRING ? 0 : (double)number;
    }
    return true;
}

static bool equals(struct text text, const char *other) {
    return text.len == strlen(other) && memcmp(text.bytes, other, text.len) == 0;
}

/* Whether the key is "ARCHITECTURE.name". The keys of a model's parts have more dots. */
static bool is_of_model(struct text key, const char *name) {
    const char *dot = memchr(key.bytes, '.', key.len);
    return dot && equals((struct text){dot + 1, key.len - (size_t)(dot + 1 - key.bytes)}, name);
}

/* The values of the header that were read so far. */
struct said {
    bool clip;
    bool blind; /* a projector only for sound */
    uint64_t pooling;
    uint64_t projected;
    uint64_t embedded;
    uint64_t context;
    uint64_t layers;
    uint64_t heads;
    uint64_t kv_heads;   /* 0: as many as `heads`, or the number differs between layers */
    double all_kv_heads; /* the sum of all layers, if their numbers differ; 0: they do not */
    uint64_t interval;   /* one in this many layers has keys and values, the others have states; 0: all have keys */
    uint64_t key;        /* numbers of a head's key and value; 0: `embedded`, divided among the heads */
    uint64_t value;
    uint64_t vocabulary;
};

/* The parts from which the size of the KV memory is computed. */
static void note_context(struct said *said, struct text key, uint64_t number) {
    const struct {
        const char *name;
        uint64_t *number;
    } rows[] = {
        {"context_length", &said->context},     {"block_count", &said->layers},
        {"attention.head_count", &said->heads}, {"attention.head_count_kv", &said->kv_heads},
        {"attention.key_length", &said->key},   {"attention.value_length", &said->value},
        {"full_attention_interval", &said->interval},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (is_of_model(key, rows[i].name)) {
            *rows[i].number = number;
        }
    }
}

static void note_number(struct said *said, struct text key, uint64_t number) {
    if (equals(key, "clip.vision.projection_dim")) {
        said->projected = number;
    } else if (equals(key, "clip.has_vision_encoder")) {
        said->blind = number == 0;
    } else if (is_of_model(key, "embedding_length")) {
        said->embedded = number;
    } else if (is_of_model(key, "pooling_type")) {
        said->pooling = number;
    } else {
        note_context(said, key, number);
    }
}

/* Computes the bytes of a token in the KV memory. The file may claim any numbers. */
static double kv_bytes(const struct said *said) {
    double shared = said->heads ? (double)said->embedded / (double)said->heads : 0;
    double key = said->key ? (double)said->key : shared;
    double value = said->value ? (double)said->value : shared;
    double heads = (double)(said->kv_heads ? said->kv_heads : said->heads);
    double layers = (double)(said->layers / (said->interval ? said->interval : 1));
    return 2 * (key + value) * (said->all_kv_heads > 0 ? said->all_kv_heads : heads * layers);
}

/* Reads one key-value pair. False: the bytes end within the pair, or are no pair. */
static bool read_pair(struct rest *rest, struct said *said) {
    struct text key;
    struct text text;
    uint64_t type;
    uint64_t number;
    uint64_t count;
    double sum;
    if (!take_text(rest, &key) || !take_number(rest, 4, &type) || type >= TYPE_COUNT) {
        return false;
    }
    if (type == TYPE_ARRAY) {
        bool there = take_array(rest, &count, &sum); /* the header is longer than the bytes that are read */
        said->vocabulary = equals(key, "tokenizer.ggml.tokens") ? count : said->vocabulary;
        said->all_kv_heads = there && is_of_model(key, "attention.head_count_kv") ? sum : said->all_kv_heads;
        return there;
    }
    if (type == TYPE_STRING) {
        bool there = take_text(rest, &text);
        said->clip = said->clip || (there && equals(key, "general.architecture") && equals(text, "clip"));
        return there;
    }
    if (!take_number(rest, sizes[type], &number)) {
        return false;
    }
    note_number(said, key, number);
    return true;
}

void fm_gguf_kind_parse(const void *bytes, size_t len, struct fm_gguf_kind *kind) {
    struct rest rest = {.at = bytes, .len = len};
    struct said said = {.clip = false};
    const unsigned char *magic;
    uint64_t version;
    uint64_t tensors;
    uint64_t pairs;
    *kind = (struct fm_gguf_kind){.projector = false};
    if (!take_bytes(&rest, strlen(MAGIC), &magic) || memcmp(magic, MAGIC, strlen(MAGIC)) != 0 ||
        !take_number(&rest, 4, &version) || version < VERSION_MIN || version > VERSION_MAX ||
        !take_number(&rest, 8, &tensors) || !take_number(&rest, 8, &pairs)) {
        return;
    }
    while (pairs > 0 && read_pair(&rest, &said)) {
        pairs--;
    }
    kind->projector = said.clip;
    kind->embeds = said.pooling != 0;
    kind->kv_bytes = kv_bytes(&said);
    kind->context = said.context;
    kind->vocabulary = said.vocabulary;
    kind->tokens = !said.clip ? said.embedded : said.blind ? 0 : said.projected;
}

void fm_gguf_kind_read(const char *path, struct fm_gguf_kind *kind) {
    struct fm_error ignored;
    struct fm_buf start;
    fm_buf_init(&start, FM_GGUF_LOOK_MAX);
    bool got = fm_file_read_start(path, &start, FM_GGUF_LOOK_MAX, &ignored) == FM_OK;
    fm_gguf_kind_parse(start.data, got ? start.len : 0, kind);
    fm_buf_free(&start);
}
