/* SPDX-License-Identifier: BSD-3-Clause */
/* The library's routines by type, with signatures without types. SHMEM_CTX_INVALID as context
 * selects the form without a context. */
#ifndef TESTS_RANDOM_ROUTINES_H
#define TESTS_RANDOM_ROUTINES_H

#include <float.h>
#include <shmem.h>
#include <stdbool.h>
#include "api/amo_model.h"

/* The bytes of a type that hold its value: the x87's 80 bits are stored in 16 bytes. */
#define VALUE_BYTES(T) \
    _Generic((T)0, long double : LDBL_MANT_DIG == 64 ? 10 : 16, default : sizeof(T))

typedef void copy(shmem_ctx_t ctx, void *dest, const void *source, size_t nelems, int pe);
typedef void copy_strided(shmem_ctx_t ctx, void *dest, const void *source, ptrdiff_t dst,
                          ptrdiff_t sst, size_t nelems, int pe);
typedef void copy_blocks(shmem_ctx_t ctx, void *dest, const void *source, ptrdiff_t dst,
                         ptrdiff_t sst, size_t bsize, size_t nblocks, int pe);
typedef void copy_signal(shmem_ctx_t ctx, void *dest, const void *source, size_t nelems,
                         uint64_t *sig_addr, uint64_t signal, int sig_op, int pe);
typedef void element(shmem_ctx_t ctx, void *dest, const void *source, int pe);

/* Put and get, for each type, for each size, and for bytes. NULL: there is no such routine. */
struct rma_routines {
    const char *name;
    uint32_t bytes, value_bytes; /* of an element, with and without padding */
    copy *put, *get, *put_nbi, *get_nbi;
    copy_signal *put_signal, *put_signal_nbi;
    copy_strided *iput, *iget;
    copy_blocks *ibput, *ibget;
    element *p, *g;
};
extern const struct rma_routines rma_routines[];
extern const int RMA_ROWS, RMA_TYPED_ROWS, RMA_STRIDED_ROWS;

/* The typed rows under C11 names. */
struct c11_routines {
    copy *put, *get, *put_nbi, *get_nbi;
};
extern const struct c11_routines c11_routines[];

/* Atomics. Values are the type's bits, in the low bytes. */
enum amo_form { SILENT, FETCHING, NBI };
typedef void amo(shmem_ctx_t ctx, enum amo_operation operation, enum amo_form form, void *fetch,
                 void *dest, uint64_t cond, uint64_t value, int pe);
struct amo_routines {
    const char *name;
    uint32_t bytes;
    amo *standard, *bitwise, *extended;
};
#define ONE_ROW(N, T, _) +1
extern const int AMO_ROWS, AMO_UINT64;
enum {
    AMO_BITWISE_ROWS = 7, /* the first; the words follow, in the order of wait_routines */
    AMO_REAL_ROWS = AMO_BITWISE_ROWS SHMEM_AMO_TYPES(ONE_ROW, _) /* the last */
};

/* These rows under the names with types, C11 names, and the old names, which few types have. */
extern const struct amo_routines amo_routines[], c11_amo_routines[], old_amo_routines[];

static inline amo *amo_routine_of(const struct amo_routines *row, enum amo_operation operation) {
    return operation >= AND ? row->bitwise : operation <= SWAP ? row->extended : row->standard;
}
static inline amo *amo_routine(int row, enum amo_operation operation) {
    return amo_routine_of(&amo_routines[row], operation);
}

/* Waits. The last rows, without sets, are the short types. */
struct wait_set {
    void *ivars;
    size_t nelems;
    size_t *indices;
    const int *status;
    int cmp;
    const void *values; /* one value, or one per word if the routine takes a vector */
    bool vector;
};
struct wait_routines {
    const char *name;
    uint32_t bytes;
    bool is_signed;
    void (*wait_until)(void *ivar, int cmp, const void *value);
    int (*test)(void *ivar, int cmp, const void *value);
    void (*wait_until_all)(const struct wait_set *set);
    size_t (*wait_until_any)(const struct wait_set *set);
    size_t (*wait_until_some)(const struct wait_set *set);
    int (*test_all)(const struct wait_set *set);
    size_t (*test_any)(const struct wait_set *set);
    size_t (*test_some)(const struct wait_set *set);
    element *p;
};
extern const struct wait_routines wait_routines[];
extern const int WAIT_ROWS, WAIT_SET_ROWS, WAIT_UINT64;

#endif
