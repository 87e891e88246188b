/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernel lists interfaces with their addresses; those that are down have none that counts. */
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

void weft_address_unmap(struct sockaddr_storage *address) {
    const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)address;
    struct sockaddr_in four = {.sin_family = AF_INET};
    if (address->ss_family != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&six->sin6_addr))
        return;
    memcpy(&four.sin_addr, &six->sin6_addr.s6_addr[12], sizeof four.sin_addr);
    memcpy(address, &four, sizeof four);
}

void weft_address_interface(int socket, char *name, size_t bytes) {
    struct sockaddr_storage own = {0};
    socklen_t own_bytes = sizeof own;
    struct ifaddrs *list = NULL;
    name[0] = '\0';
    if (getsockname(socket, (struct sockaddr *)&own, &own_bytes) < 0 || getifaddrs(&list) < 0)
        return;
    weft_address_unmap(&own);
    for (const struct ifaddrs *at = list; at && !name[0]; at = at->ifa_next)
        if (address_is(at->ifa_addr, &own))
            snprintf(name, bytes, "%s", at->ifa_name);
    freeifaddrs(list);
}
