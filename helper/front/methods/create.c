/* The common part of all methods that make an answer: params become a job with a watchdog. */
#include "front/methods/create.h"
#include "front/engines/route.h"
#include "front/jobs.h"
#include "front/methods/params.h"
#include "front/store/queue.h"
#include "front/watchdog.h"

/* Takes `request` and `route` over, also on failure. */
static enum fm_code start_job(struct fm_front *front, const struct fm_rpc_id *id, const struct fm_surface *surface,
                              struct fm_request *request, struct fm_route *route, struct fm_error *error) {
    struct fm_job *job;
    fm_front_enter(front);
    enum fm_code code = fm_job_create_locked(front, id, surface, request, route, &job, error);
    if (code == FM_OK && fm_watchdog_start_locked(front, job) != 0) {
        fm_job_release_locked(front, job);
        code = fm_fail(error, FM_OVERLOADED, "can't start a thread for the request");
    }
    fm_front_leave(front);
    return code;
}

/* What runs in the background must be stored: otherwise nobody gets the answer. */
static enum fm_code check_background(struct fm_front *front, const struct fm_request *request, struct fm_error *error) {
    if (!request->background) {
        return FM_OK;
    }
    if (!request->store) {
        return fm_params_wrong(
            error, "background", "unsupported_value",
            "what runs in the background has to be stored, and the option storeBytes (--store-bytes) is 0");
    }
    fm_front_lock(front);
    enum fm_code code = fm_store_check_locked(front, error);
    fm_front_unlock(front);
    return code;
}

enum fm_code fm_method_create(struct fm_front *front, const struct fm_rpc_id *id, struct json_object *params,
                              const struct fm_surface *surface, struct fm_error *error) {
    struct fm_request request;
    struct fm_route route;
    if (surface->parse(params, &request, error) != FM_OK) {
        return error->code;
    }
    if (fm_params_judge_ignored(front, &request.ignored, error) != FM_OK) {
        fm_request_free(&request);
        return error->code;
    }
    request.store = request.store && front->options.store_bytes > 0;
    if (check_background(front, &request, error) != FM_OK) {
        fm_request_free(&request);
        return error->code;
    }
    if (fm_route_find(front, &request, &route, error) != FM_OK) {
        fm_request_free(&request);
        return error->code;
    }
    return start_job(front, id, surface, &request, &route, error);
}
