/* What an engine computes with, besides the CPU: the object `gpu` of engine.load and capabilities.get. */
#ifndef FM_PROTOCOL_GPU_H
#define FM_PROTOCOL_GPU_H

#include "base/compiler.h"
#include "protocol/json_writer.h"

#include <stdbool.h>
#include <stdint.h>

struct json_object;

struct fm_gpu {
    char device[128];     /* the name of the device; "": none is used */
    int64_t layers;       /* how many of the model's layers it computes */
    int64_t total_layers; /* how many layers the model has */
    char detail[256];     /* why no device is used; "": one is */
};

/* Writes `gpu` as one value. Pure. */
void fm_gpu_write(const struct fm_gpu *gpu, struct fm_json_writer *w);

/*
 * Reads what an engine reports of its GPU from `object` (borrowed, may be NULL) into `*gpu`. False, with `*gpu`
 * undefined, unless each member is there and has its type (ENGINE.md, GPU). Texts that are too long are cut. Pure.
 */
FM_MUST_USE bool fm_gpu_read(struct json_object *object, struct fm_gpu *gpu);

#endif
