/* SPDX-License-Identifier: BSD-3-Clause */
/* A ring carries records: the number of the PE that a letter is for, and the letter. Towards a PE
 * of this host the ring is the way, towards another host the link to its carrier; what finds no
 * room is held, and tried again at every look. */
#include "core/relay.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>
#include "core/bundle.h"
#include "core/job.h"
#include "core/link.h"
#include "core/window.h"

enum {
    RECORD_PARTS = WEFT_ENGINE_LETTER_PARTS + 1,
    BURST = 64, /* of a ring, before the next one is looked at */
};

/* A record that has found no room. */
struct relay_held {
    struct relay_held *next;
    size_t bytes;
    _Alignas(WEFT_ENGINE_ALIGNMENT) unsigned char record[];
};

/* Where letters go next. */
struct relay_way {
    struct weft_relay_rings *near; /* NULL: to another host, */
    uint32_t carrier;              /* by this one, */
    struct weft_engine_link *link; /* NULL until the first letter, */
    int error;                     /* unless that link is dead */
    struct relay_held *held, **held_end;
    struct relay_way *next_waiting; /* of those that hold something */
};

/* At a carrier a PE of its host, and at that PE its carrier. */
struct relay_near {
    struct weft_relay_rings rings;
    struct relay_way way;
};

struct weft_engine_end {
    struct weft_engine_options options;
    struct weft_engine_end *below; /* NULL: this process is no carrier */
    struct relay_near *near;
    uint32_t nnear;
    struct relay_way **hosts; /* by their carriers; NULL until used */
    struct relay_way *waiting;
    struct weft_engine_link *links;
    int bell, epoll; /* which has the bell, and the descriptor of the engine below */
    bool armed, watched;
};

struct weft_engine_link {
    struct weft_engine_end *end;
    struct weft_engine_link *next;
    struct weft_relay_address to;
};

static const struct weft_engine *below;

/* --- Ways ------------------------------------------------------------------------------------ */

static struct relay_way *host_of(struct weft_engine_end *end, uint32_t carrier) {
    struct relay_way *way = end->hosts[carrier];
    if (!way && (way = calloc(1, sizeof *way))) {
        *way = (struct relay_way){.carrier = carrier, .held_end = &way->held};
        end->hosts[carrier] = way;
    }
    return way;
}

static struct weft_relay_address address_of(uint32_t pe) {
    struct weft_relay_address address;
    size_t bytes;
    memcpy(&address, weft_links.user->address((int)pe, &bytes), sizeof address);
    return address;
}

/* NULL: there is no memory. */
static struct relay_way *way_to(struct weft_engine_end *end, uint32_t pe) {
    uint32_t slot = weft_window_slot(&weft_windows.scratch.window, (int)pe);
    return slot < end->nnear ? &end->near[slot].way : host_of(end, address_of(pe).carrier);
}

static int host_connect(struct weft_engine_end *end, struct relay_way *way) {
    size_t bytes;
    const char *address = weft_links.user->address((int)way->carrier, &bytes);
    return below->connect(end->below, address + WEFT_RELAY_ADDRESS_BYTES,
                          bytes - WEFT_RELAY_ADDRESS_BYTES, &way->link);
}

/* A letter that goes to another host leaves the number of its PE behind. */
static int way_try(struct weft_engine_end *end, struct relay_way *way, const struct iovec *record,
                   int nparts) {
    if (way->near)
        return weft_relay_rings_write(way->near, record, nparts);
    int error = way->link ? 0 : host_connect(end, way);
    return error ? error : below->letter(way->link, record + 1, nparts - 1);
}

static void way_drop_held(struct relay_way *way) {
    for (struct relay_held *next; way->held; way->held = next) {
        next = way->held->next;
        free(way->held);
    }
    way->held_end = &way->held;
}

/* The carrier watches the path for all of its host (core/path.h), so it must know. */
static void way_die(struct relay_way *way, int error) {
    way->error = error;
    way_drop_held(way);
    weft_link_give_up((int)way->carrier, error);
}

