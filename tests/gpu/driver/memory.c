/* SPDX-License-Identifier: BSD-3-Clause */
#include "memory.h"
#include "gpu.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { GARBAGE = 0xa5, GARBAGE_BYTES = 512 << 10, PAGES_APART = 16 };
#define NAME "weft-pretended-gpu-"

static struct link *memories;

struct memory *memory_of(weft_cu_memory handle) {
    struct memory *memory = link_find(memories, (void *)(uintptr_t)handle);
    return memory && memory->handle ? memory : NULL;
}

void memory_use(struct memory *memory) {
    memory->uses++;
}

static void free_unused(struct memory *memory) {
    if (memory->handle || memory->uses)
        return;
    link_remove(&memories, memory);
    if (!memory->imported)
        gpu_used_bytes[memory->gpu] -= memory->bytes;
    munmap(memory->view, memory->bytes);
    close(memory->fd);
    free(memory);
}

void memory_drop(struct memory *memory) {
    memory->uses--;
    free_unused(memory);
}

/* Owns fd from now on, also if it fails. */
static struct memory *memory_new(int fd, int gpu, size_t bytes, bool imported) {
    void *view = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (view == MAP_FAILED) {
        close(fd);
        return NULL;
    }
    struct memory *memory = malloc(sizeof *memory);
    *memory = (struct memory){
        .fd = fd, .gpu = gpu, .imported = imported, .handle = true, .bytes = bytes, .view = view};
    return link_add(&memories, memory);
}

static bool proper(const struct weft_cu_memory_properties *properties) {
    return properties->type == WEFT_CU_MEMORY_PINNED &&
           properties->location.type == WEFT_CU_LOCATION_DEVICE &&
           (properties->handle_types & ~WEFT_CU_HANDLE_DESCRIPTOR) == 0;
}

static int granularity(size_t *bytes, const struct weft_cu_memory_properties *properties) {
    if (!proper(properties))
        return CUDA_ERROR_INVALID_VALUE;
    if (gpu_of(properties->location.id) < 0)
        return CUDA_ERROR_INVALID_DEVICE;
    *bytes = GRANULE;
    return 0;
}

int cuMemGetAllocationGranularity(size_t *bytes, const struct weft_cu_memory_properties *properties,
                                  int which) {
    CALL(INITIALISED, which != 0 && which != WEFT_CU_GRANULARITY_RECOMMENDED
                          ? CUDA_ERROR_INVALID_VALUE
                          : granularity(bytes, properties));
}

static int new_descriptor(int gpu, size_t bytes) {
    char name[64];
    snprintf(name, sizeof name, NAME "%d", gpu);
    int fd = memfd_create(name, MFD_CLOEXEC);
    if (fd >= 0 && ftruncate(fd, (off_t)bytes) < 0) {
        close(fd);
        return -1;
    }
    return fd;
}

/* New memory has no zeros at its begin, and in a few pages of the rest. */
static void spoil(unsigned char *view, size_t bytes) {
    size_t begin = bytes < GARBAGE_BYTES ? bytes : GARBAGE_BYTES;
    memset(view, GARBAGE, begin);
    for (size_t at = begin; at < bytes; at += PAGES_APART * PAGE)
        memset(view + at, GARBAGE, bytes - at < PAGE ? bytes - at : PAGE);
}

static int create(weft_cu_memory *handle, size_t bytes, int gpu) {
    if (bytes > gpu_memory_bytes() - gpu_used_bytes[gpu])
        return CUDA_ERROR_OUT_OF_MEMORY;
    int fd = new_descriptor(gpu, bytes);
    struct memory *memory = fd < 0 ? NULL : memory_new(fd, gpu, bytes, false);
    if (!memory)
        return CUDA_ERROR_OUT_OF_MEMORY;
    gpu_used_bytes[gpu] += bytes;
    spoil(memory->view, bytes);
    *handle = (weft_cu_memory)(uintptr_t)memory;
    return 0;
}

static int check_and_create(weft_cu_memory *handle, size_t bytes,
                            const struct weft_cu_memory_properties *properties, uint64_t flags) {
    if (flags || !bytes || bytes % GRANULE || !proper(properties))
        return CUDA_ERROR_INVALID_VALUE;
    int gpu = gpu_of(properties->location.id);
    return gpu < 0 ? CUDA_ERROR_INVALID_DEVICE : create(handle, bytes, gpu);
}

int cuMemCreate(weft_cu_memory *memory, size_t bytes,
                const struct weft_cu_memory_properties *properties, uint64_t flags) {
    CALL(NO_CAPTURE, check_and_create(memory, bytes, properties, flags));
}

static int release(struct memory *memory) {
    if (!memory)
        return CUDA_ERROR_INVALID_VALUE;
    memory->handle = false;
    free_unused(memory);
    return 0;
}

int cuMemRelease(weft_cu_memory memory) {
    CALL(NO_CAPTURE, release(memory_of(memory)));
}

/* --- From process to process -------------------------------------------------------------------
 */

static int export(int *fd, struct memory *memory) {
    if (!memory)
        return CUDA_ERROR_INVALID_VALUE;
    int copy = dup(memory->fd);
    if (copy < 0)
        return CUDA_ERROR_OPERATING_SYSTEM;
    *fd = copy;
    return 0;
}

int cuMemExportToShareableHandle(void *handle, weft_cu_memory memory, int type, uint64_t flags) {
    CALL(NO_CAPTURE, type != WEFT_CU_HANDLE_DESCRIPTOR || flags
                         ? CUDA_ERROR_INVALID_VALUE
                         : export(handle, memory_of(memory)));
}

/* The GPU whose memory a descriptor is, or -1. */
static int owner_of(int fd) {
    char link[64], name[128];
    int gpu;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, name, sizeof name - 1);
    if (length < 0)
        return -1;
    name[length] = 0;
    return sscanf(name, "/memfd:" NAME "%d", &gpu) == 1 && gpu < GPUS_MAX ? gpu : -1;
}

static int import(weft_cu_memory *handle, int fd) {
    struct stat status;
    int gpu = owner_of(fd);
    if (gpu < 0 || fstat(fd, &status) < 0)
        return CUDA_ERROR_INVALID_VALUE;
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    struct memory *memory = copy < 0 ? NULL : memory_new(copy, gpu, (size_t)status.st_size, true);
    if (!memory)
        return CUDA_ERROR_OPERATING_SYSTEM;
    *handle = (weft_cu_memory)(uintptr_t)memory;
    return 0;
}

int cuMemImportFromShareableHandle(weft_cu_memory *memory, void *handle, int type) {
    CALL(NO_CAPTURE, type != WEFT_CU_HANDLE_DESCRIPTOR ? CUDA_ERROR_INVALID_VALUE
                                                       : import(memory, (int)(intptr_t)handle));
}
