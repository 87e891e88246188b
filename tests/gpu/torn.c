/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: GPUs that can access each other over a link without atomics: atomics and signals of
 * all PEs on one word of each, by calls of the host and on streams, lose nothing. PEs: 2 3 4 */
#include "on_stream.h"

enum { ROUNDS = 60 };

static int me, npes;
static uint64_t *words; /* of each kind of addition one */
enum { INC, FETCH_ADD, SWAPPED, SIGNAL, PUT_SIGNAL, STREAM_SIGNAL, STREAM_PUT, KINDS };
static int32_t *narrow;
static long *box, *data;

static void add_by_swapping(uint64_t *word, int pe) {
    uint64_t seen = shmem_uint64_atomic_fetch(word, pe), found;
    while ((found = shmem_uint64_atomic_compare_swap(word, seen, seen + 1, pe)) != seen)
        seen = found;
}

static void add_by_all(int pe) {
    shmemx_slice_t slice = {narrow, 1, {.value = 0}};
    shmem_uint64_atomic_inc(&words[INC], pe);
    shmem_uint64_atomic_fetch_add(&words[FETCH_ADD], 1, pe);
    add_by_swapping(&words[SWAPPED], pe);
    shmem_signal_add(&words[SIGNAL], 1, pe);
    shmem_long_put_signal(box, data, 1, &words[PUT_SIGNAL], 1, SHMEM_SIGNAL_ADD, pe);
    ON(signal_op_on_stream(&words[STREAM_SIGNAL], 1, SHMEM_SIGNAL_ADD, pe, gpu_stream));
    ON(putmem_signal_on_stream(box, data, sizeof *box, &words[STREAM_PUT], 1, SHMEM_SIGNAL_ADD, pe,
                               gpu_stream));
    ON(int32_signal_op_on_stream(&slice, (shmemx_number_t){.value = 1}, SHMEM_SIGNAL_ADD, pe,
                                 gpu_stream));
}

static void expect_sums(void) {
    uint64_t wanted = (uint64_t)(ROUNDS * npes);
    for (int kind = 0; kind < KINDS; kind++) {
        uint64_t sum = shmem_uint64_g(&words[kind], me);
        EXPECT(sum == wanted, "additions of kind %d: %llu, not %llu", kind, (unsigned long long)sum,
               (unsigned long long)wanted);
    }
    int32_t sum = shmem_int32_g(narrow, me);
    EXPECT(sum == ROUNDS * npes, "narrow ones: %d", (int)sum);
}

int main(void) {
    setenv("WEFT_FAKE_NO_ATOMICS", "0-1", 1);
    shmem_init();
    gpu_start();
    me = shmem_my_pe(), npes = shmem_n_pes();
    words = allocated(shmemx_calloc(SHMEMX_SPACE_DEVICE, KINDS, sizeof *words));
    narrow = allocated(shmemx_calloc(SHMEMX_SPACE_DEVICE, 1, sizeof *narrow));
    box = allocated(shmemx_calloc(SHMEMX_SPACE_DEVICE, 1, sizeof *box));
    data = allocated(shmemx_calloc(SHMEMX_SPACE_DEVICE, 1, sizeof *data));
    tap_case("nothing is lost");
    for (int round = 0; round < ROUNDS; round++)
        for (int pe = 0; pe < npes; pe++)
            add_by_all((me + pe) % npes);
    gpu_drain(gpu_stream);
    shmem_barrier_all();
    expect_sums();
    shmem_barrier_all();
    return gpu_finish();
}
