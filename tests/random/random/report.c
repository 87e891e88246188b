/* SPDX-License-Identifier: BSD-3-Clause */
#include "report.h"
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "collective.h"

enum { SHARE_MIN_PERCENT = 2, TOUCHES_MAX = 6, TEXT = 400 };

struct run run;
static const char *const names[] = {
#define NAME_OF(NAME, TEXT, WEIGHT) [NAME] = TEXT,
    OP_CLASSES(NAME_OF)
#undef NAME_OF
};

static const char *type_of(const struct op *op) {
    switch (op->class) {
    case AMO:
    case AMO_FETCH:
    case AMO_NBI:
    case AMO_OLD:
    case AMO_C11:
    case CROWD:
        return amo_routines[op->row].name;
    case BROADCAST:
    case COLLECT:
    case ALLTOALL:
        return move_routines[op->row].name;
    case REDUCE:
        return reduce_routines[op->row].name;
    case SCAN:
        return scan_routines[op->row].name;
    case ACTIVE_SET:
        return op->verb == ACTIVE_TO_ALL ? to_all_routines[op->row].name : "";
    case WAIT:
    case TEST:
    case RAISE:
        return wait_routines[op->row].name;
    default:
        return op->class <= GET_NBI || op->class == PUT_SIGNAL ? rma_routines[op->row].name : "";
    }
}

static void describe(const struct op *op, char *text) {
    snprintf(text, TEXT,
             "operation %u: %s %s, verb %d form %d, by PE %d at PE %d, context %d of team %d, "
             "remote %#x local %#x%s, %u x %u strides %u %u, value %#llx",
             op->number, names[op->class], type_of(op), op->verb, op->form, op->actor, op->target,
             op->ctx, contexts[op->actor][op->ctx].team, op->remote, op->local,
             op->symmetric ? " symmetric" : "", op->nblocks, op->bsize, op->dst, op->sst,
             (unsigned long long)op->value);
}

void report_op(const struct op *op) {
    char text[TEXT];
    describe(op, text);
    printf("# %s, PEs %#x\n", text, op->members);
}

/* The launcher, and the environment with which a far job is repeated. */
static const char *launcher(void) {
    static char words[TEXT];
    const char *hosts = getenv("WEFT_PRETEND_HOSTS"), *engine = getenv("FAKE_ENGINE");
    const char *real = getenv("WEFT_TEST_HOSTS");
    if (hosts)
        snprintf(words, sizeof words, "WEFT_PRETEND_HOSTS=%s FAKE_ENGINE='%s' oshrun", hosts,
                 engine ? engine : "");
    else
        snprintf(words, sizeof words, "oshrun%s%s", real ? " " : "", real ? real : "");
    return words;
}

static void print_head(const struct op *op) {
    char text[TEXT];
    describe(op, text);
    fprintf(stderr,
            "random: PE %d: divergence in epoch %u, after %llu operations\n  %s\n"
            "  again: %s -n %d random --seed %llu --epoch %u --to %u\n",
            me, run.epoch, (unsigned long long)run.ops, text, launcher(), npes,
            (unsigned long long)run.seed, run.epoch, op->number + 1);
}

static bool covers(struct extent extent, int pe, uint32_t offset) {
    return extent.pe == pe && offset >= extent.offset && offset - extent.offset < extent.bytes;
}

static bool touches(const struct op *op, int pe, uint32_t offset) {
    bool moves = op->class <= STORE || op->class == PUT_SIGNAL;
    if (op->class >= BROADCAST && !(op->class == ACTIVE_SET && op->verb < ACTIVE_BROADCAST)) {
        struct collective coll = coll_of(op);
        return covers(extent_of(pe, op->remote, coll_dest_bytes(op, &coll, 0)), pe, offset) ||
               covers(extent_of(pe, op->local, coll_source_bytes(op, &coll, 0)), pe, offset);
    }
    uint32_t there = moves ? op_remote_span(op) : op->class <= CROWD ? 16 : 0;
    return covers(extent_of(op->target, op->remote, there), pe, offset) ||
           (moves && op->symmetric &&
            covers(extent_of(op->actor, op->local, op_local_span(op)), pe, offset));
}

/* Prints the earlier accesses of a byte. */
static void print_history(int pe, uint32_t offset) {
    char text[TEXT];
    int found = 0;
    for (uint32_t i = run.logged - 1; i-- > 0 && found < TOUCHES_MAX;)
        if (touches(&run.log[i], pe, offset)) {
            describe(&run.log[i], text);
            fprintf(stderr, "  %s %s\n", found++ ? "and before" : "there were", text);
        }
}

void diverge(const struct op *op, const char *format, ...) {
    char text[TEXT];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    print_head(op);
    fprintf(stderr, "  %s\n", text);
    if (op->class <= CROWD || op->class == PUT_SIGNAL)
        print_history(op->target, op->remote);
    shmem_global_exit(1);
}

void diverge_at(const struct op *op, uint32_t offset) {
    const unsigned char *real = memory_real(offset & ~15u), *want = model[me] + (offset & ~15u);
    print_head(op);
    fprintf(stderr, "  %s + %#x, last written by PE %d:\n",
            offset < STATIC_BYTES ? "static data" : "heap",
            offset < STATIC_BYTES ? offset : offset - STATIC_BYTES, order_writer(me, offset));
    for (int line = 0; line < 2; line++) {
        fprintf(stderr, "    %s", line ? "got      " : "expected ");
        for (int i = 0; i < 16; i++)
            fprintf(stderr, "%s%02x", i == (int)(offset & 15) ? ">" : " ", (line ? real : want)[i]);
        fputc('\n', stderr);
    }
    print_history(me, offset);
    shmem_global_exit(1);
}

static void hung(int signal) {
    (void)signal;
    char text[2 * TEXT + 200], what[TEXT];
    describe(&run.log[run.logged - 1], what);
    int length =
        snprintf(text, sizeof text,
                 "random: PE %d: hangs in epoch %u at %s\n  again: %s -n %d random "
                 "--seed %llu --epoch %u\n",
                 me, run.epoch, what, launcher(), npes, (unsigned long long)run.seed, run.epoch);
    if (write(2, text, (size_t)length) < 0)
        _exit(2);
    _exit(1);
}

void report_watch(unsigned seconds) {
    signal(SIGALRM, hung);
    alarm(seconds);
}

bool report_counts(void) {
    bool enough = true;
    for (int class = 0; class < CLASSES; class ++) {
        double percent = 100.0 * (double)run.counts[class] / (double)run.ops;
        enough = enough && percent >= SHARE_MIN_PERCENT;
        if (me == 0)
            printf("# %-24s %12llu  %5.2f %%\n", names[class],
                   (unsigned long long)run.counts[class], percent);
    }
    return enough;
}
