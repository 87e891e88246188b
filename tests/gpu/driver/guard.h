/* SPDX-License-Identifier: BSD-3-Clause */
/* Keeps GPU memory from the host's own code: an access by mistake raises SIGSEGV (or is
 * EFAULT from the kernel), as with a real GPU.
 *
 * Copies and stream memory operations go through a second mapping elsewhere; only kernels need the
 * memory at its own address, and only those of GPUs that have been given access. Where the
 * processor has protection keys for memory (x86's pku), the threads of such streams may touch it
 * and no other thread ever may, whenever it was created: Linux denies every key but 0 to begin
 * with. Where it has none, the memory is open to all threads of the process while a kernel of such
 * a GPU runs in it, and closed after its first kernels, and sometimes after later ones.
 *
 * Under driver_lock. */
#ifndef TESTS_GPU_DRIVER_GUARD_H
#define TESTS_GPU_DRIVER_GUARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Maps memory for kernels of these GPUs, one bit each; changes the set; unmaps it, keeping the
 * addresses reserved. */
bool guard_map(uintptr_t at, size_t bytes, int fd, size_t offset, uint32_t gpus);
bool guard_change(uintptr_t at, uint32_t gpus);
void guard_unmap(uintptr_t at, size_t bytes);

/* Around a kernel, in the thread of a stream. */
void guard_kernel_begin(int gpu);
void guard_kernel_end(int gpu);

#endif
