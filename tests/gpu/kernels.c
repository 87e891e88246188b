/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: each image of kernels is loaded once on a GPU, whichever and however many threads
 * open the kernels; kernels can be launched until the last holder closes, and then the images are
 * unloaded, once each. libweft_cuda.so contains the number of images. PEs: 1 */
#include "base/privilege.h"
#include "inside.h"
#include "transport/gpu_copy.h"
#include "transport/gpu_kernel.h"
#include <pthread.h>
#include <stdatomic.h>

enum { THREADS = 6, BYTES = 1000 };

static int images;
static _Atomic int loads, unloads;
static pthread_barrier_t together;
static struct weft_gpu *held[THREADS];

/* Counts the images in the table weft_cuda_images, which ends with 0 (transport/gpu_image.S). */
static int count_images(void) {
    void *library = weft_library_open_beside("libweft_cuda.so");
    const int64_t *image = library ? dlsym(library, "weft_cuda_images") : NULL;
    int count = 0;
    if (!image)
        gpu_skip("the kernels are not built: there is no nvcc");
    while (image[count])
        count++;
    return count;
}

static int slow_load(weft_cu_module *module, const void *image) {
    struct timespec pause = {.tv_nsec = 5000000};
    atomic_fetch_add(&loads, 1);
    nanosleep(&pause, NULL);
    return gpu.cuModuleLoadData(module, image);
}

static int counted_unload(weft_cu_module module) {
    atomic_fetch_add(&unloads, 1);
    return gpu.cuModuleUnload(module);
}

static void *open_one(void *thread) {
    struct weft_gpu **mine = thread;
    pthread_barrier_wait(&together);
    int error = weft_gpu_kernels_open(mine, 0);
    EXPECT(error == 0, "%d: %s", error, weft_fail_text());
    return NULL;
}

static void open_all(void) {
    pthread_t threads[THREADS];
    pthread_barrier_init(&together, NULL, THREADS);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, open_one, &held[i]);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&together);
}

static void expect_copies(char *two, const char *when) {
    gpu_write(two, gpu_data(BYTES, 1), BYTES);
    INSIDE(weft_gpu_copy_blocks((struct weft_array){.first = two + BYTES},
                                (struct weft_array){.first = two}, BYTES, 1,
                                weft_device.gpu->stream));
    INSIDE(weft_gpu_synchronize(weft_device.gpu->stream));
    gpu_expect(two + BYTES, gpu_data(BYTES, 1), BYTES, "%s", when);
}

int main(void) {
    shmem_init();
    gpu_start();
    if (weft_cuda_load() < 0)
        gpu_miss(weft_fail_text());
    weft_cuda.cuModuleLoadData = slow_load;
    weft_cuda.cuModuleUnload = counted_unload;
    images = count_images();
    tap_case("threads that open the same GPU load each image of kernels once");
    EXPECT(images > 1, "%d images", images);
    open_all();
    EXPECT(loads == images, "%d loads of %d images", loads, images);
    tap_case("the library finds them loaded, and launches them as long as anybody holds them");
    if (weft_device_open() < 0)
        gpu_miss(weft_fail_text());
    char *two = inside_malloc(2 * BYTES);
    expect_copies(two, "with other holders");
    for (int i = 0; i < THREADS; i++) {
        EXPECT(held[i] == weft_device.gpu, "holder %d has another GPU", i);
        weft_gpu_kernels_close(held[i]);
    }
    EXPECT(loads == images && unloads == 0, "%d loads and %d unloads of %d images", loads, unloads,
           images);
    expect_copies(two, "with the library alone");
    tap_case("the last holder unloads them, each once");
    gpu_drain(gpu_stream);
    shmem_finalize();
    EXPECT(loads == images && unloads == images, "%d loads and %d unloads of %d images", loads,
           unloads, images);
    return tap_finish();
}
