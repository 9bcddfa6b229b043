/* Handles the parts of an utterance: some have a command, some say what a command is about, and some can be dropped. */
#include "match/context.h"
#include "match/verbs.h"

#include <string.h>

#define PARTS_MAX 24

struct part {
    size_t begin, end; /* words */
    size_t verb_at;    /* the first word after polite words */
    size_t verb_len;
    enum sy_verb verb;
    bool sentence; /* a statement */
    bool question;
    bool wish; /* "I have to ...": why the user wants something */
    bool restricts;
    bool dropped;
};

struct parts {
    const struct sy_words *words;
    struct part at[PARTS_MAX];
    size_t count;
};

static const char *text_at(const struct sy_words *words, size_t i) {
    return i < words->count ? words->at[i].text : "";
}

/* ---- corrections, and words in another order ---- */

/* Returns how many words at `i` begin a correction, such as "I mean" or "no wait"; 0: no correction begins here. */
static size_t correction_len(const struct sy_words *words, size_t i) {
    static const char *const phrases[][4] = {{"i", "mean"},
                                             {"i", "meant"},
                                             {"or", "rather"},
                                             {"no", "wait"},
                                             {"wait", "no"},
                                             {"scratch", "that"},
                                             {"make", "that"},
                                             {"not", "that"},
                                             {"not", "that", "one"},
                                             {"no", "not", "that"},
                                             {"no", "not", "that", "one"}};
    bool after = i > 0 && words->at[i - 1].breaks;
    bool other =
        !sy_is_one_of(text_at(words, i + 1), "rush problem hurry exceptions worries need matter more also thanks");
    size_t best = after && other && sy_is_one_of(text_at(words, i), "no nope sorry oops rather wait actually") ? 1 : 0;
    for (size_t row = 0; row < sizeof phrases / sizeof phrases[0]; row++) {
        size_t len = 0;
        while (len < 4 && phrases[row][len] && strcmp(text_at(words, i + len), phrases[row][len]) == 0) {
            len++;
        }
        best = (len == 4 || !phrases[row][len]) && len > best ? len : best;
    }
    return best;
}

static enum sy_verb verb_from(const struct sy_words *words, size_t begin, size_t end, size_t *at, size_t *len) {
    *at = begin + sy_polite(words->at + begin, end - begin);
    return *at < end ? sy_verb_at(words->at + *at, end - *at, len) : (*len = 0, SY_NO_VERB);
}

static bool is_amount(const char *word) {
    return sy_is_one_of(word, "all every each everything both the my");
}

/* Removes the words from `from` up to `to`. */
static void cut(struct sy_words *words, size_t from, size_t to) {
    memmove(words->at + from, words->at + to, (words->count - to) * sizeof words->at[0]);
    words->count -= to - from;
}

/* Whether the correction only has a kind of thing: "..., I mean the app". Then the words before the correction stay. */
static bool only_kind(const struct sy_words *words, size_t rest) {
    bool kind = false;
    for (size_t i = rest; i < words->count; i++) {
        bool is = sy_is_one_of(words->at[i].text, "app application program window tab page tabs pages windows apps");
        if (!is && !sy_is_one_of(words->at[i].text, "the one")) {
            return false;
        }
        kind |= is;
    }
    return kind;
}

/* Whether the correction is only a verb and "it": "..., I mean close it". */
static bool says_it(const struct sy_words *words, size_t rest) {
    size_t at;
    size_t len;
    (void)verb_from(words, rest, words->count, &at, &len);
    return at + len + 1 == words->count && sy_is_one_of(words->at[at + len].text, "it them that those these");
}

/* "Drop the news, I mean close it" becomes "close the news": the verb at `rest` replaces the words from `begin` up to
 * `named`. */
static void turn_verb(struct sy_words *words, size_t begin, size_t named, size_t end, size_t rest) {
    struct sy_word verb[4];
    size_t len = words->count - 1 - rest; /* without "it" */
    if (len > 4 || begin + len > named + (rest - end) || end <= named) {
        return;
    }
    memcpy(verb, words->at + rest, len * sizeof verb[0]);
    words->count = end;
    memmove(words->at + begin + len, words->at + named, (end - named) * sizeof words->at[0]);
    memcpy(words->at + begin, verb, len * sizeof verb[0]);
    words->count = begin + len + end - named;
    words->at[words->count - 1].breaks = true;
}

