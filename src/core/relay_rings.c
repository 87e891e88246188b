/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/relay_rings.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "core/bundle.h"
#include "core/job.h"
#include "core/link.h"
#include "core/window.h"

/* Of the longest, and with what a record has beside them: one is read while others are written. */
enum { RING_LETTERS = 4, RECORD_MORE = 32 };

int weft_relay_rings_make(size_t letter_bytes, int *fds) {
    size_t bytes = weft_letter_ring_file_bytes(RING_LETTERS * (letter_bytes + RECORD_MORE));
    fds[WEFT_RELAY_UP] = weft_memfd_create("weft-letters", bytes);
    fds[WEFT_RELAY_DOWN] = weft_memfd_create("weft-letters", bytes);
    fds[WEFT_RELAY_BELL] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int error = fds[WEFT_RELAY_BELL] < 0 ? -errno : 0;
    for (int i = WEFT_RELAY_UP; i <= WEFT_RELAY_DOWN && error == 0; i++)
        error = fds[i] < 0 ? fds[i] : 0;
    if (error)
        weft_log("cannot make the rings to the carrier of this host, of %zu bytes: %s", bytes,
                 strerror(-error));
    return error;
}

int weft_relay_bell_copy(int bell) {
    int copy = fcntl(bell, F_DUPFD_CLOEXEC, 0);
    return copy < 0 ? -errno : weft_descriptor_keep(copy);
}

static void bell_ring(int bell) {
    uint64_t one = 1;
    if (weft_descriptor_is_ours(bell) && write(bell, &one, sizeof one) < 0 && errno != EAGAIN)
        weft_link_fail("cannot wake a PE of this host: %s", strerror(errno));
}

void weft_relay_bell_hush(int bell) {
    uint64_t rung;
    if (weft_descriptor_is_ours(bell) && read(bell, &rung, sizeof rung) < 0 && errno != EAGAIN)
        weft_link_fail("cannot read an eventfd: %s", strerror(errno));
}

int weft_relay_rings_attach(struct weft_relay_rings *rings, const int *fds, int bell,
                            bool carries) {
    *rings = (struct weft_relay_rings){.bell = weft_relay_bell_copy(bell)};
    int error = rings->bell < 0 ? rings->bell : 0;
    if (error == 0)
        error = weft_letter_ring_map(&rings->in, fds[carries ? WEFT_RELAY_UP : WEFT_RELAY_DOWN]);
    if (error == 0)
        error = weft_letter_ring_map(&rings->out, fds[carries ? WEFT_RELAY_DOWN : WEFT_RELAY_UP]);
    return error;
}

void weft_relay_rings_detach(struct weft_relay_rings *rings) {
    weft_letter_ring_unmap(&rings->in);
    weft_letter_ring_unmap(&rings->out);
    weft_descriptor_close(rings->bell);
}

int weft_relay_rings_write(struct weft_relay_rings *rings, const struct iovec *record, int nparts) {
    if (!weft_letter_ring_write(&rings->out, record, nparts, weft_text_bytes(record, nparts)))
        return -EAGAIN;
    if (weft_letter_ring_wakes_reader(&rings->out))
        bell_ring(rings->bell);
    return 0;
}

void weft_relay_rings_give_back(struct weft_relay_rings *rings) {
    if (weft_letter_ring_give_back(&rings->in))
        bell_ring(rings->bell);
}
