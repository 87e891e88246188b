/* SPDX-License-Identifier: BSD-3-Clause */
/* libweft_cuda.so contains data only (gpu_image.S): one symbol, for the images, all of which the
 * driver loads at once. */
#include "transport/gpu_kernel.h"
#include <assert.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include "base/privilege.h"

struct weft_gpu_abort weft_gpu_abort;
bool weft_gpu_waits;

enum { IMAGES_MAX = 32 };

/* The compute capabilities that start kernels early; captures of such launches were reported to
 * fail on 12.0. */
enum { EARLY_FROM = 90, EARLY_BEFORE = 120 };

/* The loaded kernels, one entry per context, in the order of loading. Changes are made under the
 * lock. Readers need no lock, because an entry is complete before it is in the list. */
static pthread_mutex_t loading = PTHREAD_MUTEX_INITIALIZER;
static struct loaded {
    weft_cu_context context;
    unsigned holders;
    bool starts_early; /* the GPU can start a kernel before the previous kernel has ended */
    int nmodules;
    weft_cu_module modules[IMAGES_MAX];
    weft_cu_function functions[WEFT_KERNELS];
    struct loaded *_Atomic next;
} * _Atomic first_loaded;

static const char *const names[WEFT_KERNELS] = {
#define NAME(name) #name,
    WEFT_GPU_KERNELS(NAME)
#undef NAME
};

/* Finds a kernel's function. Kernels of one image are adjacent in the table, so the image that
 * contained the last kernel is tried first. */
static int function_find(struct loaded *loaded, int kernel, int *image) {
    int error = -1;
    for (int tries = 0; tries < loaded->nmodules && error != WEFT_CU_SUCCESS; tries++) {
        if (tries > 0)
            *image = (*image + 1) % loaded->nmodules;
        error = weft_cuda.cuModuleGetFunction(&loaded->functions[kernel], loaded->modules[*image],
                                              names[kernel]);
    }
    return error;
}

/* Loads all functions in advance: a kernel that is loaded at its first launch waits for all work on
 * the GPU, which may include a kernel that waits for this kernel. */
static int functions_load(struct loaded *loaded) {
    int image = 0;
    for (int kernel = 0; kernel < WEFT_KERNELS; kernel++) {
        int error = function_find(loaded, kernel, &image);
        if (error == WEFT_CU_SUCCESS)
            error = weft_cuda.cuFuncLoad(loaded->functions[kernel]);
        if (error != WEFT_CU_SUCCESS)
            return weft_cuda_check(error, names[kernel]);
    }
    return 0;
}

static int images_load(struct loaded *loaded, const int64_t *images) {
    for (int i = 0; images[i]; i++) {
        const void *image = (const char *)images + images[i];
        assert(i < IMAGES_MAX);
        int error = weft_cuda.cuModuleLoadData(&loaded->modules[i], image);
        if (error != WEFT_CU_SUCCESS)
            return weft_cuda_check(error, "libweft_cuda.so");
        loaded->nmodules++;
    }
    return functions_load(loaded);
}

/* Loads all kernels of libweft_cuda.so into the GPU's context, which must be current. */
static int library_load(struct loaded *loaded) {
    void *library = weft_library_open_beside("libweft_cuda.so");
    const int64_t *images = library ? dlsym(library, "weft_cuda_images") : NULL;
    if (!images)
        return weft_fail_bare(-ENOSYS,
                              "libweft_cuda.so, which contains Weft's kernels, is not installed: "
                              "build Weft on a machine with nvcc (%s)",
                              dlerror());
    return images_load(loaded, images);
}

/* Unloads the kernels of an entry, and frees it. The GPU's context must be current. */
static void loaded_drop(struct loaded *loaded) {
    for (int i = 0; i < loaded->nmodules; i++)
        weft_cuda.cuModuleUnload(loaded->modules[i]);
    free(loaded);
}

/* --- Holders; called under the lock ----------------------------------------------------------- */

/* Returns the position in the list of a context's entry, or the end of the list. */
static struct loaded *_Atomic *loaded_place(weft_cu_context context) {
    struct loaded *_Atomic *at = &first_loaded, *loaded;
    while ((loaded = atomic_load(at)) && loaded->context != context)
        at = &loaded->next;
    return at;
}

static int loaded_add(struct loaded *_Atomic *at, const struct weft_gpu *gpu) {
    struct loaded *loaded = calloc(1, sizeof *loaded);
    if (!loaded)
        return weft_fail_bare(-ENOMEM, "no memory for the names of kernels");
    loaded->context = gpu->context;
    loaded->holders = 1;
    loaded->starts_early = gpu->capability >= EARLY_FROM && gpu->capability < EARLY_BEFORE;
    int error = library_load(loaded);
    if (error)
        loaded_drop(loaded);
    else
        atomic_store(at, loaded);
    return error;
}

