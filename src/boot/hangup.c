/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/hangup.h"
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/descriptor.h"
#include "boot/wire.h"

static int kept[WEFT_MIDDLE_HOSTS_MAX];
static int nkept;

void weft_hangup_keep(const int *sockets, int count) {
    for (int i = 0; i < count && nkept < WEFT_MIDDLE_HOSTS_MAX; i++) {
        int socket = weft_descriptor_keep(fcntl(sockets[i], F_DUPFD_CLOEXEC, 0));
        if (socket >= 0)
            kept[nkept++] = socket;
    }
}

/* Also where others hold them: a connection is ended for all of its descriptors. */
void weft_hangup(void) {
    for (int i = 0; i < nkept; i++)
        if (weft_descriptor_is_ours(kept[i]))
            shutdown(kept[i], SHUT_RDWR);
}

void weft_hangup_forget(void) {
    for (int i = 0; i < nkept; i++)
        weft_descriptor_close(kept[i]);
    nkept = 0;
}
