/* Reads words. All functions here get text of users or web pages, and stay within the sizes of words.h. */
#include "match/words.h"
#include "base/utf8.h"
#include "desktop/refuse.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- letters ---- */

static bool is_letter(unsigned char c) {
    return c >= 0x80 || isalnum(c) || c == '+' || c == '#';
}

/* Appends a character in lower case (ASCII and Latin-1), if there is room for all its bytes. */
static size_t put_small(const char *at, size_t len, char *out, size_t used, size_t size) {
    if (used + len >= size) {
        return used;
    }
    memcpy(out + used, at, len);
    unsigned char *end = (unsigned char *)out + used + len - 1;
    if (len == 1) {
        *end = (unsigned char)tolower(*end);
    } else if (len == 2 && (unsigned char)out[used] == 0xc3 && *end >= 0x80 && *end <= 0x9e && *end != 0x97) {
        *end = (unsigned char)(*end + 0x20);
    }
    return used + len;
}

static size_t step_of(const char *text, size_t left) {
    int len = fm_utf8_sequence(text, left);
    return len > 0 ? (size_t)len : 1;
}

static void small(const char *text, size_t len, char *out, size_t size) {
    size_t used = 0;
    for (size_t i = 0; i < len;) {
        size_t step = step_of(text + i, len - i);
        used = text[i] == '\'' ? used : put_small(text + i, step, out, used, size);
        i += step;
    }
    out[used] = '\0';
}

/* Whether the character is below U+0020, or one of U+007F to U+009F, U+200B to U+200F, U+2028 to U+202E, U+2060 to
 * U+2069, or U+FEFF. */
static bool is_hidden(const unsigned char *at, size_t len) {
    if (len == 1) {
        return at[0] < 0x20 || at[0] == 0x7f;
    }
    if (len == 2) {
        return at[0] == 0xc2 && at[1] < 0xa0;
    }
    if (len != 3) {
        return false;
    }
    bool general =
        at[0] == 0xe2 && at[1] == 0x80 && ((at[2] >= 0x8b && at[2] <= 0x8f) || (at[2] >= 0xa8 && at[2] <= 0xae));
    bool isolate = at[0] == 0xe2 && at[1] == 0x81 && at[2] >= 0xa0 && at[2] <= 0xa9;
    return general || isolate || (at[0] == 0xef && at[1] == 0xbb && at[2] == 0xbf);
}

void sy_plain(const char *text, size_t max, char *out, size_t size) {
    size_t used = 0;
    size_t shown = 0;
    size_t len = strlen(text);
    bool gap = false;
    for (size_t i = 0; i < len;) {
        int step = fm_utf8_sequence(text + i, len - i);
        bool hidden = step <= 0 || is_hidden((const unsigned char *)text + i, (size_t)step);
        step = step <= 0 ? 1 : step;
        if (!hidden && (shown == max || used + (size_t)step + 5 > size)) {
            memcpy(out + used, "...", 3);
            used += 3;
            break;
        }
        if (!hidden && gap && used > 0 && out[used - 1] != ' ' && text[i] != ' ') {
            out[used++] = ' ';
        }
        if (!hidden) {
            memcpy(out + used, text + i, (size_t)step);
            used += (size_t)step;
            shown++;
        }
        gap = hidden;
        i += (size_t)step;
    }
    out[used] = '\0';
}

/* ---- reading ---- */

/* The number of bytes before the next space, which separates the user's words. */
static size_t token_len(const char *text) {
    return strcspn(text, " ");
}

static bool is_quote(const char *at, size_t len, size_t *step) {
    static const char *const quotes[] = {"\"",     "'",      "(",      "[",      "{",     "`",
                                         "\u201c", "\u201d", "\u2018", "\u2019", "\u00ab"};
    for (size_t i = 0; i < sizeof quotes / sizeof quotes[0]; i++) {
        *step = strlen(quotes[i]);
        if (*step <= len && memcmp(at, quotes[i], *step) == 0) {
            return true;
        }
    }
    return false;
}

/* Cuts quotes before the text and punctuation after it. True: the cut punctuation ends a clause. */
static bool trim(const char **at, size_t *len) {
    static const char *const marks[] = {",", ";", ".", "!",      "?",      ":",      "\"",     "'",     ")",
                                        "]", "}", "`", "\u201d", "\u2019", "\u201c", "\u00bb", "\u2026"};
    size_t step;
    bool breaks = false;
    while (*len > 0 && is_quote(*at, *len, &step)) {
        *at += step;
        *len -= step;
    }
    for (size_t i = 0; i < sizeof marks / sizeof marks[0] && *len > 0;) {
        size_t size = strlen(marks[i]);
        if (size <= *len && memcmp(*at + *len - size, marks[i], size) == 0) {
            breaks |= i < 6;
            *len -= size;
            i = 0;
        } else {
            i++;
        }
    }
    return breaks;
}

