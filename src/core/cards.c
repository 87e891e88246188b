/* SPDX-License-Identifier: BSD-3-Clause */
/* A process that never sends a letter touches no card but its own, and all touch the same pages. */
#include "core/cards.h"
#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include "core/job.h"
#include "core/wait.h"
#include "core/window.h"

/* What is in the file. */
static struct cards {
    _Atomic uint32_t written; /* all are there */
    _Alignas(64) struct weft_card of[];
} * cards;
static size_t cards_bytes;

/* Whether this PE can exchange letters with the one that has shown this card. */
static bool card_fits(const struct weft_card *card, const struct weft_card *mine, int pe) {
    if (card->version == mine->version && card->letter_bytes == mine->letter_bytes &&
        strncmp(card->engine, mine->engine, sizeof card->engine) == 0 &&
        card->address_bytes <= sizeof card->address && card->first < (uint32_t)weft_job.npes)
        return true;
    weft_log("PE %d has engine '%.31s' with letters of %lu bytes, and this one '%.31s' with %lu: "
             "WEFT_ENGINE must name the same one everywhere",
             pe, card->engine, (unsigned long)card->letter_bytes, mine->engine,
             (unsigned long)mine->letter_bytes);
    return false;
}

static size_t bytes_of_all(void) {
    return sizeof(struct cards) + (size_t)weft_job.npes * sizeof(struct weft_card);
}

static struct weft_card card_at(const void *all, int pe) {
    struct weft_card card;
    memcpy(&card, (const char *)all + (size_t)pe * WEFT_FAR_CARD_BYTES, sizeof card);
    return card;
}

int weft_cards_make(int *file) {
    *file = weft_memfd_create("weft-cards", bytes_of_all());
    if (*file >= 0)
        return 0;
    weft_log("no memory for the cards of %d PEs: %s", weft_job.npes, strerror(-*file));
    return *file;
}

/* Those of the job before go. */
static int cards_map(int file, int protection) {
    if (cards)
        munmap(cards, cards_bytes);
    cards_bytes = bytes_of_all();
    void *all = mmap(NULL, cards_bytes, protection, MAP_SHARED, file, 0);
    cards = all != MAP_FAILED ? all : NULL;
    if (cards)
        return 0;
    int error = -errno;
    weft_log("cannot map the cards of %d PEs: %s", weft_job.npes, strerror(errno));
    return error;
}

static void cards_write(const void *all) {
    for (int pe = 0; pe < weft_job.npes; pe++)
        cards->of[pe] = card_at(all, pe);
    atomic_store(&cards->written, 1);
    mprotect(cards, cards_bytes, PROT_READ);
}

int weft_cards_take(const void *all, int file) {
    struct weft_card mine = card_at(all, weft_job.pe);
    bool writes = mine.first == (uint32_t)weft_job.pe;
    for (int pe = 0; pe < weft_job.npes; pe++) {
        struct weft_card card = card_at(all, pe);
        if (!card_fits(&card, &mine, pe))
            return -EPROTO;
    }
    int error = cards_map(file, writes ? PROT_READ | PROT_WRITE : PROT_READ);
    if (error == 0 && writes)
        cards_write(all);
    if (error == 0)
        WEFT_WAIT_UNTIL(atomic_load_explicit(&cards->written, memory_order_acquire));
    return error;
}

const void *weft_card_address(int pe, size_t *bytes) {
    *bytes = cards->of[pe].address_bytes;
    return cards->of[pe].address;
}

const weft_path_end *weft_card_path(int pe) {
    return &cards->of[pe].path;
}

uint32_t weft_far_slot(int pe) {
    return cards->of[pe].slot;
}

int weft_far_first(int pe) {
    return cards ? (int)cards->of[pe].first : pe;
}

int weft_far_carrier(int pe) {
    uint32_t first = cards->of[pe].first;
    return cards->of[first].carries ? (int)first : pe;
}

bool weft_far_carries_others(void) {
    const struct weft_window *near = &weft_windows.scratch.window;
    int last = (int)(near->first + (near->count - 1) * near->step);
    return last != weft_job.pe && weft_far_carrier(last) == weft_job.pe;
}
