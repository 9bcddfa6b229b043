/*
 * fm-engine-remote sends jobs to servers that have OpenAI's or Anthropic's API. The configuration names the servers.
 * One thread moves all transfers on and reports to the kit what has come. It waits in libcurl, and the kit wakes it
 * there.
 */
#include "engine/remote/remote.h"
#include "base/platform.h"
#include "engine/guide/grammar.h"

#include <stdio.h>
#include <string.h>

#define SLOTS   FM_SLOTS_MAX
#define WAIT_MS 1000 /* longest wait between two looks at the kit */

static struct fm_remote the_remote;

/* ---- the start ---- */

/* Collects the models of all endpoints for models.list. The first model of the first endpoint is the default. */
static void list_models(struct fm_remote *remote) {
    for (size_t i = 0; i < remote->config.endpoint_count; i++) {
        const struct fm_endpoint *endpoint = &remote->config.endpoints[i];
        if (!endpoint->models) {
            remote->model_count = 0; /* this endpoint takes any model */
            return;
        }
        for (size_t j = 0; j < endpoint->model_count; j++) {
            const struct fm_remote_model *model = &endpoint->models[j];
            bool listed = false;
            for (size_t k = 0; k < remote->model_count && !listed; k++) {
                listed = strcmp(remote->models[k].id, model->id) == 0;
            }
            if (!listed && remote->model_count < FM_LISTED_MAX) {
                remote->models[remote->model_count++] =
                    (struct fm_listed_model){.id = model->id, .context_length = model->context_length};
            }
        }
    }
}

/* Reads all that is needed while files can still be read, and before there is a second thread. */
static enum fm_code prepare_remote(struct fm_remote *remote, struct fm_error *error) {
    const char *folder = NULL;
    const char *config = fm_kit_config(&folder);
    if (!config) {
        (void)fm_fail(error, FM_UNAVAILABLE,
                      "the remote engine has no configuration: give it one with the option remote (--remote FILE)");
        snprintf(error->reason_code, sizeof error->reason_code, "NOT_CONFIGURED");
        return FM_UNAVAILABLE;
    }
    enum fm_code code = fm_remote_config_read(&remote->config, config, strlen(config), folder, error);
    code = code ? code : fm_curl_load(&remote->curl, error);
    if (code != FM_OK) {
        return code;
    }
    if (!fm_transport_init(&remote->transport, &remote->curl, &remote->config.secrets)) {
        return fm_fail_no_memory(error);
    }
    list_models(remote);
    return FM_OK;
}

/* Restricts what this process may read and connect to from now on. Both lists live as long as the process. */
static const struct fm_sandbox_client *client_of(const struct fm_remote *remote) {
    static struct fm_sandbox_client client;
    static int ports[FM_ENDPOINTS_MAX];
    static const char *files[FM_ENDPOINTS_MAX];
    client = (struct fm_sandbox_client){.ports = ports, .files = files};
    for (size_t i = 0; i < remote->config.endpoint_count; i++) {
        const struct fm_endpoint *endpoint = &remote->config.endpoints[i];
        ports[client.port_count++] = endpoint->port;
        if (endpoint->ca_file) {
            files[client.file_count++] = endpoint->ca_file;
        }
    }
    return &client;
}

static enum fm_code load_remote(void *state, struct fm_kit *kit, const struct fm_model_files *files,
                                struct fm_model_info *info, struct fm_error *error) {
    struct fm_remote *remote = state;
    (void)kit;
    (void)files;
    if (remote->fault.code != FM_OK) {
        *error = remote->fault;
        return error->code;
    }
    *info = (struct fm_model_info){
        .context_length = remote->model_count == 1 ? remote->models[0].context_length : 0,
        .slots = SLOTS,
        .silent = true,
        .images = true, /* only the server knows whether its model takes images */
    };
    return FM_OK;
}

/* ---- the loop ---- */

static void pump(struct fm_remote *remote, int64_t ms, struct fm_kit *kit) {
    fm_ask_drop_aborted(remote);
    fm_transport_wait(&remote->transport, ms < WAIT_MS ? ms : WAIT_MS);
    fm_kit_gather(kit);
    fm_transport_move(&remote->transport);
    fm_kit_flush(kit);
    fm_ask_drop_aborted(remote);
}

static struct fm_kit *probing_kit; /* the kit that called `available` */

static void pump_for_probe(struct fm_remote *remote, int64_t ms) {
    pump(remote, ms, probing_kit);
}

static void available(void *state, struct fm_kit *kit, struct fm_availability *out) {
    struct fm_remote *remote = state;
    if (remote->fault.code != FM_OK) {
        out->reason_code = remote->fault.reason_code;
        snprintf(out->detail, sizeof out->detail, "%s", remote->fault.detail);
        return;
    }
    probing_kit = kit;
    fm_probe(remote, pump_for_probe, out);
}

static void wake(void *state) {
    struct fm_remote *remote = state;
    if (remote->transport.multi) {
        fm_transport_wake(&remote->transport);
    }
}

static void serve_remote(void *state, struct fm_kit *kit) {
    struct fm_remote *remote = state;
    while (!fm_kit_ending(kit)) {
        struct fm_kit_job *job = remote->transport.count > 0 ? fm_kit_take_within(kit, 0) : fm_kit_take(kit, true);
        if (job) {
            fm_ask_start(remote, job);
        } else if (!fm_kit_ending(kit)) {
            pump(remote, WAIT_MS, kit);
        }
    }
    fm_ask_drop_aborted(remote); /* at the end, all jobs count as aborted */
}

int main(int argc, char *argv[]) {
    struct fm_remote *remote = &the_remote;
    struct fm_engine_ops ops = {
        .name = "remote",
        .version = FM_VERSION,
        .slots = SLOTS,
        .lists_models = true,
        .remote = true,
        .any_order = true,
        .needs_config = true,
        .features = FM_FEATURE_TOOLS | FM_FEATURE_EMBEDDINGS | FM_FEATURE_IMAGES | FM_FEATURE_SESSION |
                    FM_FEATURE_RESTARTS | FM_FEATURES_OF_SAMPLING |
                    (fm_grammar_supported() ? FM_FEATURE_STRUCTURED_OUTPUT : 0u), /* llguidance checks the text */
        .extras = true,
        .passes_on = true,
        .platforms = FM_ON_LINUX | FM_ON_MACOS,
        .needs_network = true,
        .state = remote,
        .load = load_remote,
        .available = available,
        .wake = wake,
        .serve = serve_remote,
    };
    bool described = argc == 2 && strcmp(argv[1], "--describe") == 0;
    fm_process_hide();
    if (!described && prepare_remote(remote, &remote->fault) == FM_OK) {
        remote->fault.code = FM_OK;
    }
    ops.client = client_of(remote);
    int status = fm_kit_main(&ops, argc, argv);
    fm_transport_free(&remote->transport); /* not earlier, because `wake` uses the transport */
    fm_remote_config_free(&remote->config);
    return status;
}
