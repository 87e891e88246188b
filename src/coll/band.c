/* SPDX-License-Identifier: BSD-3-Clause */
#include "coll/band.h"

/* Two barriers per band after the first one: after the first barrier, which is left out if `take`
 * waits for that itself (all_read), all members have read the old band; after the second, the new
 * band is in place. */
int weft_bands_run(const struct weft_bands *bands, const void *call) {
    struct weft_team *team = bands->meeting->team;
    int error = bands->take(call, 0);
    for (size_t band = 1; band < bands->count; band++) {
        if (!bands->all_read)
            weft_sync_barrier(team);
        bands->stage(call, band);
        weft_sync_barrier(team);
        int failed = bands->take(call, band);
        error = error ? error : failed;
    }
    return error;
}
