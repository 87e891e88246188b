/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: a barrier has two levels if some PEs are far: the first PE of each group of near PEs
 * sends messages, and the others send none. No PE leaves before all have entered.
 * PEs: 4 Far: 2+2 Far: list:0,1,0,0 reorder=16,delay_us=50 */
#include "far/channel.h"
#include "core/init.h"
#include "draw.h"

enum { BARRIERS = 200 };

static long rounds_of[4];

/* Returns the messages sent to all PEs, including those that no quiet waits for. */
static uint32_t messages_sent(void) {
    uint32_t sent = 0;
    for (int pe = 0; pe < shmem_n_pes(); pe++)
        sent += weft_channels.of[pe] ? weft_channels.of[pe]->sent + 1 - weft_message_first : 0;
    return sent;
}

static void check_messages(bool leads) {
    shmem_barrier_all();
    uint32_t before = messages_sent();
    for (int i = 0; i < BARRIERS; i++)
        shmem_sync_all();
    uint32_t sent = messages_sent() - before;
    EXPECT(leads ? sent >= BARRIERS : sent == 0, "%u messages for %d barriers", sent, BARRIERS);
}

static void check_rounds(int me) {
    for (long round = 1; round <= BARRIERS; round++) {
        for (int pe = 0; pe < shmem_n_pes(); pe++)
            shmem_long_p(&rounds_of[me], round, pe);
        shmem_barrier_all();
        for (int pe = 0; pe < shmem_n_pes(); pe++)
            EXPECT(rounds_of[pe] == round, "PE %d is in round %ld, not %ld", pe, rounds_of[pe],
                   round);
        shmem_barrier_all();
    }
}

int main(void) {
    shmem_init();
    tap_start(shmem_my_pe());
    tap_case("leaders alone send messages");
    check_messages(shmem_team_my_pe(SHMEM_TEAM_SHARED) == 0);
    tap_case("nobody leaves before all have come");
    check_rounds(shmem_my_pe());
    int result = tap_finish();
    shmem_finalize();
    return result;
}
