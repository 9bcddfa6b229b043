/* Finds verbs in tables of phrases. If several phrases fit, the longest one counts. */
#include "match/verbs.h"

#include <string.h>

struct row {
    const char *phrase;
    enum sy_verb verb;
};

static const struct row rows[] = {
    {"close", SY_CLOSE},
    {"close down", SY_CLOSE},
    {"close out", SY_CLOSE},
    {"close off", SY_CLOSE},
    {"quit", SY_CLOSE},
    {"quit out of", SY_CLOSE},
    {"exit", SY_CLOSE},
    {"exit out of", SY_CLOSE},
    {"kill", SY_CLOSE},
    {"terminate", SY_CLOSE},
    {"shut", SY_CLOSE},
    {"shut down", SY_CLOSE},
    {"shutdown", SY_CLOSE},
    {"get rid of", SY_CLOSE},
    {"remove", SY_CLOSE},
    {"delete", SY_CLOSE},
    {"dismiss", SY_CLOSE},
    {"end", SY_CLOSE},
    {"x out", SY_CLOSE},
    {"clear out", SY_CLOSE},
    {"turn off", SY_CLOSE},
    {"close up", SY_CLOSE},
    {"close out of", SY_CLOSE},
    {"exit from", SY_CLOSE},
    {"quit from", SY_CLOSE},
    {"kill off", SY_CLOSE},
    {"force quit", SY_CLOSE},
    {"force close", SY_CLOSE},
    {"shut off", SY_CLOSE},
    {"ditch", SY_CLOSE},
    {"throw out", SY_CLOSE},
    {"throw away", SY_CLOSE},
    {"toss out", SY_CLOSE},
    {"chuck out", SY_CLOSE},
    {"nuke", SY_CLOSE},
    {"zap", SY_CLOSE},
    {"trash", SY_CLOSE},
    {"axe", SY_CLOSE},
    {"scrap", SY_CLOSE},
    {"purge", SY_CLOSE},
    {"eliminate", SY_CLOSE},
    {"lose", SY_CLOSE},
    {"clear", SY_CLOSE},
    {"wipe out", SY_CLOSE},
    {"x out of", SY_CLOSE},
    {"switch off", SY_CLOSE},
    {"power off", SY_CLOSE},
    {"away with", SY_CLOSE},
    {"off with", SY_CLOSE},
    {"switch", SY_SWITCH},
    {"switch to", SY_SWITCH},
    {"switch over to", SY_SWITCH},
    {"switch back to", SY_SWITCH},
    {"change to", SY_SWITCH},
    {"focus", SY_SWITCH},
    {"focus on", SY_SWITCH},
    {"activate", SY_SWITCH},
    {"bring", SY_SWITCH},
    {"bring up", SY_WANT},
    {"bring back", SY_SWITCH},
    {"pull up", SY_WANT},
    {"get me to", SY_SWITCH},
    {"jump to", SY_SWITCH},
    {"show", SY_SWITCH},
    {"show me", SY_SWITCH},
    {"find", SY_SWITCH},
    {"find me", SY_SWITCH},
    {"look at", SY_SWITCH},
    {"see", SY_SWITCH},
    {"view", SY_SWITCH},
    {"raise", SY_SWITCH},
    {"select", SY_SWITCH},
    {"return to", SY_SWITCH},
    {"back to", SY_SWITCH},
    {"flip to", SY_SWITCH},
    {"go back to", SY_SWITCH},
    {"go to", SY_VISIT},
    {"goto", SY_VISIT},
    {"go over to", SY_VISIT},
    {"take me to", SY_VISIT},
    {"take me back to", SY_SWITCH},
    {"jump over to", SY_SWITCH},
    {"jump back to", SY_SWITCH},
    {"hop to", SY_SWITCH},
    {"hop over to", SY_SWITCH},
    {"hop back to", SY_SWITCH},
    {"skip to", SY_SWITCH},
    {"skip over to", SY_SWITCH},
    {"flip over to", SY_SWITCH},
    {"flip back to", SY_SWITCH},
    {"swap to", SY_SWITCH},
    {"swap over to", SY_SWITCH},
    {"tab to", SY_SWITCH},
    {"alt tab to", SY_SWITCH},
    {"alt tab", SY_SWITCH},
    {"tab over to", SY_SWITCH},
    {"cycle to", SY_SWITCH},
    {"switch me to", SY_SWITCH},
    {"switch back", SY_SWITCH},
    {"get back to", SY_SWITCH},
    {"get me back to", SY_SWITCH},
    {"get to", SY_SWITCH},
    {"bring me", SY_SWITCH},
    {"bring me back to", SY_SWITCH},
    {"bring forward", SY_SWITCH},
    {"pull", SY_WANT},
    {"pop up", SY_WANT},
    {"surface", SY_SWITCH},
    {"foreground", SY_SWITCH},
    {"reveal", SY_SWITCH},
    {"display", SY_SWITCH},
    {"peek at", SY_SWITCH},
    {"take a look at", SY_SWITCH},
    {"have a look at", SY_SWITCH},
    {"take another look at", SY_SWITCH},
    {"check out", SY_SWITCH},
    {"check on", SY_SWITCH},
    {"check", SY_SWITCH},
    {"read", SY_SWITCH},
    {"read through", SY_SWITCH},
    {"continue", SY_SWITCH},
    {"continue with", SY_SWITCH},
    {"continue reading", SY_SWITCH},
    {"continue on", SY_SWITCH},
    {"keep reading", SY_SWITCH},
    {"keep working on", SY_SWITCH},
    {"work on", SY_SWITCH},
    {"resume", SY_SWITCH},
    {"locate", SY_SWITCH},
    {"move on to", SY_SWITCH},
    {"move over to", SY_SWITCH},
    {"review", SY_SWITCH},
    {"inspect", SY_SWITCH},
    {"search my tabs for", SY_SWITCH},
    {"see if you can find", SY_SWITCH},
    {"look for", SY_SWITCH},
    {"look into", SY_SWITCH},
    {"i cant find", SY_SWITCH},
    {"cant find", SY_SWITCH},
    {"i cant see", SY_SWITCH},
    {"i lost", SY_SWITCH},
    {"look through", SY_SWITCH},
    {"look over", SY_SWITCH},
    {"go through", SY_SWITCH},
    {"navigate to", SY_VISIT},
    {"visit", SY_VISIT},
    {"browse", SY_VISIT},
    {"browse to", SY_VISIT},
    {"head to", SY_VISIT},
    {"go", SY_VISIT},
    {"go on", SY_VISIT},
    {"go on to", SY_VISIT},
    {"go see", SY_VISIT},
    {"go check", SY_VISIT},
    {"look up", SY_VISIT},
    {"get on", SY_VISIT},
    {"hop on", SY_VISIT},
    {"jump on", SY_VISIT},
    {"jump onto", SY_VISIT},
    {"hop onto", SY_VISIT},
    {"head over to", SY_VISIT},
    {"head on over to", SY_VISIT},
    {"head back to", SY_VISIT},
    {"take me over to", SY_VISIT},
    {"take us to", SY_VISIT},
    {"bring me to", SY_VISIT},
    {"bring us to", SY_VISIT},
    {"navigate over to", SY_VISIT},
    {"navigate back to", SY_VISIT},
    {"surf to", SY_VISIT},
    {"watch", SY_VISIT},
    {"stream", SY_VISIT},
    {"hit up", SY_VISIT},
    {"jump into", SY_VISIT},
    {"go into", SY_VISIT},
    {"open", SY_OPEN},
    {"open up", SY_OPEN},
    {"launch", SY_OPEN},
    {"start", SY_OPEN},
    {"start up", SY_OPEN},
    {"run", SY_OPEN},
    {"fire up", SY_OPEN},
    {"boot up", SY_OPEN},
    {"load", SY_OPEN},
    {"load up", SY_OPEN},
    {"new tab", SY_OPEN},
    {"pop open", SY_OPEN},
    {"spin up", SY_OPEN},
    {"kick off", SY_OPEN},
    {"open me", SY_OPEN},
    {"open me up", SY_OPEN},
    {"power up", SY_OPEN},
    {"start using", SY_OPEN},
    {"bring in", SY_OPEN},
    {"get", SY_WANT},
    {"get me", SY_WANT},
    {"get my", SY_WANT},
    {"get up", SY_WANT},
    {"give me", SY_WANT},
    {"give us", SY_WANT},
    {"gimme", SY_WANT},
    {"i want", SY_WANT},
    {"i need", SY_WANT},
    {"i would like", SY_WANT},
    {"id like", SY_WANT},
    {"id love", SY_WANT},
    {"want", SY_WANT},
    {"need", SY_WANT},
    {"have", SY_WANT},
    {"let me have", SY_WANT},
    {"write", SY_WANT},
    {"compose", SY_WANT},
    {"draft", SY_WANT},
    {"edit", SY_WANT},
    {"listen to", SY_WANT},
    {"where did you put", SY_WANT},
    {"bring over", SY_WANT},
    {"put on", SY_WANT},
    {"hear", SY_WANT},
    {"i feel like", SY_WANT},
    {"put", SY_PLACE},
    {"move", SY_PLACE},
    {"place", SY_PLACE},
    {"send", SY_PLACE},
    {"drag", SY_PLACE},
    {"shift", SY_PLACE},
    {"throw", SY_PLACE},
    {"snap", SY_PLACE},
    {"dock", SY_PLACE},
    {"tile", SY_PLACE},
    {"position", SY_PLACE},
    {"resize", SY_PLACE},
    {"make", SY_PLACE},
    {"maximize", SY_PLACE},
    {"maximise", SY_PLACE},
    {"center", SY_PLACE},
    {"centre", SY_PLACE},
    {"set", SY_PLACE},
    {"arrange", SY_PLACE},
    {"stretch", SY_PLACE},
    {"stick", SY_PLACE},
    {"take", SY_PLACE},
    {"shove", SY_PLACE},
    {"push", SY_PLACE},
    {"slide", SY_PLACE},
    {"fling", SY_PLACE},
    {"toss", SY_PLACE},
    {"chuck", SY_PLACE},
    {"drop", SY_PLACE},
    {"relocate", SY_PLACE},
    {"park", SY_PLACE},
    {"align", SY_PLACE},
    {"fit", SY_PLACE},
    {"expand", SY_PLACE},
    {"pop", SY_PLACE},
    {"split", SY_PLACE},
    {"shoot", SY_PLACE},
    {"transfer", SY_PLACE},
    {"lay out", SY_PLACE},
    {"line up", SY_PLACE},
    {"fullscreen", SY_PLACE},
    {"full screen", SY_PLACE},
    {"swing", SY_PLACE},
    {"scoot", SY_PLACE},
    {"fill", SY_PLACE},
    {"apply", SY_PRESET},
    {"set up", SY_PRESET},
    {"enter", SY_PRESET},
    {"restore", SY_PRESET},
    {"do", SY_PRESET},
    {"use", SY_PRESET},
    {"go with", SY_PRESET},
    {"load the preset", SY_PRESET},
    {"turn on", SY_PRESET},
    {"trigger", SY_PRESET},
    {"engage", SY_PRESET},
    {"begin", SY_PRESET},
    {"get into", SY_PRESET},
    {"initiate", SY_PRESET},
    {"set everything up for", SY_PRESET},
    {"set me up for", SY_PRESET},
    {"set up for", SY_PRESET},
    {"set up everything for", SY_PRESET},
    {"set up my screen for", SY_PRESET},
    {"set up my screens for", SY_PRESET},
    {"arrange my windows for", SY_PRESET},
    {"arrange the windows for", SY_PRESET},
    {"arrange everything for", SY_PRESET},
    {"arrange things for", SY_PRESET},
    {"get the screen ready for", SY_PRESET},
    {"get my screen ready for", SY_PRESET},
    {"get everything ready for", SY_PRESET},
    {"get me ready for", SY_PRESET},
    {"get ready for", SY_PRESET},
    {"prepare for", SY_PRESET},
    {"prepare", SY_PRESET},
    {"change to the", SY_SWITCH},
    {"list", SY_LIST},
    {"list out", SY_LIST},
    {"enumerate", SY_LIST},
    {"summarize", SY_QUERY},
    {"summarise", SY_QUERY},
    {"count", SY_QUERY},
    {"tell me", SY_QUERY},
    {"explain", SY_QUERY},
    {"describe", SY_QUERY},
    {"minimize", SY_CANNOT},
    {"minimise", SY_CANNOT},
    {"hide", SY_CANNOT},
    {"restart", SY_CANNOT},
    {"reboot", SY_CANNOT},
    {"reload", SY_CANNOT},
    {"refresh", SY_CANNOT},
    {"pin", SY_CANNOT},
    {"unpin", SY_CANNOT},
    {"mute", SY_CANNOT},
    {"unmute", SY_CANNOT},
    {"bookmark", SY_CANNOT},
    {"screenshot", SY_CANNOT},
    {"take a screenshot", SY_CANNOT},
    {"print", SY_CANNOT},
    {"scroll", SY_CANNOT},
    {"type", SY_CANNOT},
    {"click", SY_CANNOT},
    {"copy", SY_CANNOT},
    {"paste", SY_CANNOT},
    {"save", SY_CANNOT},
    {"install", SY_CANNOT},
    {"uninstall", SY_CANNOT},
    {"update", SY_CANNOT},
    {"lock", SY_CANNOT},
    {"play", SY_CANNOT},
    {"pause", SY_CANNOT},
    {"download", SY_CANNOT},
    {"rename", SY_CANNOT},
    {"reopen", SY_CANNOT},
    {"undo", SY_CANNOT},
    {"keep", SY_CANNOT},
    {"leave", SY_CANNOT},
    {"search", SY_CANNOT},
    {"search for", SY_CANNOT},
    {"google", SY_CANNOT},
    {"log", SY_CANNOT},
    {"login", SY_CANNOT},
    {"log in", SY_CANNOT},
    {"log me into", SY_CANNOT},
    {"log me in", SY_CANNOT},
    {"log out", SY_CANNOT},
    {"log out of", SY_CANNOT},
    {"log off", SY_CANNOT},
    {"sign in", SY_CANNOT},
    {"sign out", SY_CANNOT},
    {"sign into", SY_CANNOT},
    {"buy", SY_CANNOT},
    {"order", SY_CANNOT},
    {"book", SY_CANNOT},
    {"purchase", SY_CANNOT},
    {"pay", SY_CANNOT},
    {"pay for", SY_CANNOT},
    {"reply", SY_CANNOT},
    {"reply to", SY_CANNOT},
    {"respond", SY_CANNOT},
    {"forward", SY_CANNOT},
    {"text", SY_CANNOT},
    {"call", SY_CANNOT},
    {"message", SY_CANNOT},
    {"dm", SY_CANNOT},
    {"merge", SY_CANNOT},
    {"commit", SY_CANNOT},
    {"deploy", SY_CANNOT},
    {"rebuild", SY_CANNOT},
    {"rerun", SY_CANNOT},
    {"approve", SY_CANNOT},
    {"assign", SY_CANNOT},
    {"comment", SY_CANNOT},
    {"like", SY_CANNOT},
    {"share", SY_CANNOT},
    {"post", SY_CANNOT},
    {"upload", SY_CANNOT},
    {"translate", SY_CANNOT},
    {"zoom", SY_CANNOT},
    {"zoom in", SY_CANNOT},
    {"zoom out", SY_CANNOT},
    {"increase", SY_CANNOT},
    {"decrease", SY_CANNOT},
    {"lower", SY_CANNOT},
    {"turn", SY_CANNOT},
    {"turn up", SY_CANNOT},
    {"turn down", SY_CANNOT},
    {"turn the volume", SY_CANNOT},
    {"raise the volume", SY_CANNOT},
    {"mark", SY_CANNOT},
    {"archive", SY_CANNOT},
    {"star", SY_CANNOT},
    {"subscribe", SY_CANNOT},
    {"unsubscribe", SY_CANNOT},
    {"follow", SY_CANNOT},
    {"add", SY_CANNOT},
    {"create", SY_CANNOT},
    {"remind", SY_CANNOT},
    {"remind me", SY_CANNOT},
    {"schedule", SY_CANNOT},
    {"cancel", SY_CANNOT},
    {"swap", SY_SWAP},
    {"swap around", SY_SWAP},
    {"swap round", SY_SWAP},
    {"trade", SY_SWAP},
    {"exchange", SY_SWAP},
    {"swap the places of", SY_SWAP},
    {"swap the positions of", SY_SWAP},
    {"switch around", SY_SWAP},
    {"switch the places of", SY_SWAP},
    {"sort", SY_CANNOT},
    {"group", SY_CANNOT},
    {"ungroup", SY_CANNOT},
    {"duplicate", SY_CANNOT},
    {"detach", SY_CANNOT},
    {"clean", SY_CANNOT},
    {"clean up", SY_CANNOT},
    {"tidy", SY_CANNOT},
    {"tidy up", SY_CANNOT},
    {"organize", SY_CANNOT},
    {"organise", SY_CANNOT},
    {"highlight", SY_CANNOT},
    {"annotate", SY_CANNOT},
    {"fix", SY_CANNOT},
    {"solve", SY_CANNOT},
    {"read me", SY_CANNOT},
    {"read out", SY_CANNOT},
    {"read to me", SY_CANNOT},
    {"stop", SY_CANNOT},
    {"wait", SY_CANNOT},
    {"rewind", SY_CANNOT},
    {"empty", SY_CANNOT},
    {"change", SY_CANNOT},
    {"redo", SY_CANNOT},
    {"reset", SY_CANNOT},
    {"sleep", SY_CANNOT},
    {"suspend", SY_CANNOT},
    {"wake", SY_CANNOT},
    {"put away", SY_CANNOT},
    {"buy me", SY_CANNOT},
    {"find out", SY_CANNOT},
    {"write down", SY_CANNOT},
    {"note", SY_CANNOT},
    {"calculate", SY_CANNOT},
    {"compute", SY_CANNOT},
    {"convert", SY_CANNOT},
    {"record", SY_CANNOT},
    {"format", SY_CANNOT},
    {"shrink", SY_CANNOT},
    {"enlarge", SY_CANNOT},
    {"rotate", SY_CANNOT},
    {"empty the", SY_CANNOT},
    {"sync", SY_CANNOT},
    {"send a message", SY_CANNOT},
    {"send an email", SY_CANNOT},
    {"send a mail", SY_CANNOT},
    {"send a text", SY_CANNOT},
    {"set a timer", SY_CANNOT},
    {"set an alarm", SY_CANNOT},
    {"set a reminder", SY_CANNOT},
    {"set the volume", SY_CANNOT},
    {"start a timer", SY_CANNOT},
    {"make a note", SY_CANNOT},
    {"email to", SY_CANNOT},
    {"fill out", SY_CANNOT},
    {"fill in", SY_CANNOT},
    {"submit", SY_CANNOT},
    {"vote", SY_CANNOT},
    {"react", SY_CANNOT},
    {"respond to", SY_CANNOT},
    {"run the tests", SY_CANNOT},
    {"turn it", SY_CANNOT},
    {"start recording", SY_CANNOT},
    {"crop", SY_CANNOT},
    {"check in", SY_CANNOT},
    {"check me in", SY_CANNOT},
};