/* Whether the text looks like an address: "https://a.example", "a.example/b", "localhost:3000", "10.0.0.1". */
static bool is_address(const char *at, size_t len) {
    size_t host = 0;
    size_t dot = 0;
    for (size_t i = 0; i + 2 < len; i++) {
        if (memcmp(at + i, "://", 3) == 0) {
            return true;
        }
    }
    while (host < len && !strchr("/:?#", at[host])) {
        dot = at[host] == '.' ? host : dot;
        host++;
    }
    if (host == 9 && strncmp(at, "localhost", 9) == 0) {
        return true;
    }
    bool digits = dot > 0 && strspn(at, "0123456789.") >= host;
    size_t dots = 0;
    for (size_t i = 0; i < host; i++) {
        dots += at[i] == '.';
        if (!is_letter((unsigned char)at[i]) && at[i] != '.' && at[i] != '-' && at[i] != '_') {
            return false;
        }
    }
    return digits ? dots == 3 : dot > 0 && host - dot > 2 && isalpha((unsigned char)at[dot + 1]);
}

static void add_word(struct sy_words *words, const char *raw, size_t len) {
    if (words->count == SY_WORDS_MAX || len == 0) {
        return;
    }
    struct sy_word *word = &words->at[words->count++];
    *word = (struct sy_word){.raw = raw, .raw_len = len};
    small(raw, len, word->text, sizeof word->text);
}

/* Returns the length without a final "'s": "github's" becomes "github". (Other apostrophes are dropped elsewhere:
 * "dont".) */
static size_t without_s(const char *at, size_t len) {
    if (len > 2 && at[len - 2] == '\'' && at[len - 1] == 's') {
        return len - 2;
    }
    return len > 4 && memcmp(at + len - 4, "\u2019s", 4) == 0 ? len - 4 : len;
}

/* Returns how many "#" to skip: "#5" means 5, and "#travel" means travel. */
static size_t hash_len(const char *at, size_t len) {
    size_t hash = 0;
    while (hash + 1 < len && at[hash] == '#') {
        hash++;
    }
    return hash;
}

static bool is_range(const char *at, size_t len, size_t *first) {
    *first = strspn(at, "0123456789");
    size_t second = *first < len && at[*first] == '-' ? strspn(at + *first + 1, "0123456789") : 0;
    return *first > 0 && second > 0 && *first + 1 + second == len;
}

/* Adds a token. An address becomes one word; other tokens are split into words. */
static void add_token(struct sy_words *words, const char *at, size_t len) {
    size_t first;
    bool dash =
        (len == 1 && at[0] == '-') || (len == 3 && (memcmp(at, "\u2013", 3) == 0 || memcmp(at, "\u2014", 3) == 0));
    bool breaks = trim(&at, &len) || dash;
    size_t before = words->count;
    if (is_address(at, len)) {
        add_word(words, at, len);
        words->at[words->count - 1].address |= words->count > before;
    } else if (is_range(at, len, &first)) {
        add_word(words, at, first);
        add_word(words, "to", 2);
        add_word(words, at + first + 1, len - first - 1);
    } else if (len == 1 && at[0] == '&') {
        add_word(words, "and", 3);
    } else {
        len = without_s(at, len);
        for (size_t i = 0; i < len;) {
            size_t end = i;
            while (end < len && (is_letter((unsigned char)at[end]) || at[end] == '\'')) {
                end++;
            }
            i += hash_len(at + i, end - i);
            add_word(words, at + i, end - i);
            i = end + 1;
        }
    }
    if (words->count > 0) {
        words->at[words->count - 1].breaks |= breaks;
    }
}

