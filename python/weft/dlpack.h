/* SPDX-License-Identifier: BSD-3-Clause */
/* The structs of DLPack version 1, through which array libraries exchange tensors; only the parts
 * used here. Specification: github.com/dmlc/dlpack. */
#ifndef PYWEFT_DLPACK_H
#define PYWEFT_DLPACK_H

#include <stdint.h>

enum dlpack_device_type {
    DLPACK_CPU = 1,
    DLPACK_CUDA = 2,
    DLPACK_CUDA_HOST = 3, /* pinned host memory */
    DLPACK_CUDA_MANAGED = 13,
};

enum dlpack_code {
    DLPACK_INT = 0,
    DLPACK_UINT = 1,
    DLPACK_FLOAT = 2,
    DLPACK_BFLOAT = 4,
    DLPACK_COMPLEX = 5,
    DLPACK_BOOL = 6,
    DLPACK_E4M3FN = 10,
    DLPACK_E5M2 = 12,
};

struct dlpack_device {
    int32_t type, id;
};

struct dlpack_tensor {
    void *data;
    struct dlpack_device device;
    int32_t ndim;
    struct {
        uint8_t code, bits;
        uint16_t lanes;
    } dtype;
    int64_t *shape;
    int64_t *strides; /* in elements; NULL for C order */
    uint64_t byte_offset;
};

/* The content of a capsule named "dltensor". Its consumer renames it to "used_dltensor". */
struct dlpack_managed {
    struct dlpack_tensor tensor;
    void *context;
    void (*deleter)(struct dlpack_managed *self);
};

#define DLPACK_READ_ONLY (UINT64_C(1) << 0)

/* The content of a capsule named "dltensor_versioned", since version 1. */
struct dlpack_versioned {
    struct {
        uint32_t major, minor;
    } version;
    void *context;
    void (*deleter)(struct dlpack_versioned *self);
    uint64_t flags;
    struct dlpack_tensor tensor;
};

/* The content of the capsule "dlpack_exchange_api" in a type's attribute __dlpack_c_exchange_api__,
 * since version 1.3. The functions return 0 on success. */
struct dlpack_exchange {
    struct {
        uint32_t major, minor;
    } version;
    struct dlpack_exchange *older;
    void (*allocate)(void);
    int (*managed_from_object)(void *object, struct dlpack_versioned **managed);
    int (*managed_to_object)(struct dlpack_versioned *managed, void **object);
    int (*tensor_from_object)(void *object, struct dlpack_tensor *tensor); /* may be NULL */
    int (*current_work_stream)(int device_type, int32_t device_id, void **stream);
};

_Static_assert(sizeof(struct dlpack_tensor) == 48, "DLPack's layout, with 8 bytes a pointer");
_Static_assert(sizeof(struct dlpack_versioned) == 80, "DLPack's layout, with 8 bytes a pointer");

#endif
