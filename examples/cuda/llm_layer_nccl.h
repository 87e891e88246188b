/* SPDX-License-Identifier: BSD-3-Clause */
/* NCCL's collectives for llm_layer.cu, if libnccl.so.2 is found when the program runs. */
#ifndef LLM_LAYER_NCCL_H
#define LLM_LAYER_NCCL_H

#include "example.h"
#ifndef WEFT_KERNEL_THREADS /* CUDA's own compiler */
#include <dlfcn.h>
#endif

struct nccl_id {
    char bytes[128];
};
static struct {
    int (*all_gather)(const void *, void *, size_t, int, void *, cudaStream_t);
    int (*reduce_scatter)(const void *, void *, size_t, int, int, void *, cudaStream_t);
    void *comm;
} nccl;
enum { NCCL_BF16 = 9, NCCL_SUM = 0 };

static bool nccl_open(void) {
#ifndef WEFT_KERNEL_THREADS
    static nccl_id id; /* symmetric */
    void *library = dlopen("libnccl.so.2", RTLD_NOW);
    if (!library)
        return false;
    auto make_id = (int (*)(nccl_id *))dlsym(library, "ncclGetUniqueId");
    auto join = (int (*)(void **, int, nccl_id, int))dlsym(library, "ncclCommInitRank");
    *(void **)&nccl.all_gather = dlsym(library, "ncclAllGather");
    *(void **)&nccl.reduce_scatter = dlsym(library, "ncclReduceScatter");
    if (shmem_my_pe() == 0)
        example_need(make_id(&id) == 0, "ncclGetUniqueId", "failed");
    shmem_broadcastmem(SHMEM_TEAM_WORLD, &id, &id, sizeof id, 0);
    example_need(join(&nccl.comm, shmem_n_pes(), id, shmem_my_pe()) == 0, "ncclCommInitRank",
                 "failed");
    return true;
#else
    return false;
#endif
}

#endif
