/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: signals and waits with GPU memory: puts with signal with payload, source and signal
 * in every mix of memory, set and added, blocking and not; every way to wait for and to test words
 * of GPU memory, of every type, with vectors, status and indices; fence between non-blocking puts
 * and the flag that announces them. PEs: 1 2 3 4, also staged Far: cyclic:2 seed=7,reorder=16 */
#include "gpu/places.h"
#include "random/random/routines.h"

enum { PAYLOAD_MAX = 48 << 10, WORDS = 4096, FLAG = PAYLOAD_MAX };

static int next, before;

static uint64_t *flag_in(enum place place) {
    return (uint64_t *)(area[place] + FLAG);
}

static const struct rma_routines *mem(void) {
    return &rma_routines[RMA_ROWS - 1];
}

/* Puts with signal to the next PE, with payload and signal in any memory. */
static void announce(enum place there, enum place here, enum place where, size_t bytes, bool add,
                     bool nbi, uint64_t key) {
    unsigned char *from = area[here] + (here == there ? 0 : 3), *to = area[there] + 1;
    if (here == there)
        bytes /= 2, from += PAYLOAD_MAX / 2;
    uint64_t *flag = flag_in(where), start = gpu_draw(key, UINT64_MAX);
    uint64_t value = gpu_draw(key + 1, UINT64_MAX / 2) + 1;
    gpu_poison(area[there], bytes + 32);
    gpu_write(flag, &start, sizeof start);
    gpu_write(from, gpu_data(bytes, key + 16 + (uint64_t)me), bytes);
    shmem_barrier_all();
    (nbi ? mem()->put_signal_nbi
         : mem()->put_signal)(SHMEM_CTX_INVALID, to, from, bytes, flag, value,
                              add ? SHMEM_SIGNAL_ADD : SHMEM_SIGNAL_SET, next);
    uint64_t wanted = add ? start + value : value;
    uint64_t seen = shmem_signal_wait_until(flag, SHMEM_CMP_EQ, wanted);
    EXPECT(seen == wanted && shmem_signal_fetch(flag) == wanted, "the signal in %s",
           place_names[where]);
    gpu_expect(to, gpu_data(bytes, key + 16 + (uint64_t)before), bytes,
               "%zu bytes from %s to %s, signal in %s", bytes, place_names[here],
               place_names[there], place_names[where]);
    gpu_expect_poison(to + bytes, 8, "behind the payload");
    shmem_barrier_all();
}

static void every_mix(void) {
    static const size_t sizes[] = {0, 1, 8, 1000, 33 << 10, PAYLOAD_MAX - 64};
    uint64_t key = 0;
    for (enum place there = 0; there < SYMMETRIC_PLACES; there++)
        for (enum place here = 0; here < PLACES; here++)
            for (enum place where = 0; where < SYMMETRIC_PLACES; where++)
                for (int i = 0; i < 3; i++)
                    if (on_gpu(there) || on_gpu(here) || on_gpu(where)) {
                        key += 64;
                        announce(there, here, where, sizes[gpu_draw(key, 6)], gpu_draw(key + 1, 2),
                                 gpu_draw(key + 2, 2), key + 3);
                    }
}

/* Rounds of signals without payloads, set and added. */
static void bare_signals(void) {
    uint64_t *flag = flag_in(DEVICE);
    gpu_write(flag, &(uint64_t){0}, sizeof *flag);
    shmem_barrier_all();
    for (uint64_t round = 1; round <= 20; round++) {
        if (round % 2)
            shmem_signal_set(flag, round, next);
        else
            shmem_signal_add(flag, 1, next);
        uint64_t seen = shmem_signal_wait_until(flag, SHMEM_CMP_GE, round);
        EXPECT(seen == round, "%llu in round %llu", (unsigned long long)seen,
               (unsigned long long)round);
        shmem_barrier_all();
    }
}

/* The value as the low bytes of a word of the type. */
static void store(const struct wait_routines *row, uint64_t value, int i) {
    unsigned char *words = area[DEVICE];
    row->p(SHMEM_CTX_INVALID, words + (size_t)i * row->bytes, &value, next);
}

static void clear(size_t bytes) {
    static const unsigned char zero[WORDS];
    shmem_barrier_all();
    gpu_write(area[DEVICE], zero, bytes);
    shmem_barrier_all();
}

static void one_word(const struct wait_routines *row) {
    void *word = area[DEVICE];
    clear(16);
    EXPECT(!row->test(word, SHMEM_CMP_NE, &(uint64_t){0}), "%s_test of 0", row->name);
    shmem_barrier_all();
    store(row, 5, 0);
    row->wait_until(word, SHMEM_CMP_GT, &(uint64_t){4});
    EXPECT(row->test(word, SHMEM_CMP_EQ, &(uint64_t){5}), "%s_test of 5", row->name);
    EXPECT(row->test(word, SHMEM_CMP_GT, &(uint64_t){UINT64_MAX}) == row->is_signed,
           "%s_test above all bits", row->name);
}