/* Common misspellings of words such as "about" and "and". None of them is the name of a thing. */
static const char *const misspelt[][2] = {{"abuot", "about"},
                                          {"adn", "and"},
                                          {"alll", "all"},
                                          {"anf", "and"},
                                          {"annd", "and"},
                                          {"becuase", "because"},
                                          {"beacuse", "because"},
                                          {"befor", "before"},
                                          {"besdies", "besides"},
                                          {"bewteen", "between"},
                                          {"botom", "bottom"},
                                          {"bottem", "bottom"},
                                          {"bottum", "bottom"},
                                          {"eveything", "everything"},
                                          {"evrything", "everything"},
                                          {"everthing", "everything"},
                                          {"everyting", "everything"},
                                          {"exccept", "except"},
                                          {"excect", "except"},
                                          {"excep", "except"},
                                          {"excepct", "except"},
                                          {"excpet", "except"},
                                          {"excpt", "except"},
                                          {"exept", "except"},
                                          {"exsept", "except"},
                                          {"firts", "first"},
                                          {"frist", "first"},
                                          {"fisrt", "first"},
                                          {"fromt", "from"},
                                          {"hlaf", "half"},
                                          {"haf", "half"},
                                          {"lats", "last"},
                                          {"letf", "left"},
                                          {"leftt", "left"},
                                          {"lfet", "left"},
                                          {"moniter", "monitor"},
                                          {"monitr", "monitor"},
                                          {"montior", "monitor"},
                                          {"othr", "other"},
                                          {"ohter", "other"},
                                          {"otehr", "other"},
                                          {"plaese", "please"},
                                          {"pleas", "please"},
                                          {"pleaes", "please"},
                                          {"plese", "please"},
                                          {"rigth", "right"},
                                          {"rihgt", "right"},
                                          {"rght", "right"},
                                          {"runing", "running"},
                                          {"runnning", "running"},
                                          {"scren", "screen"},
                                          {"sceen", "screen"},
                                          {"secnd", "second"},
                                          {"secodn", "second"},
                                          {"screeen", "screen"},
                                          {"taht", "that"},
                                          {"thsi", "this"},
                                          {"tihs", "this"},
                                          {"thier", "their"},
                                          {"thrid", "third"},
                                          {"thn", "then"},
                                          {"whcih", "which"},
                                          {"whic", "which"},
                                          {"whihc", "which"},
                                          {"wich", "which"},
                                          {"windo", "window"},
                                          {"widnow", "window"},
                                          {"windw", "window"},
                                          {"winodw", "window"},
                                          {"wiht", "with"},
                                          {"wihtout", "without"},
                                          {"withou", "without"},
                                          {"witout", "without"},
                                          {"wnidow", "window"},
                                          {"wthout", "without"}};

static void read_spelling(struct sy_words *words) {
    for (size_t i = 0; i < words->count; i++) {
        for (size_t k = 0; k < sizeof misspelt / sizeof misspelt[0]; k++) {
            if (strcmp(words->at[i].text, misspelt[k][0]) == 0) {
                snprintf(words->at[i].text, sizeof words->at[i].text, "%s", misspelt[k][1]);
                break;
            }
        }
    }
}

/* Reads "n" between two words as "and": "slack n spotify". */
static void read_n(struct sy_words *words) {
    for (size_t i = 1; i + 1 < words->count; i++) {
        if (strcmp(words->at[i].text, "n") == 0) {
            memcpy(words->at[i].text, "and", 4);
        }
    }
}

enum fm_code sy_words_read(const char *text, struct sy_words *words, struct fm_error *error) {
    *words = (struct sy_words){.count = 0};
    size_t len = strlen(text);
    if (len > SY_TEXT_MAX || !fm_utf8_valid(text, len)) {
        return sy_refuse(error, "invalid_words", "words", "words must be UTF-8 text of at most %d bytes", SY_TEXT_MAX);
    }
    sy_plain(text, SY_TEXT_MAX, words->text, sizeof words->text);
    for (const char *at = words->text; *at;) {
        size_t token = token_len(at);
        size_t room = SY_WORDS_MAX - words->count;
        if (token > 0 && room < 1) {
            return sy_refuse(error, "invalid_words", "words", "words may be %d at most: say less at once",
                             SY_WORDS_MAX - 1);
        }
        if (token > 0) {
            add_token(words, at, token);
        }
        at += token + (at[token] == ' ');
    }
    if (words->count == 0) {
        return sy_refuse(error, "empty_string", "words", "words is empty: say what is to be done");
    }
    read_spelling(words);
    read_n(words);
    return FM_OK;
}

/* Returns how many bytes the separator at this place has; 0: there is a letter. Signs of Latin-1 and of U+2010 to
 * U+205E separate words ("acme · infra"), except the apostrophe U+2019. */
static size_t gap_len(const char *text) {
    const unsigned char *at = (const unsigned char *)text;
    if (at[0] == 0xc2 && at[1] >= 0xa0 && at[1] <= 0xbf && at[1] != 0xaa && at[1] != 0xb5 && at[1] != 0xba) {
        return 2;
    }
    bool apostrophe = at[0] == 0xe2 && at[1] == 0x80 && at[2] == 0x99;
    if (at[0] == 0xe2 && (at[1] == 0x80 || at[1] == 0x81) && at[2] && !apostrophe) {
        return 3;
    }
    return is_letter(at[0]) ? 0 : 1;
}