/* Returns the number of words of the phrase if the words begin with this phrase; otherwise 0. */
static size_t match_phrase(const char *phrase, const struct sy_word *words, size_t count) {
    size_t used = 0;
    while (*phrase && used < count) {
        size_t len = strcspn(phrase, " ");
        if (strlen(words[used].text) != len || memcmp(words[used].text, phrase, len) != 0) {
            return 0;
        }
        used++;
        phrase += len + (phrase[len] == ' ');
    }
    return *phrase ? 0 : used;
}

static size_t longest(const char *const *phrases, size_t rows_count, const struct sy_word *words, size_t count) {
    size_t best = 0;
    for (size_t i = 0; i < rows_count; i++) {
        size_t len = match_phrase(phrases[i], words, count);
        best = len > best ? len : best;
    }
    return best;
}

/* Whether the word has one letter too many, one too few, or two swapped letters. A replaced letter is no such typo:
 * "clone" is not "close". */
static bool is_typo(const char *word, const char *verb) {
    size_t len = strlen(word);
    size_t size = strlen(verb);
    size_t i = 0;
    if (strchr(verb, ' ') || size < 4 || word[0] != verb[0] || strcmp(word, verb) == 0) {
        return false;
    }
    while (word[i] && word[i] == verb[i]) {
        i++;
    }
    if (len == size) {
        return len > i + 1 && word[i] == verb[i + 1] && word[i + 1] == verb[i] &&
               strcmp(word + i + 2, verb + i + 2) == 0;
    }
    bool longer = len == size + 1 && strcmp(word + i + 1, verb + i) == 0;
    return size > 4 && (longer || (len + 1 == size && strcmp(word + i, verb + i + 1) == 0));
}

