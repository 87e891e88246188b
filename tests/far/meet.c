/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: an exchange among some PEs by letters, as those on several hosts have it: what each
 * member gives arrives at all, in rounds that follow each other at once, in any list of members, of
 * any size; two lists do not meet each other.
 * PEs: 1 2 3 4
 * Far: each seed=7,reorder=16
 * Far: cyclic:2 refuse=10,delay_us=50 */
#include <string.h>
#include "boot/boot.h"
#include "core/far_meet.h"
#include "far.h"

enum { ROUNDS = 40 };

static unsigned char gift_of(int pe, int round) {
    return (unsigned char)(1 + pe + 8 * round);
}

static void meet(const int *pes, int count, uint64_t number, int round, size_t bytes) {
    unsigned char *mine = malloc(bytes + 1), *all = malloc((size_t)count * bytes + 1);
    struct weft_boot_subset subset = {.pes = pes, .count = count};
    struct weft_exchange exchange = {.mine = mine, .bytes = bytes, .all = all};
    memset(mine, gift_of(shmem_my_pe(), round), bytes);
    int error = weft_far_meet(&subset, number, &exchange);
    EXPECT(error == 0, "round %d: %d", round, error);
    for (size_t i = 0; i < (size_t)count * bytes; i++)
        EXPECT(all[i] == gift_of(pes[i / bytes], round), "round %d at %zu: %d", round, i, all[i]);
    free(mine);
    free(all);
}

int main(void) {
    static const size_t sizes[] = {0, 1, 8, 1000, WEFT_BOOT_BLOB_MAX};
    shmem_init();
    int me = shmem_my_pe(), npes = shmem_n_pes(), all[npes], two[2];
    for (int i = 0; i < npes; i++)
        all[i] = npes - 1 - i;
    tap_start(me);
    tap_case("all PEs, round after round");
    for (int round = 0; round < ROUNDS; round++)
        meet(all, npes, 1, round, sizes[round % 5]);
    tap_case("each pair, beside the others");
    for (int first = 0; first < npes; first++)
        for (int second = first + 1; second < npes; second++) {
            two[0] = second;
            two[1] = first;
            if (me == first || me == second)
                meet(two, 2, (uint64_t)(2 + first * npes + second), first + second, 100);
        }
    meet(all, npes, 1, ROUNDS, 8);
    shmem_finalize();
    return tap_finish();
}
