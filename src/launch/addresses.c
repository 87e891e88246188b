/* SPDX-License-Identifier: BSD-3-Clause */
#include "launch/addresses.h"
#include <netdb.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/thread.h"

/* A datagram's socket knows the way, and sends nothing. The name may be an alias that ssh alone
 * knows. */
static void *lookup_main(void *argument) {
    struct weft_addresses_way *way = argument;
    const char *at = strchr(way->name, '@');
    struct addrinfo hints = {.ai_socktype = SOCK_DGRAM}, *found = NULL;
    struct sockaddr_storage own;
    socklen_t bytes = sizeof own;
    if (getaddrinfo(at ? at + 1 : way->name, "9", &hints, &found) != 0)
        return NULL;
    int fd = socket(found->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, found->ai_addr, found->ai_addrlen) == 0 &&
        getsockname(fd, (struct sockaddr *)&own, &bytes) == 0)
        weft_address_print(way->text, (struct sockaddr *)&own);
    if (fd >= 0)
        close(fd);
    freeaddrinfo(found);
    return NULL;
}

void weft_addresses_find_ways(struct weft_addresses_way *ways, int count) {
    for (int i = 0; i < count; i++)
        ways[i].looks =
            ways[i].name && weft_thread_start(&ways[i].thread, lookup_main, &ways[i]) == 0;
    for (int i = 0; i < count; i++)
        if (ways[i].looks)
            weft_thread_join(ways[i].thread);
        else if (ways[i].name)
            lookup_main(&ways[i]);
}
