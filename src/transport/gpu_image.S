/* SPDX-License-Identifier: BSD-3-Clause */
/* All there is in libweft_cuda.so: the images of kernels, as nvcc has made them (FATBINS, files, with
 * a comma behind each), and before them how far behind the symbol each lies, and 0. */
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
