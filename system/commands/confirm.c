/*
 * Confirmation. A state has these hexadecimal digits: 16 of the time when it expires, 32 random ones, 64 of the SHA-256
 * of what the plan closes, and 64 of the HMAC-SHA-256 of all this and the request.
 */
#include "commands/confirm.h"
#include "base/hex.h"
#include "base/platform.h"
#include "commands/internal.h"
#include "desktop/clean.h"
#include "desktop/refuse.h"

#include <glib.h>
#include <inttypes.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_MAX     (1u << 20)
#define TITLE_MAX    60
#define TITLES_SHOWN 5
#define TIME_LEN     16
#define ID_LEN       32
#define DIGEST_LEN   64
#define SEALED_LEN   (TIME_LEN + ID_LEN + DIGEST_LEN) /* the part before the HMAC */

void sy_confirm_init(struct sy_confirm *confirm) {
    *confirm = (struct sy_confirm){.used_count = 0};
    fm_random(confirm->key, sizeof confirm->key);
}

/* ---- what would be lost ---- */

/* Calls `each` (may be NULL) once for every tab that the plan closes. Returns how many there are. */
static size_t each_tab(const struct sy_plan *plan, void (*each)(void *context, const struct sy_tab *tab, size_t index),
                       void *context) {
    const struct sy_snapshot *snapshot = &plan->snapshot;
    size_t count = 0;
    for (size_t i = 0; i < snapshot->tab_count; i++) {
        bool closed = false;
        for (size_t s = 0; s < plan->count && !closed; s++) {
            const struct sy_step *step = &plan->steps[s];
            for (size_t at = 0; at < step->id_count && step->command->run == sy_run_close_tab && !closed; at++) {
                closed = strcmp(step->ids[at], snapshot->tabs[i].tab->id) == 0;
            }
        }
        if (closed && each) {
            each(context, snapshot->tabs[i].tab, i + 1);
        }
        count += closed;
    }
    return count;
}

bool sy_loses(const struct sy_plan *plan, struct sy_loss *loss) {
    *loss = (struct sy_loss){.tabs = each_tab(plan, NULL, NULL)};
    for (size_t i = 0; i < plan->count; i++) {
        loss->windows += plan->steps[i].command->run == sy_run_close_app ? plan->steps[i].id_count : 0;
    }
    loss->last_tab = loss->tabs > 0 && loss->tabs == plan->snapshot.tab_count;
    return loss->windows > 0 || loss->tabs > 1 || loss->last_tab;
}

struct titles {
    struct fm_buf *text;
    size_t count;
};

/* Replaces quotation marks in the title: one title must not look like two. */
static void append_quoted(struct fm_buf *text, const char *title) {
    size_t from = text->len;
    sy_clean(text, title, TITLE_MAX, false);
    for (size_t i = from; i < text->len; i++) {
        text->data[i] = text->data[i] == '"' ? '\'' : text->data[i];
    }
}

static void append_title(void *context, const struct sy_tab *tab, size_t index) {
    struct titles *titles = context;
    char number[32];
    snprintf(number, sizeof number, "\" (tab %zu)", index);
    if (titles->count++ >= TITLES_SHOWN) {
        return;
    }
    fm_buf_append_str(titles->text, titles->count > 1 ? ", \"" : "\"");
    append_quoted(titles->text, tab->title);
    fm_buf_append_str(titles->text, number);
}

