/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: every PE's data and descriptors arrive at every PE, for all sizes, in many rounds,
 * and no descriptor is left over; joining again after leaving works. PEs: 1 2 3 4 8 64 */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "boot/boot.h"
#include "boot/control.h"
#include "entries.h"
#include "tap.h"

enum { ROUNDS = 60 };

static unsigned char byte_of(int pe, int round, size_t at) {
    return (unsigned char)(pe * 7 + round * 13 + (int)at);
}

/* Returns a file that contains its PE, round and index. */
static int make_file(int pe, int round, int which) {
    int content[3] = {pe, round, which};
    int fd = memfd_create("test", MFD_CLOEXEC);
    EXPECT(write(fd, content, sizeof content) == sizeof content, "fd is %d", fd);
    return fd;
}

static void check_file(int fd, int pe, int round, int which) {
    int content[3] = {-1, -1, -1};
    EXPECT(pread(fd, content, sizeof content, 0) == sizeof content, "fd is %d", fd);
    EXPECT(content[0] == pe && content[1] == round && content[2] == which, "%d %d %d", content[0],
           content[1], content[2]);
    EXPECT(fcntl(fd, F_GETFD) & FD_CLOEXEC, "flags %d", fcntl(fd, F_GETFD));
    close(fd);
}

static void exchange_once(int round, size_t bytes, int nfds) {
    int npes = weft_boot.npes, fds[WEFT_BOOT_FDS_MAX];
    unsigned char mine[WEFT_BOOT_BLOB_MAX], *all = malloc((size_t)npes * bytes + 1);
    int *all_fds = malloc((size_t)(npes * nfds + 1) * sizeof *all_fds);
    for (size_t at = 0; at < bytes; at++)
        mine[at] = byte_of(weft_boot.pe, round, at);
    for (int i = 0; i < nfds; i++)
        fds[i] = make_file(weft_boot.pe, round, i);
    struct weft_exchange exchange = {
        .mine = mine, .bytes = bytes, .all = all, .fds = fds, .nfds = nfds, .all_fds = all_fds};
    int rc = weft_boot_exchange(&exchange);
    EXPECT(rc == 0, "rc is %d", rc);
    for (int pe = 0; pe < npes; pe++) {
        for (size_t at = 0; at < bytes; at++)
            EXPECT(all[(size_t)pe * bytes + at] == byte_of(pe, round, at), "PE %d at %zu", pe, at);
        for (int i = 0; i < nfds; i++)
            check_file(all_fds[pe * nfds + i], pe, round, i);
    }
    for (int i = 0; i < nfds; i++)
        close(fds[i]);
    free(all);
    free(all_fds);
}

static void many_rounds(void) {
    static const size_t sizes[] = {0, 1, 56, 100, 1000, WEFT_BOOT_BLOB_MAX};
    for (int round = 0; round < ROUNDS; round++)
        exchange_once(round, sizes[round % 6], round % (WEFT_BOOT_FDS_MAX + 1));
}

/* Counts open descriptors between two exchanges without descriptors: PE 0 may serve the hub, which
 * holds descriptors of other PEs for a moment. */
static int descriptors_count(void) {
    exchange_once(0, 10, 0);
    int count = entries_of("/proc/self/fd");
    exchange_once(0, 10, 0);
    return count;
}

int main(void) {
    int joined = weft_boot_join();
    if (joined)
        return 1;
    tap_start(weft_boot.pe);
    tap_case("blobs and descriptors arrive");
    int before = descriptors_count();
    many_rounds();
    tap_case("no descriptor is left over");
    int after = descriptors_count();
    EXPECT(before == after, "%d before, %d after", before, after);
    tap_case("joining again after leaving");
    for (int round = 0; round < 20; round++) {
        weft_boot_leave();
        EXPECT(weft_boot_join() == 0, "round %d", round);
        exchange_once(round, 10, 1);
    }
    tap_case("too much is refused");
    unsigned char much[WEFT_BOOT_BLOB_MAX + 1] = {0};
    struct weft_exchange exchange = {.mine = much, .bytes = sizeof much};
    int rc = weft_boot.pe ? -1 : weft_boot_exchange(&exchange);
    EXPECT(rc < 0, "rc is %d", rc); /* PE 0's line on stderr is enough */
    EXPECT(weft_boot.control->npes == weft_boot.npes && weft_boot.control->cores > 0, "cores %d",
           weft_boot.control->cores);
    weft_boot_leave();
    return tap_finish();
}
