/* SPDX-License-Identifier: BSD-3-Clause */
/* The diagram in boot/tree.h as two tables, and the checks of fields that both sides make. */
#include "boot/tree.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "boot/control.h"

enum {
    GREETING = 1 << WEFT_TREE_BEFORE_HELLO,
    WAITING = 1 << WEFT_TREE_BEFORE_GO,
    WORKING = 1 << WEFT_TREE_AT_WORK,
    PARTING = 1 << WEFT_TREE_AFTER_DONE,
    STATUS_MAX = 255,
    SIGNAL_MAX = 64,
    WRAPPED_MAX =
        STATUS_MAX - 128, /* largest status of a shell less 128; it exits with 128 + signal */
};

/* Output and lines of a host may follow its DONE frame, because after an early end of the job the
 * host does not wait until all output has been sent. */
static const uint8_t rises[] = {
    [WEFT_TREE_HELLO] = GREETING,
    [WEFT_TREE_GAVE] = WORKING,
    [WEFT_TREE_PE_STATUS] = WORKING | PARTING,
    [WEFT_TREE_OUTPUT] = WORKING | PARTING,
    [WEFT_TREE_TAKEN] = WORKING | PARTING,
    [WEFT_TREE_CAUSE] = WORKING,
    [WEFT_TREE_LINE] = WAITING | WORKING | PARTING,
    [WEFT_TREE_DONE] = WORKING,
    [WEFT_TREE_LONG_WAIT] = WORKING | PARTING,
};

/* A front that ends the job while it starts sends the signal or the cause to all daemons that have
 * connected. Frames from other hosts may cross the DONE frame of a host. */
static const uint8_t descends[] = {
    [WEFT_TREE_GO] = WAITING,
    [WEFT_TREE_SHARED] = WORKING | PARTING,
    [WEFT_TREE_PE_STATUS] = WORKING | PARTING,
    [WEFT_TREE_INPUT] = WORKING | PARTING,
    [WEFT_TREE_TAKEN] = WORKING | PARTING,
    [WEFT_TREE_SIGNAL] = WAITING | WORKING | PARTING,
    [WEFT_TREE_CAUSE] = WAITING | WORKING | PARTING,
    [WEFT_TREE_BYE] = PARTING,
    [WEFT_TREE_LONG_WAIT] = WORKING | PARTING,
    [WEFT_TREE_CLOSED] = WAITING | WORKING | PARTING,
};

bool weft_tree_may_rise(uint32_t kind, enum weft_tree_phase phase) {
    return kind < sizeof rises && rises[kind] >> phase & 1;
}

bool weft_tree_may_descend(uint32_t kind, enum weft_tree_phase phase) {
    return kind < sizeof descends && descends[kind] >> phase & 1;
}

static bool is_within(int32_t number, int32_t least, int32_t most) {
    return number >= least && number <= most;
}

static bool cause_is_sound(const struct weft_tree_cause *cause, int npes, int nhosts) {
    bool of_pe = is_within(cause->pe, 0, npes - 1) && cause->pid >= 0, of_none = cause->pe == -1;
    switch (cause->kind) {
    case WEFT_ABORT_DIED:
        return of_pe && is_within(cause->detail, 0, WRAPPED_MAX);
    case WEFT_ABORT_EXITED:
    case WEFT_ABORT_LEFT:
        return of_pe && is_within(cause->detail, 0, STATUS_MAX);
    case WEFT_ABORT_CUT:
        return of_pe && is_within(cause->detail, 0, nhosts - 1);
    case WEFT_ABORT_GLOBAL_EXIT:
    case WEFT_ABORT_ERROR:
    case WEFT_ABORT_EXECED:
        return of_pe;
    case WEFT_ABORT_HOST:
        return of_none && is_within(cause->detail, 0, nhosts - 1);
    case WEFT_ABORT_LAUNCHER:
        return of_none && is_within(cause->detail, 1, SIGNAL_MAX);
    case WEFT_ABORT_TIMEOUT:
        return of_none && cause->detail > 0;
    case WEFT_ABORT_FRONT:
        return of_none;
    default:
        return false;
    }
}

struct weft_tree_cause weft_tree_cause_make(const struct weft_cause *cause) {
    return (struct weft_tree_cause){.kind = cause->kind,
                                    .pe = cause->pe,
                                    .pid = cause->pid,
                                    .detail = cause->detail,
                                    .state = cause->state};
}

bool weft_tree_cause_read(struct weft_cause *cause, const void *payload, size_t bytes, int npes,
                          int nhosts) {
    struct weft_tree_cause told;
    if (bytes != sizeof told)
        return false;
    memcpy(&told, payload, sizeof told);
    *cause = (struct weft_cause){.kind = (enum weft_end_kind)told.kind,
                                 .pe = told.pe,
                                 .pid = told.pid,
                                 .detail = told.detail,
                                 .state = (enum weft_pe_state)told.state};
    return cause_is_sound(&told, npes, nhosts);
}

bool weft_tree_done_is_sound(const struct weft_tree_done *done, int npes) {
    bool failed = done->first_status != 0;
    return is_within(done->status, 0, STATUS_MAX) && is_within(done->first_status, 0, STATUS_MAX) &&
           done->first_pid >= 0 && is_within(done->failures, 0, failed ? npes : 0);
}

/* --- Exchanges -------------------------------------------------------------------------------- */

static void members_all(struct weft_wire_members *members, int npes) {
    *members = (struct weft_wire_members){.count = 0};
    for (int pe = 0; pe < npes; pe++)
        weft_wire_members_add(members, pe);
}

bool weft_tree_given_read(struct weft_tree_given *given, const void *payload, size_t bytes,
                          int npes) {
    size_t words, heads = sizeof given->head;
    if (bytes < heads)
        return false;
    memcpy(&given->head, payload, sizeof given->head);
    words = given->head.key ? weft_wire_members_bytes(npes) : 0;
    if (bytes < heads + words)
        return false;
    given->contributions = (unsigned char *)payload + heads + words;
    given->bytes = bytes - heads - words;
    if (words == 0)
        members_all(&given->members, npes);
    else if (!weft_wire_members_read(&given->members, (unsigned char *)payload + heads, npes))
        return false;
    bool failed = given->head.status == -EPROTO && words && given->bytes == 0;
    return given->head.bytes <= WEFT_BOOT_BLOB_MAX && (failed || given->head.status == 0);
}

unsigned char *weft_tree_given_make(struct weft_tree_given *given, int npes, int count,
                                    size_t *bytes) {
    size_t words = given->head.key ? weft_wire_members_bytes(npes) : 0;
    given->bytes = given->head.status ? 0 : (size_t)count * given->head.bytes;
    *bytes = sizeof given->head + words + given->bytes;
    unsigned char *payload = malloc(*bytes);
    if (!payload)
        return NULL;
    memcpy(payload, &given->head, sizeof given->head);
    memcpy(payload + sizeof given->head, given->members.bits, words);
    given->contributions = payload + sizeof given->head + words;
    return payload;
}
