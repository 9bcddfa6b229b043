/*
 * Recovery. `open` lists what has begun and has not ended. A record that ends an entry removes it from the list. Each
 * entry that is left at the end of the text gets a new record that ends it.
 */
#include "sessions/recovery.h"
#include "base/utf8.h"
#include "sessions/transcript.h"

#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#define TITLE_CHARACTERS 60 /* characters of a message that become a title */
#define TEXT_MAX         (SIZE_MAX / 2)
/*
 * If a start closes a run, no event reports that. So the record's event number must be above all numbers that clients
 * have seen; then they load it when they connect again. Event numbers are never this far ahead of the clock, and the
 * events of this process begin above it.
 */
#define AHEAD_MS         60000

enum kind { APPROVAL, CALL, RUN }; /* in the order in which they are closed */

enum stage {
    MAY_RUN,  /* no approval was asked for, or the user has approved */
    WAITS,    /* waits for approval */
    WILL_NOT, /* denied, expired or withdrawn */
};

/* `run`, `id` and `call` (an approval's) are parts of one allocation. */
struct open {
    struct open *next;
    enum kind kind;
    enum stage stage; /* how far a call has come */
    const char *run;
    const char *id;
    const char *call;
    char text[];
};

struct recovery {
    struct gw_recovered *out;
    struct open *open;
    struct open **end;
    const char *text;
    bool failed; /* out of memory */
};

/* ---- facts ---- */

void gw_title_set(char title[GW_TITLE_MAX + 1], const char *text, size_t characters) {
    size_t len = fm_utf8_prefix(text, strlen(text), characters);
    int shown = len > GW_TITLE_MAX ? fm_utf8_shown(text, GW_TITLE_MAX) : (int)len;
    memcpy(title, text, (size_t)shown);
    title[shown] = '\0';
    for (char *at = title; *at; at++) {
        *at = (unsigned char)*at < 0x20 || *at == 0x7f ? ' ' : *at;
    }
}

static void apply_message(struct gw_facts *facts, const struct gw_record *record) {
    const char *content = gw_record_text(record, "content");
    facts->messages++;
    facts->updated_ms = record->time_ms;
    if (!*facts->title && strcmp(gw_record_text(record, "role"), "user") == 0) {
        content += strspn(content, " \t\r\n");
        char line[GW_TITLE_MAX + 1];
        size_t len = strcspn(content, "\r\n");
        len = len > GW_TITLE_MAX ? (size_t)fm_utf8_shown(content, GW_TITLE_MAX) : len;
        memcpy(line, content, len);
        line[len] = '\0';
        gw_title_set(facts->title, line, TITLE_CHARACTERS);
    }
}

/* A count of usage; 0 if it is missing or is no count. */
static int64_t count_of(struct json_object *usage, const char *name) {
    int64_t count = json_object_get_int64(json_object_object_get(usage, name));
    return count > 0 && count < INT32_MAX ? count : 0;
}

static void apply_end(struct gw_facts *facts, struct json_object *record) {
    struct json_object *usage = json_object_object_get(record, "usage");
    int64_t event = gw_record_event(record);
    facts->event = event > facts->event ? event : facts->event;
    if (json_object_is_type(usage, json_type_object)) {
        facts->input_tokens += count_of(usage, "inputTokens");
        facts->output_tokens += count_of(usage, "outputTokens");
        facts->priceless |= !json_object_object_get_ex(usage, "costUsd", NULL);
    }
}

void gw_facts_apply(struct gw_facts *facts, const struct gw_record *record) {
    if (facts->seq == 0) {
        facts->created_ms = facts->updated_ms = record->time_ms;
    }
    facts->seq = record->seq;
    if (record->type == GW_RECORD_SESSION) {
        const char *agent = gw_record_text(record, "agentId");
        int len = fm_utf8_shown(agent, GW_AGENT_ID_MAX);
        memcpy(facts->agent_id, agent, (size_t)len);
        facts->agent_id[len] = '\0';
    } else if (record->type == GW_RECORD_TITLE) {
        gw_title_set(facts->title, gw_record_text(record, "title"), GW_TITLE_MAX);
        facts->renamed = true;
    } else if (record->type == GW_RECORD_MESSAGE) {
        apply_message(facts, record);
    } else if (record->type == GW_RECORD_RUN_ENDED) {
        apply_end(facts, record->json);
    }
}

