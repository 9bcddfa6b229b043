/*
 * Fuzzes gw_recover and the views. Whatever a transcript's bytes are, one start repairs everything: a second start
 * finds nothing to cut, to set aside or to close. Only whole lines are kept, and each kept line was in the text. A
 * transcript that is cut anywhere is repaired to the records before the cut, and does not count as damaged because of
 * it.
 *
 * The first two bytes of an input say where the rest, the text, is cut.
 */
#include "sessions/recovery.h"
#include "sessions/transcript.h"
#include "sessions/views.h"
#include "tests/fuzz/fuzz.h"

#define NOW      1764061300000
#define TEXT_MAX (64u << 20)

static struct fm_buf mend(const char *text, size_t len, struct gw_recovered *recovered) {
    struct fm_error error;
    struct fm_buf mended;
    char *copy = exact_copy(text, len);
    HOLDS(gw_recover(copy, len, NOW, recovered, &error) == FM_OK);
    fm_buf_init(&mended, TEXT_MAX);
    HOLDS(recovered->damaged || recovered->whole <= len);
    fm_buf_append(&mended, recovered->damaged ? recovered->kept.data : copy, recovered->whole);
    fm_buf_append(&mended, recovered->closing.data, recovered->closing.len);
    HOLDS(!mended.failed && (mended.len == 0 || mended.data[mended.len - 1] == '\n'));
    free(copy);
    return mended;
}

static size_t count_lines(const char *text, size_t len) {
    size_t lines = 0;
    for (size_t i = 0; i < len; i++) {
        lines += text[i] == '\n';
    }
    return lines;
}

/* Checks that each kept line is a line of the text, in its order. */
static void expect_lines_of(const char *kept, size_t kept_len, const char *text, size_t len) {
    while (kept_len) {
        size_t line = (size_t)((const char *)memchr(kept, '\n', kept_len) - kept) + 1;
        bool found = false;
        while (!found && len) {
            const char *end = memchr(text, '\n', len);
            HOLDS(end);
            size_t other = (size_t)(end - text) + 1;
            found = other == line && memcmp(text, kept, line) == 0;
            text += other;
            len -= other;
        }
        HOLDS(found);
        kept += line;
        kept_len -= line;
    }
}

static void expect_stable(const struct fm_buf *mended, const struct gw_recovered *first) {
    struct gw_recovered again;
    struct fm_buf same = mend(mended->data, mended->len, &again);
    HOLDS(!again.damaged && again.closing.len == 0 && again.whole == mended->len);
    HOLDS(again.runs == 0 && again.approvals == 0 && again.tools == 0);
    HOLDS(again.facts.seq == first->facts.seq && again.facts.messages == first->facts.messages);
    HOLDS(strcmp(again.facts.title, first->facts.title) == 0);
    HOLDS(is_utf8(again.facts.title, strlen(again.facts.title)));
    HOLDS(is_utf8(again.facts.agent_id, strlen(again.facts.agent_id)));
    fm_buf_free(&same);
    gw_recovered_free(&again);
}

static void expect_views(const struct fm_buf *mended, const struct gw_recovered *recovered) {
    for (enum gw_view_form form = GW_VIEW_MESSAGES; form <= GW_VIEW_JSONL; form++) {
        struct gw_view view = {.form = form, .limit = 3};
        struct fm_buf out;
        bool cut;
        fm_buf_init(&out, TEXT_MAX);
        HOLDS(gw_view_write(mended->data, mended->len, &view, &out, &cut));
        HOLDS(!cut && is_utf8(out.data, out.len));
        if (form == GW_VIEW_JSONL) {
            HOLDS(out.len == mended->len && (out.len == 0 || memcmp(out.data, mended->data, out.len) == 0));
        } else if (form != GW_VIEW_MARKDOWN) {
            struct json_object *array = json_must_parse(out.data, out.len);
            size_t count = json_object_array_length(array);
            size_t wanted =
                form == GW_VIEW_MESSAGES ? recovered->facts.messages : count_lines(mended->data, mended->len);
            HOLDS(count == (wanted < 3 ? wanted : 3));
            json_object_put(array);
        }
        fm_buf_free(&out);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct gw_recovered recovered;
    struct gw_recovered part;
    if (size < 2) {
        return 0;
    }
    const char *text = (const char *)data + 2;
    size_t len = size - 2;
    struct fm_buf mended = mend(text, len, &recovered);
    expect_lines_of(mended.data, recovered.whole, text, len);
    expect_stable(&mended, &recovered);
    expect_views(&mended, &recovered);
    size_t cut = mended.len ? (data[0] * 256u + data[1]) % mended.len : 0;
    struct fm_buf after = mend(mended.data, cut, &part);
    HOLDS(!part.damaged && part.whole <= cut);
    HOLDS(count_lines(mended.data, cut) == count_lines(mended.data, part.whole));
    expect_stable(&after, &part);
    fm_buf_free(&after);
    fm_buf_free(&mended);
    gw_recovered_free(&part);
    gw_recovered_free(&recovered);
    return 0;
}
