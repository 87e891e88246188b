/* SPDX-License-Identifier: BSD-3-Clause */
/* NCCL in each of its modes: memory of cudaMalloc; symmetric windows; symmetric windows without a
 * multiprocessor (NCCL_CTA_POLICY_ZERO), for the calls that support that policy. */
#include <nccl.h>
#include "collectives.h"

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

/* All send to the next PE and receive from the previous one. */
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

/* --- Collectives ----------------------------------------------------------------------------- */

static ncclDataType_t dtype(void) {
    return args.f32 ? ncclFloat32 : ncclBfloat16;
}

static void all_reduce(int i) {
    (void)i;
    NCCL(ncclAllReduce(args.source, args.dest, args.nelems, dtype(), ncclSum, comm, stream));
}

static void all_gather(int i) {
    (void)i;
    NCCL(ncclAllGather(args.source, args.dest, args.nelems, dtype(), comm, stream));
}

static void reduce_scatter(int i) {
    (void)i;
    NCCL(ncclReduceScatter(args.source, args.dest, args.nelems, dtype(), ncclSum, comm, stream));
}

static void all_to_all(int i) {
    (void)i;
    NCCL(ncclAlltoAll(args.source, args.dest, args.nelems, dtype(), comm, stream));
}

static void measure_calls(void) {
    size_t largest = largest_copy();
    CUDA(cudaMalloc((void **)&source, largest));
    CUDA(cudaMalloc((void **)&dest, largest));
    fill(source, largest, (uint64_t)me + 1);
    meet();
    ping_pongs(ping_pong);
    messages();
}

static void measure_plain(enum table table) {
    bool places = table != ORDINARY;
    struct collectives calls = {{all_reduce, all_gather, reduce_scatter, all_to_all},
                                {places, places, places, false},
                                table == ORDINARY ? ", ordinary memory" : ""};
    char *to = NULL, *from = NULL;
    CUDA(cudaMalloc((void **)&to, room_for_dest(table)));
    CUDA(cudaMalloc((void **)&from, room_for_source(table)));
    measure_table(&calls, table, to, from);
    CUDA(cudaFree(to));
    CUDA(cudaFree(from));
}

/* Without a multiprocessor there are no sums. */
static void measure_windows(enum table table, int policy, const char *name) {
    struct collectives calls = {
        {policy ? NULL : all_reduce, all_gather, policy ? NULL : reduce_scatter, all_to_all},
        {true, true, true, false},
        ""};
    ncclWindow_t first, second;
    communicator(policy ? "nccl-zero" : "nccl-windows", policy);
    library = name;
    char *to = window(room_for_dest(table), &first);
    char *from = window(room_for_source(table), &second);
    measure_table(&calls, table, to, from);
    NCCL(ncclCommWindowDeregister(comm, first));
    NCCL(ncclCommWindowDeregister(comm, second));
    NCCL(ncclCommDestroy(comm));
    NCCL(ncclMemFree(to));
    NCCL(ncclMemFree(from));
}

int main(void) {
    int version = 0;
    char name[32];
    begin();
    NCCL(ncclGetVersion(&version));
    snprintf(name, sizeof name, "NCCL %d.%d.%d", version / 10000, version / 100 % 100,
             version % 100);
    CUDA(cudaMalloc((void **)&word, sizeof *word));
    CUDA(cudaMemset(word, 0, sizeof *word));
    enum table table = table_asked();
    communicator("nccl-plain", 0);
    library = name;
    if (table == CALLS)
        measure_calls();
    else
        measure_plain(table);
    NCCL(ncclCommDestroy(comm));
    if (table == CALLS || table == ORDINARY)
        return any_wrong;
    measure_windows(table, 0, "NCCL, symmetric windows");
    measure_windows(table, NCCL_CTA_POLICY_ZERO, "NCCL, zero CTAs");
    return any_wrong;
}
