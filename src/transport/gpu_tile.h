/* SPDX-License-Identifier: BSD-3-Clause */
/* The tiles of C that kernels for Hopper compute (fused/hopper.cu): one kernel for each width and
 * order of B. */
#ifndef WEFT_TRANSPORT_GPU_TILE_H
#define WEFT_TRANSPORT_GPU_TILE_H

/* A list of Y(X, name, suffix, width, transposed, percent). X and name are passed on. suffix: the
 * end of a kernel's name; width: columns of a tile; transposed: the order of B; percent: the time
 * of a column in per cent of a column's time in the widest tile. A row-major B is loaded in boxes
 * of 64 columns. */
#define WEFT_GPU_TILES(Y, X, name)             \
    Y(X, name, 256, 256, true, 100)            \
    Y(X, name, 208, 208, true, 101)            \
    Y(X, name, 168, 168, true, 103)            \
    Y(X, name, 256_row_major, 256, false, 100) \
    Y(X, name, 192_row_major, 192, false, 102)

#endif
