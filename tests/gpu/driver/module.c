/* SPDX-License-Identifier: BSD-3-Clause */
#include "module.h"
#include "grid.h"
#include "guard.h"
#include "link.h"
#include "space.h"
#include "stream.h"
#include <fcntl.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { THREADS_MAX = 1024, SHARED_BYTES_MAX = 48 << 10, SHARED_BYTES_MOST = 227 << 10 };

static struct kernel *kernels;
struct CUmod_st {
    struct link link;
    struct CUctx_st *context;
};

/* A kernel of a module, to which launches refer. It remains when the module is unloaded, and cannot
 * be used then. */
struct CUfunc_st {
    struct link link;
    struct kernel *kernel;
    struct CUmod_st *module;
    unsigned shared_bytes_max; /* dynamic, of a launch */
};
static struct link *modules, *functions;

void kernel_register(struct kernel *kernel) {
    kernel->next = kernels;
    kernels = kernel;
}

/* --- Modules -----------------------------------------------------------------------------------
 */

static int load(struct CUmod_st **module, const void *image) {
    if (!image)
        return CUDA_ERROR_INVALID_VALUE;
    *module = link_add(&modules, malloc(sizeof **module));
    (*module)->context = context_current();
    return 0;
}

int cuModuleLoadData(weft_cu_module *module, const void *image) {
    CALL(NO_CAPTURE, load(module, image));
}

static struct CUmod_st *module_of(weft_cu_module handle) {
    return link_find(modules, handle);
}

static int unload(struct CUmod_st *module) {
    if (!module)
        return CUDA_ERROR_INVALID_HANDLE;
    link_remove(&modules, module);
    free(module);
    return 0;
}

int cuModuleUnload(weft_cu_module module) {
    CALL(NO_CAPTURE, unload(module_of(module)));
}

static int find(weft_cu_function *function, struct CUmod_st *module, const char *name) {
    struct kernel *kernel = kernels;
    while (kernel && strcmp(kernel->name, name) != 0)
        kernel = kernel->next;
    if (!kernel)
        return CUDA_ERROR_NOT_FOUND;
    *function = link_add(&functions, malloc(sizeof **function));
    (*function)->kernel = kernel;
    (*function)->module = module;
    (*function)->shared_bytes_max = SHARED_BYTES_MAX;
    return 0;
}

int cuModuleGetFunction(weft_cu_function *function, weft_cu_module module, const char *name) {
    CALL(CONTEXT,
         module_of(module) ? find(function, module_of(module), name) : CUDA_ERROR_INVALID_HANDLE);
}

/* --- Launches ----------------------------------------------------------------------------------
 */

struct launch {
    struct work work;
    struct kernel *kernel;
    void *packed;
    struct grid_shape shape;
};

static _Thread_local jmp_buf out; /* of the kernel */
static _Thread_local int running_on;

bool kernel_tears(const void *word) {
    static int possible = -1;
    if (possible < 0)
        possible = getenv("WEFT_FAKE_NO_ATOMICS") != NULL;
    if (!possible)
        return false;
    pthread_mutex_lock(&driver_lock);
    int owner = space_owner((uintptr_t)word);
    pthread_mutex_unlock(&driver_lock);
    return owner >= 0 && gpu_tears(running_on, owner);
}

static _Thread_local struct timespec seen; /* the time, by the kernel of this thread */

int kernel_clock(clockid_t clock, struct timespec *now) {
    int failed = clock_gettime(clock, now);
    seen = *now;
    return failed;
}

/* One write, for several processes have one file. A GPU traps at once when its kernel has seen that
 * it is time to; a thread of a busy host does so later. */
static void note_trap(const char *path) {
    int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
    dprintf(fd, "%d %lld\n", running_on, seen.tv_sec * 1000000000LL + seen.tv_nsec);
    close(fd);
}

void kernel_trap(void) {
    const char *path = getenv("WEFT_FAKE_TRAPS");
    if (path)
        note_trap(path);
    grid_trap();
    longjmp(out, 1);
}

bool kernel_reaches(const void *p, int gpu) {
    pthread_mutex_lock(&driver_lock);
    bool reaches = !p || space_reaches((uintptr_t)p, 1, gpu);
    pthread_mutex_unlock(&driver_lock);
    return reaches;
}

static void guard(void (*change)(int), int gpu) {
    pthread_mutex_lock(&driver_lock);
    change(gpu);
    pthread_mutex_unlock(&driver_lock);
}

static int run_threads(const struct launch *launch) {
    bool whole = grid_run(launch->kernel, launch->packed, running_on, &launch->shape);
    return whole ? 0 : CUDA_ERROR_LAUNCH_FAILED;
}

