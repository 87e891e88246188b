/* SPDX-License-Identifier: BSD-3-Clause */
#include "tensor.h"
#include "block.h"
#include "call.h"
#include "gpu.h"
#include "module.h"
#include <string.h>

enum { ELEMENT = 2, SIDE_MAX = 256, SWIZZLED_BYTES = 128 };
#define TENSOR_MARK UINT64_C(0x7e4507)
_Static_assert(sizeof(struct tensor) <= sizeof(struct weft_cu_tensor_map), "a map holds it");

static bool sides_fit(const unsigned *box, const unsigned *strides, bool swizzled) {
    unsigned bytes = box[0] * ELEMENT;
    return box[0] >= 1 && box[0] <= SIDE_MAX && box[1] >= 1 && box[1] <= SIDE_MAX &&
           strides[0] == 1 && strides[1] == 1 && bytes % TENSOR_CHUNK == 0 &&
           (!swizzled || bytes <= SWIZZLED_BYTES);
}

static int encode(struct weft_cu_tensor_map *map, const struct tensor *tensor) {
    memset(map, 0, sizeof *map);
    memcpy(map, tensor, sizeof *tensor);
    return 0;
}

static bool types_fit(int type, unsigned rank, int swizzle, int l2) {
    return (type == WEFT_CU_TENSOR_F16 || type == WEFT_CU_TENSOR_BF16) && rank == 2 &&
           (swizzle == WEFT_CU_TENSOR_NO_SWIZZLE || swizzle == WEFT_CU_TENSOR_SWIZZLE_128) &&
           l2 >= 0 && l2 <= WEFT_CU_TENSOR_L2_256;
}

int cuTensorMapEncodeTiled(struct weft_cu_tensor_map *map, int type, unsigned rank, void *at,
                           const uint64_t *sizes, const uint64_t *steps, const unsigned *box,
                           const unsigned *strides, int interleave, int swizzle, int l2, int fill) {
    bool swizzled = swizzle == WEFT_CU_TENSOR_SWIZZLE_128;
    bool fits = map && (uintptr_t)map % 64 == 0 && types_fit(type, rank, swizzle, l2) &&
                (uintptr_t)at % TENSOR_CHUNK == 0 && steps[0] % TENSOR_CHUNK == 0 &&
                steps[0] < (uint64_t)1 << 40 && sizes[0] >= 1 && sizes[0] <= (uint64_t)1 << 32 &&
                sizes[1] >= 1 && sizes[1] <= (uint64_t)1 << 32 &&
                sides_fit(box, strides, swizzled) && interleave == 0 && fill == 0;
    struct tensor tensor = {TENSOR_MARK, at, 0, 0, 0, 0, 0, swizzled, type == WEFT_CU_TENSOR_F16};
    if (fits) {
        tensor.cols = sizes[0];
        tensor.rows = sizes[1];
        tensor.step = steps[0];
        tensor.box_cols = box[0];
        tensor.box_rows = box[1];
    }
    CALL(INITIALISED, fits ? encode(map, &tensor) : CUDA_ERROR_INVALID_VALUE);
}

struct tensor tensor_of(const struct weft_cu_tensor_map *map) {
    struct tensor tensor;
    memcpy(&tensor, map, sizeof tensor);
    if (tensor.mark != TENSOR_MARK)
        thread_fault("there is no tensor map at %p", (const void *)map);
    return tensor;
}

unsigned tensor_box_bytes(const struct tensor *tensor) {
    return tensor->box_cols * tensor->box_rows * ELEMENT;
}

struct tensor_chunk tensor_chunk_of(const struct tensor *tensor, int x, int y, unsigned number) {
    unsigned row_chunks = tensor->box_cols * ELEMENT / TENSOR_CHUNK;
    unsigned row = number / row_chunks, at = number % row_chunks * TENSOR_CHUNK;
    int64_t col = x + (int64_t)(at / ELEMENT), line = y + (int64_t)row;
    unsigned place = row * tensor->box_cols * ELEMENT + at;
    struct tensor_chunk chunk = {NULL, tensor->swizzled ? (unsigned)tensor_swizzle(place) : place,
                                 0};
    if (col < 0 || line < 0 || col >= (int64_t)tensor->cols || line >= (int64_t)tensor->rows)
        return chunk;
    uint64_t left = (tensor->cols - (uint64_t)col) * ELEMENT;
    chunk.global = tensor->at + (uint64_t)line * tensor->step + (uint64_t)col * ELEMENT;
    chunk.inside = left < TENSOR_CHUNK ? (unsigned)left : TENSOR_CHUNK;
    return chunk;
}

bool tensor_reaches(const struct tensor *tensor, int x, int y, int gpu) {
    unsigned count = tensor_box_bytes(tensor) / TENSOR_CHUNK;
    const char *first = NULL, *last = NULL;
    for (unsigned i = 0; i < count; i++) {
        struct tensor_chunk chunk = tensor_chunk_of(tensor, x, y, i);
        if (chunk.inside == 0)
            continue;
        first = first ? first : chunk.global;
        last = chunk.global + chunk.inside - 1;
    }
    return !first || (kernel_reaches(first, gpu) && kernel_reaches(last, gpu));
}
