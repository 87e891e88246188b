/* SPDX-License-Identifier: BSD-3-Clause */
/* Maps of matrices of 2-byte elements, as cuTensorMapEncodeTiled makes them here, and boxes. */
#ifndef TESTS_GPU_DRIVER_TENSOR_H
#define TESTS_GPU_DRIVER_TENSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TENSOR_CHUNK = 16 }; /* bytes, of a row of a box */

struct tensor {
    uint64_t mark; /* TENSOR_MARK in a map that has been made */
    char *at;
    uint64_t cols, rows, step; /* elements, and bytes between rows */
    unsigned box_cols, box_rows;
    bool swizzled, f16; /* f16: otherwise bf16 */
};

struct weft_cu_tensor_map;

/* Returns what a map contains, or ends the kernel. */
struct tensor tensor_of(const struct weft_cu_tensor_map *map);

/* Returns the bytes of a box. */
unsigned tensor_box_bytes(const struct tensor *tensor);

/* A chunk of a box, whose first element is column x and row y: `shared` is its place in a box at an
 * address; of its bytes in the matrix, at `global`, the first `inside` exist. */
struct tensor_chunk {
    char *global;
    unsigned shared, inside;
};
struct tensor_chunk tensor_chunk_of(const struct tensor *tensor, int x, int y, unsigned number);

/* Returns whether kernels of a GPU reach all of the box that is inside the matrix. */
bool tensor_reaches(const struct tensor *tensor, int x, int y, int gpu);

/* Returns where swizzled memory at an address has the byte that rows of 128 bytes have there. */
static inline uintptr_t tensor_swizzle(uintptr_t address) {
    return address ^ (address >> 3 & 0x70);
}

#endif
