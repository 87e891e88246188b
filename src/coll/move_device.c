/* SPDX-License-Identifier: BSD-3-Clause */
/* The mover of arrays in GPU memory, of which one may be in host memory: members meet on the
 * host, and each member's GPU copies between the members' memory and its own. */
#include "coll/move.h"

static void device_complete(void) {
    weft_dispatch_quiet();
}

static int pull_pieces(void *dest, const void *source, const struct weft_pieces *pieces, int pe) {
    struct weft_strided shape = weft_pieces_shape(pieces);
    return weft_space_device->operations->get_strided(dest, source, &shape, pe);
}

static void device_pull(const struct weft_group *group, void *dest, const void *source,
                        const struct weft_pieces *pieces, int member) {
    int pe = weft_group_pe(group, member), error;
    const struct weft_operations *operations = weft_dispatch_of(source, dest, pe);
    if (pieces->count > 1)
        error = pull_pieces(dest, source, pieces, pe);
    else
        error = operations ? operations->get(dest, source, pieces->bytes, pe, true)
                           : weft_rma_get_near(dest, source, pieces->bytes, pe);
    if (error)
        weft_group_lacks(group, source, weft_pieces_span(pieces), member);
}

static void device_push(const struct weft_group *group, void *dest, const void *source,
                        size_t bytes, int member) {
    int pe = weft_group_pe(group, member);
    const struct weft_operations *operations = weft_dispatch_of(dest, source, pe);
    int error = operations ? operations->put(dest, source, bytes, pe, true)
                           : weft_rma_put_near(dest, source, bytes, pe);
    if (error)
        weft_group_lacks(group, dest, bytes, member);
}

const struct weft_mover weft_mover_device = {
    .complete = device_complete, .pull = device_pull, .push = device_push};
