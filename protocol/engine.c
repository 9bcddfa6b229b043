/* The names of engine.h that are read from a message. */
#include "protocol/engine.h"

#include <stddef.h>

#define FEATURE_NAME(id, name) name,

const char *const fm_feature_names[FM_FEATURE_COUNT] = {FM_FEATURES(FEATURE_NAME)};

const char *const fm_effort_words[] = {"none", "minimal", "low", "medium", "high", "xhigh", "max", NULL};
