/* The words of both tables are in lower case, separated by spaces. */
#include "match/kinds.h"
#include "match/words.h"

#include <stddef.h>
#include <string.h>

#define LIKELY 0.85 /* lower than the score of a word that the page itself has */

struct kind {
    const char *words;
    const char *places; /* hosts, some with the beginning of a path; a host includes its subdomains */
};

static const struct kind kinds[] = {
    {"mail email emails inbox mailbox mails",
     "mail.google.com outlook.com outlook.live.com outlook.office.com mail.yahoo.com mail.proton.me fastmail.com"},
    {"calendar agenda schedule appointments", "calendar.google.com outlook.live.com/calendar"},
    {"doc docs document documents gdoc", "docs.google.com/document"},
    {"sheet sheets spreadsheet spreadsheets gsheet", "docs.google.com/spreadsheets"},
    {"slides presentation deck slideshow", "docs.google.com/presentation slides.com"},
    {"map maps directions route", "google.com/maps openstreetmap.org bing.com/maps maps.apple.com"},
    {"video videos clip clips", "youtube.com vimeo.com dailymotion.com"},
    {"movie movies show shows series film films tv streaming",
     "netflix.com primevideo.com disneyplus.com hulu.com max.com"},
    {"music song songs playlist tunes album podcast podcasts",
     "open.spotify.com music.youtube.com soundcloud.com bandcamp.com deezer.com tidal.com"},
    {"code git", "github.com gitlab.com bitbucket.org codeberg.org"},
    {"ticket tickets bug story issue issues", "atlassian.net linear.app"},
    {"paper papers preprint preprints", "arxiv.org biorxiv.org scholar.google.com"},
    {"article articles encyclopedia wiki", "wikipedia.org"},
    {"news headlines newspaper",
     "bbc.com bbc.co.uk theguardian.com nytimes.com cnn.com reuters.com apnews.com washingtonpost.com news.google.com "
     "news.ycombinator.com spiegel.de lemonde.fr"},
    {"ai chatbot assistant llm bot", "chatgpt.com claude.ai gemini.google.com perplexity.ai copilot.microsoft.com"},
    {"shop shopping store order orders product products cart",
     "amazon.com ebay.com etsy.com ikea.com aliexpress.com walmart.com target.com amazon.de amazon.co.uk"},
    {"hotel hotels accommodation booking reservation", "booking.com hotels.com expedia.com"},
    {"rental rentals apartment flat stay", "airbnb.com vrbo.com"},
    {"flight flights plane planes airfare",
     "google.com/travel/flights kayak.com skyscanner.net skyscanner.com expedia.com"},
    {"social", "facebook.com instagram.com x.com linkedin.com tiktok.com bsky.app mastodon.social threads.net"},
    {"subreddit subreddits", "reddit.com"},
    {"tweet tweets", "x.com twitter.com"},
    {"messages messenger chat texts", "web.whatsapp.com messenger.com web.telegram.org app.slack.com discord.com"},
    {"meeting call conference", "meet.google.com zoom.us teams.microsoft.com"},
    {"design designs mockup mockups prototype wireframe", "figma.com canva.com sketch.com"},
    {"currency exchange rate rates converter", "xe.com wise.com"},
    {"dictionary translation translator", "translate.google.com deepl.com merriam-webster.com"},
    {"question questions answer", "stackoverflow.com stackexchange.com quora.com superuser.com"},
    {"latex", "overleaf.com"},
    {"reviews travel", "tripadvisor.com"},
    {"course courses", "coursera.org udemy.com edx.org ocw.mit.edu"},
    {"notes", "notion.so keep.google.com evernote.com"},
    {"jobs career careers", "linkedin.com indeed.com"},
    {"build builds pipeline", "circleci.com travis-ci.com"},
};

static const char *const same[] = {
    "weather forecast temperature",
    "pr prs pull",
    "bug bugs issue issues ticket tickets defect",
    "film films movie movies",
    "lesson lessons tutorial tutorials class course",
    "lecture lectures class course talk",
    "photo photos picture pictures image images pic pics",
    "flight flights plane planes airfare",
    "train trains rail railway",
    "hotel hotels accommodation",
    "deal deals sale sales offer offers bargain discount discounts",
    "currency money exchange",
    "calendar agenda schedule",
    "shoe shoes sneakers trainers",
    "recipe recipes cooking",
    "doc docs document documents documentation",
    "chat message messages conversation",
    "song songs music track",
    "board kanban scrum",
    "dashboard metrics monitoring graphs charts",
    "spreadsheet spreadsheets sheet sheets",
    "presentation slides slideshow deck",
    "paper papers study",
    "suitcase luggage baggage",
    "vacation vacations holiday holidays trip",
    "football soccer",
    "settings preferences options",
    "novel novels book books",
    "video videos clip clips",
    "list checklist",
    "job jobs career careers",
    "docs documentation reference manual",
    "repo repository repos repositories",
    "config configuration",
    "euro euros eur",
    "dollar dollars usd",
    "yen jpy",
    "bank banking",
    "photo photography",
    "lamp light",
    "ai llm",
    "build builds pipeline pipelines ci",
    "app application",
    "house home",
};

static bool at_place(const char *place, size_t len, const char *host, const char *path) {
    size_t name = 0;
    size_t own = strlen(host);
    while (name < len && place[name] != '/') {
        name++;
    }
    bool below =
        own >= name && memcmp(host + own - name, place, name) == 0 && (own == name || host[own - name - 1] == '.');
    return below && strncmp(path, place + name, len - name) == 0;
}

/* The path "/owner/name" is the beginning of a repository. */
static double repository(const char *host, const char *path) {
    size_t parts = 0;
    if (!at_place("github.com", 10, host, "") && !at_place("gitlab.com", 10, host, "")) {
        return 0;
    }
    for (size_t i = 0; path[i] && path[i] != '?' && path[i] != '#'; i++) {
        parts += path[i] == '/' && path[i + 1] && path[i + 1] != '?';
    }
    return parts == 2 ? 1 : parts > 2 ? LIKELY : 0;
}

#define ROWS(table) (sizeof(table) / sizeof(table)[0])
_Static_assert(ROWS(kinds) <= 64 && ROWS(same) <= 64, "a bit for each row");

void sy_meanings_of(const char *word, struct sy_meanings *meanings) {
    *meanings = (struct sy_meanings){.repository = sy_is_one_of(word, "repo repos repository repositories")};
    for (size_t i = 0; i < ROWS(kinds); i++) {
        meanings->kinds |= (uint64_t)sy_is_one_of(word, kinds[i].words) << i;
    }
    for (size_t i = 0; i < ROWS(same); i++) {
        meanings->same |= (uint64_t)sy_is_one_of(word, same[i]) << i;
    }
}

double sy_kind_fits(const struct sy_meanings *meanings, const char *host, const char *path) {
    if (meanings->repository) {
        return repository(host, path);
    }
    for (size_t i = 0; i < ROWS(kinds); i++) {
        const char *at = meanings->kinds >> i & 1 ? kinds[i].places : "";
        while (*at) {
            size_t len = strcspn(at, " ");
            if (at_place(at, len, host, path)) {
                return LIKELY;
            }
            at += len + (at[len] == ' ');
        }
    }
    return 0;
}

bool sy_means(const struct sy_meanings *meanings, const char *other) {
    for (size_t i = 0; meanings->same >> i && i < ROWS(same); i++) {
        if (meanings->same >> i & 1 && sy_is_one_of(other, same[i])) {
            return true;
        }
    }
    return false;
}
