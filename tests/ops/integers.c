/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: weft_all_reduce and weft_reduce_scatter of integers, truth values and complex
 * numbers have exact results: all operations of each type, over its whole range, with sizes on both
 * sides of every change of algorithm. An operation that a type lacks gives an error text. */
#include <complex.h>
#include <errno.h>
#include "ops/tensor.h"

enum { PES_MAX = 16, NELEMS_MAX = 5000 };
static int me, npes;

static bool is_signed(weft_dtype dtype) {
    return dtype >= WEFT_I8 && dtype <= WEFT_I64;
}

/* --- Integers, in 64 bits that are truncated at the end --------------------------------------- */

static uint64_t number(weft_dtype dtype, uint64_t round, int pe, size_t i) {
    uint64_t bits = mix(mix(round * 64 + (uint64_t)pe) + i);
    unsigned unused = 64 - 8 * (unsigned)weft_dtype_bytes(dtype);
    if (dtype == WEFT_BOOL)
        return bits & 1;
    return is_signed(dtype) ? (uint64_t)((int64_t)bits >> unused) : bits >> unused;
}

static uint64_t combined(weft_dtype dtype, weft_op op, uint64_t a, uint64_t b) {
    bool less = is_signed(dtype) ? (int64_t)a < (int64_t)b : a < b;
    if (dtype == WEFT_BOOL)
        return op == WEFT_SUM || op == WEFT_MAX ? a | b : a & b;
    return op == WEFT_SUM ? a + b : op == WEFT_PROD ? a * b : (op == WEFT_MAX) == less ? b : a;
}

static uint64_t reduced(weft_dtype dtype, weft_op op, uint64_t round, size_t i) {
    uint64_t result = number(dtype, round, 0, i);
    for (int pe = 1; pe < npes; pe++)
        result = combined(dtype, op, result, number(dtype, round, pe, i));
    return result;
}

/* dest holds the reductions of elements [first, first + nelems). Little-endian. */
static void expect_reduced(const void *dest, weft_dtype dtype, weft_op op, uint64_t round,
                           size_t first, size_t nelems) {
    size_t bytes = weft_dtype_bytes(dtype);
    for (size_t i = 0; i < nelems; i++) {
        uint64_t want = reduced(dtype, op, round, first + i);
        const char *got = (const char *)dest + i * bytes;
        EXPECT(memcmp(got, &want, bytes) == 0, "%s op %d, %zu elements: [%zu] is not %llx",
               dtype_names[dtype], (int)op, nelems, i, (unsigned long long)want);
    }
}

static void reduce(weft_dtype dtype, weft_op op, size_t nelems, uint64_t round) {
    static _Alignas(16) char source[NELEMS_MAX * PES_MAX * 8], dest[NELEMS_MAX * 8];
    size_t bytes = weft_dtype_bytes(dtype);
    for (size_t i = 0; i < nelems * (size_t)npes; i++) {
        uint64_t bits = number(dtype, round, me, i);
        memcpy(source + i * bytes, &bits, bytes);
    }
    int error =
        weft_reduce_scatter(SHMEM_TEAM_WORLD, dest, source, nelems, dtype, op, WEFT_STREAM_HOST);
    EXPECT(error == 0, "%d: %s", error, weft_last_error());
    expect_reduced(dest, dtype, op, round, nelems * (size_t)me, nelems);
    error = weft_all_reduce(SHMEM_TEAM_WORLD, source, source, nelems, dtype, op, WEFT_STREAM_HOST);
    EXPECT(error == 0, "%d: %s", error, weft_last_error());
    expect_reduced(source, dtype, op, round, 0, nelems);
}

static void integers(void) {
    static const size_t sizes[] = {0, 1, 15, 16, 129, 1025, NELEMS_MAX};
    uint64_t round = 0;
    for (int dtype = WEFT_I8; dtype <= WEFT_BOOL; dtype++) {
        tap_case(dtype_names[dtype]);
        for (weft_op op = WEFT_SUM; op <= WEFT_PROD; op++)
            for (size_t s = 0; op != WEFT_AVG && s < sizeof sizes / sizeof *sizes; s++)
                reduce((weft_dtype)dtype, op, sizes[s], round++);
    }
}

/* --- Complex numbers, small enough to be exact ------------------------------------------------ */

