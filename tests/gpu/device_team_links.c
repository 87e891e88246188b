/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: links between members in handles for kernels: no handle is made if two GPUs cannot
 * access each other's memory, and each member gets the reason; if a link carries no atomics, the
 * handle's flags show it; members on one GPU have no links. PEs: 4 */
#include "on_stream.h"
#include "inside.h"
#include <errno.h>
#include <weft/device.cuh>

/* PEs 0 and 3 are on GPU 0. GPUs 0 and 1 do not reach each other, 1 and 2 have no atomics. */
static const struct pair {
    int pes[2];
    const char *name;
    uint32_t flags, neighbours; /* 0: there is no handle */
} pairs[] = {
    {{0, 1}, "GPUs that do not reach each other: refused, with the reason", 0, 0},
    {{1, 2}, "a link without atomics", 0, 1},
    {{2, 0}, "a link that has all", WEFT_DEVICE_ATOMICS | WEFT_DEVICE_NVLINK, 1},
    {{3, 0}, "one GPU", WEFT_DEVICE_ATOMICS, 2},
};

static void refused(shmem_team_t team) {
    weft_device_team handle;
    for (int times = 0; times < 2; times++) {
        int rc = shmemx_device_team(team, 1, 16, &handle);
        const char *text = weft_last_error();
        EXPECT(rc == -ENOTSUP && (strstr(text, "has no peer access to GPU") ||
                                  strstr(text, "has failed: Operation not supported")),
               "%d: %s", rc, text);
    }
}

/* Each writes to the other's object. */
static void made(shmem_team_t team, const struct pair *pair, uint64_t *object) {
    weft_device_team handle;
    ON(device_team(team, 1, 16, &handle));
    EXPECT(handle.flags == pair->flags && handle.neighbours == pair->neighbours, "%#x, %u",
           handle.flags, handle.neighbours);
    EXPECT((handle.rest_ns == 0) == (me % gpu_count != 0), "%u ns", handle.rest_ns);
    uint64_t mine = (uint64_t)me + 1, others = (uint64_t)pair->pes[1 - handle.me] + 1;
    uint64_t *other = weft_at(&handle, object, 1 - handle.me); /* two members are in a row */
    shmem_team_sync(team);
    gpu_write(other, &mine, sizeof mine);
    shmem_team_sync(team);
    gpu_expect(object, &others, sizeof others, "from the other");
    ON(device_team_free(&handle));
}

int main(void) {
    setenv("WEFT_FAKE_GPUS", "3", 1);
    setenv("WEFT_FAKE_NO_PEER", "0-1", 1);
    setenv("WEFT_FAKE_NO_ATOMICS", "1-2", 1);
    shmem_init();
    gpu_start();
    if (!gpu_is_pretended())
        gpu_skip("the links of this machine's GPUs are as they are");
    me = shmem_my_pe(), npes = shmem_n_pes();
    uint64_t *object = allocated(shmemx_calloc(SHMEMX_SPACE_DEVICE, 1, sizeof *object));
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        const struct pair *pair = &pairs[i];
        tap_case(pair->name);
        shmem_team_t team = SHMEM_TEAM_INVALID;
        if (pair->pes[0] == me || pair->pes[1] == me) {
            ON(team_create(pair->pes, 2, 0, &team));
            if (pair->neighbours == 0)
                refused(team);
            else
                made(team, pair, object);
            shmem_team_destroy(team);
        }
        shmem_barrier_all();
    }
    return gpu_finish();
}
