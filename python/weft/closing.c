/* SPDX-License-Identifier: BSD-3-Clause */
#include "closing.h"
#include <errno.h>

struct closing_words {
    uint64_t even, gone, odd;
};

static struct closing_words
    *of_pe; /* one entry for each PE, this PE's own copy; NULL if there is no symmetric memory */
static uint64_t round_number;

int pyweft_closing_prepare(void) {
    if (!of_pe)
        of_pe = shmem_calloc((size_t)shmem_n_pes(), sizeof *of_pe);
    return of_pe ? 0 : -ENOMEM;
}

bool pyweft_closing_prepared(void) {
    return of_pe != NULL;
}

void pyweft_closing_forget(void) {
    of_pe = NULL;
    round_number = 0;
}

/* Sets the word on all PEs, after everything that this PE has put. */
static void tell_all(uint64_t *word, uint64_t value) {
    shmem_quiet();
    for (int pe = 0; pe < shmem_n_pes(); pe++)
        shmem_uint64_atomic_set(word, value, pe);
}

/* Waits for a PE's word of this round, or for its `gone`. Returns whether the PE needs the memory;
 * its word of the round is written before `gone`. */
static bool ask(int pe, bool odd) {
    struct closing_words *words = &of_pe[pe];
    shmem_uint64_wait_until_any(odd ? &words->gone : &words->even, 2, NULL, SHMEM_CMP_GE,
                                2 * round_number);
    uint64_t said = shmem_uint64_atomic_fetch(odd ? &words->odd : &words->even, shmem_my_pe());
    return said == 2 * round_number + 1;
}

int pyweft_closing_agree(bool needs, bool *needed) {
    struct closing_words *mine = &of_pe[shmem_my_pe()];
    bool odd = ++round_number % 2;
    tell_all(odd ? &mine->odd : &mine->even, 2 * round_number + needs);
    *needed = false;
    for (int pe = 0; pe < shmem_n_pes(); pe++)
        *needed |= ask(pe, odd);
    return 0;
}

void pyweft_closing_leave(void) {
    int initialized;
    shmem_query_initialized(&initialized);
    if (of_pe && initialized)
        tell_all(&of_pe[shmem_my_pe()].gone, UINT64_MAX);
}
