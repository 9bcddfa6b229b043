/* `fm-system chrome`: a browser whose tabs fm-system can see. */
#ifndef SY_CLI_CHROME_H
#define SY_CLI_CHROME_H

/* Runs it until the browser ends; returns the exit status. argv[0] is "chrome". */
int sy_main_chrome(int argc, char **argv);

#endif
