/* SPDX-License-Identifier: BSD-3-Clause */
/* The data-moving collectives where an array lies in the memory of GPUs: contracts as in
 * coll/collective.h, and either array may be the host's.
 *
 * Members meet on the host. Data is copied by each one's GPU, from the members' memory to its own;
 * reductions and scans are made by processors, over copies. */
#ifndef WEFT_COLL_DEVICE_H
#define WEFT_COLL_DEVICE_H

#include "coll/collective.h"

void weft_device_broadcast(const struct weft_group *group, void *dest, const void *source,
                           size_t bytes, int root);
void weft_device_fcollect(const struct weft_group *group, void *dest, const void *source,
                          size_t bytes);
void weft_device_alltoall(const struct weft_group *group, void *dest, const void *source,
                          size_t bytes);
void weft_device_alltoalls(const struct weft_group *group, void *dest, const void *source,
                           const struct weft_blocks_shape *shape);
void weft_device_reduce(const struct weft_group *group, void *dest, const void *source,
                        size_t nelems, const struct weft_fold *fold);
void weft_device_scan(const struct weft_group *group, void *dest, const void *source, size_t nelems,
                      const struct weft_fold *fold, bool inclusive);

/* For any arrays, those of the host alone too. */
void weft_device_collect(const struct weft_group *group, void *dest, const void *source,
                         size_t bytes);

#endif
