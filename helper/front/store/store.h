/*
 * Stored responses, in SQLite: in memory, or in one file. Their size in bytes is bounded; the least recently used
 * responses are removed to make room. Storing or reading a response counts as a use.
 *
 * When fm_store_put has returned FM_OK, the response survives the end of the process by any signal
 * (sqlite.org/wal.html: with `synchronous` NORMAL a commit may be lost in a power failure, but the file stays intact).
 * Several processes may have the same file open. fm_store_get returns exactly what was stored: each row has a checksum
 * of all its important columns.
 *
 * A store exists whether or not its file can be used: each call opens the file again if necessary. Not thread-safe:
 * only one thread uses it. All functions except fm_store_new, fm_store_trouble and fm_store_close may block on the
 * disk, and for FM_STORE_WAIT_MS on another process that has locked the file. If such a wait times out, later calls do
 * not wait until the lock is gone.
 *
 * UNAVAILABLE: the file can't be used, or is not as SQLite left it. INTERNAL: one response in it is damaged. Both
 * errors name the file and say what to do.
 */
#ifndef FM_FRONT_STORE_STORE_H
#define FM_FRONT_STORE_STORE_H

#include "surface/conversation.h"

#include <stdint.h>

#define FM_STORE_WAIT_MS       200 /* longest wait for another helper that shares the file; its locks take some ms */
#define FM_STORE_ROW_BYTES     512         /* bytes counted for each response in addition to its texts */
#define FM_STORE_TEXT_MAX      (64u << 20) /* most bytes of one text of a response */

struct fm_store;

/*
 * Makes a store, but opens nothing. `file` (borrowed) NULL: in memory. Returns NULL when out of memory. The caller
 * closes the store.
 */
struct fm_store *fm_store_new(const char *file, int64_t bytes_max);

/* NULL is fine. */
void fm_store_close(struct fm_store *store);

/*
 * Opens the store, if it is not open. A missing file is created with mode 0600; an existing file gets that mode.
 * UNAVAILABLE: the file can't be used, or is no store and stays unchanged.
 */
enum fm_code fm_store_open(struct fm_store *store, struct fm_error *error);

/*
 * Why nothing can be stored now, as far as is known; its code is FM_OK if nothing is wrong. Valid until the next call.
 */
const struct fm_error *fm_store_trouble(const struct fm_store *store);

/* Stores a copy. UNAVAILABLE: see above; also if the response is larger than the store. */
FM_MUST_USE enum fm_code fm_store_put(struct fm_store *store, const struct fm_stored_response *response,
                                      struct fm_error *error);

/* Fills `response`, which the caller frees. NOT_FOUND, UNAVAILABLE, INTERNAL. */
FM_MUST_USE enum fm_code fm_store_get(struct fm_store *store, const char *id, struct fm_stored_response *response,
                                      struct fm_error *error);

/* Deletes a response, which may be damaged, and overwrites its text. NOT_FOUND, UNAVAILABLE. */
FM_MUST_USE enum fm_code fm_store_delete(struct fm_store *store, const char *id, struct fm_error *error);

/* Writes the id of the last stored response that has the item. NOT_FOUND, UNAVAILABLE, INTERNAL. */
FM_MUST_USE enum fm_code fm_store_find_item(struct fm_store *store, const char *item_id, char id[FM_ID_SIZE],
                                            struct fm_error *error);

#endif
