/*
 * Stored responses, in SQLite: in memory, or in one file. What is stored is bounded in bytes; the responses that were
 * used least recently make room. A response is used when it is put or got.
 *
 * What a put has returned FM_OK for survives the end of the process by whatever signal (sqlite.org/wal.html: with
 * `synchronous` NORMAL a commit may be lost with the machine's power, the file stays whole). Several processes may have
 * the same file open. Not thread-safe: one thread has it. All functions but fm_store_close may block on the disk, and
 * for FM_STORE_BUSY_MS on another process.
 */
#ifndef FM_FRONT_STORE_H
#define FM_FRONT_STORE_H

#include "surface/conversation.h"

#include <stdint.h>

#define FM_STORE_BUSY_MS       1000
#define FM_STORE_BYTES_DEFAULT (64 << 20) /* of the texts and FM_STORE_ROW_BYTES each */
#define FM_STORE_ROW_BYTES     512        /* what a response counts besides its texts */

struct fm_store;

/*
 * Opens the store; `file` NULL: in memory. A file that is not there is made, with mode 0600, and one that is there gets
 * it. UNAVAILABLE, with the file's name: it can't be used, or it is something else. The caller closes it.
 */
FM_MUST_USE enum fm_code fm_store_open(const char *file, int64_t bytes_max, struct fm_store **store,
                                       struct fm_error *error);

/* NULL is fine. */
void fm_store_close(struct fm_store *store);

/* Stores a copy. UNAVAILABLE: it can't be written, or is larger than the store. */
FM_MUST_USE enum fm_code fm_store_put(struct fm_store *store, const struct fm_stored_response *response,
                                      struct fm_error *error);

/* Fills `response`, the caller's to free. NOT_FOUND; UNAVAILABLE: it can't be read. */
FM_MUST_USE enum fm_code fm_store_get(struct fm_store *store, const char *id, struct fm_stored_response *response,
                                      struct fm_error *error);

/* NOT_FOUND; UNAVAILABLE: it can't be written. What is deleted is overwritten. */
FM_MUST_USE enum fm_code fm_store_delete(struct fm_store *store, const char *id, struct fm_error *error);

/* Writes the id of the response that was stored last of those that have the item. NOT_FOUND; UNAVAILABLE. */
FM_MUST_USE enum fm_code fm_store_find_item(struct fm_store *store, const char *item_id, char id[FM_ID_SIZE],
                                            struct fm_error *error);

#endif