static int loaded_hold(const struct weft_gpu *gpu) {
    struct loaded *_Atomic *at = loaded_place(gpu->context);
    struct loaded *loaded = atomic_load(at);
    if (!loaded)
        return loaded_add(at, gpu);
    loaded->holders++;
    return 0;
}

static void loaded_let_go(const struct weft_gpu *gpu) {
    struct loaded *_Atomic *at = loaded_place(gpu->context);
    struct loaded *loaded = atomic_load(at);
    if (--loaded->holders > 0)
        return;
    atomic_store(at, atomic_load(&loaded->next));
    loaded_drop(loaded);
}

int weft_gpu_kernels_open(struct weft_gpu **gpu, int ordinal) {
    struct weft_gpu *opened;
    int error = weft_gpu_open(&opened, ordinal);
    if (error)
        return error;
    struct weft_gpu_scope scope = weft_gpu_enter(opened);
    pthread_mutex_lock(&loading);
    error = loaded_hold(opened);
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
    loaded_let_go(gpu);
    pthread_mutex_unlock(&loading);
    weft_gpu_leave(scope);
    weft_gpu_close(gpu);
}

/* Asks the driver only if there are several contexts. */
static const struct loaded *loaded_current(void) {
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

/* Kernels that end whatever the peers do. Every other kernel counts as one that may wait for a
 * peer. */
#define ENDS_ALONE(name) [WEFT_KERNEL_##name] = true,
/* clang-format off */
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
    WEFT_GPU_PRODUCTS(ENDS_ALONE, weftk_product)
};
/* clang-format on */
#undef ENDS_ALONE

/* Every kernel's first argument comes before those of the caller, which end with NULL. */
enum { ARGUMENTS_MAX = 16 };
static void arguments_take(void **all, enum weft_gpu_kernel kernel, void *const *arguments) {
    all[0] = &weft_gpu_abort;
    for (int i = 0; arguments[i]; i++)
        all[i + 1] = arguments[i];
    if (!ends_alone[kernel])
        __atomic_store_n(&weft_gpu_waits, true, __ATOMIC_RELAXED);
}

/* Fills in the attributes of a launch, and returns their number. */
static unsigned attributes_take(struct weft_cu_launch_attribute attributes[2],
                                const struct loaded *loaded, const struct weft_gpu_shape *shape) {
    unsigned count = 0;
    if (loaded->starts_early)
        attributes[count++] =
            (struct weft_cu_launch_attribute){.id = WEFT_CU_LAUNCH_EARLY, .value.early = 1};
    if (shape->cluster_blocks > 1)
        attributes[count++] = (struct weft_cu_launch_attribute){
            .id = WEFT_CU_LAUNCH_CLUSTER, .value.cluster = {shape->cluster_blocks, 1, 1}};
    return count;
}

/* Enqueues a kernel. A function may only use more than 48 KiB of shared memory per block after
 * cuFuncSetAttribute has raised its limit. */
int weft_gpu_launch_shape(enum weft_gpu_kernel kernel, const struct weft_gpu_shape *shape,
                          weft_cu_stream stream, void *const *arguments) {
    const struct loaded *loaded = loaded_current();
    weft_cu_function function = loaded->functions[kernel];
    struct weft_cu_launch_attribute attributes[2];
    struct weft_cu_launch_config config = {.blocks = {shape->blocks, 1, 1},
                                           .threads = {shape->threads, 1, 1},
                                           .shared_bytes = shape->shared_bytes,
                                           .stream = stream,
                                           .attributes = attributes,
                                           .nattributes =
                                               attributes_take(attributes, loaded, shape)};
    void *all[ARGUMENTS_MAX] = {NULL};
    arguments_take(all, kernel, arguments);
    int error = 0;
    if (shape->shared_bytes > 0)
        error = weft_cuda.cuFuncSetAttribute(function, WEFT_CU_FUNCTION_SHARED_MAX,
                                             (int)shape->shared_bytes);
    if (error == WEFT_CU_SUCCESS)
        error = weft_cuda.cuLaunchKernelEx(&config, function, all, NULL);
    return weft_cuda_check(error, names[kernel]);
}

int weft_gpu_launch(enum weft_gpu_kernel kernel, unsigned blocks, unsigned threads,
                    weft_cu_stream stream, void *const *arguments) {
    struct weft_gpu_shape shape = {blocks, threads, 1, 0};
    return weft_gpu_launch_shape(kernel, &shape, stream, arguments);
}
