/*
 * Attachments: bytes that a transcript's records name, such as screenshots. Each blob is a file in blobs/,
 * SESSIONKEY-RANDOM. A blob is completely on the disk before the caller gets its id, so a record can name it.
 *
 * Members of an element of `attachments` in a record: blob (the id), mimeType, bytes, and name if there is one.
 *
 * Loop thread; only gw_blobs_clean blocks. Reading and writing is done on the journal's thread.
 */
#ifndef GW_SESSIONS_BLOBS_H
#define GW_SESSIONS_BLOBS_H

#include "sessions/journal.h"

#define GW_SESSION_KEY_LEN 32u
#define GW_BLOB_ID_LEN     (GW_SESSION_KEY_LEN + 1 + 16)
#define GW_BLOB_MAX        (5u << 20) /* bytes: in base64 it fits into a frame of 8 MiB, by which clients get it */

/* `error` NULL: `id` is on the disk. Called once for each blob that was accepted. */
typedef void gw_blob_put_done(void *context, const struct fm_error *error, const char *id);

/*
 * `error` NULL: the blob, valid during the call. FM_NOT_FOUND: there is no blob with that id. FM_UNAVAILABLE: it can't
 * be read, or has a length that no blob can have.
 */
typedef void gw_blob_get_done(void *context, const struct fm_error *error, const void *bytes, size_t len);

/*
 * Whether the text has the form of a session's key, 32 digits of lower-case hexadecimal. Only such a text may be part
 * of a file's name.
 */
bool gw_session_key_valid(const char *key);

/*
 * Keeps a copy of `bytes` (1 to GW_BLOB_MAX) for the session `key` in the folder `folder`. FM_INVALID_REQUEST: the
 * length is wrong; FM_INTERNAL: out of memory. After a failure nothing calls back.
 */
FM_MUST_USE enum fm_code gw_blob_put(struct gw_journal *journal, int folder, const char *key, const void *bytes,
                                     size_t len, gw_blob_put_done *done, void *context, struct fm_error *error);

/*
 * Reads a blob. FM_NOT_FOUND: `id` can't be a blob's id. After this failure, and after FM_INTERNAL, nothing calls back.
 */
FM_MUST_USE enum fm_code gw_blob_get(struct gw_journal *journal, int folder, const char *id, gw_blob_get_done *done,
                                     void *context, struct fm_error *error);

/*
 * Removes files that were left half-written, and the blobs of the sessions for which `keep` is false. Blocks. Call it
 * at the start, or on the journal's thread.
 */
void gw_blobs_clean(int folder, bool (*keep)(void *context, const char *key), void *context);

#endif