/* Applies the first correction. In "close all the shopping, I mean amazon and ikea", only the thing is replaced. */
static void take_back(struct sy_words *words) {
    size_t begin = 0;
    for (size_t i = 0; i < words->count; i++) {
        size_t at;
        size_t len;
        size_t correction = correction_len(words, i);
        if (correction == 0 || i + correction >= words->count) {
            begin = words->at[i].breaks && correction_len(words, i + 1) == 0 &&
                            verb_from(words, i + 1, words->count, &at, &len) != SY_NO_VERB
                        ? i + 1
                        : begin;
            continue;
        }
        size_t rest = i + correction;
        if (only_kind(words, rest)) {
            words->at[i - (size_t)(i > 0)].breaks = false;
            cut(words, i, rest);
            return;
        }
        bool own = verb_from(words, rest, words->count, &at, &len) != SY_NO_VERB;
        enum sy_verb verb = verb_from(words, begin, i, &at, &len);
        if (own && verb != SY_NO_VERB && says_it(words, rest)) {
            turn_verb(words, begin, at + len, i, rest);
            return;
        }
        size_t keep = verb == SY_NO_VERB || own ? begin : at + len;
        while (keep > begin && keep < i && is_amount(words->at[keep].text)) {
            keep++;
        }
        cut(words, keep, rest);
        return;
    }
}

/* "From the BBC close all of them" becomes "close all of them from the BBC". */
static void turn_from(struct sy_words *words) {
    size_t len;
    size_t at = 1;
    while (at < words->count && at < 6 && !words->at[at - 1].breaks &&
           sy_verb_at(words->at + at, words->count - at, &len) == SY_NO_VERB) {
        at++;
    }
    bool from = words->count > 3 && sy_is_one_of(words->at[0].text, "from of") && at < words->count && at < 6 && at > 1;
    size_t end = at;
    while (from && end < words->count && !sy_is_one_of(words->at[end].text, "them it those these except but and")) {
        end++;
    }
    if (!from || end >= words->count || !sy_is_one_of(words->at[end].text, "them those these")) {
        return;
    }
    struct sy_word moved[6];
    memcpy(moved, words->at, at * sizeof moved[0]);
    memmove(words->at, words->at + at, (end + 1 - at) * sizeof moved[0]);
    memcpy(words->at + end + 1 - at, moved, at * sizeof moved[0]);
}

/* "Quit signal, not the tab" becomes "quit signal the app". */
static void turn_not(struct sy_words *words) {
    size_t count = words->count;
    bool not =
        count > 3 && strcmp(words->at[count - 3].text, "not") == 0 && strcmp(words->at[count - 2].text, "the") == 0;
    bool tab = not &&sy_is_one_of(words->at[count - 1].text, "tab page website");
    bool app = not &&sy_is_one_of(words->at[count - 1].text, "app application program");
    if (tab || app) {
        memcpy(words->at[count - 1].text, tab ? "app" : "tab", 4);
        words->at[count - 4].breaks = false;
        cut(words, count - 3, count - 2);
    }
}

/* "In the second window close all tabs" becomes "close all tabs in the second window". Exceptions stay at the end. */
static void turn_window(struct sy_words *words) {
    size_t len;
    size_t at = 1;
    while (at < words->count && at < 6 && strcmp(words->at[at - 1].text, "window") != 0) {
        at++;
    }
    bool in = at < words->count && at < 6 && sy_is_one_of(words->at[0].text, "in from of") &&
              sy_verb_at(words->at + at, words->count - at, &len) == SY_CLOSE;
    size_t end = at;
    while (in && end < words->count && (end == at || !words->at[end - 1].breaks) &&
           !sy_is_one_of(words->at[end].text, "except but besides and then apart")) {
        end++;
    }
    if (!in) {
        return;
    }
    struct sy_word moved[6];
    bool breaks = words->at[end - 1].breaks;
    words->at[end - 1].breaks = false;
    memcpy(moved, words->at, at * sizeof moved[0]);
    memmove(words->at, words->at + at, (end - at) * sizeof moved[0]);
    memcpy(words->at + end - at, moved, at * sizeof moved[0]);
    words->at[end - 1].breaks = breaks;
}

