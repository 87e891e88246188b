/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: large blocks that engines move between two meetings: with two members a kernel
 * pushes the first part, and the engines the rest; in place and not, at any address, but not if the
 * program asks for engines only. PEs: 2 */
#include "inside.h"
#include "graph.h"
#include "on_stream.h"

enum { BYTES = (17 << 20) + 5, AROUND = 64, MEMBERS = 4 };

static unsigned char *dest, *source, *wanted;
static int me, npes, launches;
static bool in_place;
static int (*launch)(const struct weft_cu_launch_config *, weft_cu_function, void **, void **);

static int launch_counted(const struct weft_cu_launch_config *config, weft_cu_function function,
                          void **arguments, void **extra) {
    launches++;
    return launch(config, function, arguments, extra);
}

static const void *data_of(int member, int block) {
    return gpu_data(BYTES, 100 + (uint64_t)(member * MEMBERS + block));
}

static void gather(void) {
    ON(fcollectmem_on_stream(SHMEM_TEAM_WORLD, dest, in_place ? dest + (size_t)me * BYTES : source,
                             BYTES, gpu_stream));
}

static void exchange(void) {
    ON(alltoallmem_on_stream(SHMEM_TEAM_WORLD, dest, source, BYTES, gpu_stream));
}

static void broadcast(void) {
    ON(broadcastmem_on_stream(SHMEM_TEAM_WORLD, dest, source, BYTES, 0, gpu_stream));
}

/* Checks blocks of dest that come from others, or from this member; block k of theirs. */
static void run(const char *name, void (*enqueue)(void), int blocks, bool each, int kernels) {
    tap_case(name);
    gpu_poison(dest - AROUND, (size_t)blocks * BYTES + 2 * AROUND);
    for (int k = 0; k < (each ? npes : 1); k++)
        gpu_write(source + (size_t)k * BYTES, data_of(me, k), BYTES);
    if (in_place)
        gpu_write(dest + (size_t)me * BYTES, data_of(me, 0), BYTES);
    for (int k = 0; k < blocks; k++)
        memcpy(wanted + (size_t)k * BYTES, data_of(k, each ? me : 0), BYTES);
    shmem_barrier_all();
    launches = 0;
    enqueue();
    if (kernels > 0 && npes == 2 && !weft_device.staged)
        EXPECT(launches == kernels, "%d kernels instead of %d", launches, kernels);
    gpu_drain(gpu_stream);
    gpu_expect(dest, wanted, (size_t)blocks * BYTES, "%s", name);
    gpu_expect_poison(dest - AROUND, AROUND, "before the destination");
    gpu_expect_poison(dest + (size_t)blocks * BYTES, AROUND, "behind the destination");
    shmem_barrier_all();
}

static unsigned char *room(size_t bytes) {
    unsigned char *p = allocated(shmemx_malloc(SHMEMX_SPACE_DEVICE, bytes + 3 * AROUND));
    return p + AROUND + 3;
}

int main(void) {
    setenv("SHMEMX_ALGORITHM", "meet", 1);
    shmem_init();
    gpu_start();
    me = shmem_my_pe();
    npes = shmem_n_pes();
    dest = room((size_t)npes * BYTES);
    source = room((size_t)npes * BYTES);
    wanted = malloc((size_t)npes * BYTES);
    launch = weft_cuda.cuLaunchKernelEx;
    weft_cuda.cuLaunchKernelEx = launch_counted;
    run("all-gather", gather, npes, false, 3);
    in_place = true;
    run("all-gather, in place", gather, npes, false, 3);
    in_place = false;
    run("all-to-all", exchange, npes, true, 3);
    run("broadcast", broadcast, 1, false, 0);
    shmemx_set_engine(SHMEMX_ENGINE_COPY);
    run("all-gather by engines alone", gather, npes, false, 0);
    return gpu_finish();
}