/* ---- the entries of `open` ---- */

static struct open **find_open(struct recovery *recovery, enum kind kind, const char *run, const char *id) {
    struct open **link = &recovery->open;
    while (*link && ((*link)->kind != kind || strcmp((*link)->run, run) != 0 || strcmp((*link)->id, id) != 0)) {
        link = &(*link)->next;
    }
    return link;
}

static void drop_open(struct recovery *recovery, struct open **link) {
    struct open *gone = *link;
    if (gone) {
        *link = gone->next;
        if (!*link) {
            recovery->end = link;
        }
        free(gone);
    }
}

static void add_open(struct recovery *recovery, enum kind kind, const char *run, const char *id, const char *call) {
    size_t run_len = strlen(run) + 1;
    size_t id_len = strlen(id) + 1;
    size_t call_len = strlen(call) + 1;
    if (*find_open(recovery, kind, run, id)) {
        return; /* recorded twice */
    }
    struct open *open = calloc(1, sizeof *open + run_len + id_len + call_len);
    if (!open) {
        recovery->failed = true;
        return;
    }
    open->kind = kind;
    open->run = memcpy(open->text, run, run_len);
    open->id = memcpy(open->text + run_len, id, id_len);
    open->call = memcpy(open->text + run_len + id_len, call, call_len);
    *recovery->end = open;
    recovery->end = &open->next;
}

static void set_stage(struct recovery *recovery, const char *run, const char *call, enum stage stage) {
    struct open *open = *find_open(recovery, CALL, run, call);
    if (open) {
        open->stage = stage;
    }
}

static void settle_approval(struct recovery *recovery, const struct gw_record *record, const char *run) {
    struct open **link = find_open(recovery, APPROVAL, run, gw_record_text(record, "approvalId"));
    if (*link) {
        bool approved = strcmp(gw_record_text(record, "verdict"), "approved") == 0;
        set_stage(recovery, run, (*link)->call, approved ? MAY_RUN : WILL_NOT);
        drop_open(recovery, link);
    }
}

/* Removes the run and everything that belongs to it from `open`. */
static void end_run(struct recovery *recovery, const char *run) {
    struct open **link = &recovery->open;
    while (*link) {
        if (strcmp((*link)->run, run) == 0) {
            drop_open(recovery, link);
        } else {
            link = &(*link)->next;
        }
    }
}

static void follow_record(struct recovery *recovery, const struct gw_record *record) {
    const char *run = gw_record_text(record, "runId");
    const char *call = gw_record_text(record, "callId");
    switch (record->type) {
    case GW_RECORD_RUN_STARTED: add_open(recovery, RUN, run, "", ""); break;
    case GW_RECORD_TOOL_CALL: add_open(recovery, CALL, run, call, ""); break;
    case GW_RECORD_APPROVAL_OPENED:
        add_open(recovery, APPROVAL, run, gw_record_text(record, "approvalId"), call);
        set_stage(recovery, run, call, WAITS);
        break;
    case GW_RECORD_APPROVAL_SETTLED: settle_approval(recovery, record, run); break;
    case GW_RECORD_TOOL_STARTED: set_stage(recovery, run, call, MAY_RUN); break;
    case GW_RECORD_TOOL_RESULT: drop_open(recovery, find_open(recovery, CALL, run, call)); break;
    case GW_RECORD_RUN_ENDED: end_run(recovery, run); break;
    case GW_RECORD_SESSION:
    case GW_RECORD_TITLE:
    case GW_RECORD_MESSAGE:
    case GW_RECORD_STEP:
    case GW_RECORD_OTHER: break;
    }
}

/* ---- the text ---- */

