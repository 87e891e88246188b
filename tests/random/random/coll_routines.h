/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives by type, with signatures without types, and folds for the model. */
#ifndef TESTS_RANDOM_COLL_ROUTINES_H
#define TESTS_RANDOM_COLL_ROUTINES_H

#include <shmem.h>
#include <stdbool.h>

enum { FOLD_AND, FOLD_OR, FOLD_XOR, FOLD_MAX, FOLD_MIN, FOLD_SUM, FOLD_PROD };

struct active_set {
    int start, log_stride, size;
    long *psync;
};

typedef int gather(shmem_team_t team, void *dest, const void *source, size_t nelems);
typedef void active_gather(void *dest, const void *source, size_t nelems,
                           const struct active_set *set);

/* Copies, for each type and for bytes. */
struct move_routines {
    const char *name;
    uint32_t bytes;
    int (*broadcast)(shmem_team_t team, void *dest, const void *source, size_t nelems, int root);
    gather *collect, *fcollect, *alltoall;
    int (*alltoalls)(shmem_team_t team, void *dest, const void *source, ptrdiff_t dst,
                     ptrdiff_t sst, size_t nelems);
};
extern const struct move_routines move_routines[];
extern const int MOVE_ROWS;

/* Collectives on active sets, of 32 and 64 bits. */
struct active_routines {
    const char *name;
    uint32_t bytes;
    void (*broadcast)(void *dest, const void *source, size_t nelems, int root,
                      const struct active_set *set);
    active_gather *collect, *fcollect, *alltoall;
    void (*alltoalls)(void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems,
                      const struct active_set *set);
};
extern const struct active_routines active_routines[2];

/* Reductions and scans. A row has exactly one of the three routines, or both of a scan. */
struct fold_routines {
    const char *name;
    uint32_t bytes, value_bytes;
    gather *reduce, *inscan, *exscan;
    void (*to_all)(void *dest, const void *source, int nelems, const struct active_set *set,
                   void *pwrk);
    void (*fold)(void *sum, const void *operand, size_t nelems); /* sum = sum op operand */
    void (*operand)(void *to, uint64_t choice); /* an exact operand; NULL: any bits are valid */
};
extern const struct fold_routines reduce_routines[], scan_routines[], to_all_routines[];
extern const int REDUCE_ROWS, SCAN_ROWS, TO_ALL_ROWS;

#endif