static int run_thread(const struct launch *launch) {
    volatile int error = 0;
    grid_enter(running_on);
    if (setjmp(out) == 0)
        launch->kernel->run(launch->packed);
    else
        error = CUDA_ERROR_LAUNCH_FAILED;
    grid_leave(running_on);
    return error;
}

static int run(struct work *work, struct CUstream_st *stream) {
    struct launch *launch = (struct launch *)work;
    if (!launch->kernel->reaches(launch->packed, stream->context->gpu))
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    running_on = stream->context->gpu;
    guard(guard_kernel_begin, stream->context->gpu);
    int error = launch->kernel->threads ? run_threads(launch) : run_thread(launch);
    guard(guard_kernel_end, stream->context->gpu);
    return error;
}

static void drop(struct work *work) {
    struct launch *launch = (struct launch *)work;
    launch->kernel->drop(launch->packed);
}

/* A function is invalid in any other context than its own. */
static struct CUfunc_st *function_of(weft_cu_function handle) {
    struct CUfunc_st *function = link_find(functions, handle);
    bool here =
        function && module_of(function->module) && function->module->context == context_current();
    return here ? function : NULL;
}

int cuFuncLoad(weft_cu_function function) {
    CALL(NO_CAPTURE, function_of(function) ? 0 : CUDA_ERROR_INVALID_HANDLE);
}

static int set_attribute(struct CUfunc_st *function, int attribute, int value) {
    if (!function)
        return CUDA_ERROR_INVALID_HANDLE;
    if (attribute != WEFT_CU_FUNCTION_SHARED_MAX || value < 0 || value > SHARED_BYTES_MOST)
        return CUDA_ERROR_INVALID_VALUE;
    function->shared_bytes_max = (unsigned)value;
    return 0;
}

int cuFuncSetAttribute(weft_cu_function function, int attribute, int value) {
    CALL(CONTEXT, set_attribute(function_of(function), attribute, value));
}

/* Whole clusters, of 1 or 2 blocks. */
static bool proper(const struct grid_shape *shape) {
    const struct kernel_dim *b = &shape->blocks, *t = &shape->threads;
    size_t blocks = (size_t)b->x * b->y * b->z, threads = (size_t)t->x * t->y * t->z;
    return blocks && threads && threads <= THREADS_MAX && blocks <= UINT32_MAX &&
           (shape->cluster_blocks == 1 || shape->cluster_blocks == 2) &&
           b->x % shape->cluster_blocks == 0;
}

static int enqueue(struct CUfunc_st *function, struct CUstream_st *stream, struct grid_shape shape,
                   void **arguments, void **extra) {
    if (!proper(&shape) || !arguments || extra)
        return CUDA_ERROR_INVALID_VALUE;
    if (!function || !stream || stream->context != context_current())
        return CUDA_ERROR_INVALID_HANDLE;
    if (shape.shared_bytes > function->shared_bytes_max)
        return CUDA_ERROR_INVALID_VALUE;
    struct launch *launch = work_new(sizeof *launch, run, drop);
    launch->kernel = function->kernel;
    launch->packed = launch->kernel->pack(arguments);
    launch->shape = shape;
    return stream_enqueue(stream, &launch->work);
}

int cuLaunchKernel(weft_cu_function function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                   unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                   weft_cu_stream stream, void **arguments, void **extra) {
    struct grid_shape shape = {
        {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, 1, shared_bytes};
    CALL(CONTEXT, enqueue(function_of(function), stream_of(stream), shape, arguments, extra));
}

static int enqueue_by(const struct weft_cu_launch_config *config, struct CUfunc_st *function,
                      void **arguments, void **extra) {
    const unsigned *b = config->blocks, *t = config->threads;
    struct grid_shape shape = {{b[0], b[1], b[2]}, {t[0], t[1], t[2]}, 1, config->shared_bytes};
    for (unsigned i = 0; i < config->nattributes; i++) {
        const struct weft_cu_launch_attribute *attribute = &config->attributes[i];
        const unsigned *cluster = attribute->value.cluster;
        if (attribute->id == WEFT_CU_LAUNCH_EARLY)
            continue; /* kernels run one after the other */
        if (attribute->id != WEFT_CU_LAUNCH_CLUSTER || cluster[1] != 1 || cluster[2] != 1)
            return CUDA_ERROR_INVALID_VALUE;
        shape.cluster_blocks = cluster[0];
    }
    return enqueue(function, stream_of(config->stream), shape, arguments, extra);
}

int cuLaunchKernelEx(const struct weft_cu_launch_config *config, weft_cu_function function,
                     void **arguments, void **extra) {
    CALL(CONTEXT, !config ? CUDA_ERROR_INVALID_VALUE
                          : enqueue_by(config, function_of(function), arguments, extra));
}
