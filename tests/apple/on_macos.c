/*
 * Makes fm-proxy behave as on macOS where its behaviour depends on the system's name. It is linked with
 * --wrap=fm_platform_name. The engines are those of this system; fm-engine-apple finds the stand-in by
 * FM_ENGINE_APPLE_LIBRARY.
 */
#include "base/platform.h"

const char *__wrap_fm_platform_name(void);

const char *__wrap_fm_platform_name(void) {
    return "macos";
}
