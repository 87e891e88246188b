/* SPDX-License-Identifier: BSD-3-Clause */
/* The life of the engine: it is opened before the exchange that brings a job up, and given up
 * behind one in which all PEs part. Between them stands nothing but letters. */
#include "core/far.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/env.h"
#include "base/machine.h"
#include "boot/boot.h"
#include "core/far_apply.h"
#include "core/far_meet.h"
#include "core/far_progress.h"
#include "core/job.h"
#include "core/window.h"

/* From so many PEs on a host has one carrier by itself, where that has a processor to run on: links
 * of each PE to each would take more than it costs that one thread applies all. Later that carries
 * what goes, too: links of each PE to each host would take more than a letter's way through it. */
enum { CARD_VERSION = 5, CARRIER_PES_MIN = 256, RELAY_PES_MIN = 4096 };

static bool open;

/* The thread of a carrier needs a processor that no PE has. */
static enum weft_carriers carriers_of_job(void) {
    cpu_set_t processors;
    weft_machine_processors(&processors);
    bool spare = weft_job.control->cores > weft_boot_npes_here() && CPU_COUNT(&processors) > 1;
    if (!spare || weft_job.npes < CARRIER_PES_MIN)
        return WEFT_CARRIERS_PE;
    return weft_job.npes < RELAY_PES_MIN ? WEFT_CARRIERS_HOST : WEFT_CARRIERS_RELAY;
}

int weft_far_carriers(void) {
    static const char *const names[] = {
        [WEFT_CARRIERS_PE] = "pe", [WEFT_CARRIERS_HOST] = "host", [WEFT_CARRIERS_RELAY] = "relay"};
    if (strcmp(weft_env.carriers, "auto") == 0)
        return carriers_of_job();
    for (int i = WEFT_CARRIERS_PE; i <= WEFT_CARRIERS_RELAY; i++)
        if (strcmp(weft_env.carriers, names[i]) == 0)
            return i;
    weft_log("WEFT_CARRIERS is '%s': set it to auto, pe, host or relay", weft_env.carriers);
    return -EINVAL;
}

static void card_write(void *room, struct weft_card *card) {
    card->letter_bytes = weft_link_room();
    weft_paths_open(&card->path);
    snprintf(card->engine, sizeof card->engine, "%s", weft_links.engine->name);
    memset(room, 0, WEFT_FAR_CARD_BYTES);
    memcpy(room, card, sizeof *card);
}

int weft_far_open(bool relays, void *room, int *fds) {
    static const struct weft_letter_user user = {weft_far_apply, weft_far_settled,
                                                 weft_far_answered, weft_card_address,
                                                 weft_far_wake_served};
    struct weft_card card = {.version = CARD_VERSION,
                             .slot = weft_windows.scratch.mine,
                             .first = weft_windows.scratch.window.first};
    size_t bytes = sizeof card.address;
    int result = weft_far_carriers();
    card.carries = result > WEFT_CARRIERS_PE;
    if (result >= 0)
        result = weft_letters_open(&user, relays, card.address, &bytes);
    if (result < 0)
        return result;
    open = true;
    card.address_bytes = (uint32_t)bytes;
    card_write(room, &card);
    result = weft_cards_make(&fds[WEFT_FAR_FILE]);
    if (result == 0 && relays)
        result = weft_relay_rings_make(weft_links.engine->letter_bytes, &fds[WEFT_FAR_RELAY]);
    return result < 0 ? result : relays ? WEFT_FAR_FDS : WEFT_FAR_RELAY;
}

int weft_far_start(const void *all, const int *fds, int nfds) {
    size_t stride = (size_t)nfds, first = weft_windows.scratch.window.first;
    int result = weft_cards_take(all, fds[first * stride + WEFT_FAR_FILE]);
    if (result == 0 && nfds == WEFT_FAR_FDS)
        result = weft_relay_attach(weft_links.end, fds + WEFT_FAR_RELAY, stride);
    if (result == 0) {
        weft_far_serve(weft_far_carries_others());
        weft_letters_start();
    }
    if (result == 0)
        result = weft_paths_start(weft_card_path);
    if (result == 0)
        result = weft_far_progress_start();
    if (result == 0) {
        weft_wait_look = weft_far_look;
        weft_boot_set_courier(weft_far_meet);
    }
    return result;
}

void weft_far_abandon(void) {
    if (!open)
        return;
    weft_boot_set_courier(NULL);
    weft_far_progress_stop();
    weft_paths_close();
    weft_wait_look = NULL;
    weft_letters_close();
    weft_far_serve(false);
    weft_far_meet_forget();
    open = false;
}

/* The exchange ends when all PEs have come to it, and then nobody wants anything any more. */
void weft_far_finish(void) {
    if (!open)
        return;
    unsigned char nothing = 0, *all = calloc((size_t)weft_job.npes, 1);
    struct weft_exchange parting = {.mine = &nothing, .bytes = 1, .all = all};
    if (!all)
        weft_job_panic("no memory to part from %d PEs", weft_job.npes);
    weft_far_progress_hand_over();
    weft_far_settle();
    int error = weft_boot_exchange(&parting);
    if (error)
        weft_job_panic("cannot part from the other PEs: %s", strerror(-error));
    free(all);
    weft_far_abandon();
}

static bool any_is_carried(void) {
    for (int pe = 0; pe < weft_job.npes; pe++)
        if (weft_far_carrier(pe) != pe)
            return true;
    return false;
}

/* Letters to memory of a GPU go to its PE itself, and to memory of the host to who carries for it:
 * two ends keep no order between them. */
void weft_far_fence(void) {
    if (weft_job.devices && any_is_carried())
        weft_far_quiet();
    else
        weft_letters_fence();
}

void weft_far_quiet(void) {
    weft_letters_quiet(NULL, 0, false);
}

void weft_far_quiet_pes(const int *pes, size_t n) {
    int carriers[n];
    for (size_t i = 0; i < n; i++)
        carriers[i] = weft_far_carrier(pes[i]);
    weft_letters_quiet(carriers, n, false);
}

void weft_far_settle(void) {
    weft_letters_quiet(NULL, 0, true);
}

void weft_far_leave_words(void) {
    weft_letters_pass();
}
