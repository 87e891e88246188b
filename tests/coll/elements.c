/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: the element kernels, without a job: every f8, f16 and bf16 value, the latter two
 * converted and back, halfway cases, reductions of one to five sources with every type and
 * operation, in place, in rows. PEs: 1 */
#include "coll/elements.h"
#include "coll/narrow.h"
#include "ops/tensor.h"

static void widening(void) {
    tap_case("every 16-bit value widens exactly");
    for (unsigned bits = 0; bits < 65536; bits++) {
        uint16_t half = (uint16_t)bits;
        float got, bf16;
        weft_elements_widen(&got, &half, WEFT_F16, 1);
        weft_elements_widen(&bf16, &half, WEFT_BF16, 1);
        double want = half_value(half);
        EXPECT(isnan(want) ? isnan(got) : want == (double)got, "f16 %04x: %g", bits, (double)got);
        EXPECT(!signbit(want) == !signbit((double)got), "f16 %04x: sign", bits);
        EXPECT(weft_bits_of_float(bf16) == bits << 16, "bf16 %04x: %g", bits, (double)bf16);
    }
}

static void eight_bits(void) {
    tap_case("every 8-bit value widens exactly");
    for (unsigned bits = 0; bits < 256; bits++) {
        uint8_t byte = (uint8_t)bits;
        float e4m3, e5m2;
        weft_elements_widen(&e4m3, &byte, WEFT_F8E4M3, 1);
        weft_elements_widen(&e5m2, &byte, WEFT_F8E5M2, 1);
        double want = e4m3_value(byte), upper_half = half_value((uint16_t)(bits << 8));
        EXPECT(isnan(want) ? isnan(e4m3) : want == (double)e4m3, "e4m3 %02x: %g, not %g", bits,
               (double)e4m3, want);
        EXPECT(!signbit(e4m3) == !(bits & 0x80), "e4m3 %02x: sign", bits);
        EXPECT(isnan(upper_half) ? isnan(e5m2) : upper_half == (double)e5m2, "e5m2 %02x: %g", bits,
               (double)e5m2);
        EXPECT(!signbit(e5m2) == !(bits & 0x80), "e5m2 %02x: sign", bits);
    }
}

static uint16_t narrowed(weft_dtype dtype, float x) {
    uint16_t bits;
    weft_elements_narrow(&bits, dtype, &x, 1);
    return bits;
}

static void narrowing(void) {
    tap_case("narrowing rounds to nearest, ties to even");
    for (int i = 0; i < 300000; i++) {
        float x = weft_float_of_bits((uint32_t)mix((uint64_t)i));
        if (!isfinite(x))
            continue;
        double f16 = round_to(WEFT_F16, (double)x), bf16 = round_to(WEFT_BF16, (double)x);
        float got = weft_float_of_bits((uint32_t)narrowed(WEFT_BF16, x) << 16);
        EXPECT(half_value(narrowed(WEFT_F16, x)) == f16, "f16 of %a", (double)x);
        EXPECT((double)got == (fabs(bf16) < 0x1p128 ? bf16 : copysign(INFINITY, bf16)),
               "bf16 of %a", (double)x);
    }
    for (unsigned bits = 0; bits < 0x7c00; bits++) { /* the middle between two neighbours */
        double middle = (half_value((uint16_t)bits) + half_value((uint16_t)(bits + 1))) / 2;
        uint16_t even = (uint16_t)(bits + (bits & 1));
        if (bits == 0x7bff)
            middle = 65520;
        EXPECT(narrowed(WEFT_F16, (float)middle) == even, "f16 of %a", middle);
    }
    for (int dtype = WEFT_BF16; dtype <= WEFT_F16; dtype++) {
        float x;
        uint16_t bits = narrowed((weft_dtype)dtype, NAN);
        weft_elements_widen(&x, &bits, (weft_dtype)dtype, 1);
        EXPECT(isnan(x), "%s of NaN", dtype_names[dtype]);
        bits = narrowed((weft_dtype)dtype, -INFINITY);
        weft_elements_widen(&x, &bits, (weft_dtype)dtype, 1);
        EXPECT(isinf(x) && x < 0, "%s of -inf", dtype_names[dtype]);
    }
}