/* Finds the row of the verb of which the word is a typo; NULL: there is none. Only verbs that users often write are
 * tried. */
static const struct row *misspelt(const char *word) {
    static const char *const often[] = {"close",  "switch",   "focus",    "open",  "launch",
                                        "move",   "maximize", "activate", "start", "place",
                                        "resize", "minimize", "list",     "show",  "find"};
    for (size_t i = 0; i < sizeof often / sizeof often[0] && strcmp(word, "lunch") != 0; i++) {
        for (size_t j = 0; j < sizeof rows / sizeof rows[0] && is_typo(word, often[i]); j++) {
            if (strcmp(rows[j].phrase, often[i]) == 0) {
                return &rows[j];
            }
        }
    }
    return NULL;
}

enum sy_verb sy_verb_at(const struct sy_word *words, size_t count, size_t *len) {
    enum sy_verb verb = SY_NO_VERB;
    *len = 0;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        size_t fit = match_phrase(rows[i].phrase, words, count);
        if (fit > *len) {
            *len = fit;
            verb = rows[i].verb;
        }
    }
    const struct row *row = *len == 0 && count > 1 ? misspelt(words[0].text) : NULL;
    if (row) {
        *len = 1;
        verb = row->verb;
    }
    return verb;
}

static const char *const polite[] = {"please",
                                     "pls",
                                     "plz",
                                     "hey",
                                     "hi",
                                     "hello",
                                     "ok",
                                     "okay",
                                     "now",
                                     "just",
                                     "also",
                                     "then",
                                     "and",
                                     "finally",
                                     "kindly",
                                     "can you",
                                     "could you",
                                     "would you",
                                     "will you",
                                     "can we",
                                     "could we",
                                     "could i",
                                     "can i",
                                     "i want to",
                                     "i want you to",
                                     "i would like to",
                                     "i would like you to",
                                     "id like to",
                                     "id like you to",
                                     "i need to",
                                     "i need you to",
                                     "lets",
                                     "let me",
                                     "lemme",
                                     "let us",
                                     "go ahead and",
                                     "computer",
                                     "would you mind",
                                     "quickly",
                                     "maybe",
                                     "well",
                                     "so",
                                     "alright",
                                     "actually",
                                     "let",
                                     "i wanna",
                                     "wanna",
                                     "help me",
                                     "yeah",
                                     "after that",
                                     "afterwards",
                                     "instead",
                                     "do the same with",
                                     "do the same for",
                                     "do the same to",
                                     "do the same thing with",
                                     "do the same thing to",
                                     "do the same thing for",
                                     "same with",
                                     "same for",
                                     "same thing with",
                                     "same thing for",
                                     "same goes for",
                                     "likewise",
                                     "pretty please",
                                     "yo",
                                     "um",
                                     "uh",
                                     "oh",
                                     "hmm",
                                     "hm",
                                     "ah",
                                     "ehm",
                                     "er",
                                     "nah",
                                     "nope",
                                     "no rush",
                                     "no hurry",
                                     "no problem",
                                     "no worries",
                                     "while youre at it",
                                     "only",
                                     "have to",
                                     "need to",
                                     "want to",
                                     "good morning",
                                     "sorry",
                                     "no",
                                     "right then",
                                     "real quick",
                                     "can u",
                                     "could u",
                                     "would u",
                                     "can ya",
                                     "do me a favor and",
                                     "do me a favour and",
                                     "please can you",
                                     "please could you",
                                     "would you please",
                                     "i think",
                                     "i think you can",
                                     "you can",
                                     "you could",
                                     "you may",
                                     "you should",
                                     "make sure to",
                                     "make sure you",
                                     "be sure to",
                                     "try to",
                                     "try and",
                                     "feel free to",
                                     "time to",
                                     "time for",
                                     "its time to",
                                     "its time for",
                                     "i should",
                                     "we should",
                                     "we need to",
                                     "we have to",
                                     "i have to",
                                     "i gotta",
                                     "gotta",
                                     "i must",
                                     "i will",
                                     "ill",
                                     "im going to",
                                     "im gonna",
                                     "im trying to",
                                     "id love to",
                                     "id rather",
                                     "id prefer to",
                                     "id love it if you could",
                                     "it would be great if you could",
                                     "do you mind",
                                     "do you think you could",
                                     "any chance you could",
                                     "is it possible to",
                                     "how about",
                                     "what about",
                                     "how about we",
                                     "mind",
                                     "next up",
                                     "lastly",
                                     "secondly",
                                     "firstly",
                                     "once thats done",
                                     "when youre done",
                                     "afterward",
                                     "later",
                                     "in the meantime",
                                     "meanwhile",
                                     "assistant",
                                     "robot",
                                     "thanks",
                                     "thank you",
                                     "cheers",
                                     "great",
                                     "good",
                                     "cool",
                                     "perfect",
                                     "nice",
                                     "fine",
                                     "can i please",
                                     "may i",
                                     "may i please",
                                     "i would love to",
                                     "i really want to",
                                     "i just want to",
                                     "i only want to",
                                     "i want us to",
                                     "i am trying to",
                                     "let me please",
                                     "since i have to",
                                     "for now",
                                     "real quick can you",
                                     "if you can",
                                     "if you could",
                                     "if possible"};