static double complex whole(uint64_t round, int pe, size_t i) {
    uint64_t bits = mix(mix(round * 64 + (uint64_t)pe) + i);
    return (double)(bits % 5) - 2 + I * ((double)(bits / 5 % 5) - 2);
}

static double complex reduced_complex(weft_op op, uint64_t round, size_t i) {
    double complex result = whole(round, 0, i);
    for (int pe = 1; pe < npes; pe++)
        result = op == WEFT_PROD ? result * whole(round, pe, i) : result + whole(round, pe, i);
    return result;
}

static void expect_complex(weft_dtype dtype, weft_op op, uint64_t round, size_t i,
                           double complex got) {
    double complex want = reduced_complex(op, round, i);
    if (op == WEFT_AVG && dtype == WEFT_C64)
        want = (double)((float)creal(want) / (float)npes) +
               I * (double)((float)cimag(want) / (float)npes);
    else if (op == WEFT_AVG)
        want = creal(want) / npes + I * (cimag(want) / npes);
    EXPECT(creal(got) == creal(want) && cimag(got) == cimag(want),
           "%s op %d: [%zu] is %g + %gi, not %g + %gi", dtype_names[dtype], (int)op, i, creal(got),
           cimag(got), creal(want), cimag(want));
}

static void complexes(weft_dtype dtype, weft_op op, size_t nelems, uint64_t round) {
    static double complex doubles[NELEMS_MAX];
    static float complex floats[NELEMS_MAX];
    bool narrow = dtype == WEFT_C64;
    void *x = narrow ? (void *)floats : (void *)doubles;
    for (size_t i = 0; i < nelems; i++) {
        doubles[i] = whole(round, me, i);
        floats[i] = (float complex)doubles[i];
    }
    int error = weft_all_reduce(SHMEM_TEAM_WORLD, x, x, nelems, dtype, op, WEFT_STREAM_HOST);
    EXPECT(error == 0, "%d: %s", error, weft_last_error());
    for (size_t i = 0; i < nelems; i++)
        expect_complex(dtype, op, round, i, narrow ? (double complex)floats[i] : doubles[i]);
}

static void complex_numbers(void) {
    static const weft_op ops[] = {WEFT_SUM, WEFT_AVG, WEFT_PROD};
    static const size_t sizes[] = {1, 8, 9, 1030, NELEMS_MAX};
    for (int dtype = WEFT_C64; dtype <= WEFT_C128; dtype++) {
        tap_case(dtype_names[dtype]);
        for (size_t o = 0; o < 3; o++)
            for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
                complexes((weft_dtype)dtype, ops[o], sizes[s], o * 10 + s);
    }
}

/* --- Operations that types lack --------------------------------------------------------------- */

static void expect_none(weft_dtype dtype, weft_op op, const char *text) {
    char x[16] = {0}, y[16] = {GUARD};
    int error = weft_all_reduce(SHMEM_TEAM_WORLD, y, x, 1, dtype, op, WEFT_STREAM_HOST);
    EXPECT(error == -EINVAL, "%s: %d", text, error);
    EXPECT(strstr(weft_last_error(), text), "\"%s\", not \"%s\"", weft_last_error(), text);
    EXPECT(y[0] == GUARD, "%s: written", text);
}

static void missing(void) {
    tap_case("operations that a type does not have");
    expect_none(WEFT_I32, WEFT_AVG, "op is WEFT_AVG, which WEFT_I32 does not have");
    expect_none(WEFT_U8, WEFT_AVG, "op is WEFT_AVG, which WEFT_U8 does not have");
    expect_none(WEFT_BOOL, WEFT_AVG, "op is WEFT_AVG, which WEFT_BOOL does not have");
    expect_none(WEFT_C64, WEFT_MAX, "op is WEFT_MAX, which WEFT_C64 does not have");
    expect_none(WEFT_F8E4M3, WEFT_SUM, "op is WEFT_SUM, which WEFT_F8E4M3 does not have");
    expect_none(WEFT_F8E5M2, WEFT_MIN, "op is WEFT_MIN, which WEFT_F8E5M2 does not have");
}

int main(void) {
    tensors_open(true);
    me = shmem_my_pe();
    npes = shmem_n_pes();
    integers();
    complex_numbers();
    missing();
    shmem_free(heap_arena);
    return tap_finish();
}
