/*
 * A Vulkan driver for the test: Mesa's software driver, whose device fails when the file FM_ENGINE_TEST_FAULT exists.
 * The first word of the file says how: "lost" (what a driver reports for a device that hangs or was unplugged) or
 * "crash" (a bug of the driver). The engine can read files in its sandbox, so a test decides when.
 *
 * Vulkan's loader asks a driver for each function by its name (vk_icd.h). Three functions are ours, the rest are
 * Mesa's.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEVICE_LOST (-4) /* VK_ERROR_DEVICE_LOST */
#define EXPORT      __attribute__((visibility("default")))

typedef void (*function)(void);
typedef int32_t submit_fn(void *queue, uint32_t count, const void *submits, void *fence);
typedef function find_fn(void *instance_or_device, const char *name);
typedef int32_t negotiate_fn(uint32_t *version);

static find_fn *mesa_find;
static find_fn *mesa_find_of_device;
static submit_fn *mesa_submit;

EXPORT int32_t vk_icdNegotiateLoaderICDInterfaceVersion(uint32_t *version);
EXPORT function vk_icdGetInstanceProcAddr(void *instance, const char *name);
EXPORT function vk_icdGetPhysicalDeviceProcAddr(void *instance, const char *name);

/* A function of Mesa's driver; without it the test is not possible. */
static void *mesa(const char *name) {
    static void *library;
    library = library ? library : dlopen("libvulkan_lvp.so", RTLD_NOW | RTLD_LOCAL);
    void *found = library ? dlsym(library, name) : NULL;
    if (!found) {
        abort();
    }
    return found;
}

static int has_fault(void) {
    char word[5] = "";
    const char *path = getenv("FM_ENGINE_TEST_FAULT");
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0) {
        return 0;
    }
    ssize_t got = read(fd, word, sizeof word - 1);
    close(fd);
    if (got > 0 && strncmp(word, "cras", 4) == 0) {
        signal(SIGSEGV, SIG_DFL);
        kill(getpid(), SIGSEGV);
    }
    return got > 0;
}

static int32_t submit(void *queue, uint32_t count, const void *submits, void *fence) {
    return has_fault() ? DEVICE_LOST : mesa_submit(queue, count, submits, fence);
}

static function find_of_device(void *device, const char *name) {
    function found = mesa_find_of_device(device, name);
    if (strcmp(name, "vkQueueSubmit") == 0) {
        mesa_submit = (submit_fn *)found;
        return (function)submit;
    }
    return found;
}

static function find(void *instance, const char *name) {
    if (strcmp(name, "vkGetInstanceProcAddr") == 0) {
        return (function)vk_icdGetInstanceProcAddr;
    }
    function found = mesa_find(instance, name);
    if (strcmp(name, "vkGetDeviceProcAddr") == 0) {
        mesa_find_of_device = (find_fn *)found;
        return (function)find_of_device;
    }
    return found;
}

int32_t vk_icdNegotiateLoaderICDInterfaceVersion(uint32_t *version) {
    negotiate_fn *negotiate = (negotiate_fn *)mesa("vk_icdNegotiateLoaderICDInterfaceVersion");
    return negotiate(version);
}

function vk_icdGetInstanceProcAddr(void *instance, const char *name) {
    mesa_find = (find_fn *)mesa("vk_icdGetInstanceProcAddr");
    return find(instance, name);
}

function vk_icdGetPhysicalDeviceProcAddr(void *instance, const char *name) {
    find_fn *find_of_physical_device = (find_fn *)mesa("vk_icdGetPhysicalDeviceProcAddr");
    return find_of_physical_device(instance, name);
}
