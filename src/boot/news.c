/* SPDX-License-Identifier: BSD-3-Clause */
/* A departure is written behind the status of the exit that it is for: a look may find the one and
 * not yet the other, and the next look tells of that. */
#include "boot/news.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "boot/stall.h"

struct weft_news {
    struct weft_control *control;
    int npes;
    weft_news_send *send;
    void *owner;
    struct weft_tree_news *told; /* of each PE of the job, */
    uint32_t *stalls;            /* and the states of its waits, WEFT_STALLS each */
};

int weft_news_open(struct weft_news **opened, struct weft_control *control, int npes,
                   weft_news_send *send, void *owner) {
    struct weft_news *news = calloc(1, sizeof *news);
    if (!news)
        return -ENOMEM;
    *news = (struct weft_news){.control = control, .npes = npes, .send = send, .owner = owner};
    news->told = calloc((size_t)npes, sizeof *news->told);
    news->stalls = calloc((size_t)npes * WEFT_STALLS, sizeof *news->stalls);
    if (!news->told || !news->stalls) {
        weft_news_close(news);
        return -ENOMEM;
    }
    for (int pe = 0; pe < npes; pe++)
        news->told[pe].pe = pe;
    *opened = news;
    return 0;
}

void weft_news_close(struct weft_news *news) {
    if (!news)
        return;
    free(news->told);
    free(news->stalls);
    free(news);
}

/* --- Telling ---------------------------------------------------------------------------------- */

static struct weft_tree_news entry_read(const struct weft_news *news, int pe) {
    struct weft_control_pe *entry = &news->control->pe[pe];
    return (struct weft_tree_news){.pe = pe,
                                   .pid = atomic_load(&entry->pid),
                                   .state = atomic_load(&entry->state),
                                   .departures = atomic_load(&entry->departures),
                                   .exit_status = atomic_load(&entry->exit_status)};
}

static void states_tell(struct weft_news *news) {
    struct weft_tree_news changed[news->npes];
    size_t count = 0;
    for (int pe = 0; pe < news->npes; pe++) {
        if (!weft_boot_is_here(pe))
            continue;
        struct weft_tree_news now = entry_read(news, pe);
        if (memcmp(&now, &news->told[pe], sizeof now) == 0)
            continue;
        news->told[pe] = changed[count++] = now;
    }
    struct weft_frame frame = {
        .kind = WEFT_TREE_NEWS, .bytes = (uint32_t)(count * sizeof *changed), .pe = -1};
    if (count)
        news->send(news->owner, &frame, changed);
}

static void stall_tell(struct weft_news *news, int pe, int place) {
    struct weft_stall *stall = &news->control->pe[pe].stall[place];
    struct weft_stall_facts facts;
    bool reported = atomic_load(&stall->reported) != 0;
    uint32_t now = 2 * atomic_load(&stall->state) + reported;
    if (now == news->stalls[pe * WEFT_STALLS + place])
        return;
    news->stalls[pe * WEFT_STALLS + place] = now;
    bool shown = weft_stall_read(stall, &facts);
    struct weft_frame frame = {.kind = WEFT_TREE_STALL,
                               .bytes = shown ? sizeof facts : 0,
                               .pe = pe,
                               .value = place | reported << 8};
    news->send(news->owner, &frame, &facts);
}

void weft_news_tell(struct weft_news *news) {
    states_tell(news);
    for (int pe = 0; pe < news->npes; pe++)
        for (int place = 0; weft_boot_is_here(pe) && place < WEFT_STALLS; place++)
            stall_tell(news, pe, place);
}

/* --- Hearing ---------------------------------------------------------------------------------- */

/* Its entry in this page is ours to write. */
static bool pe_is_of(const struct weft_news *news, int host, int pe) {
    bool elsewhere = pe >= 0 && pe < news->npes && !weft_boot_is_here(pe);
    return elsewhere && (host < 0 || weft_boot_host(pe) == host);
}

static const char *states_hear(struct weft_news *news, int host, const struct weft_tree_news *heard,
                               size_t bytes) {
    if (bytes % sizeof *heard)
        return "it has news of a wrong size";
    for (size_t i = 0; i < bytes / sizeof *heard; i++) {
        if (!pe_is_of(news, host, heard[i].pe))
            return "it has news of a PE that is none of another host";
        struct weft_control_pe *entry = &news->control->pe[heard[i].pe];
        atomic_store(&entry->pid, heard[i].pid);
        atomic_store(&entry->state, heard[i].state);
        atomic_store(&entry->exit_status, heard[i].exit_status);
        atomic_store(&entry->departures, heard[i].departures);
    }
    return NULL;
}

static const char *stall_hear(struct weft_news *news, int host, const struct weft_frame *frame,
                              const struct weft_stall_facts *facts) {
    int place = frame->value & 0xff;
    if (!pe_is_of(news, host, frame->pe) || place >= WEFT_STALLS || frame->value & ~0x1ff ||
        (frame->bytes && frame->bytes != sizeof *facts))
        return "it tells of a wait of a PE that is none of another host";
    weft_stall_write(&news->control->pe[frame->pe].stall[place], frame->bytes ? facts : NULL,
                     frame->value >> 8 & 1);
    return NULL;
}

const char *weft_news_hear(struct weft_news *news, int host, const struct weft_frame *frame,
                           const void *payload) {
    return frame->kind == WEFT_TREE_NEWS ? states_hear(news, host, payload, frame->bytes)
                                         : stall_hear(news, host, frame, payload);
}
