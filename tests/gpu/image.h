/* SPDX-License-Identifier: BSD-3-Clause */
/* A test's own kernels: tests/gpu/NAME/kernels.cu, compiled to an image beside the program; the
 * pretended driver contains them itself. */
#ifndef TESTS_GPU_IMAGE_H
#define TESTS_GPU_IMAGE_H

#include "gpu.h"
#include <unistd.h>

static weft_cu_module image_module;

static inline const void *image_bytes(void) {
    static char bytes[8 << 20];
    char path[4096];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - sizeof ".fatbin");
    memcpy(path + (length > 0 ? length : 0), ".fatbin", sizeof ".fatbin");
    FILE *file = fopen(path, "rb");
    if (!file && !gpu_is_pretended())
        gpu_skip("the kernels of this test are not built: there is no nvcc");
    if (file && fread(bytes, 1, sizeof bytes, file) == sizeof bytes)
        exit(1);
    if (file)
        fclose(file);
    return bytes;
}

/* A kernel by its name. */
static inline weft_cu_function image_kernel(const char *name) {
    weft_cu_function kernel;
    gpu_enter();
    if (!image_module)
        GPU(cuModuleLoadData(&image_module, image_bytes()));
    GPU(cuModuleGetFunction(&kernel, image_module, name));
    gpu_leave();
    return kernel;
}

static inline void image_launch(weft_cu_function kernel, unsigned blocks, unsigned threads,
                                weft_cu_stream stream, void **arguments) {
    gpu_enter();
    GPU(cuLaunchKernel(kernel, blocks, 1, 1, threads, 1, 1, 0, stream, arguments, NULL));
    gpu_leave();
}

#endif
