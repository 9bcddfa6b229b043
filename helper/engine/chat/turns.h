/*
 * Turns. Hosts send messages in any order; many chat templates want the system first and the user and the assistant in
 * turns. Some refuse another order, and some leave out what does not fit, without a word. An *arrangement* is the
 * conversation as a template may take it, with all that is in it:
 *
 *     as it is > the system's messages joined at the front > also neighbours of one role joined > also a user's turn,
 *     without a text, before an assistant's that comes first > the same after one that comes last > also the system's
 *     text before the user's first
 *
 * The first that the template renders whole is used. Pure, and without llama.cpp; engine thread only.
 */
#ifndef FM_ENGINE_CHAT_TURNS_H
#define FM_ENGINE_CHAT_TURNS_H

#include "engine/chat/tools.h"

struct fm_turns_block;

struct fm_turns {
    struct fm_chat chat;              /* of the messages below; the rest is the caller's, borrowed */
    struct fm_chat_message *messages; /* owned, with room for two more */
    struct fm_turns_block *blocks;    /* owned: what was joined */
    size_t step;                      /* the next one to try */
    bool changed;                     /* by the last one */
};

/* Before the first arrangement of `chat`, which must outlive it. FM_INTERNAL: out of memory; nothing is left to free. */
FM_MUST_USE enum fm_code fm_turns_init(struct fm_turns *turns, const struct fm_chat *chat, struct fm_error *error);
void fm_turns_free(struct fm_turns *turns); /* harmless on one that is all zero */

/*
 * Makes `turns->chat` the next arrangement that the template takes whole: rendered with a mark in place of each text,
 * each call's arguments and each tool's name, it has every mark, those of messages in their order. Only the system's
 * first message may stand elsewhere: some templates put it beside the user's last. FM_INVALID_REQUEST: there
 * is none left; `error` tells what is wrong with the first one, or is left as it was where that had been whole.
 */
FM_MUST_USE enum fm_code fm_turns_next(struct fm_turns *turns, const struct fm_tool_template *from,
                                       struct fm_error *error);

#endif
