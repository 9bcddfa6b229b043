/*
 * Runs the fuzz targets without libFuzzer: feeds a target every file that the arguments name, folders file by file and
 * packs (pack.py) entry by entry. So any compiler, and any sanitizer, can replay the corpus.
 */
#include "tests/fuzz/fuzz.h"

#include <dirent.h>
#include <limits.h>
#include <signal.h>

#define INPUT_MAX (1u << 20)

static char current[PATH_MAX + 64]; /* the name to print when the target aborts */
static size_t inputs;

/* Feeds the target a copy of exactly `len` bytes. */
static void run_input(const void *bytes, size_t len) {
    char *exact = exact_copy(bytes, len);
    LLVMFuzzerTestOneInput((const uint8_t *)exact, len);
    free(exact);
    inputs++;
}

static bool run_whole_file(FILE *file, char *bytes, const char *path) {
    size_t len = fread(bytes, 1, INPUT_MAX, file);
    if (ferror(file) || !feof(file)) {
        fprintf(stderr, "%s: can't be read, or is larger than 1 MiB\n", path);
        return false;
    }
    run_input(bytes, len);
    return true;
}

/* Runs an entry: a line "NAME LENGTH", the bytes, a line feed. Returns false if the data does not have this form. */
static bool run_entry(FILE *file, const char *header, char *bytes, const char *path) {
    char *end = NULL;
    size_t name_len = strcspn(header, " ");
    size_t len = header[name_len] == ' ' ? strtoul(header + name_len, &end, 10) : 0;
    if (!end || *end != '\n' || len >= INPUT_MAX || fread(bytes, 1, len + 1, file) != len + 1 || bytes[len] != '\n') {
        return false;
    }
    snprintf(current, sizeof current, "%s, entry %.*s", path, (int)name_len, header);
    run_input(bytes, len);
    return true;
}

static bool run_pack(FILE *file, char *bytes, const char *path) {
    char header[64];
    while (fgets(header, sizeof header, file)) {
        if (!run_entry(file, header, bytes, path)) {
            fprintf(stderr, "%s: the entry after %zu inputs is damaged; take the file from the repository again\n",
                    path, inputs);
            return false;
        }
    }
    return !ferror(file);
}

static bool is_pack(const char *path) {
    size_t len = strlen(path);
    return len > 5 && strcmp(path + len - 5, ".pack") == 0;
}

static bool run_file(const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file) {
        perror(path);
        return false;
    }
    char *bytes = malloc(INPUT_MAX);
    bool ok = bytes && (is_pack(path) ? run_pack : run_whole_file)(file, bytes, path);
    free(bytes);
    fclose(file);
    return ok;
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

/* This is not async-signal-safe, but the process is about to end anyway. */
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
