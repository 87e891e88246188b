/* SPDX-License-Identifier: BSD-3-Clause */
/* Routines that OpenSHMEM 1.6 deprecates but still requires, except the collectives on active sets.
 * include/shmem_deprecated.h lists the other files that belong to them and can be removed with
 * them. */
#include "core/init.h"
#include "api/amo.h"
#include "api/body.h"
#include "api/define.h"
#include "api/wait.h"

/* Does nothing if the library is initialised already; the end of the program finalizes. */
API_NAMED(void, start_pes, (int npes)) {
    WEFT_IN_CALL(__func__);
    (void)npes;
    if (!weft_initialized())
        weft_setup_init();
}

API_NAMED(int, _my_pe, (void)) {
    weft_check_running(__func__);
    return weft_job.pe;
}

API_NAMED(int, _num_pes, (void)) {
    weft_check_running(__func__);
    return weft_job.npes;
}

API_NAMED(void *, shmalloc, (size_t size)) {
    WEFT_ENTER(__func__);
    return weft_memory_malloc(size);
}

API_NAMED(void *, shmemalign, (size_t alignment, size_t size)) {
    WEFT_ENTER(__func__);
    return weft_memory_align(alignment, size);
}

API_NAMED(void *, shrealloc, (void *ptr, size_t size)) {
    WEFT_ENTER(__func__);
    return weft_memory_realloc(ptr, size);
}

API_NAMED(void, shfree, (void *ptr)) {
    WEFT_ENTER(__func__);
    weft_memory_free(ptr);
}

/* clang-format off */
/* Atomics without `atomic` in their names, and without contexts. */
#define NUMBER(N, T, _)                                                                            \
    API(T, N##_fetch, (const T *source, int pe)) {                                                 \
        AMO_RETURN(WEFT_AMO_FETCH, T, source, NULL, NULL)                                          \
    }                                                                                              \
    API(void, N##_set, (T *dest, T value, int pe)) {                                               \
        AMO_SILENT(WEFT_AMO_SET, T, dest, &value, NULL)                                            \
    }                                                                                              \
    API(T, N##_swap, (T *dest, T value, int pe)) {                                                 \
        AMO_RETURN(WEFT_AMO_SWAP, T, dest, &value, NULL)                                           \
    }
#define INTEGER(N, T, _)                                                                           \
    API(T, N##_cswap, (T *dest, T cond, T value, int pe)) {                                        \
        AMO_RETURN(WEFT_AMO_COMPARE_SWAP, T, dest, &value, &cond)                                  \
    }                                                                                              \
    API(T, N##_finc, (T *dest, int pe)) {                                                          \
        AMO_RETURN(WEFT_AMO_ADD, T, dest, &(T){1}, NULL)                                           \
    }                                                                                              \
    API(void, N##_inc, (T *dest, int pe)) {                                                        \
        AMO_SILENT(WEFT_AMO_ADD, T, dest, &(T){1}, NULL)                                           \
    }                                                                                              \
    API(T, N##_fadd, (T *dest, T value, int pe)) {                                                 \
        AMO_RETURN(WEFT_AMO_ADD, T, dest, &value, NULL)                                            \
    }                                                                                              \
    API(void, N##_add, (T *dest, T value, int pe)) {                                               \
        AMO_SILENT(WEFT_AMO_ADD, T, dest, &value, NULL)                                            \
    }
SHMEM_OLD_NUMBER_TYPES(NUMBER, _)
SHMEM_OLD_INTEGER_TYPES(INTEGER, _)

/* Waits under their old names, and on short integers. */
#define WAIT_UNTIL(NAME, T)                                                                        \
    API(void, NAME, (T *ivar, int cmp, T cmp_value)) {                                             \
        weft_api_wait_until(__func__, WEFT_IVAR_TYPE(T), ivar, cmp, &cmp_value);                   \
    }
#define WAIT(NAME, T)                                                                              \
    API(void, NAME, (T *ivar, T cmp_value)) {                                                      \
        weft_api_wait_until(__func__, WEFT_IVAR_TYPE(T), ivar, SHMEM_CMP_NE, &cmp_value);          \
    }
#define TYPED_WAIT(N, T, _) WAIT(N##_wait, T)
SHMEM_SHORTS(WEFT_WAITS, _)
SHMEM_TO_ALL_BITWISE_TYPES(TYPED_WAIT, _)
WAIT_UNTIL(wait_until, long)
WAIT(wait, long)
