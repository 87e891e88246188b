/* SPDX-License-Identifier: BSD-3-Clause */
/* The start texts: each host gets a key of its own, and the addresses by which it may reach this
 * one, that of the way to it first. */
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <limits.h>
#include <net/if.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>
#include "base/env.h"
#include "launch/front.h"
#include "launch/start.h"

enum { ADDRESS_BYTES = INET6_ADDRSTRLEN };

struct addresses {
    int count;
    char text[WEFT_START_ADDRESSES_MAX][ADDRESS_BYTES];
};

static int start_fail(int code, const char *what) {
    fprintf(stderr, "oshrun: cannot start: %s: %s\n", what, strerror(-code));
    return code;
}

static void address_add(struct addresses *addresses, const char *text) {
    for (int i = 0; i < addresses->count; i++)
        if (strcmp(addresses->text[i], text) == 0)
            return;
    if (addresses->count < WEFT_START_ADDRESSES_MAX)
        snprintf(addresses->text[addresses->count++], ADDRESS_BYTES, "%s", text);
}

/* Link-local ones mean nothing without an interface, whose name the other side gives. */
static void address_add_raw(struct addresses *addresses, const struct sockaddr *address) {
    char text[ADDRESS_BYTES] = "";
    const struct in6_addr *six = &((const struct sockaddr_in6 *)address)->sin6_addr;
    if (address->sa_family == AF_INET)
        inet_ntop(AF_INET, &((const struct sockaddr_in *)address)->sin_addr, text, sizeof text);
    else if (address->sa_family == AF_INET6 && !IN6_IS_ADDR_LINKLOCAL(six))
        inet_ntop(AF_INET6, six, text, sizeof text);
    if (*text)
        address_add(addresses, text);
}

/* The address from which this host would speak to the other: a datagram's socket knows the way,
 * and sends nothing. The name may be an alias that ssh alone knows. */
