/*
 * Turns the bytes of tokens into whole UTF-8 text: completes characters, and holds back text that may become a stop
 * string.
 */
#include "engine/kit/text_stream.h"
#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>

static const char replacement[] = "\xEF\xBF\xBD"; /* U+FFFD */

static bool matcher_init(struct fm_stop_matcher *matcher, const struct fm_stop *stop) {
    *matcher = (struct fm_stop_matcher){.stop = *stop};
    matcher->fallback = calloc(stop->len, sizeof *matcher->fallback);
    if (!matcher->fallback) {
        return false;
    }
    size_t border = 0;
    for (size_t i = 1; i < stop->len; i++) {
        while (border && stop->text[i] != stop->text[border]) {
            border = matcher->fallback[border - 1];
        }
        border += stop->text[i] == stop->text[border];
        matcher->fallback[i] = border;
    }
    return true;
}

/* True when the stop string is complete with this byte. */
static bool matcher_step(struct fm_stop_matcher *matcher, char byte) {
    while (matcher->matched && matcher->stop.text[matcher->matched] != byte) {
        matcher->matched = matcher->fallback[matcher->matched - 1];
    }
    matcher->matched += matcher->stop.text[matcher->matched] == byte;
    return matcher->matched == matcher->stop.len;
}

bool fm_text_stream_init(struct fm_text_stream *stream, const struct fm_stop *stops, size_t count) {
    *stream = (struct fm_text_stream){.matcher_count = count};
    fm_buf_init(&stream->held, FM_TEXT_HELD_MAX);
    for (size_t i = 0; i < count; i++) {
        if (!matcher_init(&stream->matchers[i], &stops[i])) {
            fm_text_stream_free(stream);
            return false;
        }
    }
    return true;
}

void fm_text_stream_free(struct fm_text_stream *stream) {
    for (size_t i = 0; i < stream->matcher_count; i++) {
        free(stream->matchers[i].fallback);
        stream->matchers[i].fallback = NULL;
    }
    fm_buf_free(&stream->held);
}

/* Takes one whole character. */
static void take_char(struct fm_text_stream *stream, const char *bytes, size_t len) {
    fm_buf_append(&stream->held, bytes, len);
    for (size_t i = 0; i < len; i++) {
        size_t longest = 0;
        for (size_t m = 0; m < stream->matcher_count; m++) {
            struct fm_stop_matcher *matcher = &stream->matchers[m];
            if (matcher_step(matcher, bytes[i])) {
                stream->stopped = true;
                longest = matcher->stop.len > longest ? matcher->stop.len : longest;
            }
        }
        if (stream->stopped) { /* valid UTF-8 ends inside no character, so this was its last byte */
            stream->held.len -= stream->held.failed ? 0 : longest;
            return;
        }
    }
}

static void take_byte(struct fm_text_stream *stream, char byte) {
    stream->partial[stream->partial_len++] = byte;
    while (stream->partial_len && !stream->stopped) {
        int sequence = fm_utf8_sequence(stream->partial, stream->partial_len);
        if (sequence == 0) {
            return;
        }
        if (sequence > 0) {
            take_char(stream, stream->partial, (size_t)sequence);
            stream->partial_len = 0;
            return;
        }
        /*
         * the bytes before this one were a valid beginning: they are the maximal subpart, and this byte begins a new
         * character
         */
        take_char(stream, replacement, sizeof replacement - 1);
        bool fresh = stream->partial_len > 1;
        stream->partial[0] = byte;
        stream->partial_len = fresh ? 1 : 0;
    }
}

/* Releases the text in which no stop string can begin any more, except the last `keep` bytes. */
static enum fm_text_status release_ready(struct fm_text_stream *stream, size_t keep, struct fm_buf *out) {
    if (stream->held.failed) {
        return FM_TEXT_NO_MEMORY;
    }
    size_t ready = stream->held.len - keep;
    fm_buf_append(out, stream->held.data, ready);
    fm_buf_drop_front(&stream->held, ready);
    if (out->failed) {
        return FM_TEXT_NO_MEMORY;
    }
    return stream->stopped ? FM_TEXT_STOPPED : FM_TEXT_MORE;
}

enum fm_text_status fm_text_stream_push(struct fm_text_stream *stream, const char *bytes, size_t len,
                                        struct fm_buf *out) {
    size_t keep = 0;
    for (size_t i = 0; i < len && !stream->stopped; i++) {
        take_byte(stream, bytes[i]);
    }
    for (size_t m = 0; m < stream->matcher_count && !stream->stopped; m++) {
        keep = stream->matchers[m].matched > keep ? stream->matchers[m].matched : keep;
    }
    return release_ready(stream, keep, out);
}

enum fm_text_status fm_text_stream_flush(struct fm_text_stream *stream, struct fm_buf *out) {
    stream->partial_len = 0;
    return release_ready(stream, 0, out);
}
