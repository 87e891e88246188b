/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: if one PE has no GPU, no member gets a handle for kernels, in a team of all PEs and
 * in a smaller one, and each gets the reason; PEs with a GPU can continue to use it. PEs: 2 3 */
#include <errno.h>
#include <shmemx.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <weft.h>
#include <weft/device.cuh>
#include "tap.h"

static void refused(shmem_team_t team, bool lacks) {
    for (int times = 0; times < 2; times++) {
        weft_device_team handle;
        int rc = shmemx_device_team(team, 1, 16, &handle);
        EXPECT(rc == -ENODEV && (lacks || strstr(weft_last_error(), "has failed")), "%d: %s", rc,
               weft_last_error());
    }
}

int main(void) {
    shmem_init();
    int me = shmem_my_pe(), npes = shmem_n_pes(), pes[] = {npes - 1, 0}, device;
    bool lacks = me == npes - 1;
    if (lacks)
        setenv("CUDA_VISIBLE_DEVICES", "", 1);
    tap_start(me);
    if (!getenv("GPU_REQUIRED")) {
        if (me == 0)
            puts("1..0 # SKIP there may be no GPU");
        shmem_finalize();
        return 0;
    }
    tap_case("a team of all PEs, of which one has no GPU");
    refused(SHMEM_TEAM_WORLD, lacks);
    tap_case("a team of some, of which one has none");
    shmem_team_t team = SHMEM_TEAM_INVALID;
    if (me == 0 || lacks) {
        EXPECT(shmemx_team_create(pes, 2, 0, &team) == 0, "%s", weft_last_error());
        refused(team, lacks);
        shmem_team_destroy(team);
    }
    tap_case("who has one uses it, and has a handle alone");
    EXPECT((shmemx_device(&device) == 0) == !lacks, "%s", weft_last_error());
    if (!lacks) {
        weft_device_team handle;
        EXPECT(shmemx_team_create(&me, 1, 0, &team) == 0, "%s", weft_last_error());
        int rc = shmemx_device_team(team, 1, 16, &handle);
        EXPECT(rc == 0, "%d: %s", rc, weft_last_error());
        rc = rc ? rc : shmemx_device_team_free(&handle);
        EXPECT(rc == 0, "%d: %s", rc, weft_last_error());
        shmem_team_destroy(team);
    }
    shmem_barrier_all();
    int failed = tap_finish();
    shmem_finalize();
    return failed;
}
