/* Two lists. A variable that is not on the first reaches no command; a path on the second no sandboxed one. */
#include "tools/environment.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A name with "*" at its end stands for all that begin so. */
static const char *const allowed[] = {"HOME", "LANG",  "LANGUAGE", "LC_*", "LOGNAME",
                                      "PATH", "SHELL", "TMPDIR",   "TZ",   "USER"};

static const char *const keys[] = {
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".docker",
    ".config/gcloud",
    ".config/gh",
    ".config/hub",
    ".config/op",
    ".config/rclone",
    ".config/sops",
    ".config/age",
    ".password-store",
    ".netrc",
    ".git-credentials",
    ".config/git/credentials",
    ".npmrc",
    ".pypirc",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".m2/settings.xml",
    ".vault-token",
    ".pgpass",
    ".my.cnf",
    ".local/share/keyrings",
    ".mozilla",
    ".thunderbird",
    ".config/chromium",
    ".config/google-chrome",
    ".config/BraveSoftware",
    ".config/microsoft-edge",
    ".pki",
    ".proj-jarvis",
};

static bool is_allowed(const char *variable) {
    size_t len = strcspn(variable, "=");
    for (size_t i = 0; i < sizeof allowed / sizeof allowed[0]; i++) {
        size_t size = strlen(allowed[i]);
        bool prefix = allowed[i][size - 1] == '*';
        if (prefix ? strncmp(variable, allowed[i], size - 1) == 0
                   : len == size && strncmp(variable, allowed[i], size) == 0) {
            return true;
        }
    }
    return false;
}

void gw_strings_free(char **strings) {
    for (size_t i = 0; strings && strings[i]; i++) {
        free(strings[i]);
    }
    free(strings);
}

char **gw_environment_allowed(char *const *environment) {
    size_t count = 0;
    size_t taken = 0;
    while (environment[count]) {
        count++;
    }
    char **result = calloc(count + 2, sizeof *result);
    bool whole = result && (result[taken++] = strdup("TERM=dumb"));
    for (size_t i = 0; whole && i < count; i++) {
        if (is_allowed(environment[i])) {
            whole = (result[taken++] = strdup(environment[i])) != NULL;
        }
    }
    if (!whole) {
        gw_strings_free(result);
        return NULL;
    }
    return result;
}

const char *gw_environment_get(char *const *environment, const char *name) {
    size_t len = strlen(name);
    for (size_t i = 0; environment[i]; i++) {
        if (strncmp(environment[i], name, len) == 0 && environment[i][len] == '=') {
            return environment[i] + len + 1;
        }
    }
    return NULL;
}

char **gw_hidden_paths(const char *home, const char *state_folder) {
    size_t count = sizeof keys / sizeof keys[0];
    size_t taken = 0;
    char **result = calloc(count + 2, sizeof *result);
    for (size_t i = 0; result && i <= count; i++) {
        char path[PATH_MAX];
        int len = i < count ? snprintf(path, sizeof path, "%s/%s", home ? home : "", keys[i])
                            : snprintf(path, sizeof path, "%s", state_folder ? state_folder : "");
        bool named = i < count ? home != NULL : state_folder != NULL;
        char *real = named && len < (int)sizeof path ? realpath(path, NULL) : NULL;
        if (real && strcmp(real, "/") != 0) {
            result[taken++] = real;
        } else {
            free(real);
        }
    }
    return result;
}