/* Of NSET words two do not count; the PE before sets all others one after the other. */
enum { NSET = 7 };
static const int status[NSET] = {0, 1, 0, 0, 0, 1, 0};

static void store_set(const struct wait_routines *row) {
    for (int i = NSET - 1; i >= 0; i--)
        if (!status[i])
            store(row, (uint64_t)i + 10, i);
    shmem_quiet();
}

static struct wait_set set_of(const struct wait_routines *row, void *values, size_t *indices,
                              bool vector) {
    for (int i = 0; i < NSET; i++)
        memcpy((char *)values + (size_t)i * row->bytes, &(uint64_t){vector ? (uint64_t)i + 10 : 10},
               row->bytes);
    return (struct wait_set){
        area[DEVICE], NSET, indices, status, vector ? SHMEM_CMP_EQ : SHMEM_CMP_GE, values, vector};
}

static void sets(const struct wait_routines *row, bool vector) {
    uint64_t values[NSET];
    size_t indices[NSET];
    struct wait_set set = set_of(row, values, indices, vector);
    clear(NSET * 8);
    EXPECT(!row->test_all(&set) && row->test_any(&set) == SIZE_MAX && row->test_some(&set) == 0,
           "%s: tests before", row->name);
    shmem_barrier_all();
    store_set(row);
    size_t any = row->wait_until_any(&set);
    EXPECT(any < NSET && !status[any], "%s_wait_until_any: %zu", row->name, any);
    size_t some = row->wait_until_some(&set);
    EXPECT(some >= 1 && some <= 5, "%s_wait_until_some: %zu", row->name, some);
    for (size_t i = 0; i < some && some <= NSET; i++)
        EXPECT(indices[i] < NSET && !status[indices[i]], "%s: index %zu", row->name, indices[i]);
    row->wait_until_all(&set);
    EXPECT(row->test_all(&set) && row->test_any(&set) < NSET && row->test_some(&set) == 5,
           "%s: tests behind", row->name);
    for (int i = 0; i < NSET; i++)
        memcpy((char *)values + (size_t)i * row->bytes, &(uint64_t){99}, row->bytes);
    EXPECT(!row->test_all(&set) && row->test_any(&set) == SIZE_MAX, "%s: other values", row->name);
}

/* Non-blocking puts to GPU memory, a fence, and a flag in host or GPU memory. */
static void fence(enum place where) {
    enum { BYTES = 40 << 10 };
    long *flag = (long *)flag_in(where);
    unsigned char *from = area[PRIVATE];
    gpu_write(flag, &(long){0}, sizeof *flag);
    shmem_barrier_all();
    for (long round = 1; round <= 10; round++) {
        uint64_t key = 5000 + (uint64_t)round * 64;
        gpu_fill(from, BYTES, key + (uint64_t)me);
        gpu_poison(area[DEVICE], BYTES);
        shmem_barrier_all();
        shmem_putmem_nbi(area[DEVICE], from, BYTES / 2 + 1, next);
        shmem_putmem_nbi(area[DEVICE] + BYTES / 2 + 1, from + BYTES / 2 + 1, BYTES / 2 - 1, next);
        shmem_fence();
        shmem_long_p(flag, round, next);
        shmem_long_wait_until(flag, SHMEM_CMP_GE, round);
        gpu_expect(area[DEVICE], gpu_data(BYTES, key + (uint64_t)before), BYTES,
                   "behind a flag in %s", place_names[where]);
        shmem_barrier_all();
    }
}

int main(void) {
    unsigned char on_stack[AREA_BYTES_MAX] __attribute__((aligned(64)));
    places_start(on_stack);
    next = (me + 1) % npes, before = (me + npes - 1) % npes;
    tap_case("puts that announce themselves");
    every_mix();
    tap_case("signals alone");
    bare_signals();
    tap_case("a word of every type");
    for (int row = 0; row < WAIT_ROWS; row++)
        one_word(&wait_routines[row]);
    tap_case("sets of every type");
    for (int row = 0; row < WAIT_SET_ROWS; row++)
        sets(&wait_routines[row], false);
    tap_case("sets with a value for each word");
    for (int row = 0; row < WAIT_SET_ROWS; row++)
        sets(&wait_routines[row], true);
    tap_case("fence in front of a flag of the host");
    fence(HEAP);
    fence(STATICS);
    tap_case("fence in front of a flag of the GPU");
    fence(DEVICE);
    shmem_barrier_all();
    return places_finish();
}
