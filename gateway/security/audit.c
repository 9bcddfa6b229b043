/* The audit. A record is written into one buffer, goes through the filter as text, and from there to the journal. */
#include "security/audit.h"
#include "base/platform.h"
#include "base/private_files.h"
#include "base/utf8.h"
#include "protocol/json_check.h"
#include "protocol/json_writer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NAME       "audit.jsonl"
#define RECORD_MAX (8u * GW_AUDIT_DETAILS_MAX)
#define TAIL       65536 /* how many bytes are read at once to find the last line's end */

struct gw_audit {
    struct gw_journal *journal;
    struct gw_journal_file *file; /* NULL: the audit is off */
    const struct gw_known *known;
    int folder;
    struct fm_buf line;
    struct fm_buf text; /* the text of a field, filtered */
    struct fm_json_writer writer;
};

/* ---- the file ---- */

/* Returns the length up to the end of the last whole line; -1 with errno. */
static int64_t whole_length(int fd) {
    char tail[TAIL];
    int64_t end = fm_private_file_size(fd);
    while (end > 0) {
        size_t len = end < TAIL ? (size_t)end : TAIL;
        if (!fm_private_file_read(fd, tail, len, end - (int64_t)len)) {
            return -1;
        }
        const char *newline = memrchr(tail, '\n', len);
        if (newline) {
            return end - (int64_t)len + (newline - tail) + 1;
        }
        end -= (int64_t)len;
    }
    return end;
}

static enum fm_code open_file(struct gw_audit *audit, struct fm_error *error) {
    int64_t whole = -1;
    int fd = fm_private_file_append(audit->folder, NAME, false);
    if (fd >= 0) {
        whole = whole_length(fd);
        fm_close(fd);
    }
    if ((fd < 0 && errno != ENOENT) || (fd >= 0 && whole < 0)) {
        return fm_fail(error, FM_UNAVAILABLE, "can't use " NAME " (%s): look at its rights, it must be yours alone",
                       strerror(errno));
    }
    audit->file = gw_journal_file_new(audit->journal, audit->folder, NAME, whole);
    return audit->file ? FM_OK : fm_fail_no_memory(error);
}

enum fm_code gw_audit_open(struct gw_journal *journal, const char *home, bool on, const struct gw_known *known,
                           struct gw_audit **out, struct fm_error *error) {
    struct gw_audit *audit = calloc(1, sizeof *audit);
    if (!audit) {
        return fm_fail_no_memory(error);
    }
    audit->journal = journal;
    audit->known = known;
    fm_buf_init(&audit->line, RECORD_MAX);
    fm_buf_init(&audit->text, RECORD_MAX);
    audit->folder = fm_private_folder_open(home);
    enum fm_code code = audit->folder < 0
                            ? fm_fail(error, FM_UNAVAILABLE, "can't use the folder %s (%s)", home, strerror(errno))
                        : on ? open_file(audit, error)
                             : FM_OK;
    if (code != FM_OK) {
        gw_audit_free(audit);
        return code;
    }
    *out = audit;
    return FM_OK;
}

static void free_audit(void *context) {
    struct gw_audit *audit = context;
    if (audit->folder >= 0) {
        fm_close(audit->folder);
    }
    fm_buf_free(&audit->line);
    fm_buf_free(&audit->text);
    free(audit);
}

void gw_audit_free(struct gw_audit *audit) {
    if (audit && audit->file) {
        gw_journal_file_free(audit->file, free_audit, audit);
    } else if (audit) {
        free_audit(audit);
    }
}

/* ---- records ---- */

static struct fm_json_writer *begin_record(struct gw_audit *audit, const char *event) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    fm_buf_reset(&audit->line);
    audit->writer = fm_json_writer_on(&audit->line);
    fm_json_object_begin(&audit->writer);
    fm_json_key_int(&audit->writer, "time", (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000);
    fm_json_key_str(&audit->writer, "event", event);
    return &audit->writer;
}

