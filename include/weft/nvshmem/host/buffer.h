/* SPDX-License-Identifier: BSD-3-Clause */
/* Buffers of the program, by NVSHMEM's names. The source of a put and the dest of a get may be any
 * memory that this PE's GPU can access; host memory that CUDA does not know is registered with it.
 * The program's own memory cannot become symmetric. */
#ifndef WEFT_NVSHMEM_BUFFER_H
#define WEFT_NVSHMEM_BUFFER_H

#include "weft/nvshmem/host/job.h"
#include "weft/nvshmem/host/status.h"

/* A buffer that nvshmemx_buffer_register has registered with CUDA. */
struct weft_nvshmem_buffer {
    void *addr;
    struct weft_nvshmem_buffer *next;
};
__attribute__((weak, visibility("default"))) struct weft_nvshmem_buffer *weft_nvshmem_buffers;

enum { WEFT_NVSHMEM_MEMORY_TYPE = 2 }; /* the driver's CU_POINTER_ATTRIBUTE_MEMORY_TYPE */

/* Prints an error line about a call for `addr`. Returns `status`. */
WEFT_NVSHMEM_INLINE int weft_nvshmem_refuse(const char *call, const void *addr, const char *why,
                                            int status) {
    fprintf(stderr, "weft: PE %d: %s(%p): %s (%d)\n", shmem_my_pe(), call, addr, why, status);
    return status;
}

/* Registers memory. The job's GPU must be current. Memory that CUDA already knows needs no
 * registration. */
WEFT_NVSHMEM_INLINE int weft_nvshmem_register(void *addr, size_t length) {
    int (*ask)(void *, int, unsigned long long), (*make)(void *, size_t, unsigned);
    unsigned type = 0;
    *(void **)&ask = weft_nvshmem_driver("cuPointerGetAttribute");
    *(void **)&make = weft_nvshmem_driver("cuMemHostRegister_v2");
    if (!ask || !make)
        return weft_nvshmem_refuse("nvshmemx_buffer_register", addr,
                                   "there is no CUDA driver (libcuda.so.1)",
                                   NVSHMEMX_ERROR_GPU_NOT_SELECTED);
    if (ask(&type, WEFT_NVSHMEM_MEMORY_TYPE, (unsigned long long)(uintptr_t)addr) == 0)
        return NVSHMEMX_SUCCESS;
    struct weft_nvshmem_buffer *buffer =
        (struct weft_nvshmem_buffer *)calloc(1, sizeof(struct weft_nvshmem_buffer));
    if (!buffer)
        return weft_nvshmem_refuse("nvshmemx_buffer_register", addr, "no memory is left",
                                   NVSHMEMX_ERROR_OUT_OF_MEMORY);
    if (make(addr, length, 0)) {
        free(buffer);
        return weft_nvshmem_refuse("nvshmemx_buffer_register", addr,
                                   "CUDA cannot register this host memory; is it mapped, and "
                                   "has cudaSetDevice been called?",
                                   NVSHMEMX_ERROR_INTERNAL);
    }
    buffer->addr = addr;
    buffer->next = weft_nvshmem_buffers;
    weft_nvshmem_buffers = buffer;
    return NVSHMEMX_SUCCESS;
}

/* Returns 0, or a status after printing an error line. Each PE registers its own buffers. */
WEFT_NVSHMEM_NAME int nvshmemx_buffer_register(void *addr, size_t length) {
    if (!addr || length == 0)
        return weft_nvshmem_refuse("nvshmemx_buffer_register", addr,
                                   "the buffer is NULL or has no bytes",
                                   NVSHMEMX_ERROR_INVALID_VALUE);
    return weft_nvshmem_register(addr, length);
}

/* Unregisters and frees the first buffer of the list at `at`. Returns 0, or CUDA's error. */
WEFT_NVSHMEM_INLINE int weft_nvshmem_buffer_drop(struct weft_nvshmem_buffer **at) {
    struct weft_nvshmem_buffer *buffer = *at;
    int (*forget)(void *), error = -1;
    *(void **)&forget = weft_nvshmem_driver("cuMemHostUnregister");
    if (forget)
        error = forget(buffer->addr);
    *at = buffer->next;
    free(buffer);
    return error;
}

/* Returns 0 even for memory that needed no registration. */
WEFT_NVSHMEM_NAME int nvshmemx_buffer_unregister(void *addr) {
    struct weft_nvshmem_buffer **at = &weft_nvshmem_buffers;
    while (*at && (*at)->addr != addr)
        at = &(*at)->next;
    if (!*at || weft_nvshmem_buffer_drop(at) == 0)
        return NVSHMEMX_SUCCESS;
    return weft_nvshmem_refuse("nvshmemx_buffer_unregister", addr,
                               "CUDA cannot unregister this memory; has it been freed before?",
                               NVSHMEMX_ERROR_INTERNAL);
}

WEFT_NVSHMEM_NAME void nvshmemx_buffer_unregister_all(void) {
    while (weft_nvshmem_buffers)
        nvshmemx_buffer_unregister(weft_nvshmem_buffers->addr);
}

/* Not supported: prints an error line and returns NULL. Only nvshmem_malloc makes symmetric
 * objects. */
WEFT_NVSHMEM_NAME void *nvshmemx_buffer_register_symmetric(void *buf_ptr, size_t size, int flags) {
    (void)size, (void)flags;
    weft_nvshmem_refuse("nvshmemx_buffer_register_symmetric", buf_ptr,
                        "Weft cannot make the program's own memory symmetric; allocate it by "
                        "nvshmem_malloc",
                        NVSHMEMX_ERROR_NOT_SUPPORTED);
    return NULL;
}

WEFT_NVSHMEM_NAME int nvshmemx_buffer_unregister_symmetric(void *mmap_ptr, size_t size) {
    (void)size;
    return weft_nvshmem_refuse("nvshmemx_buffer_unregister_symmetric", mmap_ptr,
                               "no memory of the program's own is symmetric",
                               NVSHMEMX_ERROR_NOT_SUPPORTED);
}

#endif
