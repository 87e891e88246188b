/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses are read with getifaddrs. Interfaces that are down are ignored. */
#include "boot/address.h"
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

void weft_addresses_add(struct weft_addresses *addresses, const char *text) {
    if (!*text)
        return;
    for (int i = 0; i < addresses->count; i++)
        if (strcmp(addresses->text[i], text) == 0)
            return;
    if (addresses->count < WEFT_ADDRESSES_MAX)
        snprintf(addresses->text[addresses->count++], WEFT_ADDRESS_BYTES, "%s", text);
}

void weft_address_print(char text[WEFT_ADDRESS_BYTES], const struct sockaddr *address) {
    const struct in6_addr *six = &((const struct sockaddr_in6 *)address)->sin6_addr;
    text[0] = '\0';
    if (address->sa_family == AF_INET)
        inet_ntop(AF_INET, &((const struct sockaddr_in *)address)->sin_addr, text,
                  WEFT_ADDRESS_BYTES);
    else if (address->sa_family == AF_INET6 && !IN6_IS_ADDR_LINKLOCAL(six))
        inet_ntop(AF_INET6, six, text, WEFT_ADDRESS_BYTES);
}

void weft_addresses_add_own(struct weft_addresses *addresses, const char *only) {
    char text[WEFT_ADDRESS_BYTES];
    struct ifaddrs *list = NULL;
    if (getifaddrs(&list) < 0)
        return;
    for (const struct ifaddrs *each = list; each; each = each->ifa_next) {
        bool meant = only ? strcmp(each->ifa_name, only) == 0 : !(each->ifa_flags & IFF_LOOPBACK);
        if (!meant || !each->ifa_addr || !(each->ifa_flags & IFF_UP))
            continue;
        weft_address_print(text, each->ifa_addr);
        weft_addresses_add(addresses, text);
    }
    freeifaddrs(list);
}

static bool address_is(const struct sockaddr *a, const struct sockaddr_storage *b) {
    if (!a || a->sa_family != b->ss_family)
        return false;
    if (a->sa_family == AF_INET)
        return memcmp(&((const struct sockaddr_in *)a)->sin_addr,
                      &((const struct sockaddr_in *)b)->sin_addr, sizeof(struct in_addr)) == 0;
    return a->sa_family == AF_INET6 &&
           memcmp(&((const struct sockaddr_in6 *)a)->sin6_addr,
                  &((const struct sockaddr_in6 *)b)->sin6_addr, sizeof(struct in6_addr)) == 0;
}

/* Converts an IPv4-mapped IPv6 address, as a dual-stack socket returns it, to IPv4. */
static void address_unmap(struct sockaddr_storage *address) {
    const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)address;
    struct sockaddr_in four = {.sin_family = AF_INET};
    if (address->ss_family != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&six->sin6_addr))
        return;
    memcpy(&four.sin_addr, &six->sin6_addr.s6_addr[12], sizeof four.sin_addr);
    memcpy(address, &four, sizeof four);
}

/* Ranks of an interface's addresses, the best first: IPv4, IPv6, link-local IPv6. */
enum { RANK_4 = 1, RANK_6, RANK_LINK_LOCAL, RANKS };

static int address_rank(const struct sockaddr *address) {
    if (address && address->sa_family == AF_INET)
        return RANK_4;
    if (!address || address->sa_family != AF_INET6)
        return RANKS;
    return IN6_IS_ADDR_LINKLOCAL(&((const struct sockaddr_in6 *)address)->sin6_addr)
               ? RANK_LINK_LOCAL
               : RANK_6;
}

static void own_set(struct weft_network *network, const struct sockaddr *address) {
    network->own = (struct sockaddr_in6){.sin6_family = AF_UNSPEC};
    memcpy(&network->own, address,
           address->sa_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof network->own);
    network->own.sin6_port = 0; /* a sockaddr_in has its port at the same offset */
}

/* Finds the interface's first address of the best rank that is not better than `rank`. */
static void first_address_find(struct weft_network *network, const struct ifaddrs *list, int rank) {
    int best = RANKS;
    for (; list; list = list->ifa_next) {
        bool here = strcmp(list->ifa_name, network->interface) == 0 && list->ifa_flags & IFF_UP;
        int found = here ? address_rank(list->ifa_addr) : RANKS;
        if (found < rank || found >= best)
            continue;
        best = found;
        own_set(network, list->ifa_addr);
    }
}

/* Finds this host's address of a connection. If it is a link-local IPv6 address, a better address
 * of the same interface is chosen: the kernel also uses the link-local address during the first
 * seconds of another one. The entry of getifaddrs contains the scope. */
static void own_end_find(struct weft_network *network, int socket, const struct ifaddrs *list) {
    struct sockaddr_storage own = {0};
    socklen_t bytes = sizeof own;
    if (getsockname(socket, (struct sockaddr *)&own, &bytes) < 0)
        return;
    address_unmap(&own);
    own_set(network, (const struct sockaddr *)&own);
    const struct ifaddrs *at = list;
    while (at && !address_is(at->ifa_addr, &own))
        at = at->ifa_next;
    if (!at)
        return;
    snprintf(network->interface, sizeof network->interface, "%s", at->ifa_name);
    if (address_rank(at->ifa_addr) == RANK_LINK_LOCAL)
        first_address_find(network, list, RANK_6);
}

void weft_network_find(struct weft_network *network, int socket, const char *wanted) {
    struct ifaddrs *list = NULL;
    *network = (struct weft_network){.own = {.sin6_family = AF_UNSPEC}};
    if (getifaddrs(&list) < 0)
        return;
    own_end_find(network, socket, list);
    if (wanted && strcmp(wanted, network->interface) != 0) {
        *network = (struct weft_network){.own = {.sin6_family = AF_UNSPEC}};
        snprintf(network->interface, sizeof network->interface, "%s", wanted);
        first_address_find(network, list, RANK_4);
    }
    freeifaddrs(list);
}