static void way_hold(struct weft_engine_end *end, struct relay_way *way, const struct iovec *record,
                     int nparts) {
    size_t bytes = weft_text_bytes(record, nparts);
    struct relay_held *held = malloc(sizeof *held + bytes);
    if (!held) {
        weft_link_fail("no memory to hold a letter of %zu bytes for another PE", bytes);
        return;
    }
    *held = (struct relay_held){.bytes = bytes};
    unsigned char *at = held->record;
    for (int i = 0; i < nparts; at += record[i++].iov_len)
        if (record[i].iov_len)
            memcpy(at, record[i].iov_base, record[i].iov_len);
    if (!way->held) {
        way->next_waiting = end->waiting;
        end->waiting = way;
    }
    *way->held_end = held;
    way->held_end = &held->next;
}

/* Takes the letter, or -errno: the way is dead. */
static int way_send(struct weft_engine_end *end, struct relay_way *way, const struct iovec *record,
                    int nparts) {
    int error = way->held ? -EAGAIN : way->error;
    if (error == 0)
        error = way_try(end, way, record, nparts);
    if (error == -EAGAIN)
        way_hold(end, way, record, nparts);
    else if (error && !way->error)
        way_die(way, error);
    return way->error;
}

static unsigned way_send_held(struct weft_engine_end *end, struct relay_way *way) {
    struct relay_held *held;
    unsigned moved = 0;
    int error = 0;
    for (; (held = way->held); moved++) {
        struct iovec record[] = {{held->record, sizeof(uint64_t)},
                                 {held->record + sizeof(uint64_t), held->bytes - sizeof(uint64_t)}};
        if ((error = way_try(end, way, record, 2)) != 0)
            break;
        way->held = held->next;
        free(held);
    }
    if (!way->held)
        way->held_end = &way->held;
    if (error && error != -EAGAIN)
        way_die(way, error);
    return moved;
}

static unsigned held_send(struct weft_engine_end *end) {
    struct relay_way *way = end->waiting, *next;
    unsigned moved = 0;
    end->waiting = NULL;
    for (; way; way = next) {
        next = way->next_waiting;
        moved += way_send_held(end, way);
        if (!way->held)
            continue;
        way->next_waiting = end->waiting;
        end->waiting = way;
    }
    return moved;
}

/* --- Letters that pass ----------------------------------------------------------------------- */

static void letter_pass(struct weft_engine_end *end, uint64_t pe, const void *letter,
                        size_t bytes) {
    if (pe == (uint64_t)end->options.pe) {
        end->options.deliver(end->options.context, letter, bytes);
        return;
    }
    if (!end->below || pe >= (uint64_t)end->options.npes) {
        weft_link_fail("a letter for PE %lu has come to PE %d, which does not carry for it",
                       (unsigned long)pe, end->options.pe);
        return;
    }
    struct iovec record[] = {{&pe, sizeof pe}, {(void *)(uintptr_t)letter, bytes}};
    struct relay_way *way = way_to(end, (uint32_t)pe);
    if (way)
        way_send(end, way, record, 2);
    else
        weft_link_fail("no memory for a link to another host");
}

/* One that the engine below delivers: its head says to which of this host's processes it goes. */
static void letter_arrive(void *context, const void *letter, size_t bytes) {
    const struct weft_window *near = &weft_windows.scratch.window;
    struct head head = {0};
    memcpy(&head, letter, bytes < sizeof head ? bytes : sizeof head);
    if (head.slot < near->count)
        letter_pass(context, near->first + head.slot * near->step, letter, bytes);
    else
        weft_link_fail("a letter of PE %u has arrived for process %u of a host that has %u",
                       head.from, head.slot, near->count);
}

static unsigned rings_read(struct weft_engine_end *end, struct weft_relay_rings *rings) {
    const uint64_t *record;
    size_t bytes;
    unsigned moved = 0;
    for (; moved < BURST && (record = weft_letter_ring_read(&rings->in, &bytes)); moved++) {
        letter_pass(end, record[0], record + 1, bytes - sizeof *record);
        weft_letter_ring_take(&rings->in, bytes);
    }
    if (moved)
        weft_relay_rings_give_back(rings);
    return moved;
}

/* --- The engine ------------------------------------------------------------------------------ */

