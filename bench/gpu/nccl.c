/* SPDX-License-Identifier: BSD-3-Clause */
/* NCCL, each way it can be run in: memory of cudaMalloc; symmetric windows; symmetric windows with
 * no multiprocessor (NCCL_CTA_POLICY_ZERO), for what that policy serves. */
#include <nccl.h>
#include "rows.h"

#define NCCL(call)                                       \
    do {                                                 \
        ncclResult_t result_ = (call);                   \
        if (result_ != ncclSuccess)                      \
            give_up(#call, ncclGetErrorString(result_)); \
    } while (0)

static float *word;
static ncclComm_t comm;

static void meet(void) {
    NCCL(ncclAllReduce(word, word, 1, ncclFloat, ncclSum, comm, stream));
    CUDA(cudaStreamSynchronize(stream));
}

static void all_gather(int i) {
    (void)i;
    NCCL(ncclAllGather(source, dest, bytes, ncclChar, comm, stream));
}

/* All send to the next PE and receive from the one before. */
static void ring(int i) {
    (void)i;
    NCCL(ncclGroupStart());
    NCCL(ncclSend(source, bytes, ncclChar, (me + 1) % npes, comm, stream));
    NCCL(ncclRecv(dest, bytes, ncclChar, (me + npes - 1) % npes, comm, stream));
    NCCL(ncclGroupEnd());
}

static void one_way(int i) {
    (void)i;
    if (me == 0)
        NCCL(ncclSend(source, bytes, ncclChar, 1, comm, stream));
    else if (me == 1)
        NCCL(ncclRecv(dest, bytes, ncclChar, 0, comm, stream));
}

static void ping_pong(int i) {
    one_way(i);
    if (me == 0)
        NCCL(ncclRecv(dest, bytes, ncclChar, 1, comm, stream));
    else if (me == 1)
        NCCL(ncclSend(source, bytes, ncclChar, 0, comm, stream));
}

static void messages(void) {
    char text[64];
    for (int k = 0; k < LENGTH(copy_sizes); k++) {
        bytes = copy_sizes[k];
        double us = graph_us(ring, calls_for(bytes));
        snprintf(text, sizeof text, "put %s, both ways", size_name(bytes));
        row(text, gigabytes_per_second(bytes, us), "GB/s");
        meet();
        us = me < 2 ? graph_us(one_way, calls_for(bytes)) : 0;
        snprintf(text, sizeof text, "put %s, one way", size_name(bytes));
        if (me == 0)
            row(text, gigabytes_per_second(bytes, us), "GB/s");
        meet();
    }
}

static void *window(size_t size, ncclWindow_t *handle) {
    void *p = NULL;
    NCCL(ncclMemAlloc(&p, size));
    NCCL(ncclCommWindowRegister(comm, p, size, handle, NCCL_WIN_COLL_SYMMETRIC));
    return p;
}

static void communicator(const char *file, int policy) {
    ncclUniqueId id;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    if (policy)
        config.CTAPolicy = policy;
    if (me == 0)
        NCCL(ncclGetUniqueId(&id));
    hand_out(file, &id, sizeof id);
    NCCL(ncclCommInitRankConfig(&comm, npes, id, me, &config));
}

static void plain(size_t shard, size_t all, const char *name) {
    communicator("nccl-plain", 0);
    library = name;
    CUDA(cudaMalloc((void **)&source, shard));
    CUDA(cudaMalloc((void **)&dest, all));
    fill(source, shard, (uint64_t)me + 1);
    meet();
    ping_pongs(ping_pong);
    messages();
    all_gathers(all_gather);
    NCCL(ncclCommDestroy(comm));
    CUDA(cudaFree(source));
    CUDA(cudaFree(dest));
}

static void windows(size_t shard, size_t all, int policy, const char *name) {
    ncclWindow_t first, second;
    communicator(policy ? "nccl-zero" : "nccl-windows", policy);
    library = name;
    source = window(shard, &first);
    dest = window(all, &second);
    all_gathers(all_gather);
    NCCL(ncclCommWindowDeregister(comm, first));
    NCCL(ncclCommWindowDeregister(comm, second));
    NCCL(ncclCommDestroy(comm));
    NCCL(ncclMemFree(source));
    NCCL(ncclMemFree(dest));
}

int main(void) {
    int version = 0;
    char name[32];
    begin();
    NCCL(ncclGetVersion(&version));
    snprintf(name, sizeof name, "NCCL %d.%d.%d", version / 10000, version / 100 % 100,
             version % 100);
    size_t shard = largest_shard(), all = shard * (size_t)npes;
    CUDA(cudaMalloc((void **)&word, sizeof *word));
    CUDA(cudaMemset(word, 0, sizeof *word));
    plain(shard, all, name);
    windows(shard, all, 0, "NCCL, symmetric windows");
    windows(shard, all, NCCL_CTA_POLICY_ZERO, "NCCL, zero CTAs");
    return 0;
}
