/* Shared by the tests of the tool parser: its pieces as a transcript; adjacent pieces of one kind are joined. */
#ifndef TESTS_UNIT_TOOL_PIECES_H
#define TESTS_UNIT_TOOL_PIECES_H

#include "engine/chat/tools.h"
#include "wire.h"

struct parsing {
    struct fm_tool_parser parser;
    struct transcript *log;
    enum fm_tool_kind last;
};

static inline struct parsing *start_parsing(struct transcript *log, const struct fm_kit_job *job,
                                            const struct fm_tool_form *form) {
    struct parsing *parsing = malloc(sizeof *parsing);
    assert_non_null(parsing);
    parsing->log = log;
    parsing->last = FM_TOOL_NO_MEMORY;
    fm_tool_parser_init(&parsing->parser, job, form);
    return parsing;
}

static inline void note_piece(struct parsing *parsing, const struct fm_tool_piece *piece) {
    static const char *const names[] = {
        [FM_TOOL_TEXT] = "T:", [FM_TOOL_CALL] = "|C:", [FM_TOOL_PART_OF_ARGUMENTS] = "|A:", [FM_TOOL_NO_MEMORY] = "!"};
    if (piece->kind == FM_TOOL_CALL) {
        note(parsing->log, "|C:%s", piece->name);
    } else if (piece->kind == FM_TOOL_UNKNOWN) {
        note(parsing->log, "|?");
    } else {
        assert_true(piece->len > 0);
        note(parsing->log, "%s%.*s", parsing->last == piece->kind ? "" : names[piece->kind], (int)piece->len,
             piece->bytes);
    }
    parsing->last = piece->kind;
}

static inline void feed(void *context, const char *bytes, size_t len) {
    struct parsing *parsing = context;
    struct fm_tool_piece piece;
    while (fm_tool_parser_read(&parsing->parser, &bytes, &len, &piece)) {
        note_piece(parsing, &piece);
    }
    assert_int_equal(len, 0);
}

static inline void end_parsing(struct parsing *parsing, bool cut) {
    struct fm_tool_piece piece;
    if (fm_tool_parser_end(&parsing->parser, cut, &piece)) {
        note_piece(parsing, &piece);
    }
    assert_false(fm_tool_parser_end(&parsing->parser, cut, &piece));
    fm_tool_parser_free(&parsing->parser);
    free(parsing);
}

static inline void end(void *context) {
    end_parsing(context, false);
}

#endif
