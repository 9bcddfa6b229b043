/* A file of saved KV states: what was written is read back, and a damaged, cut or made-up file is refused. */
#include "base/private_files.h"
#include "engine/llama/saved_file.h"
#include "wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define IDENTITY 42
#define BLOCKS   4
#define DATA     100 /* bytes of the first block's data; each later block has one byte more */
#define TRAILER  64
#define DISK     48 /* bytes of a block in the index */

static const struct fm_saved_kind kind = {.identity = IDENTITY, .context_length = 1000, .vocabulary = 1000};

/* Two conversations that share the first block, and a short one. */
static const struct {
    int32_t parent;
    uint32_t count;
    bool state;
} shapes[BLOCKS] = {{-1, FM_SAVED_TOKENS, false}, {0, FM_SAVED_TOKENS, false}, {0, 5, true}, {-1, 7, false}};

static int32_t tokens[FM_SAVED_TOKENS];
static unsigned char data[DATA + BLOCKS];

static int make_file(struct fm_saved_writer *writer) {
    FILE *file = tmpfile();
    int fd = file ? dup(fileno(file)) : -1;
    assert_true(fd >= 0);
    fclose(file);
    for (int i = 0; i < (int)COUNT(tokens); i++) {
        tokens[i] = i + 1;
    }
    for (size_t i = 0; i < sizeof data; i++) {
        data[i] = (unsigned char)(i * 7);
    }
    *writer = (struct fm_saved_writer){.fd = fd, .max_bytes = 1 << 20, .index = {.token_us = 1.5}};
    writer->index.blocks = calloc(BLOCKS, sizeof *writer->index.blocks);
    for (size_t i = 0; i < BLOCKS; i++) {
        const struct fm_saved_block block = {.parent = shapes[i].parent,
                                             .count = shapes[i].count,
                                             .state = shapes[i].state,
                                             .worth = 1,
                                             .tokens = tokens};
        fm_saved_writer_add(writer, block, data, DATA + i);
    }
    return fd;
}

static int whole_file(void) {
    struct fm_saved_writer writer;
    int fd = make_file(&writer);
    assert_true(fm_saved_writer_end(&writer, IDENTITY));
    assert_int_equal(fm_private_file_size(fd), writer.bytes);
    free(writer.index.blocks);
    return fd;
}

/* Whether the data of all blocks in the file agree with the index. */
static bool data_fit(const struct fm_saved_index *index, int fd) {
    bool fit = true;
    for (size_t i = 0; i < index->count; i++) {
        unsigned char bytes[sizeof data];
        const struct fm_saved_block *block = &index->blocks[i];
        assert_true(block->bytes <= sizeof bytes);
        assert_true(fm_private_file_read(fd, bytes, (size_t)block->bytes, (int64_t)block->offset));
        fit = fit && fm_saved_sum(0, bytes, (size_t)block->bytes) == block->check;
    }
    return fit;
}

static void what_was_written_is_read(void **state) {
    (void)state;
    struct fm_saved_index index;
    int fd = whole_file();
    assert_null(fm_saved_index_read(&index, fd, &kind));
    assert_int_equal(index.count, BLOCKS);
    assert_true(index.token_us > 1.4 && index.token_us < 1.6);
    for (size_t i = 0; i < BLOCKS; i++) {
        assert_int_equal(index.blocks[i].parent, shapes[i].parent);
        assert_int_equal(index.blocks[i].count, shapes[i].count);
        assert_int_equal(index.blocks[i].state, shapes[i].state);
        assert_int_equal(index.blocks[i].from, shapes[i].parent < 0 ? 0 : FM_SAVED_TOKENS);
        assert_int_equal(index.blocks[i].bytes, DATA + i);
        assert_memory_equal(index.blocks[i].tokens, tokens, shapes[i].count * sizeof *tokens);
    }
    assert_true(data_fit(&index, fd));
    fm_saved_index_free(&index);
    fm_saved_index_free(&index);
    close(fd);
}

static void the_size_is_told_before(void **state) {
    (void)state;
    struct fm_saved_writer writer;
    int fd = make_file(&writer);
    uint64_t said = fm_saved_writer_size(&writer, sizeof data);
    const struct fm_saved_block block = {.parent = -1, .count = FM_SAVED_TOKENS, .tokens = tokens};
    writer.index.blocks = realloc(writer.index.blocks, (BLOCKS + 1) * sizeof *writer.index.blocks);
    fm_saved_writer_add(&writer, block, data, sizeof data);
    assert_true(fm_saved_writer_end(&writer, IDENTITY));
    assert_int_equal(writer.bytes, said);
    free(writer.index.blocks);
    close(fd);
}

/* Changes each byte in turn, by one bit or all bits: the index or the block's data are refused. */
static void each_damaged_byte_is_seen(void **state) {
    (void)state;
    static const unsigned char changes[] = {1, 0x80, 0xff};
    int fd = whole_file();
    int64_t size = fm_private_file_size(fd);
    for (int64_t at = 0; at < size * (int64_t)COUNT(changes); at++) {
        struct fm_saved_index index;
        unsigned char byte;
        assert_true(fm_private_file_read(fd, &byte, 1, at / (int64_t)COUNT(changes)));
        unsigned char damaged = byte ^ changes[at % (int64_t)COUNT(changes)];
        assert_int_equal(pwrite(fd, &damaged, 1, at / (int64_t)COUNT(changes)), 1);
        bool used = !fm_saved_index_read(&index, fd, &kind) && data_fit(&index, fd);
        fm_saved_index_free(&index);
        assert_int_equal(pwrite(fd, &byte, 1, at / (int64_t)COUNT(changes)), 1);
        if (used) {
            fail_msg("byte %lld of %lld", (long long)at / (long long)COUNT(changes), (long long)size);
        }
    }
    close(fd);
}