size_t sy_polite(const struct sy_word *words, size_t count) {
    size_t used = 0;
    size_t len;
    do {
        len = longest(polite, sizeof polite / sizeof polite[0], words + used, count - used);
        used += len;
    } while (len > 0 && used < count);
    return used;
}

static const char *const polite_ends[] = {"for a second",
                                          "for a sec",
                                          "for a moment",
                                          "for a minute",
                                          "for a bit",
                                          "for a while",
                                          "real quick",
                                          "for me",
                                          "only",
                                          "for us",
                                          "if you can",
                                          "if you could",
                                          "if possible",
                                          "would you",
                                          "will you",
                                          "could you",
                                          "can you",
                                          "when you can",
                                          "when you get a chance",
                                          "or something",
                                          "or whatever",
                                          "thank you",
                                          "thanks",
                                          "please",
                                          "pls",
                                          "plz",
                                          "at once",
                                          "now please",
                                          "this time",
                                          "for now",
                                          "by the way",
                                          "if you dont mind",
                                          "if you will",
                                          "mate",
                                          "buddy",
                                          "ok",
                                          "okay",
                                          "asap",
                                          "i think",
                                          "i guess",
                                          "then",
                                          "anymore",
                                          "any more",
                                          "once more",
                                          "right away",
                                          "right now",
                                          "immediately",
                                          "quickly",
                                          "as soon as possible"};

