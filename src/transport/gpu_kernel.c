/* SPDX-License-Identifier: BSD-3-Clause */
/* libweft_cuda.so is data: one symbol, the image that the driver loads. */
#include "transport/gpu_kernel.h"
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include "base/privilege.h"

struct weft_gpu_abort weft_gpu_abort;
bool weft_gpu_waits;

/* The loaded images, one a context, in the order of their loading. They change under the lock.
 * Readers take none: an entry is complete before it is in the list. */
static pthread_mutex_t loading = PTHREAD_MUTEX_INITIALIZER;
static struct loaded {
    weft_cu_context context;
    unsigned holders;
    weft_cu_module module;
    weft_cu_function functions[WEFT_KERNELS];
    struct loaded *_Atomic next;
} * _Atomic first_loaded;

static const char *const names[WEFT_KERNELS] = {
#define NAME(name) #name,
    WEFT_GPU_KERNELS(NAME)
#undef NAME
};

/* Loaded for good: a kernel that is loaded when it is first launched waits for all that the GPU has
 * under way, which may be a kernel that waits for what this one brings. */
static int image_find_functions(struct loaded *loaded) {
    for (int kernel = 0; kernel < WEFT_KERNELS; kernel++) {
        weft_cu_function *function = &loaded->functions[kernel];
        int error = weft_cuda.cuModuleGetFunction(function, loaded->module, names[kernel]);
        if (error == WEFT_CU_SUCCESS)
            error = weft_cuda.cuFuncLoad(*function);
        if (error != WEFT_CU_SUCCESS)
            return weft_cuda_check(error, names[kernel]);
    }
    return 0;
}

/* The GPU's context is current. */
static int image_load(struct loaded *loaded) {
    void *library = weft_library_open_beside("libweft_cuda.so");
    const void *image = library ? dlsym(library, "weft_cuda_image") : NULL;
    if (!image)
        return weft_fail_bare(-ENOSYS,
                              "libweft_cuda.so, which holds Weft's kernels, is not there: build "
                              "Weft where nvcc is (%s)",
                              dlerror());
    int error =
        weft_cuda_check(weft_cuda.cuModuleLoadData(&loaded->module, image), "libweft_cuda.so");
    return error ? error : image_find_functions(loaded);
}

/* The GPU's context is current. */
static void image_drop(struct loaded *loaded) {
    if (loaded->module)
        weft_cuda.cuModuleUnload(loaded->module);
    free(loaded);
}

/* --- Holders, under the lock ------------------------------------------------------------------ */

/* Where the image of a context is, or would be, in the list. */
static struct loaded *_Atomic *image_place(weft_cu_context context) {
    struct loaded *_Atomic *at = &first_loaded, *loaded;
    while ((loaded = atomic_load(at)) && loaded->context != context)
        at = &loaded->next;
    return at;
}

static int image_add(struct loaded *_Atomic *at, weft_cu_context context) {
    struct loaded *loaded = calloc(1, sizeof *loaded);
    if (!loaded)
        return weft_fail_bare(-ENOMEM, "no memory for the names of kernels");
    loaded->context = context;
    loaded->holders = 1;
    int error = image_load(loaded);
    if (error)
        image_drop(loaded);
    else
        atomic_store(at, loaded);
    return error;
}

static int image_hold(const struct weft_gpu *gpu) {
    struct loaded *_Atomic *at = image_place(gpu->context);
    struct loaded *loaded = atomic_load(at);
    if (!loaded)
        return image_add(at, gpu->context);
    loaded->holders++;
    return 0;
}

static void image_let_go(const struct weft_gpu *gpu) {
    struct loaded *_Atomic *at = image_place(gpu->context);
    struct loaded *loaded = atomic_load(at);
    if (--loaded->holders > 0)
        return;
    atomic_store(at, atomic_load(&loaded->next));
    image_drop(loaded);
}

int weft_gpu_kernels_open(struct weft_gpu **gpu, int ordinal) {
    struct weft_gpu *opened;
    int error = weft_gpu_open(&opened, ordinal);
    if (error)
        return error;
    struct weft_gpu_scope scope = weft_gpu_enter(opened);
    pthread_mutex_lock(&loading);
    error = image_hold(opened);
    pthread_mutex_unlock(&loading);
    weft_gpu_leave(scope);
    if (error)
        weft_gpu_close(opened);
    else
        *gpu = opened;
    return error;
}

void weft_gpu_kernels_close(struct weft_gpu *gpu) {
    struct weft_gpu_scope scope = weft_gpu_enter(gpu);
    pthread_mutex_lock(&loading);
    image_let_go(gpu);
    pthread_mutex_unlock(&loading);
    weft_gpu_leave(scope);
    weft_gpu_close(gpu);
}

/* The driver is not asked where there is one context only. */
static const struct loaded *image_current(void) {
    struct loaded *first = atomic_load_explicit(&first_loaded, memory_order_acquire),
                  *loaded = first;
    weft_cu_context context = NULL;
    if (!atomic_load_explicit(&first->next, memory_order_acquire))
        return first;
    weft_cuda.cuCtxGetCurrent(&context);
    while (loaded && loaded->context != context)
        loaded = atomic_load_explicit(&loaded->next, memory_order_acquire);
    return loaded ? loaded : first;
}

/* Kernels that end whatever the peers do. Any other may wait for one.
 */
static const bool ends_alone[WEFT_KERNELS] = {
    [WEFT_KERNEL_weftk_copy] = true,
    [WEFT_KERNEL_weftk_copy_blocks] = true,
    [WEFT_KERNEL_weftk_amo] = true,
    [WEFT_KERNEL_weftk_signal] = true,
    [WEFT_KERNEL_weftk_put_signal] = true,
    [WEFT_KERNEL_weftk_copy_slice] = true,
    [WEFT_KERNEL_weftk_put_slice_signal] = true,
    [WEFT_KERNEL_weftk_signal32] = true,
    [WEFT_KERNEL_weftk_try_atomics] = true,
};

int weft_gpu_launch(enum weft_gpu_kernel kernel, unsigned blocks, unsigned threads,
                    weft_cu_stream stream, void *const *arguments) {
    enum { ARGUMENTS_MAX = 16 };
    void *all[ARGUMENTS_MAX] = {&weft_gpu_abort};
    for (int i = 0; arguments[i]; i++)
        all[i + 1] = arguments[i];
    if (!ends_alone[kernel])
        __atomic_store_n(&weft_gpu_waits, true, __ATOMIC_RELAXED);
    return weft_cuda_check(weft_cuda.cuLaunchKernel(image_current()->functions[kernel], blocks, 1,
                                                    1, threads, 1, 1, 0, stream, all, NULL),
                           names[kernel]);
}
