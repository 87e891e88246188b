/* SPDX-License-Identifier: BSD-3-Clause */
/* In every second epoch the library appears to be lazy: operations that the standard allows to be
 * pending are held back until a fence or a quiet requests them, and then made in another order. A
 * program that relied on more than it requested would fail. */
#include <stdlib.h>
#include <string.h>
#include "execute.h"

enum { HELD_MAX = 64 };

static struct held {
    struct op op;
    unsigned char *source; /* its old contents, if the caller may change it; otherwise NULL */
} held[HELD_MAX];
static int nheld;

static void deliver(int i) {
    struct held late = held[i];
    held[i] = held[--nheld];
    if (op_is_amo(&late.op))
        call_amo(&late.op);
    else
        call_rma(&late.op, late.source);
    free(late.source);
}

/* Signals, and operations that return a value, cannot be late. */
static bool may_be_late(const struct op *op) {
    if (op->class == PUT_SIGNAL)
        return false;
    return (op_is_amo(op) && op->form != FETCHING) || op_is_nbi(op) ||
           ((op->class == PUT || op->class == MOVE_C11 || op->class == STRIDED ||
             op->class == BLOCKS || op->class == ELEMENT) &&
            !op_gets(op));
}

bool late_hold(const struct op *op) {
    if (run.epoch % 2 == 0 || !may_be_late(op))
        return false;
    if (nheld == HELD_MAX)
        deliver(op->number % HELD_MAX);
    struct held *late = &held[nheld++];
    *late = (struct held){*op, NULL};
    uint32_t bytes = op_local_span(op);
    if (op->symmetric && !op_is_nbi(op) && !op_is_amo(op)) {
        late->source = aligned_alloc(16, (bytes + 15) & ~15u);
        memcpy(late->source, memory_real(op->local), bytes);
    }
    return true;
}

void late_deliver(int ctx, uint8_t peers) {
    for (int i = nheld - 1; i >= 0; i--)
        if (i < nheld && held[i].op.ctx == ctx && peers >> held[i].op.target & 1)
            deliver(i);
}
