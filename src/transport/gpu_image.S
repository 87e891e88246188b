/* SPDX-License-Identifier: BSD-3-Clause */
/* All there is in libweft_cuda.so: the kernels, as nvcc has made them (FATBIN, a file). The symbol
 * is as large as they are. */
    .section .rodata
    .balign 64
    .globl weft_cuda_image
    .type weft_cuda_image, %object
weft_cuda_image:
    .incbin FATBIN
    .size weft_cuda_image, . - weft_cuda_image
    .section .note.GNU-stack, "", %progbits