static void relay_abandon(struct weft_engine_end *end) {
    if (end->below)
        below->abandon(end->below);
    for (uint32_t i = 0; i < end->nnear; i++) {
        weft_relay_rings_detach(&end->near[i].rings);
        way_drop_held(&end->near[i].way);
    }
    for (int pe = 0; end->hosts && pe < end->options.npes; pe++)
        if (end->hosts[pe]) {
            way_drop_held(end->hosts[pe]);
            free(end->hosts[pe]);
        }
    for (struct weft_engine_link *link = end->links, *next; link; link = next) {
        next = link->next;
        free(link);
    }
    weft_descriptor_close(end->bell);
    weft_descriptor_close(end->epoll);
    free(end->near);
    free(end->hosts);
    free(end);
}

static int carrier_open(struct weft_engine_end *end) {
    struct weft_engine_options options = end->options;
    options.deliver = letter_arrive;
    options.context = end;
    end->hosts = calloc((size_t)options.npes, sizeof *end->hosts);
    if (!end->hosts)
        return -ENOMEM;
    end->epoll = weft_descriptor_keep(epoll_create1(EPOLL_CLOEXEC));
    return end->epoll < 0 ? -errno : below->open(&options, &end->below);
}

static int relay_open(const struct weft_engine_options *options, struct weft_engine_end **result) {
    struct weft_engine_end *end = calloc(1, sizeof *end);
    if (!end)
        return -ENOMEM;
    end->options = *options;
    end->bell = end->epoll = -1;
    bool carries = weft_windows.scratch.window.first == (uint32_t)options->pe;
    int error = carries ? carrier_open(end) : 0;
    if (error)
        relay_abandon(end);
    else
        *result = end;
    return error;
}

static int relay_address(struct weft_engine_end *end, void *address, size_t *bytes) {
    struct weft_relay_address mine = {.pe = (uint32_t)end->options.pe,
                                      .carrier = weft_windows.scratch.window.first,
                                      .slot = weft_windows.scratch.mine};
    size_t room = *bytes - WEFT_RELAY_ADDRESS_BYTES;
    int error = 0;
    memcpy(address, &mine, sizeof mine);
    if (end->below)
        error = below->address(end->below, (char *)address + WEFT_RELAY_ADDRESS_BYTES, &room);
    *bytes = WEFT_RELAY_ADDRESS_BYTES + (end->below ? room : 0);
    return error;
}

static int relay_connect(struct weft_engine_end *end, const void *address, size_t bytes,
                         struct weft_engine_link **result) {
    struct weft_engine_link *link = malloc(sizeof *link);
    (void)bytes;
    if (!link)
        return -ENOMEM;
    *link = (struct weft_engine_link){.end = end, .next = end->links};
    memcpy(&link->to, address, sizeof link->to);
    *result = end->links = link;
    return 0;
}

/* Core's letters begin with a head, in a part of its own. */
static int relay_letter(struct weft_engine_link *link, const struct iovec *parts, int nparts) {
    struct weft_engine_end *end = link->end;
    uint64_t pe = link->to.pe;
    struct head head;
    struct iovec record[RECORD_PARTS] = {{&pe, sizeof pe}, {&head, sizeof head}};
    memcpy(&head, parts[0].iov_base, sizeof head);
    head.slot = (uint16_t)link->to.slot;
    for (int i = 1; i < nparts; i++)
        record[i + 1] = parts[i];
    if (!end->below)
        return weft_relay_rings_write(&end->near->rings, record, nparts + 1);
    struct relay_way *way = way_to(end, link->to.pe);
    return way ? way_send(end, way, record, nparts + 1) : -ENOMEM;
}

static void readers_sleep(struct weft_engine_end *end, bool sleep) {
    for (uint32_t i = 0; i < end->nnear; i++)
        weft_letter_ring_sleep(&end->near[i].rings.in, sleep);
}

static unsigned relay_progress(struct weft_engine_end *end) {
    unsigned moved = 0;
    if (end->armed) {
        readers_sleep(end, false);
        weft_relay_bell_hush(end->bell);
    }
    end->armed = false;
    if (end->below)
        moved += below->progress(end->below);
    for (uint32_t i = 0; i < end->nnear; i++)
        moved += rings_read(end, &end->near[i].rings);
    return moved + held_send(end);
}

