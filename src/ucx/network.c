/* SPDX-License-Identifier: BSD-3-Clause */
/* UCX_TLS and UCX_NET_DEVICES are lists with commas; one that begins with ^ names what is left out.
 */
#include "ucx/network.h"
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char any[] = "all";

/* --- Lists ----------------------------------------------------------------------------------- */

static bool list_names(const char *list, const char *name) {
    size_t length = strlen(name);
    for (const char *at = list; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        if (strncmp(at, name, length) == 0 && (at[length] == ',' || at[length] == '\0'))
            return true;
    return false;
}

static bool list_admits(const char *list, const char *name) {
    if (*list == '^')
        return !list_names(list + 1, name);
    return list_names(list, any) || list_names(list, name);
}

/* Whether TCP is all that the list of transports asks for: its devices are interfaces then. */
static bool list_is_tcp(const char *list) {
    return strcmp(list, "tcp") == 0 || strcmp(list, "tcp,self") == 0 ||
           strcmp(list, "self,tcp") == 0;
}

/* --- Addresses ------------------------------------------------------------------------------- */

struct prefix {
    unsigned char bytes[2], bits;
};

static bool prefix_holds(const struct prefix *prefix, const unsigned char *address) {
    unsigned mask = 0xffff0000u >> prefix->bits & 0xffff;
    unsigned have = (unsigned)address[0] << 8 | address[1];
    unsigned want = (unsigned)prefix->bytes[0] << 8 | prefix->bytes[1];
    return (have & mask) == (want & mask);
}

/* Loopback, private (RFC 1918), link-local, and what providers share (RFC 6598). */
static bool is_private4(const unsigned char *address) {
    static const struct prefix prefixes[] = {{{127, 0}, 8},    {{10, 0}, 8},     {{172, 16}, 12},
                                             {{192, 168}, 16}, {{169, 254}, 16}, {{100, 64}, 10}};
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (prefix_holds(&prefixes[i], address))
            return true;
    return false;
}

static bool is_private6(const struct in6_addr *address) {
    static const struct prefix local = {{0xfc, 0}, 7}, link = {{0xfe, 0x80}, 10};
    if (IN6_IS_ADDR_V4MAPPED(address))
        return is_private4(address->s6_addr + 12);
    return IN6_IS_ADDR_LOOPBACK(address) || prefix_holds(&local, address->s6_addr) ||
           prefix_holds(&link, address->s6_addr);
}

static bool is_public(const struct sockaddr *address) {
    struct in_addr in;
    struct in6_addr in6;
    if (address->sa_family == AF_INET) {
        memcpy(&in, &((const struct sockaddr_in *)address)->sin_addr, sizeof in);
        return !is_private4((const unsigned char *)&in);
    }
    memcpy(&in6, &((const struct sockaddr_in6 *)address)->sin6_addr, sizeof in6);
    return !is_private6(&in6);
}

static void address_print(char *text, size_t bytes, const struct sockaddr *address) {
    const void *number = address->sa_family == AF_INET
                             ? (const void *)&((const struct sockaddr_in *)address)->sin_addr
                             : (const void *)&((const struct sockaddr_in6 *)address)->sin6_addr;
    if (!inet_ntop(address->sa_family, number, text, (socklen_t)bytes))
        snprintf(text, bytes, "?");
}

/* --- The choice ------------------------------------------------------------------------------ */

static bool has_family(const struct ifaddrs *all, const char *name, int family) {
    for (; all; all = all->ifa_next)
        if (all->ifa_addr && all->ifa_addr->sa_family == family && strcmp(all->ifa_name, name) == 0)
            return true;
    return false;
}

/* Whether UCX would listen there by TCP. Of an interface with addresses of both kinds it takes
 * IPv4, unless the user has it otherwise. */
static bool is_listened_on(const struct ucx_network *network, const struct ifaddrs *all,
                           const struct ifaddrs *one) {
    if (!one->ifa_addr || !(one->ifa_flags & IFF_UP) ||
        !list_admits(network->devices, one->ifa_name))
        return false;
    if (one->ifa_addr->sa_family == AF_INET)
        return true;
    return one->ifa_addr->sa_family == AF_INET6 &&
           (getenv("UCX_TCP_AF_PRIO") || !has_family(all, one->ifa_name, AF_INET));
}

static int refuse(const struct weft_engine_options *options, const struct ifaddrs *one) {
    char text[INET6_ADDRSTRLEN];
    address_print(text, sizeof text, one->ifa_addr);
    snprintf(options->reason, WEFT_ENGINE_TEXT_BYTES,
             "the network interface %s has the public address %s, and UCX would listen there for "
             "anybody, unencrypted: name a private network, or a tunnel such as WireGuard's, by "
             "UCX_NET_DEVICES, or set WEFT_FAR_NETWORK=trusted if strangers cannot reach it",
             one->ifa_name, text);
    return -EPERM;
}

/* Every address by which TCP would be reached is private, and there is one. */
static int network_check(const struct weft_engine_options *options,
                         const struct ucx_network *network) {
    struct ifaddrs *all;
    if (getifaddrs(&all) != 0)
        return -errno;
    int error = -ENODEV;
    for (const struct ifaddrs *one = all; one && error != -EPERM; one = one->ifa_next)
        if (is_listened_on(network, all, one))
            error = is_public(one->ifa_addr) && !options->trusted ? refuse(options, one) : 0;
    freeifaddrs(all);
    if (error == -ENODEV)
        snprintf(options->reason, WEFT_ENGINE_TEXT_BYTES,
                 "no network interface of '%s' is up and has an address: name one by "
                 "UCX_NET_DEVICES",
                 network->devices);
    return error;
}

static bool name_take(char *to, const char *name) {
    return snprintf(to, UCX_NAMES_BYTES, "%s", name) < UCX_NAMES_BYTES;
}

int ucx_network_choose(const struct weft_engine_options *options, struct ucx_network *network,
                       struct ucx_settings *settings) {
    const char *transports = getenv("UCX_TLS"), *devices = getenv("UCX_NET_DEVICES");
    if (!transports)
        transports = "tcp,self";
    if (!devices && list_is_tcp(transports))
        devices = options->network ? options->network : "lo";
    *network = (struct ucx_network){.tcp = list_admits(transports, "tcp")};
    if (!name_take(network->transports, transports) ||
        !name_take(network->devices, devices ? devices : any)) {
        snprintf(options->reason, WEFT_ENGINE_TEXT_BYTES,
                 "UCX_TLS or UCX_NET_DEVICES has more than %d bytes", UCX_NAMES_BYTES - 1);
        return -ENAMETOOLONG;
    }
    ucx_settings_add(settings, "UCX_TLS", transports);
    if (devices)
        ucx_settings_add(settings, "UCX_NET_DEVICES", devices);
    return network->tcp ? network_check(options, network) : 0;
}

int ucx_network_address(const struct ucx_network *network, struct sockaddr_storage *address) {
    struct ifaddrs *all;
    if (!network->tcp)
        return -ENODEV;
    if (getifaddrs(&all) != 0)
        return -errno;
    const struct ifaddrs *one = all;
    while (one && !is_listened_on(network, all, one))
        one = one->ifa_next;
    if (one)
        memcpy(address, one->ifa_addr,
               one->ifa_addr->sa_family == AF_INET ? sizeof(struct sockaddr_in)
                                                   : sizeof(struct sockaddr_in6));
    freeifaddrs(all);
    return one ? 0 : -ENODEV;
}

void ucx_network_describe(const struct ucx_network *network, char *text, size_t bytes) {
    snprintf(text, bytes, "transports %s on %s%s", network->transports, network->devices,
             network->tcp ? "; TCP is neither encrypted nor authenticated" : "");
}
