/* SPDX-License-Identifier: BSD-3-Clause */
#include "coll/band.h"

/* A barrier says that all have read a band, so that the next may take its place; another one that
 * it is there. */
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
