/* The exit statuses of BSD's <sysexits.h> that we use; Windows lacks that header. */
#ifndef FM_BASE_WINDOWS_SYSEXITS_H
#define FM_BASE_WINDOWS_SYSEXITS_H

#define EX_OK          0
#define EX_USAGE       64
#define EX_UNAVAILABLE 69
#define EX_SOFTWARE    70
#define EX_OSERR       71
#define EX_IOERR       74
#define EX_PROTOCOL    76

#endif
