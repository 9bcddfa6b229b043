/*
 * The list of models: GGUF files in the models folder, and the model that --model names. A projector file is not a
 * model; a model beside it may use it to see images. Nothing is cached, so a file that appears or disappears is noticed
 * at once. Nothing here reads more of a file than the beginning of its header.
 */
#ifndef FM_FRONT_ENGINES_MODELS_H
#define FM_FRONT_ENGINES_MODELS_H

#include "base/error.h"
#include "base/gguf.h"
#include "front/engines/descriptor.h"
#include "front/options.h"

#include <stddef.h>
#include <stdint.h>

struct fm_model {
    const struct fm_engine_files *engine; /* the engine that has the model; borrowed, valid as long as the front */
    bool listed;                          /* that engine has several models in one process, and lists them itself */
    char *id;            /* the file's name without ".gguf", or the listed id, or the engine's name; owned */
    char *asked;         /* `listed`: the model's name for the engine; NULL: its default one; owned */
    char *path;          /* path of the file; owned; NULL: the engine has no model files */
    char *mmproj;        /* the projector file for images; owned; NULL: the model sees no images */
    bool found;          /* `mmproj` (then absolute) was found beside `path`; --mmproj did not name it */
    char *draft;         /* the file of --draft-model; owned; NULL: none, as for all but the default model */
    int64_t created;     /* the file's modification time, seconds since 1970 */
    int64_t size;        /* bytes of all files of the model; 0 if the engine has no model files */
    int64_t mmproj_size; /* bytes of `mmproj`, if the model was looked up */
    int64_t draft_size;  /* bytes of `draft`, if the model was looked up */
    bool is_default;
    struct fm_gguf_kind kind; /* all zero if the engine has no model files */
};

struct fm_model_list {
    struct fm_model *models; /* the default model first, then sorted by id; owned */
    size_t count;
    struct fm_model *projectors; /* projector files in the folders of the models, sorted by id; owned */
    size_t projector_count;
    bool named_projector; /* --model names a projector */
    int folder_error;     /* an errno value that says why files of the models folder may be missing here; 0: none are */
};

/*
 * Lists all models of the engine. FM_INTERNAL when out of memory. A missing folder counts as empty. An engine whose
 * description can't be used has no model.
 */
FM_MUST_USE enum fm_code fm_models_list(const struct fm_options *options, const struct fm_engine_files *engine,
                                        struct fm_model_list *list, struct fm_error *error);
void fm_model_list_free(struct fm_model_list *list);

/*
 * Looks up the model that a request names: an id, an alias (--aliases), or for the default model NULL, "", "default" or
 * "local". Fills `model`, which the caller frees. FM_NOT_FOUND for any other name, with a detail that lists the
 * existing models. FM_UNAVAILABLE when there is no model, or when the folder or the engine's description can't be used.
 */
FM_MUST_USE enum fm_code fm_models_look_up(const struct fm_options *options, const struct fm_engine_files *engine,
                                           const char *name, struct fm_model *model, struct fm_error *error);

/*
 * Works like fm_models_look_up, and also checks the headers of the model's files: FM_UNAVAILABLE also when one of them
 * can't be used; FM_OVERLOADED when no descriptor is left.
 */
FM_MUST_USE enum fm_code fm_models_find(const struct fm_options *options, const struct fm_engine_files *engine,
                                        const char *name, struct fm_model *model, struct fm_error *error);
void fm_model_free(struct fm_model *model);

/*
 * Fills the model `asked` (NULL: the default one) of an engine that lists its models, under the id `id` (NULL: the
 * engine's name). Both texts are copied. FM_INTERNAL: out of memory; in that case there is nothing to free.
 */
FM_MUST_USE enum fm_code fm_model_of_list(const struct fm_engine_files *engine, const char *id, const char *asked,
                                          struct fm_model *model, struct fm_error *error);

/* Whether the model sees images: by its projector, or, if its engine lists it, without one. */
bool fm_model_sees(const struct fm_model *model);

/* Whether `name` in a request means the default model, by a name other than its id. */
bool fm_model_names_default(const char *name);

/* A text for the host: what to do about a name that no model has. */
#define FM_MODEL_ALIAS_HINT "to use another name for one, set the option aliases (--aliases)"

/* The models to which a request may go, each of a different engine, in the order in which they are tried. */
#define FM_ROUTE_MAX 8
struct fm_route {
    struct fm_model models[FM_ROUTE_MAX]; /* owned */
    size_t count;
};

/* Removes and returns the first model of the route, which has at least one. */
struct fm_model fm_route_next(struct fm_route *route);
void fm_route_free(struct fm_route *route);

/*
 * Whether one process can serve both models: they are the same model, with or without a projector, or they are of the
 * same engine that lists its models. A model without an id is the same as no other.
 */
bool fm_model_is_same(const struct fm_model *model, const struct fm_model *other);

/* Estimates the model's memory in bytes, with its KV memory, from what is known before it is loaded. Pure. */
int64_t fm_model_estimate(const struct fm_model *model);

/*
 * Removes a projector that was found, for a request without images: a projector takes memory and may be broken. A
 * projector that --mmproj names stays.
 */
void fm_model_do_without_images(struct fm_model *model);

/*
 * The name under which an engine's deaths are counted: the model's id, or the name of the projector that was found. So
 * a broken projector does no harm to requests without images. Borrowed.
 */
const char *fm_model_blamed(const struct fm_model *model);

/* FM_INVALID_REQUEST: the request has images, but the model sees none. error->param is set already, and stays. */
enum fm_code fm_model_refuse_images(const struct fm_model *model, struct fm_error *error);

/*
 * Writes the path of the engine program to `path`. FM_UNAVAILABLE, with the file's name, when the program can't be run.
 */
FM_MUST_USE enum fm_code fm_engine_program(const struct fm_engine_files *engine, char path[PATH_MAX],
                                           struct fm_error *error);

#endif
