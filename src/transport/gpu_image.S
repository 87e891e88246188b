/* SPDX-License-Identifier: BSD-3-Clause */
/* The whole content of libweft_cuda.so: before the images of kernels that nvcc has made (FATBINS,
 * files, each followed by a comma) a table with the offset of each image from the symbol, ended by
 * 0. */
    .section .rodata
    .balign 64
    .globl weft_cuda_images
    .type weft_cuda_images, %object
weft_cuda_images:
    .irp fatbin, FATBINS
    .ifnb \fatbin
    .pushsection .rodata, 1
    .balign 64
1:
    .incbin "\fatbin"
    .popsection
    .quad 1b - weft_cuda_images
    .endif
    .endr
    .quad 0
    .size weft_cuda_images, . - weft_cuda_images
    .section .note.GNU-stack, "", %progbits
