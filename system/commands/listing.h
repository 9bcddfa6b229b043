/* Lists of what there is, as clients get them: members of a JSON object. */
#ifndef SY_LISTING_H
#define SY_LISTING_H

#include "desktop/snapshot.h"

struct fm_json_writer;

/* "apps": those that have windows. */
void sy_write_running(const struct sy_snapshot *snapshot, struct fm_json_writer *w);

/* "snapshot" and "tabs", numbered. `summaries` has one for each tab, or NULL; it may be NULL itself: there are none. */
void sy_write_tabs(const struct sy_snapshot *snapshot, char *const *summaries, struct fm_json_writer *w);

/* `key`: the tabs as the browser names and orders them. */
void sy_write_raw_tabs(const char *key, const struct sy_tabs *tabs, struct fm_json_writer *w);

#endif