static void address_add_towards(struct addresses *addresses, const char *name) {
    const char *at = strchr(name, '@');
    struct addrinfo hints = {.ai_socktype = SOCK_DGRAM}, *found = NULL;
    struct sockaddr_storage own;
    socklen_t bytes = sizeof own;
    if (getaddrinfo(at ? at + 1 : name, "9", &hints, &found) != 0)
        return;
    int way = socket(found->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (way >= 0 && connect(way, found->ai_addr, found->ai_addrlen) == 0 &&
        getsockname(way, (struct sockaddr *)&own, &bytes) == 0)
        address_add_raw(addresses, (struct sockaddr *)&own);
    if (way >= 0)
        close(way);
    freeaddrinfo(found);
}

static void addresses_add_own(struct addresses *addresses) {
    struct ifaddrs *list = NULL;
    if (getifaddrs(&list) < 0)
        return;
    for (const struct ifaddrs *each = list; each; each = each->ifa_next)
        if (each->ifa_addr && each->ifa_flags & IFF_UP && !(each->ifa_flags & IFF_LOOPBACK))
            address_add_raw(addresses, each->ifa_addr);
    freeifaddrs(list);
}

/* On this host, too, the daemon calls by the network of the others: by it PEs will reach each
 * other.
 */
static void addresses_find(struct addresses *addresses, const struct weft_front *front, int host) {
    const struct weft_remote *remote = &front->host[host].remote;
    for (int other = 0; remote->here && other < front->nhosts; other++)
        if (!front->host[other].remote.here) {
            remote = &front->host[other].remote;
            break;
        }
    addresses->count = 0;
    if (!remote->here)
        address_add_towards(addresses, remote->name);
    if (front->host[host].remote.here)
        address_add(addresses, "127.0.0.1");
    addresses_add_own(addresses);
}

/* Settings follow the person to other hosts; what is of this process alone does not. */
static bool variable_goes_along(const char *entry) {
    static const char *const kept[] = {"WEFT_", "SHMEM", "SMA_", "UCX_", "OMP_"};
    static const char *const own[] = {"WEFT_PE=",         "WEFT_NPES=",    "WEFT_HUB_FD=",
                                      "WEFT_CONTROL_FD=", "WEFT_LIFE_FD=", "WEFT_INTERFACE="};
    bool goes = false;
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        goes = goes || strncmp(entry, kept[i], strlen(kept[i])) == 0;
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        goes = goes && strncmp(entry, own[i], strlen(own[i])) != 0;
    return goes && strchr(entry, '=');
}

/* Ours, and behind it what the command line changes. */
static int environment_make(const struct weft_environment *asked, struct weft_environment *made) {
    int error = 0;
    *made = (struct weft_environment){0};
    for (char **entry = environ; *entry && error == 0; entry++) {
        if (!variable_goes_along(*entry))
            continue;
        const char *equals = strchr(*entry, '=');
        char *name = strndup(*entry, (size_t)(equals - *entry));
        error = name ? weft_environment_note(made, name, equals + 1) : -ENOMEM;
    }
    for (int i = 0; i < asked->count && error == 0; i++)
        error = weft_environment_note(made, asked->change[i].name, asked->change[i].value);
    return error;
}

/* Folders are looked for from ours. */
static int programs_make(const struct weft_options *options, struct weft_program **programs) {
    char here[PATH_MAX];
    *programs = calloc((size_t)options->nprograms, sizeof **programs);
    if (!*programs)
        return -ENOMEM;
    if (!getcwd(here, sizeof here))
        return -errno;
    for (int i = 0; i < options->nprograms; i++) {
        const struct weft_program *asked = &options->program[i];
        char *folder = NULL;
        bool absolute = asked->folder && *asked->folder == '/';
        int made =
            asprintf(&folder, "%s%s%s", absolute ? "" : here, asked->folder && !absolute ? "/" : "",
                     asked->folder ? asked->folder : "");
        (*programs)[i] = *asked;
        (*programs)[i].folder = made < 0 ? NULL : folder;
        if (made < 0)
            return -ENOMEM;
    }
    return 0;
}

static int host_start(struct weft_front *front, int host, struct weft_start *start) {
    struct weft_front_host *it = &front->host[host];
    static struct addresses addresses;
    char *text;
    size_t bytes;
    addresses_find(&addresses, front, host);
    start->host = host;
    start->naddresses = addresses.count;
    for (int i = 0; i < addresses.count; i++)
        start->address[i] = addresses.text[i];
    int error = weft_tls_derive(start->key, front->secret, "weft-psk-v1", (uint32_t)host);
    if (error)
        return error; /* said */
    if (start->naddresses == 0)
        return start_fail(-EADDRNOTAVAIL, "this host has no address for others to call it by");
    error = weft_start_write(start, &text, &bytes);
    if (error == 0)
        error = weft_remote_start(&it->remote, &front->caught, text, bytes);
    return error ? start_fail(error, it->name) : 0;
}

static bool door_key_of(void *owner, const char *identity, unsigned char key[WEFT_TLS_KEY_BYTES]) {
    const struct weft_front *front = owner;
    int host = weft_options_number(identity, 0, front->nhosts - 1);
    return host >= 0 && weft_tls_derive(key, front->secret, "weft-psk-v1", (uint32_t)host) == 0;
}

static void door_take(void *owner, struct weft_tls *tls) {
    struct weft_front *front = owner;
    int host = weft_options_number(weft_tls_peer(tls), 0, front->nhosts - 1);
    if (host < 0 || front->host[host].frames) /* the door has seen to it */
        weft_tls_close(tls);
    else if (weft_frames_open(&front->host[host].frames, tls) < 0)
        weft_front_refuse(front, host, "there is no memory for its connection");
}

static int door_open(struct weft_front *front) {
    int error = weft_tls_load();
    if (error)
        return error; /* said */
    if (getrandom(front->secret, sizeof front->secret, 0) != sizeof front->secret)
        return start_fail(-errno, "there is no secret to be had");
    return weft_door_open(&front->door, &(struct weft_door_options){.places = front->nhosts + 16,
                                                                    .key_of = door_key_of,
                                                                    .take = door_take,
                                                                    .owner = front});
}

/* What the two functions above have made, of which the options own the rest. */
static void told_free(const struct weft_options *options, struct weft_options *told) {
    for (int i = 0; i < told->environment.count - options->environment.count; i++)
        free((char *)told->environment.change[i].name);
    free(told->environment.change);
    for (int i = 0; told->program && i < told->nprograms; i++)
        free((char *)told->program[i].folder);
    free(told->program);
}

int weft_front_start(struct weft_front *front) {
    const struct weft_options *options = front->options;
    int error = door_open(front);
    if (error)
        return error;
    struct weft_start start = {.nhosts = front->nhosts,
                               .name = front->name,
                               .host_of = options->hosts.of,
                               .port = weft_door_port(front->door),
                               .silence_ms = (int)(front->silence_ns / 1000000),
                               .options = *options};
    start.options.program = NULL;
    error = environment_make(&options->environment, &start.options.environment);
    if (error == 0)
        error = programs_make(options, &start.options.program);
    if (error)
        start_fail(error, "what the hosts are to be told");
    for (int host = 0; host < front->nhosts && error == 0; host++)
        error = host_start(front, host, &start);
    explicit_bzero(start.key, sizeof start.key);
    told_free(options, &start.options);
    return error;
}
