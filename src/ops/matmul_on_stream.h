/* SPDX-License-Identifier: BSD-3-Clause */
/* The products of weft.h on a stream. The calls check the arguments, which are those of weft.h. */
#ifndef WEFT_OPS_MATMUL_ON_STREAM_H
#define WEFT_OPS_MATMUL_ON_STREAM_H

#include "fused/fused.h"

int weft_all_gather_matmul_on_stream(shmem_team_t team, const struct weft_fused_gather *g,
                                     weft_stream stream);
int weft_matmul_reduce_scatter_on_stream(shmem_team_t team, const struct weft_fused_reduction *r,
                                         weft_stream stream);
int weft_matmul_all_reduce_on_stream(shmem_team_t team, const struct weft_fused_reduction *r,
                                     weft_stream stream);

#endif
