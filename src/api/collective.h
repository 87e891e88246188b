/* SPDX-License-Identifier: BSD-3-Clause */
/* The collectives behind their typed names: they check the arguments against a group, which is a
 * team or an active set, and call coll. Sizes are as in coll/collective.h, but may be zero. */
#ifndef WEFT_API_COLLECTIVE_H
#define WEFT_API_COLLECTIVE_H

#include "coll/collective.h"

void weft_api_broadcast(const struct weft_group *group, void *dest, const void *source,
                        size_t bytes, int root);
void weft_api_fcollect(const struct weft_group *group, void *dest, const void *source,
                       size_t bytes);
void weft_api_collect(const struct weft_group *group, void *dest, const void *source, size_t bytes);
void weft_api_alltoall(const struct weft_group *group, void *dest, const void *source,
                       size_t bytes);
void weft_api_alltoalls(const struct weft_group *group, void *dest, const void *source,
                        const struct weft_blocks_shape *shape);
void weft_api_fold(const struct weft_group *group, void *dest, const void *source,
                   const struct weft_folding *folding);

#endif