static void a_torn_file_is_refused(void **state) {
    (void)state;
    struct fm_saved_index index;
    int fd = whole_file();
    for (int64_t size = fm_private_file_size(fd) - 1; size >= 0; size--) {
        assert_int_equal(ftruncate(fd, (off_t)size), 0);
        assert_non_null(fm_saved_index_read(&index, fd, &kind));
    }
    close(fd);
}

static void another_kind_is_refused(void **state) {
    (void)state;
    struct fm_saved_index index;
    const struct fm_saved_kind others[] = {
        {IDENTITY + 1, 1000, 1000}, {IDENTITY, 2 * FM_SAVED_TOKENS - 1, 1000}, {IDENTITY, 1000, FM_SAVED_TOKENS}};
    int fd = whole_file();
    for (size_t i = 0; i < COUNT(others); i++) {
        assert_non_null(fm_saved_index_read(&index, fd, &others[i]));
    }
    close(fd);
}

/* Writes like an attacker who knows the checksums. */
static void write_again(int fd, int64_t at, const void *bytes, size_t len) {
    int64_t size = fm_private_file_size(fd);
    uint64_t trailer[TRAILER / 8];
    char index[4096];
    assert_int_equal(pwrite(fd, bytes, len, (off_t)at), (ssize_t)len);
    assert_true(fm_private_file_read(fd, trailer, sizeof trailer, size - TRAILER));
    if (trailer[3] <= sizeof index && trailer[2] + trailer[3] + TRAILER == (uint64_t)size) {
        assert_true(fm_private_file_read(fd, index, (size_t)trailer[3], (int64_t)trailer[2]));
        trailer[4] = fm_saved_sum(0, index, (size_t)trailer[3]);
    }
    trailer[7] = fm_saved_sum(0, trailer, TRAILER - 8);
    assert_int_equal(pwrite(fd, trailer, sizeof trailer, (off_t)(size - TRAILER)), (ssize_t)sizeof trailer);
}

/* Valid checksums prove nothing: each number of index and trailer is checked. */
static void numbers_that_make_no_sense_are_refused(void **state) {
    (void)state;
    static const struct {
        int block;  /* -1: the trailer */
        size_t at;  /* the number's place in the block or trailer */
        size_t len; /* of the number */
        uint64_t number;
    } rows[] = {
        {0, 0, 4, 0},            /* the block is its own parent */
        {0, 0, 4, 1},            /* a parent that comes later */
        {0, 0, 4, INT32_MAX},    /* far beyond */
        {1, 0, 4, (uint32_t)-2}, /* not a valid index */
        {3, 0, 4, 2},            /* a parent block that is not full */
        {2, 4, 4, 0},            /* no tokens */
        {2, 4, 4, FM_SAVED_TOKENS + 1},
        {2, 4, 4, 6},       /* more tokens than the file has */
        {3, 4, 4, 6},       /* fewer tokens */
        {0, 8, 8, 1 << 20}, /* data beyond the file */
        {0, 8, 8, UINT64_MAX},
        {0, 16, 8, 1 << 20},
        {1, 16, 8, UINT64_MAX - 50}, /* added to the offset, this wraps to a place inside the file */
        {0, 16, 8, 0},
        {0, 32, 8, 0xbff0000000000000u}, /* a worth of -1 */
        {0, 32, 8, 0x7ff8000000000000u}, /* not a number */
        {0, 40, 8, 1},                   /* a state in a block with children */
        {3, 40, 8, 2},                   /* neither 0 nor 1 */
        {-1, 16, 8, 0},
        {-1, 16, 8, UINT64_MAX},
        {-1, 24, 8, UINT64_MAX},
        {-1, 24, 8, 0},
        {-1, 40, 8, BLOCKS + 1},
        {-1, 40, 8, UINT64_MAX},
        {-1, 40, 8, 0},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct fm_saved_index index;
        uint64_t trailer[TRAILER / 8];
        int fd = whole_file();
        int64_t begin = fm_private_file_size(fd) - TRAILER;
        assert_true(fm_private_file_read(fd, trailer, sizeof trailer, begin));
        begin = rows[i].block < 0 ? begin : (int64_t)trailer[2] + rows[i].block * DISK;
        write_again(fd, begin + (int64_t)rows[i].at, &rows[i].number, rows[i].len);
        if (!fm_saved_index_read(&index, fd, &kind)) {
            fail_msg("row %zu", i);
        }
        close(fd);
    }
}

static void a_write_that_fails_is_told(void **state) {
    (void)state;
    struct fm_saved_writer writer;
    int fd = make_file(&writer);
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    writer.fd = ends[0]; /* this end can't be written to */
    assert_false(fm_saved_writer_end(&writer, IDENTITY));
    assert_true(writer.failed);
    free(writer.index.blocks);
    close(fd);
    close(ends[0]);
    close(ends[1]);
}

static void every_length_has_its_sum(void **state) {
    (void)state;
    static const unsigned char zeros[200];
    for (size_t len = 1; len < sizeof zeros; len++) {
        assert_int_not_equal(fm_saved_sum(0, zeros, len), fm_saved_sum(0, zeros, len - 1));
        assert_int_not_equal(fm_saved_sum(1, zeros, len), fm_saved_sum(0, zeros, len));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_written_is_read),   cmocka_unit_test(the_size_is_told_before),
        cmocka_unit_test(each_damaged_byte_is_seen),  cmocka_unit_test(a_torn_file_is_refused),
        cmocka_unit_test(another_kind_is_refused),    cmocka_unit_test(numbers_that_make_no_sense_are_refused),
        cmocka_unit_test(a_write_that_fails_is_told), cmocka_unit_test(every_length_has_its_sum),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