size_t sy_polite_end(const struct sy_word *words, size_t count) {
    size_t left = count;
    bool cut = true;
    while (cut) {
        cut = false;
        for (size_t i = 0; i < sizeof polite_ends / sizeof polite_ends[0] && !cut; i++) {
            for (size_t at = left; at > 1 && !cut; at--) { /* at least one word stays */
                cut = match_phrase(polite_ends[i], words + at - 1, left - at + 1) == left - at + 1;
                left = cut ? at - 1 : left;
            }
        }
    }
    return count - left;
}

bool sy_is_question(const struct sy_word *words, size_t count) {
    static const char *const phrases[] = {
        "what",    "whats",    "which",    "how",        "who",     "whose",   "when",  "where",  "why",
        "is",      "are",      "does",     "did",        "was",     "were",    "has",   "am",     "should",
        "do i",    "do you",   "do we",    "do any",     "do the",  "do they", "do my", "have i", "have you",
        "have we", "have any", "have the", "can i tell", "got any", "any"};
    return longest(phrases, sizeof phrases / sizeof phrases[0], words, count) > 0;
}

size_t sy_keeps(const struct sy_word *words, size_t count) {
    static const char *const phrases[] = {"not",        "keep",       "leave",        "spare",        "save",
                                          "dont close", "dont touch", "do not close", "do not touch", "dont kill"};
    static const char *const wants[] = {"i need",           "i still need",
                                        "i want",           "i still want",
                                        "i want to keep",   "i need to keep",
                                        "i like to keep",   "id like to keep",
                                        "im using",         "im still using",
                                        "im reading",       "im still reading",
                                        "i am using",       "i use",
                                        "i still use",      "ill keep",
                                        "i will keep",      "i would keep",
                                        "im not done with", "im not finished with",
                                        "i havent read",    "i havent finished",
                                        "we need",          "we still need"};
    size_t join = count > 0 && sy_is_one_of(words[0].text, "but and just only") ? 1 : 0;
    size_t len = join < count ? longest(phrases, sizeof phrases / sizeof phrases[0], words + join, count - join) : 0;
    if (len == 0 && join > 0 && strcmp(words[0].text, "but") == 0) {
        len = longest(wants, sizeof wants / sizeof wants[0], words + 1, count - 1);
    }
    bool ends = join + len >= count || sy_is_one_of(words[join + len].text, "now yet sure really that this it them");
    return len > 0 && !ends ? join + len : 0;
}