void sy_confirm_text(const struct sy_plan *plan, struct fm_buf *text) {
    struct sy_loss loss;
    struct titles titles = {.text = text};
    char number[64];
    (void)sy_loses(plan, &loss);
    for (size_t i = 0; i < plan->count; i++) {
        const struct sy_step *step = &plan->steps[i];
        if (step->command->run == sy_run_close_app) {
            fm_buf_append_str(text, text->len ? " Close " : "Close ");
            sy_clean(text, step->name, TITLE_MAX, false);
            snprintf(number, sizeof number, " (%zu window%s)?", step->id_count, step->id_count == 1 ? "" : "s");
            fm_buf_append_str(text, number);
        }
    }
    if (loss.tabs > 0) {
        snprintf(number, sizeof number, "%sClose %zu tab%s: ", text->len ? " " : "", loss.tabs,
                 loss.tabs == 1 ? "" : "s");
        fm_buf_append_str(text, number);
        (void)each_tab(plan, append_title, &titles);
        snprintf(number, sizeof number, " and %zu more", loss.tabs - TITLES_SHOWN);
        fm_buf_append_str(text, loss.tabs > TITLES_SHOWN ? number : "");
        fm_buf_append_char(text, '?');
    }
    if (loss.last_tab) {
        fm_buf_append_str(text, " No tab is left then, and Chrome quits.");
    }
}

/* ---- states ---- */

/* Writes the request so that equal requests give equal text: each step's type, and its parameters in the order of the
 * command's table. */
static void write_request(const struct sy_plan *plan, struct fm_json_writer *w) {
    fm_json_array_begin(w);
    for (size_t i = 0; i < plan->count; i++) {
        const struct sy_step *step = &plan->steps[i];
        fm_json_array_begin(w);
        fm_json_str(w, step->command->type);
        for (const struct sy_param *param = step->command->params; param->name; param++) {
            fm_json_value(w, sy_arg(step, param->name));
        }
        fm_json_array_end(w);
    }
    fm_json_array_end(w);
}

/* Writes the digest of a tab's address, because the user was asked about that page. The address itself may have
 * megabytes (data:). For a window nothing is written, because no tab has the window's id. */
static void write_page(const struct sy_snapshot *snapshot, const char *id, struct fm_json_writer *w) {
    for (size_t i = 0; i < snapshot->raw_tabs.count; i++) {
        if (strcmp(snapshot->raw_tabs.at[i].id, id) == 0) {
            char *digits = g_compute_checksum_for_string(G_CHECKSUM_SHA256, snapshot->raw_tabs.at[i].url, -1);
            fm_json_str(w, digits);
            g_free(digits);
        }
    }
}

static void write_loss(const struct sy_plan *plan, struct fm_json_writer *w) {
    struct sy_loss loss;
    fm_json_array_begin(w);
    for (size_t i = 0; i < plan->count; i++) {
        const struct sy_step *step = &plan->steps[i];
        for (size_t at = 0; at < step->id_count && step->command->destroys; at++) {
            fm_json_str(w, step->ids[at]);
            write_page(&plan->snapshot, step->ids[at], w);
        }
    }
    fm_json_bool(w, sy_loses(plan, &loss) && loss.last_tab);
    fm_json_array_end(w);
}

static bool digest_loss(const struct sy_plan *plan, char digest[DIGEST_LEN + 1]) {
    struct fm_buf text;
    fm_buf_init(&text, TEXT_MAX);
    struct fm_json_writer w = fm_json_writer_on(&text);
    write_loss(plan, &w);
    char *digits =
        text.failed ? NULL : g_compute_checksum_for_data(G_CHECKSUM_SHA256, (const guchar *)text.data, text.len);
    snprintf(digest, DIGEST_LEN + 1, "%s", digits ? digits : "");
    g_free(digits);
    fm_buf_free(&text);
    return digest[0] != '\0';
}

/* Computes the HMAC of the state's first part, followed by the request. */
static bool seal(const struct sy_confirm *confirm, const struct sy_plan *plan, const char *sealed,
                 char mac[DIGEST_LEN + 1]) {
    struct fm_buf text;
    fm_buf_init(&text, TEXT_MAX);
    fm_buf_append(&text, sealed, SEALED_LEN);
    struct fm_json_writer w = fm_json_writer_on(&text);
    write_request(plan, &w);
    char *digits = text.failed ? NULL
                               : g_compute_hmac_for_data(G_CHECKSUM_SHA256, confirm->key, sizeof confirm->key,
                                                         (const guchar *)text.data, text.len);
    snprintf(mac, DIGEST_LEN + 1, "%s", digits ? digits : "");
    g_free(digits);
    fm_buf_free(&text);
    return mac[0] != '\0';
}

