/* SPDX-License-Identifier: BSD-3-Clause */
/* A client of PyTorch's store, which torchrun's agent serves at MASTER_ADDR and MASTER_PORT. It
 * carries a value from one PE to the others. Every process that can reach that port can read it. */
#ifndef WEFT_BOOT_TCPSTORE_H
#define WEFT_BOOT_TCPSTORE_H

#include <stddef.h>

struct weft_tcpstore {
    int socket;
    const char *host, *port;
};

/* Connects, and waits until the store listens. All functions return 0, or -errno after logging the
 * reason. */
int weft_tcpstore_open(struct weft_tcpstore *store, const char *host, const char *port);
void weft_tcpstore_close(struct weft_tcpstore *store);

/* Values are text; the terminating zero is not stored. weft_tcpstore_get waits until the key
 * exists. */
int weft_tcpstore_put(struct weft_tcpstore *store, const char *key, const char *value);
int weft_tcpstore_get(struct weft_tcpstore *store, const char *key, char *value, size_t bytes);

#endif
