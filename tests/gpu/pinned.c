/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: once the GPU of one PE has registered the symmetric heap, no PE returns memory of
 * it, and it grows by committed memory: otherwise the GPU would keep other pages than the
 * processors. PEs: 1 2 */
#include "gpu/gpu.h"
#include <weft.h>
#include "job/window.h"
#include "device/device.h"

#define MIB ((size_t)1 << 20)

static size_t present_mib(void) {
    return weft_segment_present(&weft_windows.heap) / MIB;
}

static void take_and_free(size_t mib) {
    char *p = shmem_malloc(mib * MIB);
    EXPECT(p, "%zu MiB", mib);
    memset(p, 1, mib * MIB);
    shmem_free(p);
    shmem_free(shmem_malloc(8));
}

int main(void) {
    shmem_init();
    gpu_start();
    tap_case("memory goes back as long as no GPU has registered it");
    take_and_free(100);
    EXPECT(present_mib() < 20, "%zu MiB", present_mib());
    tap_case("and then no more, on any PE");
    if (shmem_my_pe() == shmem_n_pes() - 1)
        EXPECT(weft_device_begin() == 0, "%s", weft_last_error());
    shmem_barrier_all();
    take_and_free(100);
    EXPECT(present_mib() >= 100, "%zu MiB", present_mib());
    tap_case("what is new is there at once");
    char *p = shmem_malloc(160 * MIB);
    EXPECT(p && present_mib() >= 160, "%zu MiB", present_mib());
    shmem_free(p);
    return gpu_finish();
}
