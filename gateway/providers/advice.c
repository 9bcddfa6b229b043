/* A table of advice: the first row that fits an error is used. */
#include "providers/advice.h"
#include "base/utf8.h"
#include "providers/remote.h"

#include <stdio.h>
#include <string.h>

#define WHY_MAX 300 /* bytes of the helper's own message, so that there is room for the advice */

#define OPTION "--"

struct row {
    bool local;
    bool elsewhere;
    enum fm_code code;
    const char *reason_code; /* NULL: any; "--": the helper names its own option */
    const char *advice;      /* "%s": the variable that has the provider's key */
};

static const struct row rows[] = {
    {false, true, FM_UNAVAILABLE, "AUTH_FAILED",
     "set %s to a valid key in the gateway's environment, and start the gateway again"},
    {false, true, FM_UNAVAILABLE, "QUOTA", "look at the credit and the limits of the account that %s belongs to"},
    {false, true, FM_UNAVAILABLE, "OFFLINE", "look at the connection, or name a local model in AGENTS.md"},
    {false, true, FM_UNAVAILABLE, "TLS_FAILED", "look at this machine's clock and certificates"},
    {false, true, FM_NOT_FOUND, NULL, "name a model that the account has in AGENTS.md (model: PROVIDER/NAME)"},
    {true, false, FM_NOT_FOUND, NULL, "name one that is there in AGENTS.md (model: local/NAME), or local/default"},
    {true, false, FM_UNAVAILABLE, OPTION,
     "fm-gateway takes such options with --helper-arg before each word, as in --helper-arg --models-dir --helper-arg "
     "FOLDER"},
    {true, true, FM_CONTEXT_OVERFLOW, NULL, "begin a new conversation, or shorten the message"},
    {true, true, FM_RATE_LIMITED, NULL, "wait a moment, and send the message again"},
    {true, true, FM_OVERLOADED, NULL, "send the message again in a moment"},
    {true, true, FM_TIMEOUT, NULL, "send the message again, or ask for less"},
    {true, true, FM_INTERNAL, NULL, "send the message again"},
};

static const char *find_advice(bool local, const struct fm_error *error) {
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct row *row = &rows[i];
        bool reason = !row->reason_code || strcmp(row->reason_code, error->reason_code) == 0 ||
                      (strcmp(row->reason_code, OPTION) == 0 &&
                       (strstr(error->detail, " --") || strstr(error->detail, "(--")));
        if ((local ? row->local : row->elsewhere) && row->code == error->code && reason) {
            return row->advice;
        }
    }
    return NULL;
}

/* Copies a row's text with its "%s" filled in. */
static void fill_advice(char *out, size_t size, const char *advice, const char *key) {
    const char *at = strstr(advice, "%s");
    if (at) {
        snprintf(out, size, "%.*s%s%s", (int)(at - advice), advice, key, at + 2);
    } else {
        snprintf(out, size, "%s", advice);
    }
}

void gw_advise(const struct gw_model_ref *model, struct fm_error *error) {
    static const char *const names[] = {[GW_PROVIDER_LOCAL] = "The local model",
                                        [GW_PROVIDER_OPENAI] = "OpenAI",
                                        [GW_PROVIDER_ANTHROPIC] = "Anthropic"};
    bool local = model->provider == GW_PROVIDER_LOCAL;
    const char *advice = error->code == FM_CANCELLED ? NULL : find_advice(local, error);
    char why[WHY_MAX + 1];
    char what[240] = "";
    struct fm_error old = *error;
    snprintf(why, sizeof why, "%.*s", fm_utf8_shown(old.detail, WHY_MAX), old.detail);
    if (advice) {
        fill_advice(what, sizeof what, advice, local ? "" : gw_remote_key_name(model->provider));
    }
    if (error->code != FM_CANCELLED) {
        (void)fm_fail(error, old.code, "%s: %s%s%s", names[model->provider], why, advice ? ". What to do: " : "", what);
    }
    error->retry_ms = old.retry_ms;
    memcpy(error->reason_code, old.reason_code, sizeof error->reason_code);
    memcpy(error->param, old.param, sizeof error->param);
}
