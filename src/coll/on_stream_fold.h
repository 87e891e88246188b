/* SPDX-License-Identifier: BSD-3-Clause */
/* Reductions by kernels: the choice of the kernel and of the number of threads. */
#ifndef WEFT_COLL_ON_STREAM_FOLD_H
#define WEFT_COLL_ON_STREAM_FOLD_H

#include "transport/gpu_channel.h"
#include "transport/gpu_kernel.h"
#include "coll/fold.h"

/* Enqueues the fold of a task on a stream; no kernel folds long doubles. The members of `channels`,
 * of any form, meet in the kernel before and after the fold; `most` is then the number of elements
 * of the largest task of a member. If `channels` is NULL, the members do not meet. Returns 0 or
 * -errno with text. */
int weft_fold_launch(const struct weft_gpu_channels *channels, const struct weft_fold_task *task,
                     size_t most, weft_cu_stream stream);

#endif
