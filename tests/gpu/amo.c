/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: atomics of every type and operation on words of GPU memory, blocking and not, with
 * the old word fetched to the stack, the host heap, GPU memory or nowhere, against a model; words
 * of the host fetched to GPU memory; then all PEs at once on the same words, where tickets and sums
 * are right only if the operations are atomic. PEs: 1 2 3 4, also staged Far: cyclic:2
 * seed=7,reorder=16 */
#include "gpu/places.h"
#include "random/random/routines.h"

static uint64_t word_at(const void *p) {
    uint64_t word = 0;
    gpu_copy(&word, p, sizeof word);
    return word;
}

/* One operation on the next PE's word, whose neighbours must not change; `word` is its old value.
 */
static uint64_t one_operation(const struct amo_routines *row, int r, enum amo_operation operation,
                              enum place there, enum place here, uint64_t word, uint64_t key) {
    uint64_t mask = row->bytes == 8 ? UINT64_MAX : UINT32_MAX, fetched;
    unsigned char *words = area[there], *fetch = area[here] + 1024;
    uint64_t value = gpu_draw(key, UINT64_MAX) & mask;
    uint64_t cond = gpu_draw(key + 1, 2) ? word : gpu_draw(key + 2, UINT64_MAX) & mask;
    enum amo_form form = (enum amo_form)gpu_draw(key + 3, 3);
    if (on_gpu(here))
        form = NBI; /* only then the library stores the word before */
    gpu_poison(fetch, 8);
    amo_routine(r, operation)(SHMEM_CTX_INVALID, operation, form, fetch, words + 64, cond, value,
                              (me + 1) % npes);
    shmem_quiet();
    fetched = word_at(fetch) & mask;
    bool fetches = operation != SET && (form != SILENT || operation <= COMPARE_SWAP);
    EXPECT(!fetches || fetched == word, "%s operation %d form %d in %s fetched %#llx, not %#llx",
           row->name, operation, form, place_names[there], (unsigned long long)fetched,
           (unsigned long long)word);
    return amo_result(operation, word, cond, value) & mask;
}

/* This PE alone changes the next one's word. */
static void one_type(int r, enum place there, enum place here, uint64_t key) {
    const struct amo_routines *row = &amo_routines[r];
    unsigned char *words = area[there], seen[24], expected[24];
    uint64_t word = gpu_draw(key, UINT64_MAX) & (row->bytes == 8 ? UINT64_MAX : UINT32_MAX);
    gpu_poison(words + 56, 24);
    shmem_barrier_all();
    shmem_putmem(words + 64, &word, row->bytes, (me + 1) % npes);
    shmem_quiet();
    for (enum amo_operation operation = FETCH; operation < AMO_OPERATIONS; operation++)
        for (int i = 0; i < 2 && amo_routine(r, operation); i++)
            word = one_operation(row, r, operation, there, here, word,
                                 key + 16 * (uint64_t)(operation * 2 + i + 1));
    shmem_getmem(seen, words + 56, sizeof seen, (me + 1) % npes);
    memset(expected, GPU_POISON, sizeof expected);
    memcpy(expected + 8, &word, row->bytes);
    EXPECT(memcmp(seen, expected, sizeof seen) == 0, "%s: the word or its neighbours", row->name);
    shmem_barrier_all();
}

/* Reals of any bits may be no numbers: they are moved, not compared. */
static void every_type(enum place there, enum place here) {
    static uint64_t key;
    for (int r = 0; r < AMO_ROWS; r++)
        one_type(r, there, here, (key += 1024) + (uint64_t)me * 65536);
}

/* Every ticket is drawn once: by fetch_add and compare_swap, of two widths. */
static void tickets(void) {
    enum { DRAWS = 40, MARKS = 1024 };
    unsigned char *words = area[DEVICE];
    uint32_t *marks = (uint32_t *)(words + 4096);
    gpu_write(words, (uint64_t[2]){0, 0}, 16);
    gpu_write(marks, (uint32_t[2 * MARKS]){0}, 2 * MARKS * sizeof *marks);
    shmem_barrier_all();
    for (int i = 0; i < DRAWS; i++) {
        int32_t drawn = shmem_int32_atomic_fetch_add((int32_t *)words, 1, 0);
        shmem_uint32_atomic_inc(&marks[drawn], npes - 1);
        uint64_t *wide = (uint64_t *)(words + 8), seen = shmem_uint64_atomic_fetch(wide, 0), was;
        while ((was = shmem_uint64_atomic_compare_swap(wide, seen, seen + 1, 0)) != seen)
            seen = was;
        shmem_uint32_atomic_add(&marks[MARKS + seen], 1, npes - 1);
    }
    shmem_barrier_all();
    uint32_t counts[2 * MARKS];
    shmem_getmem(counts, marks, sizeof counts, npes - 1);
    for (int i = 0; i < DRAWS * npes; i++)
        EXPECT(counts[i] == 1 && counts[MARKS + i] == 1, "ticket %d: %u and %u times", i, counts[i],
               counts[MARKS + i]);
    shmem_barrier_all();
}

/* Additions by all PEs to all, without waiting, are complete after a barrier. */
static void crowd(void) {
    enum { TIMES = 50 };
    long *sum = (long *)area[DEVICE];
    gpu_write(sum, (long[2]){0, 0}, 16);
    shmem_barrier_all();
    for (int i = 0; i < TIMES; i++)
        for (int pe = 0; pe < npes; pe++) {
            shmem_long_atomic_add(&sum[0], me + 1, pe);
            shmem_ulong_atomic_xor((unsigned long *)&sum[1], 1ul << (me * 8 + i % 8), pe);
        }
    shmem_barrier_all();
    long expected[2] = {(long)TIMES * npes * (npes + 1) / 2, 0};
    for (int bit = 0; bit < 8; bit++)
        for (int pe = 0; pe < npes; pe++)
            if ((TIMES / 8 + (bit < TIMES % 8)) % 2)
                expected[1] |= 1l << (pe * 8 + bit);
    gpu_expect(sum, expected, sizeof expected, "sums and toggles");
    shmem_barrier_all();
}

int main(void) {
    unsigned char on_stack[AREA_BYTES_MAX] __attribute__((aligned(64)));
    places_start(on_stack);
    tap_case("fetched into the stack");
    every_type(DEVICE, STACK);
    tap_case("fetched into the host heap");
    every_type(DEVICE, HEAP);
    tap_case("fetched into statics");
    every_type(DEVICE, STATICS);
    tap_case("fetched into GPU memory");
    every_type(DEVICE, DEVICE);
    every_type(DEVICE, FOREIGN);
    tap_case("words of the host, fetched into GPU memory");
    every_type(HEAP, DEVICE);
    every_type(STATICS, FOREIGN);
    tap_case("tickets");
    tickets();
    tap_case("all PEs at once");
    crowd();
    return places_finish();
}
