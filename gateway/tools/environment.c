/*
 * Two lists. A variable that is not in the first reaches no command. A path in the second is hidden from sandboxed
 * commands.
 */
#include "tools/environment.h"

#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A name with "*" at its end stands for all names with that beginning. */
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
    ".config/glab-cli",
    ".config/doctl",
    ".config/op",
    ".config/rclone",
    ".config/sops",
    ".config/age",
    ".config/containers/auth.json",
    ".oci",
    ".terraform.d/credentials.tfrc.json",
    ".s3cfg",
    ".boto",
    ".password-store",
    ".netrc",
    ".authinfo",
    ".authinfo.gpg",
    ".git-credentials",
    ".config/git/credentials",
    ".npmrc",
    ".pypirc",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".gem/credentials",
    ".config/composer/auth.json",
    ".config/pypoetry/auth.toml",
    ".m2/settings.xml",
    ".gradle/gradle.properties",
    ".cache/huggingface/token",
    ".claude",
    ".claude.json",
    ".codex",
    ".vault-token",
    ".pgpass",
    ".my.cnf",
    ".local/share/keyrings",
    ".local/share/kwalletd",
    ".mozilla",
    ".thunderbird",
    ".config/chromium",
    ".config/google-chrome",
    ".config/BraveSoftware",
    ".config/microsoft-edge",
    ".config/vivaldi",
    ".config/opera",
    ".librewolf",
    "snap/chromium",
    "snap/firefox",
    ".var/app",
    ".config/Bitwarden",
    ".config/1Password",
    ".config/keepassxc",
    ".config/Signal",
    ".bitcoin",
    ".electrum",
    ".ethereum",
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

static bool add_folder(char **list, size_t *count, const char *folder, const char *name) {
    bool absolute = folder && *folder == '/';
    if (absolute && asprintf(&list[*count], "%s%s%s", folder, *name ? "/" : "", name) < 0) {
        list[*count] = NULL;
        return false;
    }
    *count += absolute;
    return true;
}

char **gw_hidden_paths(const char *home, const char *state_folder) {
    size_t each = sizeof keys / sizeof keys[0];
    const struct passwd *account = getpwuid(getuid());
    const char *second = account ? account->pw_dir : NULL;
    char **result = calloc(2 * each + 2, sizeof *result);
    size_t count = 0;
    bool whole = result && add_folder(result, &count, state_folder, "");
    for (size_t i = 0; whole && i < each; i++) {
        whole = add_folder(result, &count, home, keys[i]) &&
                ((home && second && strcmp(home, second) == 0) || add_folder(result, &count, second, keys[i]));
    }
    if (!whole) {
        gw_strings_free(result);
        return NULL;
    }
    return result;
}
