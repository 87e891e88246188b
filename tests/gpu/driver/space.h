/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses and physical memory: reservations, memory, and mappings of memory at addresses. Memory
 * is a memfd whose name contains its GPU, for every process that receives the descriptor; it
 * disappears when the last process has ended. New memory contains garbage. Engines (copies, stream
 * memory operations) use a mapping of the whole memory of their own. */
#ifndef TESTS_GPU_DRIVER_SPACE_H
#define TESTS_GPU_DRIVER_SPACE_H

#include "call.h"

/* The kind of memory at an address. PAGEABLE: host memory that is not registered. */
enum place { PLACE_PAGEABLE, PLACE_REGISTERED, PLACE_DEVICE };

/* Finds the kind of all of [address, address + bytes), for an operation of this GPU. Returns
 * INVALID_VALUE if the range has several kinds, is not mapped, or gives the GPU no access. */
int space_place(uintptr_t address, size_t bytes, int gpu, enum place *place);

/* Like space_place, for kernels and stream memory operations, which cannot access pageable memory.
 */
bool space_reaches(uintptr_t address, size_t bytes, int gpu);

/* The GPU whose memory is mapped at an address, or -1. */
int space_owner(uintptr_t address);

/* The first part of `bytes` at an address, as engines see it, within one memory, which stays until
 * the piece is dropped. ILLEGAL_ADDRESS if it is gone. */
struct piece {
    unsigned char *at;
    size_t bytes;
    struct memory *memory;
};
int space_piece(uintptr_t address, size_t bytes, int gpu, struct piece *piece);
void space_piece_drop(struct piece *piece);

#endif
