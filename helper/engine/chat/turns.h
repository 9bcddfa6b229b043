/*
 * Turns. Hosts send messages in any order. Many chat templates want the system message first, and then the user and the
 * assistant alternately. Some templates refuse another order, and some silently leave out messages that do not fit. An
 * *arrangement* is the conversation in a form that a template may take, with all its content:
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

/*
 * The arrangements that one template takes, by the shape of the conversation (everything except its texts). All zero:
 * none is known.
 */
struct fm_turns_memory {
    struct fm_turns_known {
        uint64_t shape;
        size_t step;
        bool known;
    } known[FM_TURNS_KNOWN];
    size_t next; /* the entry that is replaced next */
};

struct fm_turns_block;

struct fm_turns {
    struct fm_turns_memory *memory; /* borrowed */
    uint64_t shape;
    struct fm_chat chat;              /* has the messages below; all other members are borrowed from the caller */
    struct fm_chat_message *messages; /* owned, with room for twice as many and two more */
    struct fm_turns_block *blocks;    /* owned: messages that were joined */
    size_t step;                      /* the next one to try */
    bool changed;                     /* the last step changed something */
};

/* Call before the first arrangement of `chat`. `chat` and the template's `memory` must outlive `turns`.
 * FM_INTERNAL: out of memory; nothing is left to free. */
FM_MUST_USE enum fm_code fm_turns_init(struct fm_turns *turns, const struct fm_chat *chat,
                                       struct fm_turns_memory *memory, struct fm_error *error);
void fm_turns_free(struct fm_turns *turns); /* harmless on one that is all zero */

/*
 * Makes `turns->chat` the next arrangement that the template renders completely. To check that, a mark replaces each
 * text, each call's arguments and each tool's name: the rendered text must have every mark, those of messages in order.
 * Only the first system message may be elsewhere: some templates put it beside the user's last message. For a
 * conversation whose shape is remembered, the first arrangement is not checked again. FM_INVALID_REQUEST: no
 * arrangement is left. `error` then says what is wrong with the first one; it is unchanged if the first one was whole.
 */
FM_MUST_USE enum fm_code fm_turns_next(struct fm_turns *turns, const struct fm_tool_template *from,
                                       struct fm_error *error);

#endif
