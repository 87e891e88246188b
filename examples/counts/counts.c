/* SPDX-License-Identifier: BSD-3-Clause */
/* A hash table distributed over all PEs, without locks: a PE that needs an entry claims it with a
 * compare-and-swap of its key and counts with an atomic add. Here it counts random words; each PE
 * has its own text. Then every PE compares its part of the table with a recount.
 *
 *   oshrun -n 4 build/examples/counts */
#include <shmem.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { SLOTS = 1 << 14, WORDS = 20000, DIFFERENT = 3000 };

/* This PE's part: open addressing; a key of 0 marks a free slot. */
static uint64_t keys[SLOTS];
static uint64_t counts[SLOTS];
static long entries_wrong, all_wrong;

static uint64_t mix(uint64_t x) {
    x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
    return x ^ (x >> 31);
}

/* Returns word number i of a PE's text; small numbers are frequent, as frequent words are in any
 * language. */
static uint64_t word(int pe, int i) {
    uint64_t random = mix(((uint64_t)pe << 32) + (uint64_t)i + 1) % DIFFERENT;
    return 1 + random * random / DIFFERENT;
}

static int owner_of(uint64_t key) {
    return (int)(mix(key) % (uint64_t)shmem_n_pes());
}

/* Returns the slot of a key on its owner, and claims a free one if the key is new. */
static size_t find_slot(uint64_t key, int owner) {
    size_t slot = (size_t)(mix(key) >> 32) % SLOTS;
    for (;; slot = (slot + 1) % SLOTS) {
        uint64_t there = shmem_atomic_compare_swap(&keys[slot], 0, key, owner);
        if (there == 0 || there == key)
            return slot;
    }
}

static void count_words(void) {
    for (int i = 0; i < WORDS; i++) {
        uint64_t key = word(shmem_my_pe(), i);
        int owner = owner_of(key);
        shmem_atomic_inc(&counts[find_slot(key, owner)], owner);
    }
}

/* Returns the number of this PE's words that are wrong or missing, according to a count of all
 * texts. */
static long check_my_part(void) {
    static uint64_t expected[DIFFERENT + 2];
    long wrong = 0;
    for (int pe = 0; pe < shmem_n_pes(); pe++)
        for (int i = 0; i < WORDS; i++)
            expected[word(pe, i)]++;
    for (size_t slot = 0; slot < SLOTS; slot++)
        if (keys[slot]) {
            wrong += owner_of(keys[slot]) != shmem_my_pe() || counts[slot] != expected[keys[slot]];
            expected[keys[slot]] = 0;
        }
    for (uint64_t key = 1; key < DIFFERENT + 2; key++)
        wrong += expected[key] != 0 && owner_of(key) == shmem_my_pe();
    return wrong;
}

int main(void) {
    shmem_init();
    count_words();
    shmem_barrier_all();
    entries_wrong = check_my_part();
    shmem_sum_reduce(SHMEM_TEAM_WORLD, &all_wrong, &entries_wrong, 1);
    if (shmem_my_pe() == 0) {
        int owner = owner_of(1);
        uint64_t most = shmem_g(&counts[find_slot(1, owner)], owner);
        printf("%d words counted; word 1 occurs %llu times\n", WORDS * shmem_n_pes(),
               (unsigned long long)most);
        printf("%s\n", all_wrong ? "WRONG counts" : "all counts are right");
    }
    shmem_finalize();
    return all_wrong ? 1 : 0;
}
