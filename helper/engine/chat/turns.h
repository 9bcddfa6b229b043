/*
 * Turns. Hosts send messages in any order; many chat templates want the system first and the user and the assistant in
 * turns. Some refuse another order, and some leave out what does not fit, without a word. An *arrangement* is the
 * conversation as a template may take it, with all that is in it:
 *
 *     as it is > the system's messages joined at the front > also a text apart from the calls of its message, before
 *     them > instead, neighbours of one role joined > also a user's turn, without a text, before an assistant's that
 *     comes first > the same after one that comes last > also the system's text before the user's first
 *
 * The first that the template renders whole is used. Pure, and without llama.cpp; engine thread only.
 */
#ifndef FM_ENGINE_CHAT_TURNS_H
#define FM_ENGINE_CHAT_TURNS_H

#include "engine/chat/tools.h"

#include <stdint.h>

#define FM_TURNS_KNOWN 32u /* conversations whose arrangement is remembered */

/* What is known of one template: the arrangements of conversations that differ in their texts alone. All zero: nothing. */
struct fm_turns_memory {
    struct fm_turns_known {
        uint64_t shape;
        size_t step;
        bool known;
    } known[FM_TURNS_KNOWN];
    size_t next; /* to be replaced */
};

struct fm_turns_block;

struct fm_turns {
    struct fm_turns_memory *memory; /* borrowed */
    uint64_t shape;
    struct fm_chat chat;              /* of the messages below; the rest is the caller's, borrowed */
    struct fm_chat_message *messages; /* owned, with room for twice as many and two more */
    struct fm_turns_block *blocks;    /* owned: what was joined */
    size_t step;                      /* the next one to try */
    bool changed;                     /* by the last one */
};

/* Before the first arrangement of `chat`, which must outlive it, as `memory` must, the template's. FM_INTERNAL: out of
 * memory; nothing is left to free. */
FM_MUST_USE enum fm_code fm_turns_init(struct fm_turns *turns, const struct fm_chat *chat,
                                       struct fm_turns_memory *memory, struct fm_error *error);
void fm_turns_free(struct fm_turns *turns); /* harmless on one that is all zero */

/*
 * Makes `turns->chat` the next arrangement that the template takes whole: rendered with a mark in place of each text,
 * each call's arguments and each tool's name, it has every mark, those of messages in their order. Only the system's
 * first message may stand elsewhere: some templates put it beside the user's last. The first one of a conversation
 * whose shape is remembered is not looked at again. FM_INVALID_REQUEST: no arrangement is left. `error` then says what
 * is wrong with the first one; it is unchanged if the first one was whole.
 */
FM_MUST_USE enum fm_code fm_turns_next(struct fm_turns *turns, const struct fm_tool_template *from,
                                       struct fm_error *error);

#endif