/* "A and B should trade places" becomes "swap A and B". */
static void turn_swap(struct sy_words *words) {
    size_t end = 2;
    while (end < words->count && !(sy_is_one_of(words->at[end].text, "places positions spots") &&
                                   sy_is_one_of(words->at[end - 1].text, "trade swap switch exchange change"))) {
        end++;
    }
    if (end >= words->count || end < 4) {
        return;
    }
    struct sy_word swap = words->at[end - 1];
    size_t rest = end - 1;
    while (rest > 1 && sy_is_one_of(words->at[rest - 1].text, "should can to must could let have")) {
        rest--;
    }
    memcpy(swap.text, "swap", 5); /* without "places", "switch" and "change" mean something else */
    memmove(words->at + 1, words->at, rest * sizeof words->at[0]);
    words->at[0] = swap;
    words->at[rest].breaks = words->at[end].breaks;
    cut(words, rest + 1, end + 1);
}

/* ---- parts ---- */

static bool begins_reason(const struct sy_words *words, size_t i) {
    return sy_is_one_of(text_at(words, i), "because cause cuz coz bc since") ||
           (strcmp(text_at(words, i), "as") == 0 &&
            sy_is_one_of(text_at(words, i + 1), "i im ive we weve its it theres"));
}

static bool has_any(const struct sy_words *words, size_t begin, size_t end, const char *list) {
    for (size_t i = begin; i < end; i++) {
        if (sy_is_one_of(words->at[i].text, list)) {
            return true;
        }
    }
    return false;
}

static const char subjects[] = "i im ive we weve were someone somebody everybody everyone nobody he hes she shes they "
                               "theyre theyve it its theres thats youre ill well";
static const char auxiliaries[] = "is are was were has had isnt arent wasnt will wont cant doesnt didnt am gets got "
                                  "needs keeps starts begins distracts annoys starting coming calling pinged said says "
                                  "asked finished ended wants looks makes";

/* Whether the words are a statement: they say what someone does, or what is true. */
static bool is_sentence(const struct sy_words *words, size_t begin, size_t end) {
    while (begin < end &&
           (sy_is_one_of(words->at[begin].text, "ok okay hey well so and but now oh hi just then sorry"))) {
        begin++;
    }
    bool dislikes = begin + 1 < end && strcmp(words->at[begin].text, "dont") == 0 &&
                    sy_is_one_of(words->at[begin + 1].text, "need want use");
    return begin < end &&
           (dislikes || begins_reason(words, begin) ||
            sy_is_one_of(words->at[begin].text, "too way such very enough") ||
            sy_is_one_of(words->at[begin].text, subjects) || has_any(words, begin + 1, end, auxiliaries));
}

/* Whether a part ends after the word at `i`. */
static bool part_ends(const struct sy_words *words, size_t begin, size_t i) {
    size_t at;
    size_t len;
    const char *next = text_at(words, i + 1);
    if (i + 1 >= words->count || words->at[i].breaks || begins_reason(words, i + 1)) {
        return true;
    }
    bool so = strcmp(next, "so") == 0 && !sy_is_one_of(text_at(words, i + 2), "that many much far few i we");
    if (so && is_sentence(words, begin, i + 1)) {
        return true;
    }
    bool joins = sy_is_one_of(next, "and then so but");
    return joins && i + 2 < words->count && verb_from(words, i + 2, words->count, &at, &len) != SY_NO_VERB;
}

/* Whether the words may restrict what is closed: "I still need gmail". */
static bool restricts(const struct sy_words *words, size_t begin, size_t end) {
    bool any = has_any(words, begin, end,
                       "not dont never keep keeps leave except but only unless if until till wait careful "
                       "without stay stays still important later useful");
    for (size_t i = begin; i < end; i++) {
        bool needs = sy_is_one_of(words->at[i].text, "need want like love") && i > begin;
        any |= needs && strcmp(text_at(words, i + 1), "to") != 0;
    }
    return any;
}

static bool is_wish(const struct sy_words *words, size_t begin, size_t at) {
    return at > begin + 1 && has_any(words, begin, at, "i we gotta ive im") &&
           !has_any(words, begin, at, "can could you lets");
}

