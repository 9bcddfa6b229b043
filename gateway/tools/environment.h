/* Which variables of the gateway's environment a tool's command gets, and what a sandbox hides from the command. */
#ifndef GW_TOOLS_ENVIRONMENT_H
#define GW_TOOLS_ENVIRONMENT_H

#include <stddef.h>

/*
 * Returns the variables of `environment` that the allow-list names, and TERM=dumb; NULL-terminated. The allow-list has
 * what programs need to find files and to speak the user's language: no keys, tokens or sockets. The caller frees it
 * with gw_strings_free; NULL: no memory. Pure.
 */
char **gw_environment_allowed(char *const *environment);

/* Returns the value of a variable in a list of NAME=VALUE; NULL: it is not there. Pure. */
const char *gw_environment_get(char *const *environment, const char *name);

/*
 * Returns the folders and files that hold keys: those below `home` (NULL or "": not known), those below the home folder
 * of the user's account, and `state_folder` (NULL: none). The paths are absolute and NULL-terminated. They need not
 * exist; links are resolved when a command starts. The caller frees them with gw_strings_free. Asks the system for the
 * account.
 */
char **gw_hidden_paths(const char *home, const char *state_folder);

/* Frees such a list. NULL does nothing. */
void gw_strings_free(char **strings);

#endif