size_t sy_words_split(const char *text, char (*words)[SY_WORD_MAX], size_t max) {
    size_t count = 0;
    while (*text && count < max) {
        while (*text && gap_len(text) > 0) {
            text += gap_len(text);
        }
        size_t len = 0;
        while (text[len] && (gap_len(text + len) == 0 || (text[len] == '\'' && len > 0))) {
            len++;
        }
        size_t hash = hash_len(text, len);
        if (len > 0) {
            small(text + hash, without_s(text, len) - hash, words[count++], SY_WORD_MAX);
        }
        text += len;
    }
    return count;
}

void sy_words_join(const char *text, char *joined, size_t size) {
    size_t used = 0;
    size_t len = strlen(text);
    for (size_t i = 0; i < len;) {
        size_t step = step_of(text + i, len - i);
        used = is_letter((unsigned char)text[i]) ? put_small(text + i, step, joined, used, size) : used;
        i += step;
    }
    joined[used] = '\0';
}

/* ---- tables ---- */

bool sy_is_one_of(const char *word, const char *list) {
    size_t len = strlen(word);
    for (const char *at = list; *at;) {
        size_t size = strcspn(at, " ");
        if (size == len && memcmp(at, word, len) == 0) {
            return true;
        }
        at += size + (at[size] == ' ');
    }
    return false;
}

static int compare_text(const void *a, const void *b) {
    return strcmp(a, *(const char *const *)b);
}

bool sy_is_stop(const char *word) {
    static const char *const stops[] = {
        "a",        "about",  "actual", "actually", "again",  "all",    "also",      "am",     "an",       "any",
        "anymore",  "are",    "as",     "asap",     "at",     "away",   "back",      "be",     "been",     "between",
        "bunch",    "by",     "called", "can",      "could",  "couple", "currently", "done",   "em",       "ever",
        "finished", "for",    "from",   "get",      "gets",   "got",    "had",       "have",   "here",     "hte",
        "i",        "id",     "if",     "ill",      "im",     "in",     "into",      "is",     "its",      "itself",
        "ive",      "just",   "kindly", "lil",      "little", "me",     "mine",      "my",     "named",    "now",
        "of",       "off",    "ok",     "okay",     "on",     "onto",   "open",      "opened", "our",      "out",
        "over",     "pair",   "please", "pls",      "plz",    "quick",  "quickly",   "really", "same",     "says",
        "shall",    "single", "so",     "some",     "still",  "teh",    "tha",       "thank",  "thanks",   "that",
        "thats",    "the",    "their",  "there",    "thing",  "things", "titled",    "to",     "too",      "u",
        "up",       "ur",     "us",     "very",     "was",    "we",     "well",      "were",   "whatever", "where",
        "which",    "while",  "with",   "would",    "you",    "your",   "youre"};
    return bsearch(word, stops, sizeof stops / sizeof stops[0], sizeof stops[0], compare_text) != NULL;
}

static int row_of(const char *word, const char *const *rows, int count) {
    for (int i = 0; i < count; i++) {
        if (strcmp(rows[i], word) == 0) {
            return i;
        }
    }
    return -1;
}

int sy_number(const char *word) {
    static const char *const names[] = {"zero",     "one",      "two",      "three",   "four",    "five",
                                        "six",      "seven",    "eight",    "nine",    "ten",     "eleven",
                                        "twelve",   "thirteen", "fourteen", "fifteen", "sixteen", "seventeen",
                                        "eighteen", "nineteen", "twenty"};
    size_t digits = strspn(word, "0123456789");
    if (digits > 0 && digits <= 4 && !word[digits]) {
        return (int)strtol(word, NULL, 10);
    }
    return row_of(word, names, (int)(sizeof names / sizeof names[0]));
}

int sy_ordinal(const char *word) {
    static const char *const names[] = {"first", "second",  "third",  "fourth", "fifth",
                                        "sixth", "seventh", "eighth", "ninth",  "tenth"};
    size_t digits = strspn(word, "0123456789");
    const char *end = word + digits;
    bool ends = strcmp(end, "st") == 0 || strcmp(end, "nd") == 0 || strcmp(end, "rd") == 0 || strcmp(end, "th") == 0;
    if (digits > 0 && digits <= 4 && ends) {
        return (int)strtol(word, NULL, 10);
    }
    return strcmp(word, "last") == 0 ? -1 : row_of(word, names, 10) + 1;
}

/* ---- likeness ---- */