/* Computes in float or double like the kernel, in the order of the sources. */
static double expected(const struct tensor *sources, int nsources, weft_op op, size_t i, size_t j) {
    bool f64 = sources[0].m.dtype == WEFT_F64;
    double result = tensor_get(&sources[0], i, j);
    for (int s = 1; s < nsources; s++) {
        double x = tensor_get(&sources[s], i, j);
        result = op == WEFT_MAX    ? fmax(result, x)
                 : op == WEFT_MIN  ? fmin(result, x)
                 : op == WEFT_PROD ? result * x
                                   : result + x;
        result = f64 ? result : (double)(float)result;
    }
    if (op == WEFT_AVG)
        result = f64 ? result / nsources : (double)((float)result / (float)nsources);
    return round_to(sources[0].m.dtype, result);
}

static void reduce_case(weft_dtype dtype, weft_op op, int nsources, size_t rows, size_t cols,
                        int in_place) {
    struct tensor sources[5], dest = tensor_new(PRIVATE, rows, cols, cols + 3, dtype);
    weft_matrix matrices[5];
    for (int s = 0; s < nsources; s++) {
        sources[s] = tensor_new(PRIVATE, rows, cols, cols + (size_t)s, dtype);
        tensor_fill(&sources[s], (uint64_t)s + 1);
        matrices[s] = sources[s].m;
    }
    double *want = malloc(rows * cols * sizeof *want);
    for (size_t e = 0; e < rows * cols; e++)
        want[e] = expected(sources, nsources, op, e / cols, e % cols);
    struct tensor *to = in_place >= 0 ? &sources[in_place] : &dest;
    weft_elements_reduce(&to->m, matrices, nsources, op);
    for (size_t e = 0; e < rows * cols; e++)
        EXPECT(tensor_get(to, e / cols, e % cols) == want[e], "%s op %d of %d: %g, not %g",
               dtype_names[dtype], (int)op, nsources, tensor_get(to, e / cols, e % cols), want[e]);
    EXPECT(tensor_guarded(to), "wrote outside of dest");
    free(want);
    tensor_free(&dest);
    for (int s = 0; s < nsources; s++)
        tensor_free(&sources[s]);
}

static void reductions(void) {
    tap_case("reductions are exact in their order, also in place");
    for (size_t d = 0; d < 4; d++)
        for (weft_op op = WEFT_SUM; op <= WEFT_PROD; op++)
            for (int nsources = 1; nsources <= 5; nsources++) {
                reduce_case(all_dtypes[d], op, nsources, 1, 2500, -1);
                reduce_case(all_dtypes[d], op, nsources, 7, 33, -1);
                reduce_case(all_dtypes[d], op, nsources, 3, 1030, nsources - 1);
            }
}

static void copies(void) {
    tap_case("copies from and to transposed matrices");
    static const struct {
        size_t rows, cols;
    } shapes[] = {{1, 1}, {1, 70}, {70, 1}, {33, 31}, {64, 64}, {100, 7}, {0, 5}, {5, 0}};
    static const weft_dtype dtypes[] = {WEFT_U8, WEFT_BF16, WEFT_F32, WEFT_F64};
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (size_t d = 0; d < 4; d++)
            for (int way = 0; way < 4; way++) {
                size_t rows = shapes[s].rows, cols = shapes[s].cols;
                weft_matrix m = {NULL, rows, cols, (way & 1 ? rows : cols) + 3, dtypes[d], way & 1};
                struct tensor source = tensor_of(PRIVATE, m);
                m.transposed = way & 2;
                m.ld = (m.transposed ? rows : cols) + (size_t)way % 3;
                struct tensor dest = tensor_of(PRIVATE, m);
                size_t bytes = weft_dtype_bytes(dtypes[d]);
                for (size_t e = 0; e < rows * cols; e++)
                    memset(tensor_at(&source, e / cols, e % cols), (int)(e % 251), bytes);
                weft_elements_copy(&dest.m, &source.m);
                for (size_t e = 0; e < rows * cols; e++)
                    EXPECT(!memcmp(tensor_at(&dest, e / cols, e % cols),
                                   tensor_at(&source, e / cols, e % cols), bytes),
                           "%zu x %zu of %zu bytes, way %d: element %zu", rows, cols, bytes, way,
                           e);
                EXPECT(tensor_guarded(&dest), "wrote outside of dest");
                tensor_free(&source);
                tensor_free(&dest);
            }
}

int main(void) {
    tap_start(0);
    copies();
    widening();
    eight_bits();
    narrowing();
    reductions();
    return tap_finish();
}
