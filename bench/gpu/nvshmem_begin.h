// SPDX-License-Identifier: BSD-3-Clause
// How a program of NVSHMEM's begins its job, behind gpu.h and NVSHMEM's own headers.
#ifndef BENCH_GPU_NVSHMEM_BEGIN_H
#define BENCH_GPU_NVSHMEM_BEGIN_H

// `heap` bytes on each PE. `init` is nvshmemx_init_attr or, of a program without kernels that call
// NVSHMEM, nvshmemx_hostlib_init_attr, as `call` says.
static void initialise(size_t heap, int (*init)(unsigned, nvshmemx_init_attr_t *),
                       const char *call) {
    char text[32];
    snprintf(text, sizeof text, "%zu", heap);
    setenv("NVSHMEM_SYMMETRIC_SIZE", text, 1);
    setenv("NVSHMEM_REMOTE_TRANSPORT", "none", 0);
    nvshmemx_uniqueid_t id = NVSHMEMX_UNIQUEID_INITIALIZER;
    nvshmemx_init_attr_t attributes = NVSHMEMX_INIT_ATTR_INITIALIZER;
    if (me == 0 && nvshmemx_get_uniqueid(&id) != 0)
        give_up("nvshmemx_get_uniqueid", "failed");
    hand_out("nvshmem", &id, sizeof id);
    if (nvshmemx_set_attr_uniqueid_args(me, npes, &id, &attributes) != 0 ||
        init(NVSHMEMX_INIT_WITH_UNIQUEID, &attributes) != 0)
        give_up(call, "failed");
}

#endif
