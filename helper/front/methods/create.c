/* What all methods that make an answer have in common: params become a job with a watchdog. */
#include "front/methods/create.h"
#include "front/jobs.h"
#include "front/methods/params.h"
#include "front/watchdog.h"

/* Takes `request` and `model` over, also on failure. */
static enum fm_code start_job(struct fm_front *front, const struct fm_rpc_id *id, const struct fm_surface *surface,
                              struct fm_request *request, struct fm_model *model, struct fm_error *error) {
    struct fm_job *job;
    fm_front_enter(front);
    enum fm_code code = fm_job_create_locked(front, id, surface, request, model, &job, error);
    if (code == FM_OK && fm_watchdog_start_locked(front, job) != 0) {
        fm_job_release_locked(front, job);
        code = fm_fail(error, FM_OVERLOADED, "can't start a thread for the request");
    }
    fm_front_leave(front);
    return code;
}

enum fm_code fm_method_create(struct fm_front *front, const struct fm_rpc_id *id, struct json_object *params,
                              const struct fm_surface *surface, struct fm_error *error) {
    struct fm_request request;
    struct fm_model model;
    if (surface->parse(params, &request, error) != FM_OK) {
        return error->code;
    }
    if (fm_params_judge_ignored(front, &request.ignored, error) != FM_OK) {
        fm_request_free(&request);
        return error->code;
    }
    request.store = request.store && front->options.store_bytes > 0;
    if (request.background && !request.store) {
        fm_request_free(&request);
        return fm_params_wrong(
            error, "background", "unsupported_value",
            "what runs in the background has to be stored, and fm-proxy was started without a store");
    }
    if (fm_models_find(&front->options, &front->program.files, request.model, &model, error) != FM_OK) {
        fm_request_free(&request);
        return error->code;
    }
    if (!model.mmproj && fm_request_image_param(&request, 0, ".type", error)) {
        enum fm_code refused = fm_model_refuse_images(&model, error);
        fm_request_free(&request);
        fm_model_free(&model);
        return refused;
    }
    if (!request.unresolved && request.image_params.len == 0) {
        fm_model_do_without_images(&model);
    }
    return start_job(front, id, surface, &request, &model, error);
}
