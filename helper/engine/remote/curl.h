/*
 * libcurl, loaded when the engine starts. A machine without libcurl lacks only this engine. The parts of its interface
 * that are used are declared here, so that the build does not need its headers. The numbers never change
 * (tests/unit/test_remote_curl.c compares them with the headers, if these are installed).
 */
#ifndef FM_ENGINE_REMOTE_CURL_H
#define FM_ENGINE_REMOTE_CURL_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

/* curl_multi_poll came with 7.66, curl_multi_wakeup with 7.68. */
#define FM_CURL_OLDEST      0x074400u
#define FM_CURL_OLDEST_NAME "7.68.0"

typedef void fm_curl_easy;
typedef void fm_curl_multi;
struct curl_slist;

enum fm_curl_option {
    FM_CURLOPT_SSLVERSION = 32,
    FM_CURLOPT_POST = 47,
    FM_CURLOPT_FOLLOWLOCATION = 52,
    FM_CURLOPT_HTTP_VERSION = 84,
    FM_CURLOPT_NOSIGNAL = 99,
    FM_CURLOPT_CONNECTTIMEOUT_MS = 156,
    FM_CURLOPT_PROTOCOLS = 181,
    FM_CURLOPT_TCP_KEEPALIVE = 213,
    FM_CURLOPT_SUPPRESS_CONNECT_HEADERS = 265,
    FM_CURLOPT_WRITEDATA = 10001,
    FM_CURLOPT_URL = 10002,
    FM_CURLOPT_PROXY = 10004,
    FM_CURLOPT_ERRORBUFFER = 10010,
    FM_CURLOPT_POSTFIELDS = 10015,
    FM_CURLOPT_HTTPHEADER = 10023,
    FM_CURLOPT_HEADERDATA = 10029,
    FM_CURLOPT_CAINFO = 10065,
    FM_CURLOPT_PRIVATE = 10103,
    FM_CURLOPT_NOPROXY = 10177,
    FM_CURLOPT_WRITEFUNCTION = 20011,
    FM_CURLOPT_HEADERFUNCTION = 20079,
    FM_CURLOPT_POSTFIELDSIZE_LARGE = 30120,
};

enum fm_curl_number {
    FM_CURL_HTTP_VERSION_1_1 = 2,
    FM_CURL_SSLVERSION_TLSV1_2 = 6,
    FM_CURLPROTO_HTTP_AND_HTTPS = 3,
    FM_CURL_GLOBAL_ALL = 3,
    FM_CURLMOPT_MAXCONNECTS = 6,
    FM_CURLMSG_DONE = 1,
    FM_CURLE_OK = 0,
    FM_CURLE_WRITE_ERROR = 23,
    FM_CURLE_OPERATION_TIMEDOUT = 28,
    FM_CURLE_GOT_NOTHING = 52,
    FM_CURL_ERROR_SIZE = 256,
};

enum fm_curl_info {
    FM_CURLINFO_PRIVATE = 0x100015,
    FM_CURLINFO_RESPONSE_CODE = 0x200002,
    FM_CURLINFO_HTTP_CONNECTCODE = 0x200016,
    FM_CURLINFO_PRETRANSFER_TIME = 0x300006,
};

struct fm_curl_message {
    int kind;
    fm_curl_easy *easy;
    union {
        void *whatever;
        int result;
    } data;
};

/* The beginning of curl_version_info_data. */
struct fm_curl_version {
    int age;
    const char *version;
    unsigned number;
};

/* libcurl's functions, under their own names and rules. */
struct fm_curl {
    void *library;
    int (*global_init_mem)(long flags, void *(*)(size_t), void (*)(void *), void *(*)(void *, size_t),
                           char *(*)(const char *), void *(*)(size_t, size_t));
    const struct fm_curl_version *(*version_info)(int);
    fm_curl_easy *(*easy_init)(void);
    void (*easy_cleanup)(fm_curl_easy *);
    int (*easy_setopt)(fm_curl_easy *, int option, ...);
    int (*easy_getinfo)(fm_curl_easy *, int info, ...);
    const char *(*easy_strerror)(int);
    struct curl_slist *(*slist_append)(struct curl_slist *, const char *);
    void (*slist_free_all)(struct curl_slist *);
    fm_curl_multi *(*multi_init)(void);
    int (*multi_cleanup)(fm_curl_multi *);
    int (*multi_setopt)(fm_curl_multi *, int option, ...);
    int (*multi_add_handle)(fm_curl_multi *, fm_curl_easy *);
    int (*multi_remove_handle)(fm_curl_multi *, fm_curl_easy *);
    int (*multi_perform)(fm_curl_multi *, int *running);
    struct fm_curl_message *(*multi_info_read)(fm_curl_multi *, int *left);
    int (*multi_poll)(fm_curl_multi *, void *, unsigned, int ms, int *ready);
    int (*multi_wakeup)(fm_curl_multi *);
};

/*
 * Loads libcurl and initialises it with an allocator that wipes memory when it is freed, because libcurl has copies of
 * keys. Call it once in a process, before the first thread. It blocks on the disk. FM_UNAVAILABLE: libcurl is missing
 * or too old.
 */
FM_MUST_USE enum fm_code fm_curl_load(struct fm_curl *curl, struct fm_error *error);

#endif
