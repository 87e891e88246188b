/* SPDX-License-Identifier: BSD-3-Clause */
/* A safetensors file, mapped read-only: named tensors over one buffer of bytes.
 *
 *     | header bytes: u64 LE | JSON header | buffer: tensor, tensor, ... without hole or overlap |
 *
 * All values of the header are checked against the file before they are used. */
#ifndef MINILM_SAFETENSORS_H
#define MINILM_SAFETENSORS_H

#include <stddef.h>
#include <stdint.h>

enum { TENSOR_RANK_MAX = 8, TENSOR_NAME_MAX = 128 };

struct tensor {
    char name[TENSOR_NAME_MAX];
    char dtype[12]; /* as written in the file: F32, BF16, I64, ... */
    size_t rank, shape[TENSOR_RANK_MAX];
    size_t nelems, begin, end; /* begin and end: bytes in the buffer */
};

struct safetensors {
    const char *path;
    const unsigned char *map, *buffer;
    size_t map_bytes, buffer_bytes;
    struct tensor *tensors; /* in the order of the buffer */
    size_t count;
};

/* Keeps `path` without a copy. Returns 0, or -1 with fail_text(). */
int safetensors_open(struct safetensors *file, const char *path);
void safetensors_close(struct safetensors *file);

/* Returns the tensor of that name with exactly rows x cols elements of a type that can be read as
 * float; cols 0: a vector of `rows`; rows 0: any number of rows. Returns NULL with fail_text() if
 * there is none. */
const struct tensor *safetensors_find(const struct safetensors *file, const char *name, size_t rows,
                                      size_t cols);

/* dest[i] = element first + i, for i < nelems; F16 and BF16 are widened. */
void safetensors_read(const struct safetensors *file, const struct tensor *tensor, size_t first,
                      size_t nelems, float *dest);

#endif
