/* Ids that the surface and session mode make, such as "resp_0123...": the function that draws them, and their size. */
#ifndef FM_SURFACE_IDS_H
#define FM_SURFACE_IDS_H

/* Bytes of an id that is drawn here: prefix and 32 hex digits, NUL included. */
#define FM_ID_SIZE 48

/* Writes a new id: `prefix` (at most 15 bytes, such as "msg_") and 32 random hex digits. Any thread; does not block. */
void fm_id_draw(char id[FM_ID_SIZE], const char *prefix);

#endif