static void add_part(struct parts *parts, size_t begin, size_t end) {
    const struct sy_words *words = parts->words;
    struct part *part = &parts->at[parts->count++];
    *part = (struct part){.begin = begin, .end = end};
    size_t first = begin;
    size_t last = end;
    part->verb = verb_from(words, begin, end, &part->verb_at, &part->verb_len);
    first = part->verb_at;
    if (part->verb == SY_NO_VERB && first < last) {
        part->verb = sy_verb_of(words->at, &first, &last); /* "slack, quit" */
        part->verb_len = first - part->verb_at;
    }
    bool is_so =
        part->verb == SY_CANNOT && has_any(words, part->verb_at + 1, end, "is are was were has"); /* "login is fixed" */
    part->verb = is_so ? SY_NO_VERB : part->verb;
    part->wish = is_wish(words, begin, part->verb_at);
    part->question = part->verb_at < end && sy_is_question(words->at + part->verb_at, end - part->verb_at);
    part->sentence = part->verb == SY_NO_VERB && !part->question && is_sentence(words, begin, end);
    bool leaves = part->wish && strcmp(text_at(words, part->verb_at), "leave") == 0; /* "I have to leave" */
    part->restricts = restricts(words, leaves ? part->verb_at + 1 : begin, end);
}

static void cut_parts(const struct sy_words *words, struct parts *parts) {
    size_t begin = 0;
    *parts = (struct parts){.words = words};
    for (size_t i = 0; i < words->count; i++) {
        if (part_ends(words, begin, i) && (i + 1 == words->count || parts->count + 1 < PARTS_MAX)) {
            add_part(parts, begin, i + 1);
            begin = i + 1;
        }
    }
}

static bool commands(const struct parts *parts, const struct part *part) {
    bool can = part->verb != SY_CANNOT ||
               (part->wish && sy_is_activity(parts->words->at[part->verb_at].text)); /* "I want to play wordle" */
    return part->verb != SY_NO_VERB && can && part->verb != SY_QUERY && !part->question;
}

static bool closes(const struct parts *parts) {
    bool any = false;
    for (size_t i = 0; i < parts->count; i++) {
        any |= parts->at[i].verb == SY_CLOSE;
    }
    return any;
}

/* ---- pronouns: "it" ---- */

/* Returns how many words, from `word` on, are a pronoun: "it", "those", "that one". `next` is the word after `word`, or
 * "". */
static size_t pronoun_at(const char *word, const char *next) {
    static const char kinds[] =
        "tab page site window app program one thread video article doc document ticket issue paper "
        "story post recipe";
    static const char many[] =
        "all both now please too pages tabs ones windows apps programs articles videos threads things";
    if (sy_is_one_of(word, "it them em") ||
        (sy_is_one_of(word, "those these") && (!*next || sy_is_one_of(next, many)))) {
        return 1;
    }
    if (sy_is_one_of(word, "that taht") && (!*next || sy_is_one_of(next, kinds))) {
        return strcmp(next, "one") == 0 ? 2 : 1;
    }
    return strcmp(word, "both") == 0 && !*next ? 1 : 0;
}

/* Whether the words at `i` name the thing themselves: "that thread about knives". */
static bool names_it(const struct sy_words *words, const struct part *part, size_t i) {
    bool kind = sy_is_one_of(words->at[i].text, "that taht those these");
    return kind && i + 2 < part->end &&
           !sy_is_one_of(words->at[i + 2].text, "now please too again then instead all both");
}

/* Finds the first pronoun in the part, and sets `*at` to its first word. Returns how many words the pronoun has; 0:
 * there is no pronoun. */
static size_t pronoun(const struct sy_words *words, const struct part *part, size_t *at) {
    for (size_t i = part->verb_at + part->verb_len; i < part->end; i++) {
        size_t len = pronoun_at(words->at[i].text, i + 1 < part->end ? words->at[i + 1].text : "");
        *at = i;
        if (len > 0 && !names_it(words, part, i)) {
            return len;
        }
    }
    *at = part->end;
    return 0;
}

static const char lead[] =
    "i im ive we weve were have had has am been be just now already did done finished through with "
    "bored tired sick fed up of read reading picked chosen seen watched watching bought buy booked used using use not "
    "dont do "
    "need want will wont no longer cant ok okay so but and the a all of give gave given up on skip "
    "skipped learning learned tried trying about is its it are going to look looked looking at "
    "checked checking solved paid sent see to enough start starting started where did put got have";
static const char trail[] =
    "is are was were been now today tonight already any more anymore longer after all this time yet "
    "merged done finished booked over through closed solved fixed sent paid bought ready too "
    "gone again for way my me in bores boring annoys annoying distracts distracting";

/* Finds the words for the thing that the part is about, without the rest of the sentence. False: the thing is not
 * clear. */
