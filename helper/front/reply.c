/* Replies that all parts of the front write in the same way. */
#include "front/reply.h"
#include "protocol/frame.h"
#include "surface/surface.h"

void fm_reply_write_failure(struct fm_buf *buf, const struct fm_rpc_id *id, const struct fm_error *error) {
    fm_frame_begin(buf);
    struct fm_json_writer w = fm_rpc_result_begin(buf, id);
    fm_json_object_begin(&w);
    fm_json_key_bool(&w, "ok", false);
    fm_json_key(&w, "error");
    fm_error_write(error, &w);
    fm_json_object_end(&w);
    fm_rpc_end(buf);
}