static bool on_record(void *context, const struct gw_record *record) {
    struct recovery *recovery = context;
    gw_facts_apply(&recovery->out->facts, record);
    follow_record(recovery, record);
    if (recovery->out->damaged) {
        fm_buf_append(&recovery->out->kept, record->line, record->len + 1); /* the record's newline too */
    }
    return !recovery->failed;
}

static bool on_broken(void *context, const char *line, size_t len, const char *fault) {
    struct recovery *recovery = context;
    (void)len;
    if (!recovery->out->damaged) { /* a crash loses only the end; a line with its newline was written completely */
        fm_buf_append(&recovery->out->kept, recovery->text, (size_t)(line - recovery->text));
    }
    recovery->out->damaged = true;
    recovery->failed = recovery->failed || fault == gw_record_no_memory;
    return !recovery->failed;
}

static void close_call(struct fm_json_writer *w, const struct open *open) {
    bool unknown = open->stage == MAY_RUN;
    fm_json_key_str(w, "callId", open->id);
    fm_json_key_str(w, "outcome", unknown ? "unknown" : "not_run");
    fm_json_key_str(w, "output",
                    unknown
                        ? "Outcome unknown: the gateway ended while this tool may have been running. It was not run "
                          "again."
                        : "Not run: the gateway ended before this tool was approved.");
}

static void close_one(struct gw_recovered *out, const struct open *open, int64_t now_ms) {
    static const enum gw_record_type types[] = {GW_RECORD_APPROVAL_SETTLED, GW_RECORD_TOOL_RESULT, GW_RECORD_RUN_ENDED};
    struct fm_json_writer w = fm_json_writer_on(&out->closing);
    gw_record_begin(&w, ++out->facts.seq, now_ms, types[open->kind], open->run);
    if (open->kind == APPROVAL) {
        fm_json_key_str(&w, "approvalId", open->id);
        fm_json_key_str(&w, "verdict", "withdrawn");
        fm_json_key_str(&w, "reason", "the gateway was restarted");
        out->approvals++;
    } else if (open->kind == CALL) {
        close_call(&w, open);
        out->tools++;
    } else {
        int64_t event = (now_ms + AHEAD_MS) * GW_EVENTS_A_MS;
        out->facts.event = event > out->facts.event ? event : out->facts.event;
        fm_json_key_str(&w, "outcome", "error");
        fm_json_key_int(&w, "event", out->facts.event);
        fm_json_key_str(&w, "message", "The gateway ended during this run. Send the message again to go on.");
        out->runs++;
    }
    gw_record_end(&w);
}

static void close_all(struct recovery *recovery, int64_t now_ms) {
    for (enum kind kind = APPROVAL; kind <= RUN; kind++) {
        for (const struct open *open = recovery->open; open; open = open->next) {
            if (open->kind == kind) {
                close_one(recovery->out, open, now_ms);
            }
        }
    }
}

enum fm_code gw_recover(const char *text, size_t len, int64_t now_ms, struct gw_recovered *out,
                        struct fm_error *error) {
    struct recovery recovery = {.out = out, .text = text};
    const struct gw_transcript_reader reader = {.context = &recovery, .record = on_record, .broken = on_broken};
    *out = (struct gw_recovered){.whole = 0};
    fm_buf_init(&out->kept, TEXT_MAX);
    fm_buf_init(&out->closing, TEXT_MAX);
    recovery.end = &recovery.open;
    out->whole = gw_transcript_read(text, len, &reader);
    close_all(&recovery, now_ms);
    while (recovery.open) {
        drop_open(&recovery, &recovery.open);
    }
    if (recovery.failed || out->kept.failed || out->closing.failed) {
        gw_recovered_free(out);
        return fm_fail_no_memory(error);
    }
    out->whole = out->damaged ? out->kept.len : out->whole;
    return FM_OK;
}

void gw_recovered_free(struct gw_recovered *recovered) {
    fm_buf_free(&recovered->kept);
    fm_buf_free(&recovered->closing);
}
