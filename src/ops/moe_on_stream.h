/* SPDX-License-Identifier: BSD-3-Clause */
/* Mixtures of experts on a stream. The calls check the arguments, which are those of weft.h. */
#ifndef WEFT_OPS_MOE_ON_STREAM_H
#define WEFT_OPS_MOE_ON_STREAM_H

#include "fused/fused.h"
#include "ops/moe.h"

int weft_moe_dispatch_on_stream(const struct weft_moe_handle *moe,
                                const struct weft_fused_experts *e, weft_stream stream);
int weft_moe_combine_on_stream(const struct weft_moe_handle *moe,
                               const struct weft_fused_experts *e, weft_stream stream);

#endif