static bool has_letters(struct weft_engine_end *end) {
    size_t bytes;
    for (uint32_t i = 0; i < end->nnear; i++)
        if (weft_letter_ring_read(&end->near[i].rings.in, &bytes))
            return true;
    return false;
}

static int watch(struct weft_engine_end *end, int descriptor) {
    struct epoll_event event = {.events = EPOLLIN};
    return epoll_ctl(end->epoll, EPOLL_CTL_ADD, descriptor, &event) == 0 ? 0 : -errno;
}

static int below_arm(struct weft_engine_end *end) {
    int descriptor, error = below->arm(end->below, &descriptor);
    if (error == 0 && !end->watched)
        error = watch(end, descriptor);
    end->watched |= error == 0;
    return error;
}

static int relay_arm(struct weft_engine_end *end, int *descriptor) {
    readers_sleep(end, true);
    int error = has_letters(end) ? -EBUSY : 0;
    if (error == 0 && !weft_descriptor_is_ours(end->bell))
        error = -EBADF;
    if (error == 0 && end->below)
        error = below_arm(end);
    if (error == 0)
        *descriptor = end->below ? end->epoll : end->bell;
    else
        readers_sleep(end, false);
    end->armed = error == 0;
    return error;
}

/* A PE does not know what its carrier's engine promises. */
static uint32_t relay_abilities(struct weft_engine_link *link) {
    (void)link;
    return 0;
}

static unsigned relay_threads(struct weft_engine_end *end) {
    return end->below ? below->threads(end->below) : 0;
}

static void relay_describe(struct weft_engine_end *end, char *text, size_t bytes) {
    if (!end || end->below)
        below->describe(end ? end->below : NULL, text, bytes);
    else
        snprintf(text, bytes, "through PE %u, which carries for its host",
                 weft_windows.scratch.window.first);
}

static int relay_where(struct weft_engine_end *end, struct sockaddr_storage *address) {
    return end->below && below->where ? below->where(end->below, address) : -ENOTCONN;
}

const struct weft_engine *weft_relay_over(const struct weft_engine *engine) {
    static struct weft_engine relay;
    below = engine;
    relay = (struct weft_engine){.version = WEFT_ENGINE_VERSION,
                                 .name = engine->name,
                                 .letter_bytes = engine->letter_bytes,
                                 .open = relay_open,
                                 .address = relay_address,
                                 .connect = relay_connect,
                                 .letter = relay_letter,
                                 .progress = relay_progress,
                                 .arm = relay_arm,
                                 .abilities = relay_abilities,
                                 .threads = relay_threads,
                                 .describe = relay_describe,
                                 .abandon = relay_abandon,
                                 .where = relay_where};
    return &relay;
}

/* --- Rings ----------------------------------------------------------------------------------- */

/* A carrier has those of all near PEs, and another PE its own. */
static int rings_attach(struct weft_engine_end *end, const int *all, size_t stride) {
    const struct weft_window *w = &weft_windows.scratch.window;
    bool carries = end->below;
    uint32_t n = carries ? w->count : 1, mine = (uint32_t)end->options.pe;
    int error = end->bell < 0 ? end->bell : 0;
    end->near = calloc(n, sizeof *end->near);
    if (!end->near)
        return -ENOMEM;
    while (end->nnear < n && error == 0) {
        uint32_t pe = carries ? w->first + end->nnear * w->step : mine;
        struct relay_near *near = &end->near[end->nnear++];
        const int *fds = all + pe * stride, *other = all + (carries ? pe : w->first) * stride;
        near->way = (struct relay_way){.near = &near->rings, .held_end = &near->way.held};
        error = weft_relay_rings_attach(&near->rings, fds, other[WEFT_RELAY_BELL], carries);
    }
    return error == 0 && carries ? watch(end, end->bell) : error;
}

int weft_relay_attach(struct weft_engine_end *end, const int *all, size_t stride) {
    end->bell = weft_relay_bell_copy(all[(size_t)end->options.pe * stride + WEFT_RELAY_BELL]);
    int error = rings_attach(end, all, stride);
    if (error)
        weft_log("cannot map the rings of %u PEs of this host: %s",
                 weft_windows.scratch.window.count, strerror(-error));
    return error;
}
