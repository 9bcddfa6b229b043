/*
 * What is remembered of a transcript: what the user and the assistant said. Tool calls and their results, and messages
 * that were taken back, are left out.
 */
#ifndef GW_MEMORY_SOURCE_H
#define GW_MEMORY_SOURCE_H

#include "base/error.h"
#include "memory/chunks.h"

/*
 * Reads the file `path`. `hash` gets the hash of its whole lines. Unless that is equal to `known` ("": no hash is
 * known), `chunks` gets what is to be remembered. FM_NOT_FOUND: there is no such file. FM_UNAVAILABLE: it can't be
 * read; FM_INTERNAL: out of memory. The caller frees the chunks, also on failure. Any thread; blocks on the disk.
 */
FM_MUST_USE enum fm_code gw_source_read(const char *path, const char *known, char hash[GW_HASH_LEN + 1],
                                        struct gw_chunks *chunks, struct fm_error *error);

#endif
