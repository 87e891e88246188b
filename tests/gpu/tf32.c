/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: WEFT_TF32=1 lets products of f32 on streams round factors to 19 bits; f64 keeps its
 * bits. PEs: 1 2 */
#include "gpu/matrices.h"

enum { SIDE = 16 };

/* Every element of a is 1 + 2^-12, which has more bits than 19; b is the unit matrix. */
static double multiplied(weft_dtype dtype) {
    draw_alike(1);
    struct tensor a = tensor_new(PRIVATE, SIDE, SIDE, SIDE, dtype),
                  b = tensor_new(PRIVATE, SIDE, SIDE, SIDE, dtype);
    for (size_t i = 0; i < SIDE; i++)
        for (size_t j = 0; j < SIDE; j++) {
            element_set(dtype, tensor_at(&a, i, j), 1 + 0x1p-12);
            element_set(dtype, tensor_at(&b, i, j), i == j && group.me == 0);
        }
    struct placed left = place(OWN, a), right = place(OWN, b),
                  c = place(OWN, tensor_new(PRIVATE, SIDE, SIDE, SIDE, dtype));
    done(weft_matmul_all_reduce(group.team, &left.m, &right.m, WEFT_SUM, &c.m, stream()),
         "matmul_all_reduce");
    gpu_drain(gpu_stream);
    take_back(&c);
    double found = tensor_get(&c.image, SIDE - 1, 0);
    tensor_free(&a), tensor_free(&b), tensor_free(&c.image);
    return found;
}

/* A library may keep all bits of a small product. */
static void rounded(void) {
    double f32 = multiplied(WEFT_F32), f64 = multiplied(WEFT_F64);
    EXPECT(f32 == 1 || (f32 == 1 + 0x1p-12 && !gpu_is_pretended()), "of f32: %.17g", f32);
    EXPECT(f64 == 1 + 0x1p-12, "of f64: %.17g", f64);
}

int main(void) {
    setenv("WEFT_TF32", "1", 1);
    matrices_start();
    with_group(SHMEM_TEAM_WORLD, "factors of f32 are rounded, those of f64 are not", rounded);
    return gpu_finish();
}
