/* Questions. A word goes between quotes, where FTS5 has no operators. */
#include "memory/query.h"
#include "text/fold.h"

#include <stdlib.h>
#include <string.h>

/* Nearly every chunk has these words. They cost BM25 most of its time, and do not help a search. */
static bool is_common(struct gw_word word) {
    static const char *const common[] = {
        "a",    "about", "an",   "and",  "any",   "are", "as",     "at",   "be",   "been", "but",   "by",
        "can",  "could", "did",  "do",   "does",  "for", "from",   "had",  "has",  "have", "he",    "her",
        "his",  "how",   "i",    "if",   "in",    "is",  "it",     "its",  "me",   "my",   "no",    "not",
        "of",   "on",    "or",   "our",  "s",     "she", "should", "so",   "t",    "that", "the",   "their",
        "them", "there", "they", "this", "to",    "was", "we",     "were", "what", "when", "where", "which",
        "who",  "why",   "will", "with", "would", "you", "your",
    };
    for (size_t i = 0; i < sizeof common / sizeof *common; i++) {
        if (strlen(common[i]) == word.len && memcmp(common[i], word.at, word.len) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_known(const struct gw_words *words, struct gw_word word) {
    for (size_t i = 0; i < words->count; i++) {
        if (words->items[i].len == word.len && memcmp(words->items[i].at, word.at, word.len) == 0) {
            return true;
        }
    }
    return false;
}

/*
 * The word that begins at `at`, and in `*next` where the one after it may begin. Letters of languages without spaces
 * make pairs, as in the index; one that stands alone is a word that other letters may follow.
 */
static struct gw_word word_at(const char *text, size_t len, size_t at, size_t *next) {
    struct gw_word word = {.at = text + at};
    size_t bytes;
    enum gw_letter first = gw_letter_at(text + at, len - at, &bytes);
    *next = at + bytes;
    if (first == GW_LETTER_NONE) {
        return word;
    }
    word.len = bytes;
    word.begins = first == GW_LETTER_UNSPACED;
    for (at += bytes; at < len && gw_letter_at(text + at, len - at, &bytes) == first; at += bytes) {
        word.len += bytes;
        if (first == GW_LETTER_UNSPACED) {
            size_t more;
            bool last = at + bytes >= len || gw_letter_at(text + at + bytes, len - at - bytes, &more) != first;
            word.begins = false;
            *next = last ? at + bytes : at;
            return word;
        }
        *next = at + bytes;
    }
    return word;
}

static void find_words(const char *question, size_t len, bool common_too, struct gw_words *words) {
    size_t next;
    words->count = 0;
    for (size_t at = 0; at < len && words->count < GW_QUESTION_WORDS_MAX; at = next) {
        struct gw_word word = word_at(question, len, at, &next);
        if (word.len && (common_too || !is_common(word)) && !is_known(words, word)) {
            words->items[words->count++] = word;
        }
    }
}

void gw_words_find(const char *question, size_t len, struct gw_words *words) {
    find_words(question, len, false, words);
    if (!words->count) {
        find_words(question, len, true, words);
    }
}

void gw_query_write(const struct gw_words *words, struct fm_buf *query) {
    for (size_t i = 0; i < words->count; i++) {
        fm_buf_append_str(query, i ? " OR \"" : "\"");
        fm_buf_append(query, words->items[i].at, words->items[i].len);
        fm_buf_append_str(query, words->items[i].begins ? "\"*" : "\"");
    }
}

static struct gw_found *find_or_add_hit(struct gw_found *found, size_t *count, int64_t id) {
    for (size_t i = 0; i < *count; i++) {
        if (found[i].id == id) {
            return &found[i];
        }
    }
    found[*count] = (struct gw_found){.id = id};
    return &found[(*count)++];
}

static int best_first(const void *a, const void *b) {
    const struct gw_found *one = a;
    const struct gw_found *other = b;
    int by_score = (one->score < other->score) - (one->score > other->score);
    return by_score ? by_score : (one->id > other->id) - (one->id < other->id);
}

size_t gw_fuse(const int64_t *by_words, size_t words, const int64_t *by_vector, size_t vectors,
               struct gw_found *found) {
    size_t count = 0;
    for (size_t i = 0; i < words; i++) {
        struct gw_found *one = find_or_add_hit(found, &count, by_words[i]);
        one->by_words = (unsigned)i + 1;
        one->score += 1.0 / (double)(GW_RRF_K + i + 1);
    }
    for (size_t i = 0; i < vectors; i++) {
        struct gw_found *one = find_or_add_hit(found, &count, by_vector[i]);
        one->by_vector = (unsigned)i + 1;
        one->score += 1.0 / (double)(GW_RRF_K + i + 1);
    }
    qsort(found, count, sizeof *found, best_first);
    return count;
}
