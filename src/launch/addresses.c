/* SPDX-License-Identifier: BSD-3-Clause */
#include "launch/addresses.h"
#include <netdb.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/thread.h"

/* Connecting a datagram socket makes the kernel choose the route and the source address; nothing is
 * sent. */
static void own_address_find(const struct addrinfo *to, char text[WEFT_ADDRESS_BYTES]) {
    struct sockaddr_storage own;
    socklen_t bytes = sizeof own;
    int fd = socket(to->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, to->ai_addr, to->ai_addrlen) == 0 &&
        getsockname(fd, (struct sockaddr *)&own, &bytes) == 0)
        weft_address_print(text, (struct sockaddr *)&own);
    if (fd >= 0)
        close(fd);
}

/* The lookup may find nothing: the name may be an alias from ssh's configuration. */
static void *lookup_main(void *argument) {
    struct weft_addresses_way *way = argument;
    const char *at = strchr(way->name, '@');
    struct addrinfo hints = {.ai_socktype = SOCK_DGRAM}, *found = NULL;
    if (getaddrinfo(at ? at + 1 : way->name, "9", &hints, &found) != 0)
        return NULL;
    for (const struct addrinfo *one = found; one; one = one->ai_next) {
        char *text = way->of_family[one->ai_family == AF_INET6];
        if (!*text)
            own_address_find(one, text);
    }
    freeaddrinfo(found);
    return NULL;
}

static bool way_is_known(const struct weft_addresses_way *way) {
    return way->of_family[0][0] || way->of_family[1][0];
}

static void family_choose(struct weft_addresses_way *ways, int count) {
    int missing[2] = {0};
    for (int i = 0; i < count; i++)
        for (int family = 0; family < 2; family++)
            missing[family] += way_is_known(&ways[i]) && !ways[i].of_family[family][0];
    int chosen = missing[0] && !missing[1];
    for (int i = 0; i < count; i++)
        if (way_is_known(&ways[i])) {
            int family = ways[i].of_family[chosen][0] ? chosen : !chosen;
            memcpy(ways[i].text, ways[i].of_family[family], sizeof ways[i].text);
        }
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
    family_choose(ways, count);
}