static bool topic_of(const struct sy_words *words, const struct part *part, size_t *begin, size_t *end) {
    *begin = part->begin;
    *end = part->end;
    while ((part->sentence || part->question) && *begin < *end && sy_is_one_of(words->at[*begin].text, lead)) {
        (*begin)++;
    }
    bool told = part->sentence &&
                !sy_is_one_of(words->at[part->begin].text, subjects); /* "the terminal is too slow": its subject */
    for (size_t i = *begin + 1; told && i < *end; i++) {
        if (sy_is_one_of(words->at[i].text, auxiliaries)) {
            if (restricts(words, i, *end)) {
                return false;
            }
            *end = i;
        }
    }
    while (part->sentence && *end > *begin && sy_is_one_of(words->at[*end - 1].text, trail)) {
        (*end)--;
    }
    bool clean = !has_any(words, *begin, *end, auxiliaries) && !restricts(words, *begin, *end) &&
                 !has_any(words, *begin, *end, "i we it them you im ive");
    for (size_t i = *begin; i < *end; i++) {
        if (clean && !sy_is_stop(words->at[i].text)) {
            return true;
        }
    }
    return false;
}

static void copy_words(struct sy_words *to, const struct sy_words *from, size_t begin, size_t end) {
    for (size_t i = begin; i < end && to->count < SY_WORDS_MAX; i++) {
        to->at[to->count++] = from->at[i];
    }
}

/* Returns the last part of the list that begins with `first`: "facebook, insta and linkedin: close". */
static size_t list_end(const struct parts *parts, size_t first) {
    size_t last = first;
    while (!parts->at[last].sentence && last + 1 < parts->count && parts->at[last + 1].verb == SY_NO_VERB &&
           !parts->at[last + 1].sentence && !parts->at[last + 1].question) {
        last++;
    }
    return last;
}

static bool is_list(const struct sy_words *words, size_t begin, size_t end) {
    bool list = false;
    for (size_t i = begin; i + 1 < end; i++) {
        list |= words->at[i].breaks || strcmp(words->at[i].text, "and") == 0;
    }
    return list;
}

/* Writes the command `which`. The topic of the parts from `first` on replaces "it". False: nothing was written. */
static bool put_topic(const struct parts *parts, size_t first, size_t which, struct sy_words *said) {
    const struct sy_words *words = parts->words;
    const struct part *part = &parts->at[which];
    const struct part *topic = &parts->at[first];
    size_t at;
    size_t begin;
    size_t end;
    size_t len = pronoun(words, part, &at);
    size_t bare = part->end - part->verb_at - part->verb_len;
    bool asks = topic->question && (part->verb == SY_CLOSE || len == 0);
    if (!commands(parts, part) || part->verb == SY_SWAP || topic->verb != SY_NO_VERB || asks ||
        (len == 0 && bare > 0) || !topic_of(words, topic, &begin, &end)) {
        return false;
    }
    end = which > first + 1 ? parts->at[which - 1].end : end;
    bool both = at > 0 && strcmp(text_at(words, at - 1), "both") == 0;
    bool after = strcmp(text_at(words, at + len), "both") == 0 && at + len < part->end;
    bool list = is_list(words, begin, end);
    copy_words(said, words, part->begin, len > 0 ? at - (size_t)(both && list) : part->end);
    if (said->count > 0) {
        said->at[said->count - 1].breaks = false;
    }
    copy_words(said, words, begin, end);
    if (said->count > 0) {
        said->at[said->count - 1].breaks = len == 0;
    }
    bool plural = len == 1 && sy_is_one_of(text_at(words, at), "them those these em") && !list;
    copy_words(said, words, at + len - (size_t)plural + (size_t)after, part->end);
    if (said->count > 0) {
        said->at[said->count - 1].breaks = true;
    }
    return true;
}

/* ---- parts that can be dropped ---- */

static bool commands_later(const struct parts *parts, size_t from) {
    for (size_t i = from + 1; i < parts->count; i++) {
        if (commands(parts, &parts->at[i])) {
            return true;
        }
    }
    return false;
}

static bool commands_before(const struct parts *parts, size_t to) {
    for (size_t i = 0; i < to; i++) {
        if (commands(parts, &parts->at[i])) {
            return true;
        }
    }
    return false;
}

