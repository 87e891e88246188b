/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses and physical memory: reservations, memory, and mappings of the one into the other.
 *
 * Memory is a memfd whose name tells its GPU, so that every process that gets the descriptor
 * knows; nothing of it is left when the last process has ended. New memory begins with garbage.
 * Engines (copies, stream memory operations) use a mapping of the whole memory of their own. */
#ifndef TESTS_GPU_DRIVER_SPACE_H
#define TESTS_GPU_DRIVER_SPACE_H

#include "call.h"

/* What lies at an address. PAGEABLE: host memory that is not registered. */
enum place { PLACE_PAGEABLE, PLACE_REGISTERED, PLACE_DEVICE };

/* What all of [address, address + bytes) is, for an operation of this GPU. INVALID_VALUE where it
 * is not one thing, not mapped, or without access for the GPU. */
int space_place(uintptr_t address, size_t bytes, int gpu, enum place *place);

/* As space_place, for what kernels and stream memory operations reach: not pageable memory. */
bool space_reaches(uintptr_t address, size_t bytes, int gpu);

/* The GPU whose memory is mapped at an address, or -1. */
int space_owner(uintptr_t address);

/* The first of `bytes` at an address as engines find them, all within one memory, which stays until
 * it is dropped. ILLEGAL_ADDRESS if it is gone by now. */
struct piece {
    unsigned char *at;
    size_t bytes;
    struct memory *memory;
};
int space_piece(uintptr_t address, size_t bytes, int gpu, struct piece *piece);
void space_piece_drop(struct piece *piece);

#endif
