/* SPDX-License-Identifier: BSD-3-Clause */
/* wgmma: a warpgroup adds the product of 64 x 16 and 16 x WIDTH elements in shared memory to 64 x
 * WIDTH sums. Thread t of the warpgroup has the sums of rows t / 32 * 16 + t % 32 / 4 and + 8: in
 * its sums 4j and 4j + 1 those of the first row and columns 8j + t % 4 * 2 and + 1, in 4j + 2 and
 * 4j + 3 those of the second row.
 *
 * The instruction names each register, so the lists are made of tens. */
#ifndef WEFT_FUSED_HOPPER_MMA_CUH
#define WEFT_FUSED_HOPPER_MMA_CUH

#include "fused/hopper_ptx.cuh"

#ifdef __CUDACC__

#define WEFT_FOUR_NAMES(ten) "%" #ten "0, %" #ten "1, %" #ten "2, %" #ten "3"
#define WEFT_TEN_NAMES(ten) \
    WEFT_FOUR_NAMES(ten)    \
    ", %" #ten "4, %" #ten "5, %" #ten "6, %" #ten "7, %" #ten "8, %" #ten "9, "
#define WEFT_EIGHTY_NAMES \
    WEFT_TEN_NAMES()      \
    WEFT_TEN_NAMES(1)     \
    WEFT_TEN_NAMES(2)     \
    WEFT_TEN_NAMES(3) WEFT_TEN_NAMES(4) WEFT_TEN_NAMES(5) WEFT_TEN_NAMES(6) WEFT_TEN_NAMES(7)
#define WEFT_NAMES_84  WEFT_EIGHTY_NAMES WEFT_FOUR_NAMES(8)
#define WEFT_NAMES_96  WEFT_EIGHTY_NAMES WEFT_TEN_NAMES(8) "%90, %91, %92, %93, %94, %95"
#define WEFT_NAMES_104 WEFT_EIGHTY_NAMES WEFT_TEN_NAMES(8) WEFT_TEN_NAMES(9) WEFT_FOUR_NAMES(10)
#define WEFT_NAMES_128                                                       \
    WEFT_EIGHTY_NAMES WEFT_TEN_NAMES(8) WEFT_TEN_NAMES(9) WEFT_TEN_NAMES(10) \
        WEFT_TEN_NAMES(11) "%120, %121, %122, %123, %124, %125, %126, %127"

#define WEFT_SUM(i)         "+f"(sums[i])
#define WEFT_FOUR_SUMS(ten) WEFT_SUM(ten##0), WEFT_SUM(ten##1), WEFT_SUM(ten##2), WEFT_SUM(ten##3)
#define WEFT_TEN_SUMS(ten)                                                                       \
    WEFT_FOUR_SUMS(ten), WEFT_SUM(ten##4), WEFT_SUM(ten##5), WEFT_SUM(ten##6), WEFT_SUM(ten##7), \
        WEFT_SUM(ten##8), WEFT_SUM(ten##9)
#define WEFT_EIGHTY_SUMS                                                                     \
    WEFT_TEN_SUMS(), WEFT_TEN_SUMS(1), WEFT_TEN_SUMS(2), WEFT_TEN_SUMS(3), WEFT_TEN_SUMS(4), \
        WEFT_TEN_SUMS(5), WEFT_TEN_SUMS(6), WEFT_TEN_SUMS(7)
#define WEFT_SUMS_84 WEFT_EIGHTY_SUMS, WEFT_FOUR_SUMS(8)
#define WEFT_SUMS_96                                                                            \
    WEFT_EIGHTY_SUMS, WEFT_TEN_SUMS(8), WEFT_SUM(90), WEFT_SUM(91), WEFT_SUM(92), WEFT_SUM(93), \
        WEFT_SUM(94), WEFT_SUM(95)
#define WEFT_SUMS_104 WEFT_EIGHTY_SUMS, WEFT_TEN_SUMS(8), WEFT_TEN_SUMS(9), WEFT_FOUR_SUMS(10)
#define WEFT_SUMS_128                                                                           \
    WEFT_EIGHTY_SUMS, WEFT_TEN_SUMS(8), WEFT_TEN_SUMS(9), WEFT_TEN_SUMS(10), WEFT_TEN_SUMS(11), \
        WEFT_FOUR_SUMS(12), WEFT_SUM(124), WEFT_SUM(125), WEFT_SUM(126), WEFT_SUM(127)

/* a: from weft_wgmma_matrix. b: from weft_wgmma_matrix if it is transposed, from weft_wgmma_boxes
 * if it is row-major. keep: 0 for sums that begin. */
#define WEFT_WGMMA(name, by_rows, width, count, element, a_name, b_name, keep_name)              \
    WEFT_DEVICE void name(struct weft_##element, float(&sums)[count], uint64_t a, uint64_t b,    \
                          int keep) {                                                            \
        __asm__ volatile("{\n.reg .pred p;\nsetp.ne.b32 p, " keep_name ", 0;\n"                  \
                         "wgmma.mma_async.sync.aligned.m64n" #width "k16.f32." #element          \
                         "." #element " {" WEFT_NAMES_##count "}, " a_name ", " b_name           \
                                                              ", p, 1, 1, 0, " #by_rows ";\n}\n" \
                         : WEFT_SUMS_##count                                                     \
                         : "l"(a), "l"(b), "r"(keep));                                           \
    }
#define WEFT_WGMMA_WIDTHS(element)                                                     \
    WEFT_WGMMA(weft_wgmma_add, 0, 256, 128, element, "%128", "%129", "%130")           \
    WEFT_WGMMA(weft_wgmma_add, 0, 208, 104, element, "%104", "%105", "%106")           \
    WEFT_WGMMA(weft_wgmma_add, 0, 168, 84, element, "%84", "%85", "%86")               \
    WEFT_WGMMA(weft_wgmma_add_row_major, 1, 256, 128, element, "%128", "%129", "%130") \
    WEFT_WGMMA(weft_wgmma_add_row_major, 1, 192, 96, element, "%96", "%97", "%98")
WEFT_WGMMA_WIDTHS(bf16)
WEFT_WGMMA_WIDTHS(f16)

#undef WEFT_FOUR_NAMES
#undef WEFT_TEN_NAMES
#undef WEFT_EIGHTY_NAMES
#undef WEFT_NAMES_84
#undef WEFT_NAMES_96
#undef WEFT_NAMES_104
#undef WEFT_NAMES_128
#undef WEFT_SUM
#undef WEFT_FOUR_SUMS
#undef WEFT_TEN_SUMS
#undef WEFT_EIGHTY_SUMS
#undef WEFT_SUMS_84
#undef WEFT_SUMS_96
#undef WEFT_SUMS_104
#undef WEFT_SUMS_128
#undef WEFT_WGMMA
#undef WEFT_WGMMA_WIDTHS

#endif

#endif
