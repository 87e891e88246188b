/* SPDX-License-Identifier: BSD-3-Clause */
/* The life of the engine: it is opened before the exchange that brings a job up, and given up
 * behind one in which all PEs part. Between them stands nothing but letters. */
#include "core/far.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "boot/boot.h"
#include "core/far_apply.h"
#include "core/far_meet.h"
#include "core/far_progress.h"
#include "core/job.h"
#include "core/window.h"

enum { CARD_VERSION = 2 };

/* What a PE shows to all. */
struct card {
    uint32_t version, slot; /* of this PE in its own windows */
    uint64_t letter_bytes;
    char engine[32];
    uint32_t first; /* of the PEs that are near to it, itself included */
    uint32_t address_bytes;
    unsigned char address[WEFT_ENGINE_ADDRESS_BYTES];
};
_Static_assert(sizeof(struct card) <= WEFT_FAR_CARD_BYTES, "cards have their size");

static struct card *cards; /* of all PEs; kept until the next job, for threads behind the end */
static bool open;

static const void *card_address(int pe, size_t *bytes) {
    *bytes = cards[pe].address_bytes;
    return cards[pe].address;
}

int weft_far_open(void *room) {
    static const struct weft_letter_user user = {weft_far_apply, weft_far_answered, card_address};
    struct card card = {.version = CARD_VERSION,
                        .slot = weft_windows.scratch.mine,
                        .first = weft_windows.scratch.window.first};
    size_t bytes = sizeof card.address;
    int result = weft_letters_open(&user, card.address, &bytes);
    if (result < 0)
        return result;
    open = true;
    card.address_bytes = (uint32_t)bytes;
    card.letter_bytes = weft_link_room();
    snprintf(card.engine, sizeof card.engine, "%s", weft_links.engine->name);
    memset(room, 0, WEFT_FAR_CARD_BYTES);
    memcpy(room, &card, sizeof card);
    return 0;
}

/* Whether this PE can exchange letters with the one that has shown this card. */
static bool card_fits(const struct card *card, int pe) {
    const struct card *mine = &cards[weft_job.pe];
    if (card->version == mine->version && card->letter_bytes == mine->letter_bytes &&
        strncmp(card->engine, mine->engine, sizeof card->engine) == 0 &&
        card->address_bytes <= sizeof card->address)
        return true;
    weft_log("PE %d has engine '%.31s' with letters of %lu bytes, and this one '%.31s' with %lu: "
             "WEFT_ENGINE must name the same one everywhere",
             pe, card->engine, (unsigned long)card->letter_bytes, mine->engine,
             (unsigned long)mine->letter_bytes);
    return false;
}

static int cards_take(const void *all) {
    free(cards);
    cards = calloc((size_t)weft_job.npes, sizeof *cards);
    if (!cards) {
        weft_log("no memory for the cards of %d PEs", weft_job.npes);
        return -ENOMEM;
    }
    for (int pe = 0; pe < weft_job.npes; pe++)
        memcpy(&cards[pe], (const char *)all + (size_t)pe * WEFT_FAR_CARD_BYTES, sizeof *cards);
    for (int pe = 0; pe < weft_job.npes; pe++)
        if (!card_fits(&cards[pe], pe))
            return -EPROTO;
    return 0;
}

int weft_far_start(const void *all) {
    int result = cards_take(all);
    if (result == 0)
        weft_letters_start();
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
    weft_wait_look = NULL;
    weft_letters_close();
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

uint32_t weft_far_slot(int pe) {
    return cards[pe].slot;
}

int weft_far_first(int pe) {
    return cards ? (int)cards[pe].first : pe;
}

void weft_far_fence(void) {
    weft_letters_fence();
}

void weft_far_quiet(void) {
    weft_letters_quiet(NULL, 0, false);
}

void weft_far_quiet_pes(const int *pes, size_t n) {
    weft_letters_quiet(pes, n, false);
}

void weft_far_settle(void) {
    weft_letters_quiet(NULL, 0, true);
}

void weft_far_leave_words(void) {
    weft_letters_pass();
}
