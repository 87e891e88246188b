/* SPDX-License-Identifier: BSD-3-Clause */
/* A work queue in one word: PEs draw chunks of a range with an atomic fetch-and-increment of PE 0's
 * counter and count the primes in them. A slow PE simply draws fewer chunks.
 *
 *   oshrun -n 4 build/examples/primes */
#include <shmem.h>
#include <stdbool.h>
#include <stdio.h>

enum { LIMIT = 1000000, CHUNK = 5000, CHUNKS = LIMIT / CHUNK, PRIMES_BELOW_LIMIT = 78498 };

static long next_chunk;    /* PE 0's copy is the queue */
static long primes, drawn; /* primes that this PE found; chunks that it drew */
static long all_primes;

static bool is_prime(long n) {
    if (n < 4)
        return n > 1;
    if (n % 2 == 0)
        return false;
    for (long divisor = 3; divisor * divisor <= n; divisor += 2)
        if (n % divisor == 0)
            return false;
    return true;
}

static long primes_in(long chunk) {
    long found = 0;
    for (long n = chunk * CHUNK; n < (chunk + 1) * CHUNK; n++)
        found += is_prime(n);
    return found;
}

int main(void) {
    shmem_init();
    for (long chunk; (chunk = shmem_atomic_fetch_inc(&next_chunk, 0)) < CHUNKS; drawn++)
        primes += primes_in(chunk);
    shmem_sum_reduce(SHMEM_TEAM_WORLD, &all_primes, &primes, 1);
    shmem_sync_all(); /* the numbers of all PEs can be read now */

    for (int pe = 0; pe < shmem_n_pes() && shmem_my_pe() == 0; pe++)
        printf("PE %d found %ld primes in %ld chunks\n", pe, shmem_g(&primes, pe),
               shmem_g(&drawn, pe));
    bool right = all_primes == PRIMES_BELOW_LIMIT;
    if (shmem_my_pe() == 0)
        printf("%ld primes below %d: %s\n", all_primes, LIMIT, right ? "right" : "WRONG");
    shmem_finalize();
    return right ? 0 : 1;
}
