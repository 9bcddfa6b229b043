/*
 * Properties of marks, the text around names and arguments: their control tokens, and the length of the part that
 * differs. Also answers questions about a form.
 */
#include "engine/chat/tools.h"

size_t fm_tool_place_len(const struct fm_tool_mark *mark) {
    static const size_t lens[] = {[FM_TOOL_ID_PLACE] = FM_TOOL_ID_LEN, [FM_TOOL_NUMBER_PLACE] = 1};
    return lens[mark->place];
}

bool fm_tool_in_place(const struct fm_tool_mark *mark, char c) {
    bool digit = c >= '0' && c <= '9';
    bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '-';
    return mark->place != FM_TOOL_NO_PLACE && (digit || (letter && mark->place == FM_TOOL_ID_PLACE));
}

bool fm_tool_mark_set(const struct fm_tool_template *from, const char *bytes, size_t len, struct fm_tool_mark *mark) {
    *mark = (struct fm_tool_mark){.text = bytes, .len = len};
    for (size_t at = 0; at < len;) {
        struct fm_tool_control control = {.at = at};
        bool ends_turn = false;
        control.len = from->control(from->argument, bytes + at, len - at, &control.token, &ends_turn);
        if (ends_turn || (control.len > 0 && mark->control_count == FM_TOOL_MARK_CONTROLS)) {
            return false;
        }
        if (control.len > 0) {
            mark->controls[mark->control_count++] = control;
        }
        at += control.len > 0 ? control.len : 1;
    }
    return true;
}

bool fm_tool_form_has_json(const struct fm_tool_form *form) {
    return form->tags.key.len == 0 && !form->notation.open;
}

bool fm_tools_allow_text(const struct fm_kit_job *job) {
    return job->tool_mode == FM_TOOLS_AUTO && job->format.kind == FM_FORMAT_TEXT;
}
