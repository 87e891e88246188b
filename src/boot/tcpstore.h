/* SPDX-License-Identifier: BSD-3-Clause */
/* The store of PyTorch's that torchrun's agent serves at MASTER_ADDR and MASTER_PORT, as a client
 * of it: it brings a value from one PE to the others. Whoever reaches that port can read it. */
#ifndef WEFT_BOOT_TCPSTORE_H
#define WEFT_BOOT_TCPSTORE_H

#include <stddef.h>

struct weft_tcpstore {
    int socket;
    const char *host, *port;
};

/* Connects, and waits until somebody listens there. Functions return 0 or -errno, logged. */
int weft_tcpstore_open(struct weft_tcpstore *store, const char *host, const char *port);
void weft_tcpstore_close(struct weft_tcpstore *store);

/* Values are text without its end; a get waits until the value is there. */
int weft_tcpstore_put(struct weft_tcpstore *store, const char *key, const char *value);
int weft_tcpstore_get(struct weft_tcpstore *store, const char *key, char *value, size_t bytes);

#endif
