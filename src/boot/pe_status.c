/* SPDX-License-Identifier: BSD-3-Clause */
/* A PE writes `departures` after the status of its exit. A look may find the status without the
 * departure; the next look then finds the departure. */
#include "boot/pe_status.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "boot/long_wait.h"

struct weft_pe_status {
    struct weft_control *control;
    int npes;
    weft_pe_status_send *send;
    void *owner;
    struct weft_tree_pe_status *told; /* last status sent, per PE of the job */
    uint32_t *waits;                  /* last states sent of its waits, WEFT_LONG_WAITS per PE */
};

int weft_pe_status_open(struct weft_pe_status **opened, struct weft_control *control, int npes,
                        weft_pe_status_send *send, void *owner) {
    struct weft_pe_status *status = calloc(1, sizeof *status);
    if (!status)
        return -ENOMEM;
    *status =
        (struct weft_pe_status){.control = control, .npes = npes, .send = send, .owner = owner};
    status->told = calloc((size_t)npes, sizeof *status->told);
    status->waits = calloc((size_t)npes * WEFT_LONG_WAITS, sizeof *status->waits);
    if (!status->told || !status->waits) {
        weft_pe_status_close(status);
        return -ENOMEM;
    }
    for (int pe = 0; pe < npes; pe++)
        status->told[pe].pe = pe;
    *opened = status;
    return 0;
}

void weft_pe_status_close(struct weft_pe_status *status) {
    if (!status)
        return;
    free(status->told);
    free(status->waits);
    free(status);
}

/* --- Sending ---------------------------------------------------------------------------------- */

static struct weft_tree_pe_status entry_read(const struct weft_pe_status *status, int pe) {
    struct weft_control_pe *entry = &status->control->pe[pe];
    return (struct weft_tree_pe_status){.pe = pe,
                                        .pid = atomic_load(&entry->pid),
                                        .state = atomic_load(&entry->state),
                                        .departures = atomic_load(&entry->departures),
                                        .exit_status = atomic_load(&entry->exit_status)};
}

static void states_tell(struct weft_pe_status *status) {
    struct weft_tree_pe_status changed[status->npes];
    size_t count = 0;
    for (int pe = 0; pe < status->npes; pe++) {
        if (!weft_boot_is_here(pe))
            continue;
        struct weft_tree_pe_status now = entry_read(status, pe);
        if (memcmp(&now, &status->told[pe], sizeof now) == 0)
            continue;
        status->told[pe] = changed[count++] = now;
    }
    struct weft_frame frame = {
        .kind = WEFT_TREE_PE_STATUS, .bytes = (uint32_t)(count * sizeof *changed), .pe = -1};
    if (count)
        status->send(status->owner, &frame, changed);
}

static void long_wait_tell(struct weft_pe_status *status, int pe, int place) {
    struct weft_long_wait *wait = &status->control->pe[pe].wait[place];
    struct weft_long_wait_facts facts;
    bool reported = atomic_load(&wait->reported) != 0;
    uint32_t now = 2 * atomic_load(&wait->state) + reported;
    if (now == status->waits[pe * WEFT_LONG_WAITS + place])
        return;
    status->waits[pe * WEFT_LONG_WAITS + place] = now;
    bool shown = weft_long_wait_read(wait, &facts);
    struct weft_frame frame = {.kind = WEFT_TREE_LONG_WAIT,
                               .bytes = shown ? sizeof facts : 0,
                               .pe = pe,
                               .value = place | reported << 8};
    status->send(status->owner, &frame, &facts);
}

void weft_pe_status_tell(struct weft_pe_status *status) {
    states_tell(status);
    for (int pe = 0; pe < status->npes; pe++)
        for (int place = 0; weft_boot_is_here(pe) && place < WEFT_LONG_WAITS; place++)
            long_wait_tell(status, pe, place);
}

/* --- Receiving -------------------------------------------------------------------------------- */

/* Returns whether this process writes the PE's entry in this page. */
static bool pe_is_of(const struct weft_pe_status *status, int host, int pe) {
    bool elsewhere = pe >= 0 && pe < status->npes && !weft_boot_is_here(pe);
    return elsewhere && (host < 0 || weft_boot_host(pe) == host);
}

static const char *states_hear(struct weft_pe_status *status, int host,
                               const struct weft_tree_pe_status *heard, size_t bytes) {
    if (bytes % sizeof *heard)
        return "it has sent a status of a wrong size";
    for (size_t i = 0; i < bytes / sizeof *heard; i++) {
        if (!pe_is_of(status, host, heard[i].pe))
            return "it has sent the status of a PE that is not its own";
        struct weft_control_pe *entry = &status->control->pe[heard[i].pe];
        atomic_store(&entry->pid, heard[i].pid);
        atomic_store(&entry->state, heard[i].state);
        atomic_store(&entry->exit_status, heard[i].exit_status);
        atomic_store(&entry->departures, heard[i].departures);
    }
    return NULL;
}

static const char *long_wait_hear(struct weft_pe_status *status, int host,
                                  const struct weft_frame *frame,
                                  const struct weft_long_wait_facts *facts) {
    int place = frame->value & 0xff;
    if (!pe_is_of(status, host, frame->pe) || place >= WEFT_LONG_WAITS || frame->value & ~0x1ff ||
        (frame->bytes && frame->bytes != sizeof *facts))
        return "it has sent a wait of a PE that is not its own";
    weft_long_wait_write(&status->control->pe[frame->pe].wait[place], frame->bytes ? facts : NULL,
                         frame->value >> 8 & 1);
    return NULL;
}

const char *weft_pe_status_hear(struct weft_pe_status *status, int host,
                                const struct weft_frame *frame, const void *payload) {
    return frame->kind == WEFT_TREE_PE_STATUS ? states_hear(status, host, payload, frame->bytes)
                                              : long_wait_hear(status, host, frame, payload);
}
