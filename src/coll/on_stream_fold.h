/* SPDX-License-Identifier: BSD-3-Clause */
/* Reductions by kernels: which of them folds what, and by how many threads. */
#ifndef WEFT_COLL_ON_STREAM_FOLD_H
#define WEFT_COLL_ON_STREAM_FOLD_H

#include "transport/gpu_kernel.h"
#include "coll/fold.h"

/* Enqueues the fold of a task on a stream. No kernel folds long doubles. */
int weft_fold_launch(const struct weft_fold_task *task, weft_cu_stream stream);

#endif
