/* SPDX-License-Identifier: BSD-3-Clause */
/* A job under another launcher whose PEs meet: PE 0, with another PE on its host, while the other
 * PEs connect; and one of these PEs, which receives the hosts of all PEs. */
#include "boot/callers.h"
#include <stdlib.h>
#include <string.h>
#include <weft/version.h>
#include "input.h"
#include "line.h"

enum { HERE = 2 };

static struct weft_callers *callers;
static struct weft_places places;
static struct weft_identity self;
static bool came[FUZZ_PES];
static bool placed;

static void callers_open(void) {
    self = (struct weft_identity){.npes = FUZZ_PES};
    memset(came, 0, sizeof came);
    places = (struct weft_places){.nhosts = 0};
    placed = false;
    if (weft_callers_open(&callers, &self, came))
        abort();
    for (int pe = 0; pe < FUZZ_PES; pe++)
        if (pe < HERE)
            came[pe] = true;
        else if (weft_host_link_open(weft_callers_link(callers, pe), line_open(pe - HERE), 1e9,
                                     true))
            abort();
}

/* A HELLO begins with the version. */
static void hello_complete(uint32_t kind, uint8_t *payload, size_t bytes) {
    if (kind == WEFT_ARRIVAL_HELLO && bytes >= sizeof WEFT_VERSION_STRING && !*payload)
        memcpy(payload, WEFT_VERSION_STRING, sizeof WEFT_VERSION_STRING);
}

static bool callers_turn(void) {
    static const struct pollfd polls[1 + FUZZ_PES];
    char why[WEFT_REFUSAL_BYTES] = "";
    int count = weft_callers_turn(callers, polls, why);
    if (count == FUZZ_PES - HERE && !placed) {
        count = weft_callers_place(callers, &places, why);
        placed = count == 0;
    }
    if (count < 0)
        weft_callers_refuse(callers, why);
    return count >= 0 && !(placed && weft_callers_are_ready(callers));
}

static const char *places_look(void) {
    for (int pe = 0; placed && pe < FUZZ_PES; pe++)
        if (places.host_of[pe] < 0 || places.host_of[pe] >= places.nhosts)
            return "a PE is on a host that does not exist";
    for (int host = 0; placed && host < places.nhosts; host++)
        if (!memchr(places.host[host].name, 0, sizeof places.host[host].name))
            return "the name of a host has no end";
    return NULL;
}

static const char *callers_look(void) {
    const char *wrong = places_look();
    for (int pe = 0; !wrong && placed && pe < FUZZ_PES; pe++)
        if ((places.host_of[pe] == 0) != (pe < HERE))
            wrong = "a PE that has connected from another host is on PE 0's, or the reverse";
    return wrong;
}

static bool callers_close(void) {
    bool whole = placed && weft_callers_are_ready(callers);
    weft_places_free(&places);
    weft_callers_close(callers);
    return whole;
}

const struct scene scene_callers = {.nlines = FUZZ_PES - HERE,
                                    .hosts = {{0, 1}, {0, 1}, {0, 1}, {0, 1}},
                                    .open = callers_open,
                                    .complete = hello_complete,
                                    .turn = callers_turn,
                                    .look = callers_look,
                                    .close = callers_close};

/* --- On another host -------------------------------------------------------------------------- */

static struct weft_host_link link;

static void places_open(void) {
    self = (struct weft_identity){.npes = FUZZ_PES, .pe = FUZZ_PES - 1};
    places = (struct weft_places){.nhosts = 0};
    placed = false;
    if (weft_host_link_open(&link, line_open(0), 1e9, true))
        abort();
}

static bool places_turn(void) {
    struct weft_frame frame;
    const void *payload;
    weft_host_link_turn(&link, 0);
    if (!weft_host_link_next(&link, &frame, &payload))
        return !link.end;
    placed = frame.kind == WEFT_ARRIVAL_PLACES &&
             weft_places_read(&places, &self, payload, frame.bytes) == 0;
    return false;
}

static bool places_close(void) {
    bool whole = placed && weft_places_first(&places, places.here) < FUZZ_PES;
    weft_places_free(&places);
    weft_host_link_close(&link);
    return whole;
}

const struct scene scene_places = {.nlines = 1,
                                   .hosts = {{0, 1}},
                                   .open = places_open,
                                   .turn = places_turn,
                                   .look = places_look,
                                   .close = places_close};