/* Writes the text to audit->text, without secrets. */
static void filter(struct gw_audit *audit, const char *text, size_t len) {
    fm_buf_reset(&audit->text);
    if (!gw_filter_text(audit->known, text, len, &audit->text)) {
        audit->line.failed = true;
    }
}

static void add_text(struct gw_audit *audit, const char *key, const char *text) {
    if (text) {
        filter(audit, text, strlen(text));
        fm_json_key(&audit->writer, key);
        fm_json_string(&audit->writer, audit->text.data, audit->text.len);
    }
}

/* Cuts and filters the details. Writes them as JSON if they are still JSON on one line, otherwise as a string. */
static void add_details(struct gw_audit *audit, const char *details, size_t len) {
    size_t offset;
    size_t shown = len > GW_AUDIT_DETAILS_MAX ? fm_utf8_whole_prefix(details, GW_AUDIT_DETAILS_MAX) : len;
    filter(audit, details, shown);
    fm_json_key(&audit->writer, "details");
    if (audit->text.len && !memchr(audit->text.data, '\n', audit->text.len) &&
        !fm_json_check(audit->text.data, audit->text.len, FM_JSON_VALUES_MAX, &offset)) {
        fm_json_raw(&audit->writer, audit->text.data, audit->text.len);
    } else {
        fm_json_string(&audit->writer, audit->text.data, audit->text.len);
    }
    if (shown < len) {
        fm_json_key_int(&audit->writer, "detailsBytes", (int64_t)len);
    }
}

static enum fm_code nothing(void *context, struct fm_error *error) {
    (void)context;
    (void)error;
    return FM_OK;
}

static enum fm_code end_record(struct gw_audit *audit, gw_journal_done *done, void *context, struct fm_error *error) {
    fm_json_object_end(&audit->writer);
    fm_buf_append_char(&audit->line, '\n');
    if (audit->line.failed) {
        return fm_fail(error, FM_INTERNAL, "a record of the audit can't be written: no memory, or it is too long");
    }
    if (!audit->file) {
        return gw_journal_run(audit->journal, nothing, done, context, error);
    }
    return gw_journal_append(audit->file, audit->line.data, audit->line.len, done, context, error);
}

static void add_tool(struct gw_audit *audit, const struct gw_audit_tool *tool) {
    add_text(audit, "sessionKey", tool->session_key);
    add_text(audit, "runId", tool->run_id);
    add_text(audit, "callId", tool->call_id);
    add_text(audit, "tool", tool->tool);
}

enum fm_code gw_audit_auth(struct gw_audit *audit, bool ok, const char *detail, gw_journal_done *done, void *context,
                           struct fm_error *error) {
    struct fm_json_writer *w = begin_record(audit, "auth");
    fm_json_key_bool(w, "ok", ok);
    add_text(audit, "detail", detail);
    return end_record(audit, done, context, error);
}

enum fm_code gw_audit_tool_before(struct gw_audit *audit, const struct gw_audit_tool *tool, const char *approval,
                                  const char *details, size_t len, gw_journal_done *done, void *context,
                                  struct fm_error *error) {
    begin_record(audit, "tool_before");
    add_tool(audit, tool);
    add_text(audit, "approval", approval);
    add_details(audit, details, len);
    return end_record(audit, done, context, error);
}

enum fm_code gw_audit_tool_after(struct gw_audit *audit, const struct gw_audit_tool *tool,
                                 const struct gw_audit_result *result, gw_journal_done *done, void *context,
                                 struct fm_error *error) {
    struct fm_json_writer *w = begin_record(audit, "tool_after");
    add_tool(audit, tool);
    add_text(audit, "outcome", result->outcome);
    if (result->exit_code >= 0) {
        fm_json_key_int(w, "exitCode", result->exit_code);
    }
    fm_json_key_int(w, "outputBytes", (int64_t)result->output_bytes);
    fm_json_key_bool(w, "truncated", result->truncated);
    fm_json_key_int(w, "durationMs", result->duration_ms);
    return end_record(audit, done, context, error);
}
