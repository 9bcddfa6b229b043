/* fm-system: finds the sub-command. Without one it runs the MCP server, because clients start it without one. */
#include "cli/options.h"

#include <stdio.h>
#include <string.h>
#include <sysexits.h>

static const struct {
    const char *name;
    const char *usage;
    bool own_help;
    int (*run)(int argc, char **argv);
} commands[] = {
    {"mcp", "serves the Model Context Protocol on stdin and stdout; so it does without a command", false,
     sy_main_mcp},
    {"do", "does what the words say, in English: do [OPTION...] WORDS...", true, sy_main_do},
    {"chrome", "starts Chrome so that its tabs can be seen: chrome [OPTION...] [-- ARGUMENT...]", true,
     sy_main_chrome},
    {"preset", "lists, saves and deletes window layouts: list [--json], save NAME [--tabs] [--replace], delete NAME",
     true, sy_main_preset},
    {"doctor", "tells what of this desktop can be used, and why the rest can't", false, sy_main_doctor},
};

#define COMMANDS (sizeof commands / sizeof commands[0])

static int print_help(void) {
    fputs("fm-system " FM_VERSION ": a desktop's applications and Chrome's tabs for language models\n\n"
          "usage: fm-system [COMMAND] [OPTION...]\n\n",
          stdout);
    for (size_t i = 0; i < COMMANDS; i++) {
        printf("  %-16s %s\n", commands[i].name, commands[i].usage);
    }
    fputs("\n"
          "  --read-only      only what changes nothing\n"
          "  --allow LIST     only these tools: names with commas between them\n"
          "  --no-model       no local model answers what code can't\n"
          "  --proxy FILE     the fm-proxy whose model does (default: the one beside fm-system, if there is one)\n"
          "  --chrome-socket PATH  the browser that `fm-system chrome --socket PATH` started\n"
          "  --desktop FILE   a fake desktop made of JSON, for tests\n"
          "  --help, --version\n",
          stdout);
    return EX_OK;
}

int main(int argc, char **argv) {
    const char *first = argc > 1 ? argv[1] : "";
    if (strcmp(first, "--help") == 0) {
        return print_help();
    }
    if (strcmp(first, "--version") == 0) {
        puts("fm-system " FM_VERSION);
        return EX_OK;
    }
    for (size_t i = 0; i < COMMANDS; i++) {
        if (strcmp(commands[i].name, first) == 0) {
            if (!commands[i].own_help && argc == 3 && strcmp(argv[2], "--help") == 0) {
                return print_help();
            }
            return commands[i].run(argc - 1, argv + 1);
        }
    }
    if (first[0] && first[0] != '-') {
        fprintf(stderr, "fm-system: unknown command %s; --help lists them\n", first);
        return EX_USAGE;
    }
    return sy_main_mcp(argc, argv);
}