static double max_of(double a, double b) {
    return a > b ? a : b;
}

/* Returns the number of single letters that were added, left out, replaced, or swapped with the next one. */
static size_t distance(const char *a, size_t len_a, const char *b, size_t len_b) {
    size_t rows[3][SY_WORD_MAX + 1];
    for (size_t j = 0; j <= len_b; j++) {
        rows[0][j] = j;
    }
    for (size_t i = 1; i <= len_a; i++) {
        size_t *row = rows[i % 3];
        const size_t *last = rows[(i + 2) % 3];
        const size_t *before = rows[(i + 1) % 3];
        row[0] = i;
        for (size_t j = 1; j <= len_b; j++) {
            size_t best = last[j - 1] + (a[i - 1] != b[j - 1]);
            best = last[j] + 1 < best ? last[j] + 1 : best;
            best = row[j - 1] + 1 < best ? row[j - 1] + 1 : best;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && before[j - 2] + 1 < best) {
                best = before[j - 2] + 1;
            }
            row[j] = best;
        }
    }
    return rows[len_a % 3][len_b];
}

/* Returns the letter at `at` of the word with two spaces before it and one after it. */
static char padded(const char *word, size_t len, size_t at) {
    return at < 2 || at >= len + 2 ? ' ' : word[at - 2];
}

/* Returns how alike two words are by their trigrams (Dice's coefficient). */
static double trigrams(const char *a, size_t len_a, const char *b, size_t len_b) {
    size_t shared = 0;
    bool used[SY_WORD_MAX + 2] = {false};
    for (size_t i = 0; i < len_a + 1; i++) {
        for (size_t j = 0; j < len_b + 1; j++) {
            bool same = !used[j] && padded(a, len_a, i) == padded(b, len_b, j) &&
                        padded(a, len_a, i + 1) == padded(b, len_b, j + 1) &&
                        padded(a, len_a, i + 2) == padded(b, len_b, j + 2);
            if (same) {
                used[j] = true;
                shared++;
                break;
            }
        }
    }
    return 2.0 * (double)shared / (double)(len_a + len_b + 2);
}

/* Returns the word's length without an ending of verbs or plurals; at least 4 bytes remain. */
static size_t stem_len(const char *word, size_t len) {
    static const char *const endings[] = {"ings", "ing", "ies", "ed", "es", "er", "ers", "s", "e", "y"};
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        size_t size = strlen(endings[i]);
        if (len >= size + 4 && memcmp(word + len - size, endings[i], size) == 0) {
            len -= size;
            return len > 4 && word[len - 1] == word[len - 2] ? len - 1 : len; /* planning, plan */
        }
    }
    return len;
}

/* Whether two words have the same stem: "failing" and "fails". */
static bool same_stem(const char *a, size_t len_a, const char *b, size_t len_b) {
    if (memcmp(a, b, 4) != 0) {
        return false;
    }
    size_t stem_a = stem_len(a, len_a);
    size_t stem_b = stem_len(b, len_b);
    return stem_a == stem_b && stem_a >= 4 && memcmp(a, b, stem_a) == 0;
}

double sy_alike(const char *a, const char *b) {
    size_t len_a = strlen(a);
    size_t len_b = strlen(b);
    size_t longer = len_a > len_b ? len_a : len_b;
    size_t shorter = len_a + len_b - longer;
    if (len_a == len_b && memcmp(a, b, len_a) == 0) {
        return 1;
    }
    const char *plural = len_a > len_b ? a : b;
    bool news = shorter == 3 && memcmp(a, "new", 3) == 0; /* "news" is not the plural of "new" */
    if (shorter >= 3 && longer == shorter + 1 && plural[shorter] == 's' && strncmp(a, b, shorter) == 0 && !news) {
        return 0.98;
    }
    if (shorter < 4 || longer - shorter > 3) {
        return 0;
    }
    if (same_stem(a, len_a, b, len_b)) {
        return 0.9;
    }
    size_t away = distance(a, len_a, b, len_b);
    size_t allowed = shorter < 8 ? 1 : 2;
    double letters = away <= allowed ? 1 - (double)away / (double)longer : 0;
    return max_of(letters, 0.9 * trigrams(a, len_a, b, len_b));
}

size_t sy_edits(const char *a, const char *b) {
    char x[SY_WORD_MAX];
    char y[SY_WORD_MAX];
    size_t len_x = strnlen(a, sizeof x - 1);
    size_t len_y = strnlen(b, sizeof y - 1);
    memcpy(x, a, len_x);
    memcpy(y, b, len_y);
    return distance(x, len_x, y, len_y);
}
