/*
 * Which characters a user can't see. The ranges are those of Unicode 15.1: Default_Ignorable_Code_Point, Bidi_Control,
 * the categories Cc, Cf, Co, Zl, Zp and Zs, and others without ink: the blank of Braille, the empty note, the filler of
 * Khitan.
 */
#include "tools/display.h"
#include "base/utf8.h"

#include <stdint.h>
#include <stdio.h>

static const struct {
    uint32_t first;
    uint32_t last;
} unseen[] = {
    {0x00, 0x08},       {0x0B, 0x1F},       {0x7F, 0xA0},       {0xAD, 0xAD},       {0x34F, 0x34F},
    {0x600, 0x605},     {0x61C, 0x61C},     {0x6DD, 0x6DD},     {0x70F, 0x70F},     {0x890, 0x891},
    {0x8E2, 0x8E2},     {0x115F, 0x1160},   {0x1680, 0x1680},   {0x17B4, 0x17B5},   {0x180B, 0x180F},
    {0x2000, 0x200F},   {0x2028, 0x202F},   {0x205F, 0x206F},   {0x2800, 0x2800},   {0x3000, 0x3000},
    {0x3164, 0x3164},   {0xE000, 0xF8FF},   {0xFE00, 0xFE0F},   {0xFEFF, 0xFEFF},   {0xFFA0, 0xFFA0},
    {0xFFF0, 0xFFFB},   {0x110BD, 0x110BD}, {0x110CD, 0x110CD}, {0x13430, 0x1343F}, {0x16FE4, 0x16FE4},
    {0x1BCA0, 0x1BCA3}, {0x1D159, 0x1D159}, {0x1D173, 0x1D17A}, {0xE0000, 0xE0FFF}, {0xF0000, 0x10FFFF},
};

static bool is_unseen(uint32_t point) {
    for (size_t i = 0; i < sizeof unseen / sizeof unseen[0] && unseen[i].first <= point; i++) {
        if (point <= unseen[i].last) {
            return true;
        }
    }
    return false;
}

static uint32_t decode_point(const char *text, int len) {
    const unsigned char *bytes = (const unsigned char *)text;
    uint32_t point = len == 1 ? bytes[0] : bytes[0] & (0x7Fu >> len);
    for (int i = 1; i < len; i++) {
        point = point << 6 | (bytes[i] & 0x3Fu);
    }
    return point;
}

bool gw_display(struct fm_buf *buf, const char *text, size_t len) {
    bool escaped = false;
    for (size_t at = 0; at < len;) {
        int step = fm_utf8_sequence(text + at, len - at);
        uint32_t point = step > 0 ? decode_point(text + at, step) : 0xFFFD;
        char name[16];
        if (step > 0 && !is_unseen(point)) {
            fm_buf_append(buf, text + at, (size_t)step);
        } else {
            snprintf(name, sizeof name, "<U+%04X>", (unsigned)point);
            fm_buf_append_str(buf, name);
            escaped = true;
        }
        at += step > 0 ? (size_t)step : 1;
    }
    return escaped;
}

void gw_display_line(struct fm_buf *buf, const char *text, size_t len, size_t max) {
    struct fm_buf whole;
    size_t shown = len < max ? len : fm_utf8_whole_prefix(text, max);
    fm_buf_init(&whole, 16 * max + 64);
    gw_display(&whole, text, shown);
    size_t cut = whole.len <= max ? whole.len : fm_utf8_whole_prefix(whole.data, max);
    for (size_t i = 0; i < cut; i++) {
        fm_buf_append_char(buf, whole.data[i] == '\n' || whole.data[i] == '\t' ? ' ' : whole.data[i]);
    }
    if (cut < whole.len || shown < len) {
        fm_buf_append_str(buf, "...");
    }
    fm_buf_free(&whole);
}
