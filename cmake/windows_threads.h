/* Declarations of <processthreadsapi.h> that ggml uses, and that mingw-w64 lacks before version 11. */
#include <_mingw.h>

#if __MINGW64_VERSION_MAJOR < 11
#define THREAD_POWER_THROTTLING_CURRENT_VERSION 1
#define THREAD_POWER_THROTTLING_EXECUTION_SPEED 1

typedef struct {
    unsigned long Version;
    unsigned long ControlMask;
    unsigned long StateMask;
} THREAD_POWER_THROTTLING_STATE;
#endif
