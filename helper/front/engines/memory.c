/* How much memory each model takes. */
#include "front/engines/memory.h"
#include "base/utf8.h"

#include <stdio.h>
#include <string.h>

#define MODEL_SHOWN 200 /* bytes of a model's id in an error */
#define MIB         (1 << 20)

static bool is_of(const struct fm_need *need, const struct fm_model *model) {
    return need->id[0] && strncmp(need->id, model->id, sizeof need->id - 1) == 0 && need->created == model->created;
}

void fm_needs_note(struct fm_needs *needs, const struct fm_model *model, int64_t bytes) {
    struct fm_need *place = NULL;
    for (size_t i = 0; i < FM_NEEDS_MAX && !place; i++) {
        place = is_of(&needs->needs[i], model) ? &needs->needs[i] : NULL;
    }
    place = place ? place : &needs->needs[needs->next++ % FM_NEEDS_MAX];
    snprintf(place->id, sizeof place->id, "%s", model->id);
    place->created = model->created;
    place->bytes = bytes;
}

int64_t fm_needs_of(const struct fm_needs *needs, const struct fm_model *model, bool *known) {
    const struct fm_need *found = NULL;
    for (size_t i = 0; i < FM_NEEDS_MAX && !found; i++) {
        found = is_of(&needs->needs[i], model) ? &needs->needs[i] : NULL;
    }
    if (known) {
        *known = found != NULL;
    }
    return found ? found->bytes : fm_model_estimate(model);
}

static long long whole_mib(int64_t bytes) {
    return (bytes + MIB - 1) / MIB;
}

enum fm_code fm_needs_check(const struct fm_needs *needs, const struct fm_model *model, int64_t budget,
                            struct fm_error *error) {
    bool known;
    int64_t enough = fm_needs_of(needs, model, &known);
    int64_t least = known ? enough : model->size;
    if (budget == 0 || least <= budget) {
        return FM_OK;
    }
    return fm_fail(error, FM_UNAVAILABLE,
                   "the model %.*s needs %s%lld MiB of memory, and the option memoryBudget (--memory-budget) "
                   "allows %lld MiB; %lldM would be enough for this model, or choose a smaller one",
                   fm_utf8_shown(model->id, MODEL_SHOWN), model->id, known ? "" : "at least ", whole_mib(least),
                   (long long)(budget / MIB), whole_mib(enough));
}
