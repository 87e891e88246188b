/* SPDX-License-Identifier: BSD-3-Clause */
/* The same object on all members of a team, as one GPU finds it: in places that are evenly apart.
 * Where the members' PEs are not, places are PEs, and kernels look the members' up. Shared with
 * kernels, which take it by value. */
#ifndef WEFT_TRANSPORT_GPU_ARRAY_H
#define WEFT_TRANSPORT_GPU_ARRAY_H

#include <stddef.h>
#include <stdint.h>
#include "weft/addr.h"

struct weft_gpu_array {
    char *first;            /* in place 0 */
    ptrdiff_t step;         /* from one place to the next, bytes */
    const uint16_t *places; /* of members, within the GPU's reach; NULL: member i is in place i */
};

WEFT_ADDR char *weft_gpu_array_at(const struct weft_gpu_array *array, ptrdiff_t place) {
    return array->first + place * array->step;
}

/* For kernels. */
WEFT_ADDR char *weft_gpu_array_of(const struct weft_gpu_array *array, ptrdiff_t member) {
    return weft_gpu_array_at(array, array->places ? array->places[member] : member);
}

#endif
