/*
 * A conversation's summary in its place: the members of a result, beside `ok`. No stream. The summary is the answer's
 * text, behind FM_COMPACTION_START, and goes into an item of the type `compaction`.
 */
#include "surface/answer.h"
#include "surface/items.h"
#include "surface/request.h"

static void write_item(const struct fm_answer *answer, struct fm_json_writer *w) {
    fm_json_object_begin(w);
    fm_json_key_str(w, "id", answer->item_id);
    fm_json_key_str(w, "type", "compaction");
    fm_json_key(w, "encrypted_content");
    fm_answer_write_text(answer, w);
    fm_json_object_end(w);
}

/* Of one that failed there is nothing to tell. */
static void compact_write(const struct fm_answer *answer, struct fm_json_writer *w) {
    if (!answer->finished || answer->finish != FM_FINISH_STOP) {
        return;
    }
    fm_json_key_str(w, "id", answer->id);
    fm_json_key_str(w, "object", "response.compaction");
    fm_json_key_int(w, "created_at", answer->created_at);
    fm_json_key(w, "output");
    fm_json_array_begin(w);
    write_item(answer, w);
    fm_json_array_end(w);
    fm_responses_write_usage(&answer->usage, w);
}

const struct fm_surface fm_surface_compact = {
    .whole = true,
    .id_prefix = "resp_",
    .item_prefix = FM_COMPACTION_PREFIX,
    .parse = fm_compact_parse,
    .write = compact_write,
};
