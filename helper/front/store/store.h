/*
 * Stored responses, in SQLite: in memory, or in one file. What is stored is bounded in bytes; the responses that were
 * used least recently make room. A response is used when it is put or got.
 *
 * What a put has returned FM_OK for survives the end of the process by whatever signal (sqlite.org/wal.html: with
 * `synchronous` NORMAL a commit may be lost with the machine's power, the file stays whole). Several processes may have
 * the same file open. What comes back is what was put: each row has a checksum of all that counts in it.
 *
 * A store is there whether or not its file can be used: each call opens the file again where that is to be done. Not
 * thread-safe: one thread has it. All functions but fm_store_new, fm_store_trouble and fm_store_close may block on the
 * disk, and for FM_STORE_WAIT_MS on another process that has locked the file; once that was in vain, they don't wait
 * any more until the lock is gone.
 *
 * UNAVAILABLE: the file can't be used, or is not as SQLite left it; INTERNAL: one response in it is damaged. Both name
 * the file and say what to do.
 */
#ifndef FM_FRONT_STORE_STORE_H
#define FM_FRONT_STORE_STORE_H

#include "surface/conversation.h"

#include <stdint.h>

#define FM_STORE_WAIT_MS       200 /* a helper that shares the file has it for some ms; nobody should wait long */
#define FM_STORE_BYTES_DEFAULT (64 << 20)  /* of the texts and FM_STORE_ROW_BYTES each */
#define FM_STORE_ROW_BYTES     512         /* what a response counts besides its texts */
#define FM_STORE_TEXT_MAX      (64u << 20) /* bytes of one of a response's texts */

struct fm_store;

/* Opens nothing. `file` (borrowed) NULL: in memory. NULL: out of memory. The caller closes it. */
struct fm_store *fm_store_new(const char *file, int64_t bytes_max);

/* NULL is fine. */
void fm_store_close(struct fm_store *store);

/*
 * Opens the store, if it is not open. A file that is not there is made, with mode 0600, and one that is there gets it.
 * UNAVAILABLE: it can't be used, or it is something else, and unchanged then.
 */
enum fm_code fm_store_open(struct fm_store *store, struct fm_error *error);

/* Why nothing can be stored at the moment, as far as is known; FM_OK as its code: it can. Valid until the next call. */
const struct fm_error *fm_store_trouble(const struct fm_store *store);

/* Stores a copy. UNAVAILABLE, also where it is larger than the store. */
FM_MUST_USE enum fm_code fm_store_put(struct fm_store *store, const struct fm_stored_response *response,
                                      struct fm_error *error);

/* Fills `response`, the caller's to free. NOT_FOUND, UNAVAILABLE, INTERNAL. */
FM_MUST_USE enum fm_code fm_store_get(struct fm_store *store, const char *id, struct fm_stored_response *response,
                                      struct fm_error *error);

/* What is deleted is overwritten. It need not be whole. NOT_FOUND, UNAVAILABLE. */
FM_MUST_USE enum fm_code fm_store_delete(struct fm_store *store, const char *id, struct fm_error *error);

/* Writes the id of the response that was stored last of those that have the item. NOT_FOUND, UNAVAILABLE, INTERNAL. */
FM_MUST_USE enum fm_code fm_store_find_item(struct fm_store *store, const char *item_id, char id[FM_ID_SIZE],
                                            struct fm_error *error);

#endif
