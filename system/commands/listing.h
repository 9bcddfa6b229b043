/* Lists of applications and tabs, as clients get them: members of a JSON object. */
#ifndef SY_LISTING_H
#define SY_LISTING_H

#include "desktop/snapshot.h"

struct fm_json_writer;

/* Writes "apps": the applications that have windows. */
void sy_write_running(const struct sy_snapshot *snapshot, struct fm_json_writer *w);

/* Writes "snapshot" and "tabs", numbered. `summaries`: a text or NULL for each tab; NULL: there are no summaries. */
void sy_write_tabs(const struct sy_snapshot *snapshot, char *const *summaries, struct fm_json_writer *w);

/* Writes `key`: the tabs as the browser names and orders them. */
void sy_write_raw_tabs(const char *key, const struct sy_tabs *tabs, struct fm_json_writer *w);

#endif
