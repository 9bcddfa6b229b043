/* Chooses the fm-proxy: the one that the options name, or else the one beside this program. */
#include "base/platform.h"
#include "cli/options.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool sy_proxy_can_start(const struct sy_options *options) {
    struct stat info;
    return stat(options->proxy, &info) == 0 && S_ISREG(info.st_mode) && access(options->proxy, X_OK) == 0;
}

struct sy_proxy *sy_options_proxy(const struct sy_options *options, int cancel_fd) {
    static const char name[] = "/fm-proxy";
    char beside[1024];
    const char *path = options->proxy;
    if (options->no_model || (!path && !fm_program_dir(beside, sizeof beside - sizeof name))) {
        return NULL;
    }
    if (!path) {
        memcpy(beside + strlen(beside), name, sizeof name);
        path = access(beside, X_OK) == 0 ? beside : NULL;
    }
    const struct sy_proxy_options how = {
        .path = path, .embedding_models = options->embedding_models, .cancel_fd = cancel_fd};
    return path ? sy_proxy_new(&how) : NULL;
}
