/* Frames to the front: one buffer and one lock for all threads. */
#include "engine/kit/kit_internal.h"
#include "base/platform.h"

/*
 * This much stays allocated. It is enough for every message except a long delta, so job.finished needs no new memory.
 */
#define OUTPUT_ROOM 8192u

/* A larger allocation is freed after its frame. */
#define OUTPUT_KEEP (256u * 1024u)

#define OUTPUT_MAX (FM_FRAME_BODY_MAX + 64u) /* the room for the header is added to this */

/* At most this many bytes are gathered: a delta has a few hundred. */
#define GATHERED_MAX 16384u

bool fm_output_init(struct fm_kit *kit) {
    fm_buf_init(&kit->frame, OUTPUT_MAX);
    fm_buf_init(&kit->gathered, GATHERED_MAX);
    return fm_buf_reserve(&kit->frame, OUTPUT_ROOM) && fm_buf_reserve(&kit->gathered, GATHERED_MAX);
}

/* Under output_lock, like all functions that write. */
static void write_bytes(struct fm_kit *kit, const char *bytes, size_t len) {
    if (len > 0 && !fm_write_all(kit->wire, bytes, len)) {
        fm_kit_end(kit, 0);
    }
}

static void write_gathered(struct fm_kit *kit) {
    write_bytes(kit, kit->gathered.data, kit->gathered.len);
    fm_buf_reset(&kit->gathered);
}

/* Sends bytes to the front, or adds them to the bytes that the next flush sends. */
static void put_bytes(struct fm_kit *kit, const char *bytes, size_t len) {
    if (kit->gathered.len + len > GATHERED_MAX) {
        write_gathered(kit);
    }
    if (kit->gathers && len <= GATHERED_MAX) {
        fm_buf_append(&kit->gathered, bytes, len);
    } else {
        write_bytes(kit, bytes, len);
    }
}

void fm_kit_gather(struct fm_kit *kit) {
    pthread_mutex_lock(&kit->output_lock);
    kit->gathers = true;
    pthread_mutex_unlock(&kit->output_lock);
}

void fm_kit_flush(struct fm_kit *kit) {
    pthread_mutex_lock(&kit->output_lock);
    kit->gathers = false;
    write_gathered(kit);
    pthread_mutex_unlock(&kit->output_lock);
}

struct fm_json_writer fm_output_notification(struct fm_kit *kit, const char *method) {
    pthread_mutex_lock(&kit->output_lock);
    fm_frame_begin(&kit->frame);
    return fm_rpc_notification_begin(&kit->frame, method);
}

struct fm_json_writer fm_output_result(struct fm_kit *kit, const struct fm_rpc_id *id) {
    pthread_mutex_lock(&kit->output_lock);
    fm_frame_begin(&kit->frame);
    return fm_rpc_result_begin(&kit->frame, id);
}

static bool write_frame_and_unlock(struct fm_kit *kit) {
    const char *frame;
    size_t len;
    bool built = fm_frame_end(&kit->frame, &frame, &len);
    if (built) {
        put_bytes(kit, frame, len);
    }
    if (kit->frame.cap > OUTPUT_KEEP) {
        fm_buf_free(&kit->frame);
        bool room = fm_buf_reserve(&kit->frame, OUTPUT_ROOM);
        (void)room; /* the next frame tries again */
    }
    pthread_mutex_unlock(&kit->output_lock);
    return built;
}

bool fm_output_send(struct fm_kit *kit) {
    fm_rpc_end(&kit->frame);
    return write_frame_and_unlock(kit);
}

void fm_output_send_or_end(struct fm_kit *kit) {
    if (!fm_output_send(kit)) {
        fm_kit_end(kit, FM_EXIT_NO_MEMORY);
    }
}

void fm_output_fault(struct fm_kit *kit, const struct fm_rpc_id *id, enum fm_rpc_error code, const char *detail) {
    pthread_mutex_lock(&kit->output_lock);
    fm_frame_begin(&kit->frame);
    fm_rpc_write_error(&kit->frame, id, code, detail);
    if (!write_frame_and_unlock(kit)) {
        fm_kit_end(kit, FM_EXIT_NO_MEMORY);
    }
}

void fm_output_error_value(struct fm_json_writer *w, const struct fm_error *error) {
    fm_json_object_begin(w);
    fm_json_key_str(w, "code", fm_code_name(error->code));
    fm_json_key_str(w, "detail", error->detail);
    if (error->param[0]) {
        fm_json_key_str(w, "param", error->param);
    }
    if (error->reason_code[0]) {
        fm_json_key_str(w, "reason_code", error->reason_code);
    }
    if (error->retry_ms > 0) {
        fm_json_key_int(w, "retry_after_ms", error->retry_ms);
    }
    if (error->elsewhere) {
        fm_json_key_bool(w, "elsewhere", true);
    }
    fm_json_object_end(w);
}

void fm_kit_write_raw(struct fm_kit *kit, const char *bytes, size_t len) {
    pthread_mutex_lock(&kit->output_lock);
    put_bytes(kit, bytes, len);
    pthread_mutex_unlock(&kit->output_lock);
}
