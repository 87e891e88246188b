/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: exchanges among some PEs, drawn at random: in sequence, in several threads at once
 * with overlapping members, and beside exchanges of all PEs. Contributions that do not match are an
 * error on all members, and no descriptor is left over. PEs: 1 2 3 4 8 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "boot/boot.h"
#include "boot/control.h"
#include "tap.h"

enum { ROUNDS = 150, THREADS = 12, PES_MAX = 64, BYTES_MAX = 3000 };

/* Random numbers that are the same on all PEs: a round depends only on its tag and number. */
struct lot {
    uint64_t state;
};

static uint32_t draw(struct lot *lot, uint32_t below) {
    lot->state ^= lot->state << 13;
    lot->state ^= lot->state >> 7;
    lot->state ^= lot->state << 17;
    return (uint32_t)(lot->state >> 20) % below;
}

struct round {
    uint64_t tag;
    int number, count, pes[PES_MAX], nfds;
    size_t bytes;
};

/* Draws a random subset in a random order. */
static void draw_members(struct lot *lot, struct round *round) {
    int npes = weft_boot.npes;
    for (int pe = 0; pe < npes; pe++)
        round->pes[pe] = pe;
    for (int i = npes - 1; i > 0; i--) {
        int other = (int)draw(lot, (uint32_t)i + 1), pe = round->pes[i];
        round->pes[i] = round->pes[other];
        round->pes[other] = pe;
    }
    round->count = 1 + (int)draw(lot, (uint32_t)npes);
}

static struct round draw_round(struct lot *lot, uint64_t tag, int number) {
    struct round round = {.tag = tag, .number = number};
    draw_members(lot, &round);
    round.bytes = draw(lot, 4) ? draw(lot, 100) : draw(lot, BYTES_MAX);
    round.nfds = draw(lot, 3) ? 0 : (int)draw(lot, 4);
    return round;
}

static unsigned char byte_of(const struct round *round, int pe, size_t at) {
    return (unsigned char)(pe * 7 + round->number * 13 + (int)round->tag * 29 + (int)at);
}

/* Returns a file that contains its PE. */
static int make_file(const struct round *round, int which) {
    int content[4] = {weft_boot.pe, round->number, (int)round->tag, which};
    int fd = memfd_create("test", MFD_CLOEXEC);
    return write(fd, content, sizeof content) == sizeof content ? fd : -1;
}

static bool is_file(int fd, const struct round *round, int pe, int which) {
    int content[4] = {-1, -1, -1, -1}, wanted[4] = {pe, round->number, (int)round->tag, which};
    bool same = pread(fd, content, sizeof content, 0) == sizeof content &&
                memcmp(content, wanted, sizeof content) == 0 && fcntl(fd, F_GETFD) & FD_CLOEXEC;
    close(fd);
    return same;
}

/* Returns the number of errors. */
static int exchange(const struct round *round) {
    unsigned char mine[BYTES_MAX], *all = malloc((size_t)round->count * round->bytes + 1);
    int fds[4], all_fds[PES_MAX * 4], wrong = 0;
    struct weft_boot_subset subset = {.pes = round->pes, .count = round->count, .tag = round->tag};
    for (size_t at = 0; at < round->bytes; at++)
        mine[at] = byte_of(round, weft_boot.pe, at);
    for (int i = 0; i < round->nfds; i++)
        fds[i] = make_file(round, i);
    struct weft_exchange exchange = {.mine = mine,
                                     .bytes = round->bytes,
                                     .all = all,
                                     .fds = fds,
                                     .nfds = round->nfds,
                                     .all_fds = all_fds};
    wrong += weft_boot_exchange_among(&subset, &exchange) != 0;
    for (int i = 0; i < round->count && !wrong; i++) {
        for (size_t at = 0; at < round->bytes; at++)
            wrong += all[(size_t)i * round->bytes + at] != byte_of(round, round->pes[i], at);
        for (int which = 0; which < round->nfds; which++)
            wrong += !is_file(all_fds[i * round->nfds + which], round, round->pes[i], which);
    }
    for (int i = 0; i < round->nfds; i++)
        close(fds[i]);
    free(all);
    return wrong;
}

static bool takes_part(const struct round *round) {
    for (int i = 0; i < round->count; i++)
        if (round->pes[i] == weft_boot.pe)
            return true;
    return false;
}

