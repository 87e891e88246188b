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

enum { THREADS_MAX = 1024, SHARED_BYTES_MAX = 48 << 10 };

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
    struct kernel_dim blocks, threads;
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
    bool whole =
        grid_run(launch->kernel, launch->packed, running_on, launch->blocks, launch->threads);
    return whole ? 0 : CUDA_ERROR_LAUNCH_FAILED;
}

static int run(struct work *work, struct CUstream_st *stream) {
    struct launch *launch = (struct launch *)work;
    if (!launch->kernel->reaches(launch->packed, stream->context->gpu))
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    volatile int error = 0;
    running_on = stream->context->gpu;
    guard(guard_kernel_begin, stream->context->gpu);
    if (launch->kernel->threads)
        error = run_threads(launch);
    else if (setjmp(out) == 0)
        launch->kernel->run(launch->packed);
    else
        error = CUDA_ERROR_LAUNCH_FAILED;
    guard(guard_kernel_end, stream->context->gpu);
    return error;
}

static void drop(struct work *work) {
    struct launch *launch = (struct launch *)work;
    launch->kernel->drop(launch->packed);
}

/* A function is invalid in any other context than its own. */
static struct kernel *kernel_of(weft_cu_function handle) {
    struct CUfunc_st *function = link_find(functions, handle);
    bool here =
        function && module_of(function->module) && function->module->context == context_current();
    return here ? function->kernel : NULL;
}

int cuFuncLoad(weft_cu_function function) {
    CALL(NO_CAPTURE, kernel_of(function) ? 0 : CUDA_ERROR_INVALID_HANDLE);
}

static int enqueue(struct kernel *kernel, struct CUstream_st *stream, struct kernel_dim blocks,
                   struct kernel_dim threads, void **arguments) {
    if (!kernel || !stream || stream->context != context_current())
        return CUDA_ERROR_INVALID_HANDLE;
    struct launch *launch = work_new(sizeof *launch, run, drop);
    launch->kernel = kernel;
    launch->packed = kernel->pack(arguments);
    launch->blocks = blocks;
    launch->threads = threads;
    return stream_enqueue(stream, &launch->work);
}

int cuLaunchKernel(weft_cu_function function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                   unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                   weft_cu_stream stream, void **arguments, void **extra) {
    struct kernel_dim grid = {grid_x, grid_y, grid_z}, block = {block_x, block_y, block_z};
    size_t blocks = (size_t)grid_x * grid_y * grid_z, threads = (size_t)block_x * block_y * block_z;
    bool proper = blocks && threads && threads <= THREADS_MAX && blocks <= UINT32_MAX &&
                  shared_bytes <= SHARED_BYTES_MAX;
    CALL(CONTEXT, !proper || !arguments || extra
                      ? CUDA_ERROR_INVALID_VALUE
                      : enqueue(kernel_of(function), stream_of(stream), grid, block, arguments));
}