enum fm_code sy_confirm_issue(const struct sy_confirm *confirm, const struct sy_plan *plan, int64_t now_ms,
                              char state[SY_STATE_SIZE], struct fm_error *error) {
    unsigned char bytes[ID_LEN / 2];
    char id[ID_LEN + 1];
    char digest[DIGEST_LEN + 1];
    char mac[DIGEST_LEN + 1];
    fm_random(bytes, sizeof bytes);
    fm_hex(id, bytes, sizeof bytes);
    if (!digest_loss(plan, digest)) {
        return fm_fail_no_memory(error);
    }
    snprintf(state, SY_STATE_SIZE, "%016" PRIx64 "%s%s", (uint64_t)(now_ms + SY_CONFIRM_MS), id, digest);
    if (!seal(confirm, plan, state, mac)) {
        return fm_fail_no_memory(error);
    }
    memcpy(state + SEALED_LEN, mac, sizeof mac);
    return FM_OK;
}

/* Compares two texts in a time that depends only on `len`. */
static bool equal(const char *one, const char *other, size_t len) {
    unsigned char difference = 0;
    for (size_t i = 0; i < len; i++) {
        difference |= (unsigned char)(one[i] ^ other[i]);
    }
    return difference == 0;
}

static void forget_old(struct sy_confirm *confirm, int64_t now_ms) {
    size_t kept = 0;
    for (size_t i = 0; i < confirm->used_count; i++) {
        if (confirm->used[i].until_ms > now_ms) {
            confirm->used[kept++] = confirm->used[i];
        }
    }
    confirm->used_count = kept;
}

/* Notes that the state is used. False: it was used before, or there is no room to note it. */
static bool use(struct sy_confirm *confirm, const char *id, int64_t until_ms, int64_t now_ms) {
    forget_old(confirm, now_ms);
    for (size_t i = 0; i < confirm->used_count; i++) {
        if (memcmp(confirm->used[i].id, id, ID_LEN) == 0) {
            return false;
        }
    }
    if (confirm->used_count == SY_CONFIRM_USED_MAX) {
        return false;
    }
    memcpy(confirm->used[confirm->used_count].id, id, ID_LEN);
    confirm->used[confirm->used_count++].until_ms = until_ms;
    return true;
}

static enum fm_code denied(struct fm_error *error, const char *why) {
    return sy_refuse(error, "denied", "requestState", "%s: ask the user again", why);
}

enum fm_code sy_confirm_accept(struct sy_confirm *confirm, const struct sy_plan *plan, const char *state,
                               int64_t now_ms, struct fm_error *error) {
    char digest[DIGEST_LEN + 1];
    char mac[DIGEST_LEN + 1];
    char time[TIME_LEN + 1];
    if (strlen(state) != SY_STATE_SIZE - 1) {
        return denied(error, "this is no confirmation of ours");
    }
    if (!seal(confirm, plan, state, mac) || !digest_loss(plan, digest)) {
        return fm_fail_no_memory(error);
    }
    if (!equal(mac, state + SEALED_LEN, DIGEST_LEN)) {
        return denied(error, "the confirmation is not ours, or not of this request");
    }
    memcpy(time, state, TIME_LEN);
    time[TIME_LEN] = '\0';
    int64_t until_ms = (int64_t)strtoull(time, NULL, 16);
    if (now_ms >= until_ms) {
        return fm_fail(error, FM_TIMEOUT, "the confirmation is older than %d s: ask the user again",
                       SY_CONFIRM_MS / 1000);
    }
    if (!equal(digest, state + TIME_LEN + ID_LEN, DIGEST_LEN)) {
        return sy_refuse(error, "stale_snapshot", "requestState",
                         "what there is to close has changed since the user was asked: ask again");
    }
    return use(confirm, state + TIME_LEN, until_ms, now_ms) ? FM_OK
                                                            : denied(error, "the confirmation was used already");
}