/* Whether one of the words before `i` asks to close something. */
static bool closes_before(const struct sy_word *words, size_t i) {
    size_t len;
    bool any = false;
    for (size_t j = 0; j < i; j++) {
        any |= sy_verb_at(words + j, i - j, &len) == SY_CLOSE;
    }
    return any;
}

bool sy_is_negated(const struct sy_word *words, size_t count) {
    static const char *const phrases[] = {
        "dont",   "do not",   "never",           "not",          "cant",    "cannot", "wont",   "shouldnt",
        "mustnt", "dont you", "without closing", "stop closing", "nothing", "none",   "no need"};
    for (size_t i = 0; i < count;) {
        size_t keeps = sy_keeps(words + i, count - i);
        bool lost = strcmp(words[i].text, "cant") == 0 && i + 1 < count && sy_is_one_of(words[i + 1].text, "find see");
        if (lost) {
            i += 2;
            continue;
        }
        if (keeps > 0 && closes_before(words, i)) {
            i += keeps;
            continue;
        }
        if (longest(phrases, sizeof phrases / sizeof phrases[0], words + i, count - i) > 0) {
            return true;
        }
        i++;
    }
    return false;
}

/* Reads a verb that closes, whose two words stand around the name: "turn slack off". */
static enum sy_verb around(const struct sy_word *words, size_t begin, size_t end) {
    bool off = end - begin > 2 && strcmp(words[end - 1].text, "off") == 0;
    for (size_t i = begin; i + 2 < end && strcmp(words[begin].text, "get") == 0; i++) {
        if (strcmp(words[i + 1].text, "out") == 0 && strcmp(words[i + 2].text, "of") == 0) {
            return SY_CANNOT; /* "get it out of my sight" does not say what to do */
        }
    }
    return off && sy_is_one_of(words[begin].text, "turn switch power") ? SY_CLOSE : SY_NO_VERB;
}

