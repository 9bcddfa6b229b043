/* Reads a runner's job. The job is parsed only after its digest has shown that its bytes are the approved ones. */
#include "tools/runner/job.h"
#include "tools/digest.h"
#include "tools/runner/wire.h"
#include "protocol/json_check.h"
#include "protocol/json_tree.h"

#include <fcntl.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SEALS (F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW)

static char *read_sealed(int fd, size_t *len, struct fm_error *error) {
    struct stat info;
    int seals = fcntl(fd, F_GET_SEALS);
    if (seals < 0 || (seals & SEALS) != SEALS) {
        fm_fail(error, FM_INVALID_REQUEST, "the job is not sealed");
        return NULL;
    }
    if (fstat(fd, &info) != 0 || info.st_size <= 0 || info.st_size > (off_t)GW_RUN_JOB_MAX) {
        fm_fail(error, FM_INVALID_REQUEST, "the job has no size that a job can have");
        return NULL;
    }
    *len = (size_t)info.st_size;
    char *text = malloc(*len);
    if (!text || pread(fd, text, *len, 0) != (ssize_t)*len) {
        free(text);
        fm_fail(error, FM_INTERNAL, "the job can't be read");
        return NULL;
    }
    return text;
}

static struct json_object *typed_member(struct json_object *root, const char *name, enum json_type type) {
    struct json_object *value = NULL;
    return json_object_object_get_ex(root, name, &value) && json_object_is_type(value, type) ? value : NULL;
}

/*
 * Returns a NULL-terminated list of the array's strings; NULL: it is no array of strings, or out of memory. json-c
 * keeps the strings.
 */
static char **strings(struct json_object *root, const char *name) {
    struct json_object *list = typed_member(root, name, json_type_array);
    size_t count = list ? json_object_array_length(list) : 0;
    char **result = list ? calloc(count + 1, sizeof *result) : NULL;
    for (size_t i = 0; result && i < count; i++) {
        result[i] = (char *)json_object_get_string(json_object_array_get_idx(list, i));
    }
    return result;
}

static bool parse_sandbox(const char *word, enum gw_job_sandbox *sandbox) {
    static const char *const words[] = {[GW_JOB_OFF] = "off", [GW_JOB_WRITE] = "write", [GW_JOB_STRICT] = "strict"};
    for (size_t i = 0; word && i < sizeof words / sizeof words[0]; i++) {
        if (strcmp(words[i], word) == 0) {
            *sandbox = (enum gw_job_sandbox)i;
            return true;
        }
    }
    return false;
}

static bool fill_job(struct json_object *root, struct gw_job *job) {
    struct json_object *private_folder = typed_member(root, "private", json_type_string);
    struct json_object *sandbox = typed_member(root, "sandbox", json_type_string);
    struct json_object *timeout = typed_member(root, "timeout_ms", json_type_int);
    struct json_object *processes = typed_member(root, "processes", json_type_int);
    *job = (struct gw_job){
        .argv = strings(root, "argv"),
        .env = strings(root, "env"),
        .hidden = strings(root, "hidden"),
        .folder_writable = json_object_get_boolean(typed_member(root, "folder_writable", json_type_boolean)),
        .pipes = json_object_get_boolean(typed_member(root, "pipes", json_type_boolean)),
        .timeout_ms = json_object_get_int64(timeout),
        .processes = json_object_get_int64(processes),
    };
    if (private_folder && json_object_get_string_len(private_folder)) {
        job->private_folder = json_object_get_string(private_folder);
    }
    return job->argv && job->argv[0] && job->env && job->hidden && private_folder && timeout && processes &&
           parse_sandbox(json_object_get_string(sandbox), &job->sandbox);
}

enum fm_code gw_job_read(int fd, const char *digest, struct gw_job *job, struct fm_error *error) {
    size_t len;
    size_t offset;
    char actual[GW_DIGEST_SIZE];
    struct json_object *root = NULL;
    struct fm_buf scratch;
    char *text = read_sealed(fd, &len, error);
    if (!text) {
        return error->code;
    }
    fm_buf_init(&scratch, GW_RUN_JOB_MAX);
    gw_digest(text, len, actual);
    if (strcmp(actual, digest) != 0) {
        fm_fail(error, FM_INVALID_REQUEST, "the job is not the one that was approved: its SHA-256 differs");
    } else if (fm_json_check(text, len, FM_JSON_VALUES_MAX, &offset) || !fm_json_tree(text, len, &scratch, &root) ||
               !fill_job(root, job)) {
        fm_fail(error, FM_INVALID_REQUEST, "the job is not one of fm-tool-run's (gateway/tools/runner/wire.h)");
    } else {
        error->code = FM_OK;
    }
    fm_buf_free(&scratch);
    free(text);
    job->root = root;
    return error->code;
}
