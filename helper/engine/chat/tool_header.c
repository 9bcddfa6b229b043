/*
 * Headers of calls. A chat template writes one kind of header for the calls of earlier turns, but the models of the
 * family were trained on more. So there is a table of known headers; a row is used if the template writes the row's
 * first header.
 */
#include "engine/chat/tools.h"

#include <string.h>

static const struct row {
    const char *recipient;
    /* both lists end at the first NULL; the template writes the first head and the first rest */
    const char *heads[FM_TOOL_WAYS];
    const char *rests[FM_TOOL_WAYS];
} rows[] = {
    /*
     * OpenAI's harmony: the recipient is in the role part or in the channel part of the header. The space before the
     * recipient may be removed with a thought.
     */
    {"to=functions.",
     {" to=functions.", "to=functions.", "<|channel|>commentary to=functions."},
     {"<|channel|>commentary json<|message|>", "<|channel|>commentary <|constrain|>json<|message|>",
      "<|channel|>commentary<|message|>", " <|constrain|>json<|message|>", "<|constrain|>json<|message|>",
      " json<|message|>", "<|message|>"}},
};

static bool mark_equals(const struct fm_tool_mark *mark, const char *text) {
    return mark->len == strlen(text) && memcmp(mark->text, text, mark->len) == 0;
}

/* Leaves out ways for which the vocabulary has no tokens: they would be text. */
static size_t set_ways(const struct fm_tool_template *from, const char *const *texts, struct fm_tool_mark *ways) {
    size_t count = 0;
    for (size_t i = 0; i < FM_TOOL_WAYS && texts[i]; i++) {
        const char *text = texts[i];
        bool whole = fm_tool_mark_set(from, text, strlen(text), &ways[count]);
        size_t marks = 0;
        for (const char *at = strstr(text, "<|"); at; at = strstr(at + 1, "<|")) {
            marks++;
        }
        count += whole && ways[count].control_count == marks;
    }
    return count;
}

bool fm_tool_header_find(const struct fm_tool_template *from, const struct fm_tool_mark *head,
                         const struct fm_tool_mark *rest, struct fm_tool_header *header) {
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct row *row = &rows[i];
        if (mark_equals(head, row->heads[0]) && mark_equals(rest, row->rests[0])) {
            *header = (struct fm_tool_header){.recipient = row->recipient};
            header->head_count = set_ways(from, row->heads, header->heads);
            header->rest_count = set_ways(from, row->rests, header->rests);
            return header->head_count > 0 && header->rest_count > 0;
        }
    }
    return false;
}
