/* SPDX-License-Identifier: BSD-3-Clause */
/* Reductions by kernels: which of them folds what, and by how many threads. */
#ifndef WEFT_COLL_ON_STREAM_FOLD_H
#define WEFT_COLL_ON_STREAM_FOLD_H

#include "transport/gpu_channel.h"
#include "transport/gpu_kernel.h"
#include "coll/fold.h"

/* Enqueues the fold of a task on a stream; no kernel folds long doubles. The members of `channels`,
 * of any form, meet in the kernel before and behind it; then `most` says how many elements the
 * largest task of a member has. With NULL nobody meets. 0 or -errno with text. */
int weft_fold_launch(const struct weft_gpu_channels *channels, const struct weft_fold_task *task,
                     size_t most, weft_cu_stream stream);

#endif
