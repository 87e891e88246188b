/* SPDX-License-Identifier: BSD-3-Clause */
/* Kernels that trap, in a process of their own, because its context is unusable afterwards. One PE
 * runs them, before any PE has a GPU: PEs on that GPU would wait for its recovery. */
#ifndef TESTS_GPU_TRAP_H
#define TESTS_GPU_TRAP_H

#include "gpu/gpu.h"
#include "transport/gpu_kernel.h"
#include "transport/gpu_window.h"
#include <sys/wait.h>
#include <unistd.h>

enum { TRAP_BYTES = 1 << 20 };

static struct weft_gpu *trap_gpu;

/* Returns `bytes` of memory of the library's GPU, or NULL. */
static inline void *trap_memory(void) {
    int fd;
    if (gpu_load() || weft_cuda_load() < 0 || weft_gpu_kernels_open(&trap_gpu, 0) < 0)
        return NULL;
    weft_gpu_enter(trap_gpu);
    static struct weft_gpu_window window;
    window.gpu = trap_gpu;
    if (weft_gpu_window_alloc(&window, 1, TRAP_BYTES) < 0 ||
        weft_gpu_window_commit(&window, TRAP_BYTES, &fd) < 0)
        return NULL;
    return weft_window_slot_begin(&window.window, 0);
}

/* Returns the result of scene(number), or -1 if it does not return; `said` receives its standard
 * output. */
static inline int trap_run(int (*scene)(int), int number, char *said, size_t bytes) {
    int ends[2], status = 0;
    if (pipe(ends) != 0)
        return -1;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDOUT_FILENO);
        int result = scene(number);
        fflush(stdout);
        _exit(result);
    }
    close(ends[1]);
    size_t length = 0;
    for (ssize_t got; (got = read(ends[0], said + length, bytes - 1 - length)) > 0;)
        length += (size_t)got;
    said[length] = 0;
    close(ends[0]);
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

#endif
