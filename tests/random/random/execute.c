/* SPDX-License-Identifier: BSD-3-Clause */
#include "execute.h"

static void execute_put_or_get(const struct op *op) {
    if (op->actor == me)
        execute_rma(op);
    if (op->class == PUT_SIGNAL && op->included && op->target == me)
        execute_await(op);
}

void execute(const struct op *op, struct outcome outcome) {
    switch (op->class) {
    case STORE:
        execute_store(op);
        break;
    case AMO:
    case AMO_FETCH:
    case AMO_NBI:
    case AMO_OLD:
    case AMO_C11:
        execute_amo(op, outcome);
        break;
    case CROWD:
        execute_crowd(op, outcome);
        break;
    case SIGNAL:
    case RAISE:
        execute_flag(op, outcome);
        break;
    case WAIT:
    case TEST:
        execute_wait(op);
        break;
    case BROADCAST:
    case COLLECT:
    case ALLTOALL:
    case REDUCE:
    case SCAN:
    case ACTIVE_SET:
        execute_collective(op);
        break;
    case LOCK:
        execute_lock(op);
        break;
    case FENCE:
    case QUIET:
    case PE_QUIET:
        execute_order(op);
        break;
    case CONTEXT:
        execute_context(op);
        break;
    case TEAM:
        execute_team(op);
        break;
    case QUERY:
        execute_query(op);
        break;
    case MEMORY:
        execute_memory(op);
        break;
    case BARRIER:
        execute_barrier(op);
        break;
    default:
        execute_put_or_get(op);
    }
}
