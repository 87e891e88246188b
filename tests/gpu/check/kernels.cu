/* SPDX-License-Identifier: BSD-3-Clause */
/* Misuse of weft/device.cuh, compiled with checks; tests/gpu/check.t has the line of each. */
#define WEFT_KERNEL_THREADS
#define WEFT_CHECK
#define WEFT_CHECK_SECONDS 0.3
#include "weft/nvshmem/nvshmem.h"
#include "gpu/check/misuse.h"

#if defined(WEFT_DEVICE_ARCH) && WEFT_DEVICE_ARCH < 900
#define BULK_PUT(to, from, bytes) (*(uint32_t *)(to) = (from)->a, weft_trap())
#else
#define BULK_PUT(to, from, bytes) weft_bulk_put(to, from, bytes)
#endif

static __device__ void misuse_copies(const weft_device_team *t, int which, char *object) {
    WEFT_SHARED(struct weft_quad, tile, 2);
    switch (which) {
    case PUT_TO_NO_MEMBER:
    case PUT_BY_GRID_OF_3_DIMENSIONS:
        weft_put_b(t, object, object, 16, t->n);
        break;
    case GET_FROM_NO_MEMBER:
        weft_get_w(t, object, object, 16, -1);
        break;
    case PUT_TO_PEERS_ADDRESS:
        weft_put_t(t, object + t->stride * (t->n - t->me), object, 8, 0);
        break;
    case PUT_BEYOND_HEAP:
        weft_put_b(t, object, object, t->heap_bytes + 1, 0);
        break;
    case PUT_SIGNAL_TO_NO_MEMBER:
        weft_put_signal_b(t, object, object, 8, (uint64_t *)object, 1, WEFT_SIGNAL_SET, 99);
        break;
    case PUT_SIGNAL_BY_NO_OPERATION:
        weft_put_signal_w(t, object, object, 8, (uint64_t *)object, 1, 7, 0);
        break;
    case ADDRESS_AT_NO_MEMBER:
        *(char *)weft_at(t, object, t->n + 1) = 1;
        break;
    case BULK_MISALIGNED:
        BULK_PUT(object + 8, tile, 16);
        break;
    case BULK_OF_15_BYTES:
        BULK_PUT(object, tile, 15);
        break;
    }
}

static __device__ void misuse_words(const weft_device_team *t, int which, char *object) {
    uint64_t *signal = (uint64_t *)object, data = 0;
    switch (which) {
    case WORD_MISALIGNED:
        weft_p64(t, (uint64_t *)(object + 4), 1, 0);
        break;
    case SIGNAL_NOT_SYMMETRIC:
        weft_signal(t, (uint64_t *)t->words, 1, 0);
        break;
    case ATOMIC_ON_NO_MEMBER:
        weft_atomic_add32(t, (uint32_t *)object, 1, t->n);
        break;
    case WAIT_MISALIGNED:
        weft_wait_ge(t, (uint64_t *)(object + 2), 0);
        break;
    case WAIT_BY_NO_COMPARISON:
        weft_wait_until(t, signal, 0, 1);
        break;
    case BARRIER_ON_NO_CHANNEL:
        weft_barrier_b(t, t->channels);
        break;
    case PACKETS_ON_NO_CHANNEL:
        weft_ll_epoch_begin(t, t->channels + 5);
        break;
    case PACKETS_OF_FREED_HANDLE:
        weft_ll_epoch_begin(t, 0);
        break;
    case UNIT_BEYOND_SLOT:
        weft_ll_bcast(t, 0, t->slot_bytes / 16, 1, 1);
        break;
    case PACKET_OF_NO_MEMBER:
        weft_ll_recv(t, 0, 0, t->n, 1, &data);
        break;
    case WAIT_FOR_SIGNAL:
        weft_wait_ge_b(t, signal, 5);
        break;
    case WAIT_FOR_BARRIER:
        weft_barrier_b(t, 1);
        break;
    case WAIT_FOR_SYNC:
        weft_sync_b(t, 1);
        break;
    case WAIT_FOR_GRID:
        weft_barrier_grid(t);
        break;
    case WAIT_FOR_PACKET:
        weft_ll_recv(t, 1, 2, (t->me + 1) % t->n, 7, &data);
        break;
    case WAIT_FOR_SIGNAL_NS: /* ends by itself, though it lasts long enough for the job to be ended
                              */
        if (weft_wait_until_ns(t, signal, WEFT_CMP_GE, 5, 900000000) != -1)
            weft_trap();
        break;
    }
}

static __device__ void misuse_nvshmem(int which, char *object) {
    size_t indices[2];
    switch (which) {
    case WAIT_FOR_ALL_BY_NVSHMEM:
        nvshmem_int_wait_until((int *)object + 1, NVSHMEM_CMP_LT, -5);
        break;
    case WAIT_FOR_ONE_BY_NVSHMEM:
        nvshmem_short_wait_until_any((short *)object, 2, NULL, NVSHMEM_CMP_EQ, -3);
        break;
    case WAIT_FOR_SOME_BY_NVSHMEM:
        nvshmem_uint64_wait_until_some((uint64_t *)object, 2, indices, NULL, NVSHMEM_CMP_GT, ~0ull);
        break;
    }
}

extern "C" __global__ void check_misuse(weft_device_team t, int which, char *object) {
    if (which == HANDLE_NOT_FILLED) {
        t.version = 0;
        weft_signal(&t, (uint64_t *)object, 1, 0);
    }
    misuse_copies(&t, which, object);
    misuse_words(&t, which, object);
    misuse_nvshmem(which, object);
}