/* Whether the two words of a verb that shows something stand around the name: "put youtube on", "pop the weather
 * up". */
static bool shows_around(const struct sy_word *words, size_t begin, size_t end) {
    return end - begin > 2 && sy_is_one_of(words[begin].text, "put pop bring pull get throw crack have") &&
           sy_is_one_of(words[end - 1].text, "on up open");
}

/* Reads a verb that may stand after the name: "slack, quit", "I want slack closed". */
static enum sy_verb behind(const char *word) {
    return sy_is_one_of(word, "close closed quit exit kill killed shut terminate terminated") ? SY_CLOSE
           : sy_is_one_of(word, "maximize maximise center centre fullscreen")                 ? SY_PLACE
           : strcmp(word, "focus") == 0                                                       ? SY_SWITCH
                                                                                              : SY_NO_VERB;
}

/* Returns how many words at the end are a verb that closes: "the reddit tabs can go". */
static size_t goes_behind(const struct sy_word *words, size_t begin, size_t end) {
    static const char *const phrases[] = {"can go",           "can all go",     "may go",        "should go",
                                          "must go",          "has to go",      "have to go",    "can be closed",
                                          "should be closed", "must be closed", "may be closed", "needs to go",
                                          "need to go"};
    for (size_t i = 0; i < sizeof phrases / sizeof phrases[0]; i++) {
        for (size_t len = 2; len <= 3 && begin + len < end; len++) {
            if (match_phrase(phrases[i], words + end - len, len) == len) {
                return len;
            }
        }
    }
    return 0;
}