/* Whether one of the words is in the name of an existing thing, or is a number. */
static bool names(const struct sy_index *index, const struct sy_words *words, const struct part *part) {
    const struct sy_word *pointers[SY_WORDS_MAX];
    struct sy_terms terms;
    size_t count = 0;
    for (size_t i = part->begin; i < part->end; i++) {
        pointers[count++] = &words->at[i];
    }
    sy_terms_make(index, pointers, count, &terms);
    for (size_t i = 0; i < terms.count; i++) {
        if (terms.at[i].known || terms.at[i].number >= 0) {
            return true;
        }
    }
    return false;
}

/* Whether another part names a thing, and no other part has a command: "slack please, someone wrote to me", "lunch
 * break, slack". Then the part `but`, which is a statement or names nothing, can be dropped. */
static bool names_thing(const struct sy_index *index, const struct parts *parts, size_t but) {
    const bool tells = parts->at[but].sentence || parts->at[but].wish;
    bool any = false;
    for (size_t i = 0; i < parts->count; i++) {
        const struct part *part = &parts->at[i];
        if (i != but && commands(parts, part)) {
            return false;
        }
        bool thing = part->verb == SY_NO_VERB && !part->sentence;
        any |= i != but && (part->question || (thing && (tells || names(index, parts->words, part))));
    }
    return any;
}

/* Whether the part only says "and nothing else", which adds nothing. */
static bool says_only(const struct sy_words *words, const struct part *part) {
    bool first = sy_is_one_of(words->at[part->begin].text, "nothing not leave keep dont and but just only");
    bool others = has_any(words, part->begin, part->end, "else rest others");
    bool all = true;
    for (size_t i = part->begin; i < part->end; i++) {
        all = all &&
              sy_is_one_of(words->at[i].text, "nothing not leave keep dont and but just only anything everything else "
                                              "the rest others close touch open alone as is please all of");
    }
    return first && others && all && has_any(words, part->begin, part->end, "nothing not leave keep dont");
}

static bool is_context(const struct sy_index *index, const struct parts *parts, size_t i, bool bold) {
    const struct part *part = &parts->at[i];
    bool later = commands_later(parts, i);
    bool before = commands_before(parts, i);
    if (before && says_only(parts->words, part)) {
        return true;
    }
    if (part->verb == SY_SWAP) { /* "swap them: ..." */
        return bold && i + 1 < parts->count && part->end - part->begin <= 3 &&
               has_any(parts->words, part->begin, part->end, "them it these those");
    }
    bool idle = part->sentence || (part->verb == SY_NO_VERB && !part->question && !names(index, parts->words, part)) ||
                (part->wish && part->verb == SY_CANNOT && !commands(parts, part));
    if (!(later || before)) {
        return (bold || part->sentence) && idle && names_thing(index, parts, i);
    }
    if (part->restricts && closes(parts)) {
        return false;
    }
    if (bold && before && strcmp(text_at(parts->words, part->begin), "not") == 0) {
        return true; /* "start zoom, not the one in the browser" */
    }
    if (part->question) {
        return later && !before;
    }
    if (part->wish && part->verb != SY_CLOSE && (before || (later && !commands(parts, part)))) {
        return true; /* "start the calculator, I have to count something" */
    }
    if (bold && later && part->wish && part->verb == SY_CANNOT && !names(index, parts->words, part)) {
        return true; /* "I want to edit a photo, open gimp" */
    }
    if (part->verb != SY_NO_VERB) {
        return false;
    }
    return part->sentence || (bold && (later ? !names(index, parts->words, part) || !closes(parts) : false));
}

void sy_context_drop(const struct sy_index *index, const struct sy_words *words, bool bold, struct sy_words *said) {
    struct parts parts;
    struct sy_words corrected = *words;
    take_back(&corrected);
    turn_swap(&corrected);
    turn_not(&corrected);
    turn_from(&corrected);
    turn_window(&corrected);
    cut_parts(&corrected, &parts);
    memcpy(said->text, words->text, sizeof said->text);
    said->count = 0;
    for (size_t i = 0; i < parts.count; i++) {
        struct part *part = &parts.at[i];
        if (part->verb_at >= part->end && parts.count > 1) {
            continue; /* "hey", "thanks" */
        }
        size_t last = list_end(&parts, i);
        if (last + 1 < parts.count && put_topic(&parts, i, last + 1, said)) {
            i = last + 1;
        } else if (!is_context(index, &parts, i, bold)) {
            copy_words(said, &corrected, part->begin, part->end);
        }
    }
    if (said->count == 0) {
        *said = corrected;
    }
}
