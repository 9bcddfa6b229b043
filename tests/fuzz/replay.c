/*
 * The fuzz targets without libFuzzer: feeds a target every file that the arguments name, folders file by file. So any
 * compiler, and any sanitizer, replays the corpus.
 */
#include "tests/fuzz/fuzz.h"

#include <dirent.h>
#include <limits.h>
#include <signal.h>

#define INPUT_MAX (1u << 20)

static char current[PATH_MAX]; /* told when the target aborts */
static size_t inputs;

static bool run_file(const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file) {
        perror(path);
        return false;
    }
    char *bytes = malloc(INPUT_MAX);
    size_t len = bytes ? fread(bytes, 1, INPUT_MAX, file) : 0;
    bool whole = bytes && !ferror(file) && feof(file);
    fclose(file);
    if (whole) {
        char *exact = exact_copy(bytes, len);
        LLVMFuzzerTestOneInput((const uint8_t *)exact, len);
        free(exact);
        inputs++;
    } else {
        fprintf(stderr, "%s: can't be read, or is larger than 1 MiB\n", path);
    }
    free(bytes);
    return whole;
}

static bool run_folder(const char *path, DIR *folder) {
    bool ok = true;
    struct dirent *entry;
    while (ok && (entry = readdir(folder))) {
        if (entry->d_name[0] == '.') {
            continue;
        }
        int len = snprintf(current, sizeof current, "%s/%s", path, entry->d_name);
        ok = len > 0 && (size_t)len < sizeof current && run_file(current);
    }
    return ok;
}

/* Async-signal-safe it is not, but the process is lost anyway. */
static void on_abort(int signal_number) {
    (void)signal_number;
    fprintf(stderr, "the input is %s\n", current);
}

int main(int argc, char *argv[]) {
    signal(SIGABRT, on_abort);
    bool ok = argc > 1;
    for (int i = 1; ok && i < argc; i++) {
        DIR *folder = opendir(argv[i]);
        if (folder) {
            ok = run_folder(argv[i], folder);
            closedir(folder);
        } else {
            snprintf(current, sizeof current, "%s", argv[i]);
            ok = run_file(argv[i]);
        }
    }
    printf("%s: %zu inputs\n", argv[0], inputs);
    return ok && inputs ? EXIT_SUCCESS : EXIT_FAILURE;
}
