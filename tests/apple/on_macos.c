/*
 * fm-proxy as it is on macOS, as far as the system's name decides: linked with --wrap=fm_platform_name. Its engines are
 * those of this system; fm-engine-apple finds the stand-in by FM_ENGINE_APPLE_LIBRARY.
 */
#include "base/platform.h"

const char *__wrap_fm_platform_name(void);

const char *__wrap_fm_platform_name(void) {
    return "macos";
}
