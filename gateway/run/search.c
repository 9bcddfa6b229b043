/* sessions.search: the transcripts are read one after the other, the session with the latest message first. */
#include "run/internal.h"

#include "protocol/json_tree.h"
#include "text/fold.h"

#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#define SNIPPET_MAX    200 /* characters */
#define FOLDED_MAX     (4u * GW_RECORD_MAX)
#define SEARCH_DEFAULT 50

struct search {
    struct gw_chats *chats;
    struct gw_reply *call;
    char *query; /* words, folded, each NUL-terminated */
    size_t words;
    char (*keys)[GW_SESSION_KEY_LEN + 1]; /* sessions still to be read, the latest last */
    size_t key_count;
    size_t limit;
    size_t found;
    struct fm_json_writer *w;
};

/* Splits at spaces. */
static size_t split(char *query) {
    size_t words = 0;
    bool in_word = false;
    for (char *at = query; *at; at++) {
        bool space = *at == ' ';
        words += !space && !in_word;
        in_word = !space;
        *at = space ? '\0' : *at;
    }
    return words;
}

/* Returns the word after `word`; for NULL, the first word. */
static const char *word_after(const struct search *search, const char *word) {
    const char *at = word ? word + strlen(word) : search->query;
    while (!*at) {
        at++;
    }
    return at;
}

/* The folded text; the caller frees it. NULL: memory ran out. */
static char *fold(const char *text) {
    struct fm_buf folded;
    fm_buf_init(&folded, FOLDED_MAX);
    bool done = gw_fold(text, strlen(text), &folded);
    fm_buf_append_char(&folded, '\0');
    if (!done || folded.failed) {
        fm_buf_free(&folded);
        return NULL;
    }
    return folded.data;
}

/* Whether `text` has all words; `*first`: where its folded form has the first one. False if memory ran out, too. */
static bool has_all(const struct search *search, const char *text, size_t *first) {
    const char *word = NULL;
    char *folded = fold(text);
    bool all = folded;
    for (size_t i = 0; all && i < search->words; i++) {
        word = word_after(search, word);
        const char *hit = strstr(folded, word);
        all = hit;
        *first = hit && i == 0 ? (size_t)(hit - folded) : *first;
    }
    free(folded);
    return all;
}

/* Writes up to SNIPPET_MAX characters around the place `hit`. */
static void write_snippet(const char *text, size_t hit, struct fm_json_writer *w) {
    const char *start = text + (hit > SNIPPET_MAX / 4 ? hit - SNIPPET_MAX / 4 : 0);
    char line[SNIPPET_MAX * 4 + 1];
    size_t len = 0;
    size_t characters = 0;
    while (start > text && ((unsigned char)*start & 0xc0) == 0x80) { /* goes back to the beginning of a character */
        start--;
    }
    for (const char *at = start; *at; at++) {
        bool begins = ((unsigned char)*at & 0xc0) != 0x80;
        characters += begins;
        if (characters > SNIPPET_MAX) {
            break;
        }
        line[len++] = (unsigned char)*at < 0x20 ? ' ' : *at;
    }
    fm_json_string(w, line, len);
}

static void add_result(struct search *search, const struct gw_session *session, const char *text, size_t hit) {
    fm_json_object_begin(search->w);
    fm_json_key_str(search->w, "sessionKey", session->key);
    fm_json_key_str(search->w, "title", session->facts.title);
    fm_json_key_int(search->w, "updatedAt", session->facts.updated_ms);
    fm_json_key(search->w, "snippet");
    write_snippet(text, hit, search->w);
    fm_json_object_end(search->w);
    search->found++;
}

static void look_at(struct search *search, const struct gw_session *session, const char *text, size_t len) {
    struct json_object *messages = NULL;
    struct fm_buf scratch;
    fm_buf_init(&scratch, GW_RECORD_MAX);
    bool read = fm_json_tree(text, len, &scratch, &messages);
    const char *hit = NULL;
    size_t at = 0;
    for (size_t i = 0; read && !hit && i < json_object_array_length(messages); i++) {
        const char *content = gw_text_of(json_object_array_get_idx(messages, i), "content");
        hit = has_all(search, content, &at) ? content : NULL;
    }
    if (hit || has_all(search, session->facts.title, &at)) {
        add_result(search, session, hit ? hit : "", hit ? gw_fold_place(hit, strlen(hit), at) : 0);
    }
    fm_buf_free(&scratch);
    json_object_put(messages);
}

static void search_next(struct search *search);

static void on_searched(void *context, const struct fm_error *error, const char *text, size_t len, bool cut) {
    struct search *search = context;
    const char *key = search->keys[--search->key_count];
    const struct gw_session *session = gw_session_find(search->chats->options.sessions, key);
    (void)cut;
    if (!error && session) {
        look_at(search, session, text, len);
    }
    search_next(search);
}

static void search_end(struct search *search) {
    fm_json_array_end(search->w);
    fm_json_object_end(search->w);
    gw_reply_end(search->call);
    free(search->keys);
    free(search->query);
    free(search);
}

static void search_next(struct search *search) {
    const struct gw_view view = {.form = GW_VIEW_MESSAGES};
    struct fm_error error;
    while (search->key_count > 0 && search->found < search->limit) {
        const char *key = search->keys[search->key_count - 1];
        if (gw_session_view(search->chats->options.sessions, key, &view, on_searched, search, &error) == FM_OK) {
            return;
        }
        search->key_count--; /* the session is gone */
    }
    search_end(search);
}

static bool count_session(void *context, const struct gw_session *session) {
    struct search *search = context;
    (void)session;
    search->key_count++;
    return true;
}

/* The latest session goes to the end of the list, because the list is read from its end. */
static bool note_session(void *context, const struct gw_session *session) {
    struct search *search = context;
    memcpy(search->keys[--search->key_count], session->key, sizeof session->key);
    return true;
}

void gw_join_search(void *context, struct gw_reply *call, const struct gw_params *params) {
    struct gw_chats *chats = context;
    struct search *search = calloc(1, sizeof *search);
    if (search) {
        *search = (struct search){.chats = chats, .call = call, .query = fold(params->query.text)};
    }
    bool ok = search && search->query && gw_sessions_each(chats->options.sessions, count_session, search);
    size_t count = ok ? search->key_count : 0;
    if (ok) {
        search->keys = calloc(count + 1, sizeof *search->keys);
        ok = search->keys && gw_sessions_each(chats->options.sessions, note_session, search);
    }
    if (!ok) {
        if (search) {
            free(search->keys);
            free(search->query);
        }
        free(search);
        gw_reply_fail(call, GW_INTERNAL, "out of memory");
        return;
    }
    search->words = split(search->query);
    search->key_count = search->words ? count : 0;
    search->limit = params->limit ? (size_t)params->limit : SEARCH_DEFAULT;
    search->w = gw_reply_begin(call);
    fm_json_object_begin(search->w);
    fm_json_key(search->w, "results");
    fm_json_array_begin(search->w);
    search_next(search);
}
