/* SPDX-License-Identifier: BSD-3-Clause */
/* UCX_TLS and UCX_NET_DEVICES are lists separated by commas; a list that begins with ^ names what
 * is excluded. UCX uses an interface's first address of the first family in UCX_TCP_AF_PRIO that
 * the interface has. */
#include "ucx/network.h"
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

/* Returns whether the list of transports asks for TCP only, so that its devices are interfaces. */
static bool list_is_tcp(const char *list) {
    return strcmp(list, "tcp") == 0 || strcmp(list, "tcp,self") == 0 ||
           strcmp(list, "self,tcp") == 0;
}

/* --- The choice ------------------------------------------------------------------------------ */

static bool has_family(const struct ifaddrs *all, const char *name, int family) {
    for (; all; all = all->ifa_next)
        if (all->ifa_addr && all->ifa_addr->sa_family == family && strcmp(all->ifa_name, name) == 0)
            return true;
    return false;
}

/* Returns whether UCX would listen at this address by TCP. If an interface has addresses of both
 * families, UCX uses those of the network's family, or of either one if the user has named
 * families. */
static bool is_listened_on(const struct ucx_network *network, const struct ifaddrs *all,
                           const struct ifaddrs *one) {
    if (!one->ifa_addr || !(one->ifa_flags & IFF_UP) ||
        !list_admits(network->devices, one->ifa_name))
        return false;
    int family = one->ifa_addr->sa_family, other = family == AF_INET ? AF_INET6 : AF_INET;
    if (family != AF_INET && family != AF_INET6)
        return false;
    return family == network->family || network->either_family ||
           !has_family(all, one->ifa_name, other);
}

/* Checks that there is an address at which UCX would listen by TCP, and that all such addresses are
 * private. Returns 0; -ENODEV or -EPERM with the reason; or another -errno without one. */
static int network_check(const struct weft_engine_options *options,
                         const struct ucx_network *network) {
    static const char harm[] = "UCX would listen there for anybody, unencrypted";
    struct ifaddrs *all;
    if (getifaddrs(&all) != 0)
        return -errno;
    int error = -ENODEV;
    for (const struct ifaddrs *one = all; one && error != -EPERM; one = one->ifa_next)
        if (is_listened_on(network, all, one))
            error = weft_network_is_public(one->ifa_addr) && !options->trusted
                        ? weft_network_refuse(options, one->ifa_name, one->ifa_addr, harm,
                                              "UCX_NET_DEVICES")
                        : 0;
    freeifaddrs(all);
    if (error == -ENODEV)
        snprintf(options->reason, WEFT_ENGINE_TEXT_BYTES,
                 "no network interface of '%s' is up and has an address: name one by "
                 "UCX_NET_DEVICES",
                 network->devices);
    return error;
}

static bool address_is(const struct sockaddr *a, const struct sockaddr *b) {
    if (a->sa_family != b->sa_family)
        return false;
    return a->sa_family == AF_INET
               ? memcmp(&((const struct sockaddr_in *)a)->sin_addr,
                        &((const struct sockaddr_in *)b)->sin_addr, sizeof(struct in_addr)) == 0
               : memcmp(&((const struct sockaddr_in6 *)a)->sin6_addr,
                        &((const struct sockaddr_in6 *)b)->sin6_addr, sizeof(struct in6_addr)) == 0;
}

/* UCX accepts an interface and a family, but no address. Returns 0 if it would listen at the
 * address through which the hosts have reached each other, -EADDRNOTAVAIL with the reason if not,
 * or the error of ucx_network_address, without a reason. */
static int address_check(const struct weft_engine_options *options,
                         const struct ucx_network *network) {
    struct sockaddr_storage would;
    char text[INET6_ADDRSTRLEN], wanted[INET6_ADDRSTRLEN];
    int error = ucx_network_address(network, &would);
    if (error || address_is((const struct sockaddr *)&would, options->address))
        return error;
    weft_network_print(text, sizeof text, (const struct sockaddr *)&would);
    weft_network_print(wanted, sizeof wanted, options->address);
    snprintf(options->reason, WEFT_ENGINE_TEXT_BYTES,
             "UCX would listen at %s, the first address of %s, but hosts reach each other by %s: "
             "set WEFT_ENGINE=tcp, or UCX_NET_DEVICES=%s if hosts reach each other by %s, too",
             text, options->network, wanted, options->network, text);
    return -EADDRNOTAVAIL;
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
    *network = (struct ucx_network){.tcp = list_admits(transports, "tcp"),
                                    .family = AF_INET,
                                    .either_family = getenv("UCX_TCP_AF_PRIO")};
    bool follows = network->tcp && !getenv("UCX_NET_DEVICES") && devices && options->address;
    if (follows)
        network->family = options->address->sa_family;
    if (!name_take(network->transports, transports) ||
        !name_take(network->devices, devices ? devices : any)) {
        snprintf(options->reason, WEFT_ENGINE_TEXT_BYTES,
                 "UCX_TLS or UCX_NET_DEVICES has more than %d bytes", UCX_NAMES_BYTES - 1);
        return -ENAMETOOLONG;
    }
    ucx_settings_add(settings, "UCX_TLS", transports);
    if (devices)
        ucx_settings_add(settings, "UCX_NET_DEVICES", devices);
    if (follows)
        ucx_settings_add(settings, "UCX_TCP_AF_PRIO",
                         network->family == AF_INET ? "inet" : "inet6");
    int error = network->tcp ? network_check(options, network) : 0;
    return error || !follows ? error : address_check(options, network);
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
        memcpy(address, one->ifa_addr, weft_network_bytes(one->ifa_addr));
    freeifaddrs(all);
    return one ? 0 : -ENODEV;
}

void ucx_network_describe(const struct ucx_network *network, char *text, size_t bytes) {
    snprintf(text, bytes, "transports %s on %s%s", network->transports, network->devices,
             network->tcp ? "; TCP is neither encrypted nor authenticated" : "");
}