/* Reads the first word as a verb in "-ing", if the word before it needs this form: "would you mind closing it". */
static enum sy_verb gerund(const struct sy_word *words, size_t begin, size_t end, size_t *len) {
    struct sy_word plain[4] = {words[begin]};
    char *text = plain[0].text;
    size_t size = strlen(text);
    size_t count = end - begin < 4 ? end - begin : 4;
    bool asked = begin > 0 && sy_is_one_of(words[begin - 1].text, "mind about by");
    *len = 0;
    if (!asked || size < 6 || strcmp(text + size - 3, "ing") != 0) {
        return SY_NO_VERB;
    }
    memcpy(plain + 1, words + begin + 1, (count - 1) * sizeof plain[0]);
    text[size - 3] = '\0';
    enum sy_verb verb = sy_verb_at(plain, count, len);
    if (verb == SY_NO_VERB && text[size - 4] == text[size - 5]) {
        text[size - 4] = '\0'; /* shutting */
        verb = sy_verb_at(plain, count, len);
    } else if (verb == SY_NO_VERB) {
        text[size - 3] = 'e'; /* closing */
        text[size - 2] = '\0';
        verb = sy_verb_at(plain, count, len);
    }
    return verb;
}

/* Whether the verb stands after the place: "on the right monitor put slack". */
static bool place_first(const struct sy_word *words, size_t begin, size_t end) {
    size_t at = begin;
    while (at < end &&
           sy_is_one_of(words[at].text, "on in to at the my of left right main other second top bottom half "
                                        "side monitor screen display corner upper lower middle")) {
        at++;
    }
    return at > begin && at + 1 < end && sy_is_one_of(words[at].text, "put place move have show open");
}

enum sy_verb sy_verb_of(const struct sy_word *words, size_t *begin, size_t *end) {
    size_t len;
    enum sy_verb verb = around(words, *begin, *end);
    if (verb != SY_NO_VERB) {
        *begin += 1;
        *end -= verb == SY_CLOSE;
        return verb;
    }
    if (shows_around(words, *begin, *end)) {
        *begin += 1;
        *end -= 1;
        return SY_WANT;
    }
    verb = sy_verb_at(words + *begin, *end - *begin, &len);
    verb = verb == SY_NO_VERB ? gerund(words, *begin, *end, &len) : verb;
    if (verb == SY_NO_VERB && place_first(words, *begin, *end)) {
        return SY_PLACE;
    }
    size_t goes = verb == SY_NO_VERB ? goes_behind(words, *begin, *end) : 0;
    if (goes > 0) {
        *end -= goes;
        return SY_CLOSE;
    }
    enum sy_verb last = *end - *begin > 1 ? behind(words[*end - 1].text) : SY_NO_VERB;
    bool wants = verb == SY_NO_VERB || (verb == SY_WANT && last == SY_CLOSE); /* "I want slack closed" */
    *begin += len;
    if (wants && last != SY_NO_VERB && *begin < *end) {
        *end -= 1;
        return last;
    }
    return verb;
}

bool sy_asks_to_close(const struct sy_words *words) {
    size_t begin = 0;
    bool closes = false;
    for (size_t i = 0; i < words->count; i++) {
        bool joins = sy_is_one_of(words->at[i].text, "and then plus but");
        bool ends = joins || words->at[i].breaks || i + 1 == words->count;
        if (ends) {
            size_t start = begin + sy_polite(words->at + begin, i + 1 - begin);
            size_t stop = i + !joins;
            stop -= start < stop ? sy_polite_end(words->at + start, stop - start) : 0;
            closes |= start < stop && sy_verb_of(words->at, &start, &stop) == SY_CLOSE;
            begin = i + 1;
        }
    }
    return closes && !sy_is_negated(words->at, words->count);
}

bool sy_is_activity(const char *verb) {
    return sy_is_one_of(verb, "play write edit draw watch read text call message calculate compute "
                              "convert translate note record check reply respond post study solve fix");
}