static int run_rounds(uint64_t tag, int rounds) {
    struct lot lot = {.state = 88172645463325252u + tag * 977};
    int wrong = 0;
    for (int number = 0; number < rounds; number++) {
        struct round round = draw_round(&lot, tag, number);
        if (takes_part(&round))
            wrong += exchange(&round);
    }
    return wrong;
}

static void *run_thread(void *tag) {
    return (void *)(intptr_t)run_rounds((uint64_t)(uintptr_t)tag, ROUNDS / 2);
}

static void exchange_of_all(void) {
    int all[PES_MAX];
    for (int i = 0; i < 30; i++) {
        struct weft_exchange exchange = {.mine = &weft_boot.pe, .bytes = sizeof *all, .all = all};
        EXPECT(weft_boot_exchange(&exchange) == 0, "%d", i);
        for (int pe = 0; pe < weft_boot.npes; pe++)
            EXPECT(all[pe] == pe, "%d", all[pe]);
    }
}

static void in_threads(void *(*body)(void *)) {
    pthread_t threads[THREADS];
    for (intptr_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, body, (void *)(i + 100));
    exchange_of_all();
    for (int i = 0; i < THREADS; i++) {
        void *wrong = NULL;
        pthread_join(threads[i], &wrong);
        EXPECT(wrong == NULL, "%d wrong in thread %d", (int)(intptr_t)wrong, i);
    }
}

/* Exchanges at the same time, which differ only in their tags. */
static void *lead_from_last(void *tag) {
    struct round round = {.tag = (uintptr_t)tag, .count = weft_boot.npes, .bytes = 8, .nfds = 1};
    intptr_t wrong = 0;
    for (int i = 0; i < round.count; i++)
        round.pes[i] = round.count - 1 - i;
    for (round.number = 0; round.number < 20; round.number++)
        wrong += exchange(&round);
    return (void *)wrong;
}

static int exchange_bytes(const struct weft_boot_subset *subset, size_t bytes) {
    unsigned char mine[16] = {0}, all[PES_MAX * 16];
    struct weft_exchange exchange = {.mine = mine, .bytes = bytes, .all = all};
    return weft_boot_exchange_among(subset, &exchange);
}

static void misfits(void) {
    int twice[2] = {weft_boot.pe, weft_boot.pe}, beyond[2] = {weft_boot.pe, weft_boot.npes};
    int other = (weft_boot.pe + 1) % weft_boot.npes, all_pes[PES_MAX];
    struct weft_boot_subset subset = {.pes = twice, .count = 2};
    int rc = exchange_bytes(&subset, 8);
    EXPECT(rc == -EINVAL, "rc is %d", rc);
    subset.pes = beyond;
    rc = exchange_bytes(&subset, 8);
    EXPECT(rc == -EINVAL, "rc is %d", rc);
    subset = (struct weft_boot_subset){.pes = &other, .count = 1};
    rc = exchange_bytes(&subset, 8);
    EXPECT(rc == (weft_boot.npes > 1 ? -EINVAL : 0), "rc is %d", rc);
    for (int pe = 0; pe < weft_boot.npes; pe++)
        all_pes[pe] = pe;
    subset = (struct weft_boot_subset){.pes = all_pes, .count = weft_boot.npes};
    rc = exchange_bytes(&subset, weft_boot.pe ? 8 : 9);
    EXPECT(rc == (weft_boot.npes > 1 ? -EPROTO : 0), "rc is %d", rc);
}

/* PE 0 may serve the hub, which holds descriptors of others for a moment: none are contributed now.
 */
static int count_descriptors(void) {
    int count = 0;
    exchange_of_all();
    DIR *directory = opendir("/proc/self/fd");
    while (directory && readdir(directory))
        count++;
    closedir(directory);
    exchange_of_all();
    return count;
}

int main(void) {
    if (weft_boot_join())
        return 1;
    tap_start(weft_boot.pe);
    int before = count_descriptors();
    tap_case("random members, one exchange after the other");
    int wrong = run_rounds(1, ROUNDS);
    EXPECT(wrong == 0, "%d wrong", wrong);
    tap_case("in threads, with overlapping members, and beside exchanges of all");
    in_threads(run_thread);
    tap_case("many at once among the same PEs");
    in_threads(lead_from_last);
    tap_case("what does not fit is an error on all members");
    misfits();
    tap_case("no descriptor is left over");
    int after = count_descriptors();
    EXPECT(before == after, "%d before, %d after", before, after);
    weft_boot_leave();
    return tap_finish();
}
