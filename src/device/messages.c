/* SPDX-License-Identifier: BSD-3-Clause */
/* What messages of far PEs do to this PE's memory of its GPU, as job/space.h has it.
 *
 *   message --processor--> ring --a stream of the GPU's--> memory of the GPU
 *   answer <--processor-- ring <--the same stream-------- memory of the GPU
 *
 * All messages share one stream, which does what they say in their order, and atomics by kernels,
 * as near PEs' are made. The ring is memory of the host that the GPU reaches; a share of it is free
 * again when the stream has come past it, or when its answer has been taken. How far the stream has
 * come it writes into a word, by tickets (device/queue.c), of which one is written when somebody
 * asks. The lock of messages is all that this needs. */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include "base/size.h"
#include "device/device.h"

enum {
    RING_BYTES = 4 << 20, /* of one message a quarter of WEFT_CHANNEL_BYTES goes in at most */
    SHARES = 1024,        /* of the ring, at a time */
    ALIGNMENT = 64,
    QUERY_LOOKS = 1024, /* between two questions whether the GPU still works */
};

/* The GPU writes and reads it; in whole pages. */
struct room {
    _Atomic uint32_t completed; /* the last ticket that the stream has come to */
    _Alignas(ALIGNMENT) char ring[RING_BYTES];
};

struct share {
    uint64_t end; /* of the ring's bytes, counted from the beginning of the job */
    uint32_t ticket;
    bool held; /* an answer that has not been taken */
};

/* A PE whose messages have begun something. */
struct sender {
    uint32_t ticket; /* behind all of it */
    bool busy;
    struct share *answer; /* the share that it waits for; NULL: it waits for none */
    const char *at;       /* of that */
};

static struct {
    weft_cu_stream stream;
    struct room *room;
    bool registered;
    struct sender *senders; /* by PE */
    uint32_t issued;        /* the last ticket */
    bool noted;             /* there is work behind it */
    uint32_t looks;
    uint64_t begin, end; /* of the ring's bytes that are in use */
    struct share shares[SHARES];
    uint32_t first, next; /* shares in use */
} messages;

/* --- Tickets ---------------------------------------------------------------------------------- */

static int issue_ticket(void) {
    uint32_t ticket = messages.issued + 1;
    struct weft_gpu_scope scope = weft_gpu_enter(weft_device.gpu);
    int error = messages.registered
                    ? weft_cuda.cuStreamWriteValue32(messages.stream,
                                                     (weft_cu_address)&messages.room->completed,
                                                     ticket, WEFT_CU_WRITE_ORDERED)
                    : 0;
    weft_gpu_leave(scope);
    if (error == 0) {
        messages.issued = ticket;
        messages.noted = false;
    }
    return weft_cuda_check(error, "writing a word in stream order");
}

/* Asks the driver: where the stream writes no word, and now and then whether it works at all. */
static int query_stream(void) {
    struct weft_gpu_scope scope = weft_gpu_enter(weft_device.gpu);
    int error = weft_cuda.cuStreamQuery(messages.stream);
    weft_gpu_leave(scope);
    if (error == 0 && !messages.registered)
        atomic_store(&messages.room->completed, messages.issued);
    return error == WEFT_CU_NOT_READY
               ? 0
               : weft_cuda_check(error, "what far PEs do to memory of this GPU");
}

/* 0; -EAGAIN: not yet; or -errno with text. */
static int reach_ticket(uint32_t ticket) {
    int error = messages.noted ? issue_ticket() : 0;
    if (error == 0 && (!messages.registered || ++messages.looks % QUERY_LOOKS == 0))
        error = query_stream();
    if (error)
        return error;
    uint32_t completed = atomic_load_explicit(&messages.room->completed, memory_order_acquire);
    return weft_epoch_reached(completed, ticket) ? 0 : -EAGAIN;
}

/* Something of that PE's has been begun. */
static void note_work(struct sender *sender) {
    messages.noted = true;
    sender->ticket = messages.issued + 1;
    sender->busy = true;
}

static int messages_settle(int from) {
    struct sender *sender = messages.senders ? &messages.senders[from] : NULL;
    if (!sender || !sender->busy)
        return 0;
    int error = reach_ticket(sender->ticket);
    sender->busy = error != 0;
    return error;
}

/* --- The ring --------------------------------------------------------------------------------- */

static void free_shares(void) {
    while (messages.first != messages.next) {
        const struct share *oldest = &messages.shares[messages.first % SHARES];
        if (oldest->held || reach_ticket(oldest->ticket) != 0)
            return;
        messages.begin = oldest->end;
        messages.first++;
    }
}

/* A share for what is about to be begun; NULL: there is no room now. */
static char *take_share(size_t bytes) {
    uint64_t at = messages.end, into = at % RING_BYTES;
    if (into + bytes > RING_BYTES)
        at += RING_BYTES - into;
    uint64_t end = at + (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (end - messages.begin > RING_BYTES || messages.next - messages.first == SHARES)
        free_shares();
    if (end - messages.begin > RING_BYTES || messages.next - messages.first == SHARES)
        return NULL;
    messages.shares[messages.next++ % SHARES] =
        (struct share){.end = end, .ticket = messages.issued + 1};
    messages.end = end;
    return messages.room->ring + at % RING_BYTES;
}

/* --- What they begin -------------------------------------------------------------------------- */

/* By copy engines, which the program's kernels do not keep from working. */
static int copy_block(void *to, const void *from, size_t bytes) {
    return weft_cuda_check(
        weft_cuda.cuMemcpyAsync((weft_cu_address)to, (weft_cu_address)from, bytes, messages.stream),
        "a copy for a PE of another host");
}

static int copy_blocks(const struct weft_strided_copy *c) {
    int error = 0;
    if (c->nblocks > 1 && messages.registered)
        return weft_gpu_copy_blocks((struct weft_array){c->dest, c->dest_step, NULL},
                                    (struct weft_array){(char *)c->source, c->source_step, NULL},
                                    c->bytes, c->nblocks, messages.stream);
    for (ptrdiff_t i = 0; i < (ptrdiff_t)c->nblocks && error == 0; i++)
        error = copy_block(c->dest + i * c->dest_step, c->source + i * c->source_step, c->bytes);
    return error;
}

/* What lies as a word does is stored whole, and its value travels within the command. */
static int write_word(void *word, uint64_t value, size_t bytes) {
    bool wide = bytes == sizeof(uint64_t);
    union weft_cu_word_op op = {.operation = wide ? WEFT_CU_OP_WRITE_64 : WEFT_CU_OP_WRITE_32,
                                .address = (weft_cu_address)word,
                                .value64 = value,
                                .flags = WEFT_CU_WRITE_ORDERED};
    if (wide && !weft_device.gpu->wide_words)
        return weft_gpu_signal(word, value, false, messages.stream);
    return weft_cuda_check(weft_cuda.cuStreamBatchMemOp(messages.stream, 1, &op, 0),
                           "cuStreamBatchMemOp");
}

static bool is_word(const struct weft_strided_copy *blocks) {
    size_t bytes = blocks->bytes;
    return blocks->nblocks == 1 && (bytes == sizeof(uint32_t) || bytes == sizeof(uint64_t)) &&
           (uintptr_t)blocks->dest % bytes == 0;
}

/* Between the brackets of the GPU's context; it has begun, or failed. */
static int begin_work(int from, int error, struct weft_gpu_scope scope) {
    weft_gpu_leave(scope);
    note_work(&messages.senders[from]);
    return error;
}

static int messages_put(int from, const struct weft_strided_copy *blocks) {
    size_t bytes = blocks->bytes * blocks->nblocks;
    struct weft_strided_copy copy = *blocks;
    uint64_t word = 0;
    char *share = NULL;
    if (bytes == 0)
        return 0;
    if (is_word(blocks))
        memcpy(&word, blocks->source, bytes);
    else if (!(share = take_share(bytes)))
        return -EAGAIN;
    else
        copy.source = memcpy(share, blocks->source, bytes);
    struct weft_gpu_scope scope = weft_gpu_enter(weft_device.gpu);
    int error = share ? copy_blocks(&copy) : write_word(copy.dest, word, bytes);
    return begin_work(from, error, scope);
}

static int messages_signal(int from, uint64_t *word, uint64_t signal, enum weft_signal_op op) {
    struct weft_gpu_scope scope = weft_gpu_enter(weft_device.gpu);
    int error = op == WEFT_SIGNAL_SET ? write_word(word, signal, sizeof signal)
                                      : weft_gpu_signal(word, signal, true, messages.stream);
    return begin_work(from, error, scope);
}

/* --- Answers ---------------------------------------------------------------------------------- */

/* A share for an answer that is about to be begun; NULL: there is no room now. */
static char *take_answer_share(struct sender *sender, size_t bytes) {
    char *share = take_share(bytes);
    if (!share)
        return NULL;
    sender->at = share;
    sender->answer = &messages.shares[(messages.next - 1) % SHARES];
    sender->answer->held = true;
    return share;
}

/* *at: what has been waited for. */
static int take_answer(int from, const void **at) {
    struct sender *sender = &messages.senders[from];
    int error = messages_settle(from);
    if (error)
        return error;
    sender->answer->held = false;
    sender->answer = NULL;
    *at = sender->at;
    return 0;
}

static int messages_get(int from, const struct weft_strided_copy *blocks, const void **answer) {
    struct sender *sender = &messages.senders[from];
    struct weft_strided_copy copy = *blocks;
    if (sender->answer)
        return take_answer(from, answer);
    copy.dest = take_answer_share(sender, blocks->bytes * blocks->nblocks);
    if (!copy.dest)
        return -EAGAIN;
    struct weft_gpu_scope scope = weft_gpu_enter(weft_device.gpu);
    int error = begin_work(from, copy_blocks(&copy), scope);
    return error ? error : -EAGAIN;
}

static int amo_begin(int from, const struct weft_amo *amo) {
    struct weft_gpu_scope scope = weft_gpu_enter(weft_device.gpu);
    int error = amo->op == WEFT_AMO_SET ? write_word(amo->dest, amo->value, amo->bytes)
                                        : weft_gpu_amo(amo, messages.stream);
    return begin_work(from, error, scope);
}

static int messages_amo(int from, const struct weft_amo *amo) {
    struct sender *sender = &messages.senders[from];
    struct weft_amo staged = *amo;
    const void *before;
    int error;
    if (!amo->fetch)
        return amo_begin(from, amo);
    if (sender->answer) {
        if ((error = take_answer(from, &before)) == 0)
            memcpy(amo->fetch, before, amo->bytes);
        return error;
    }
    if (!messages.registered)
        return weft_fail(-ENOTSUP,
                         "atomics on GPU memory need host memory that the GPU sees, and %s of PE "
                         "%d sees none",
                         weft_device.gpu->name, weft_job.pe);
    staged.fetch = take_answer_share(sender, amo->bytes);
    error = staged.fetch ? amo_begin(from, &staged) : -EAGAIN;
    return error ? error : -EAGAIN;
}

const struct weft_space_messages weft_device_messages = {.put = messages_put,
                                                         .signal = messages_signal,
                                                         .get = messages_get,
                                                         .amo = messages_amo,
                                                         .settle = messages_settle};

/* --- The life --------------------------------------------------------------------------------- */

int weft_device_messages_open(void) {
    size_t bytes = weft_page_up(sizeof *messages.room);
    messages.senders = calloc((size_t)weft_job.npes, sizeof *messages.senders);
    messages.room = aligned_alloc(weft_page_bytes(), bytes);
    if (!messages.senders || !messages.room)
        return weft_fail(-ENOMEM, "no memory for messages to memory of a GPU (%zu bytes)", bytes);
    atomic_init(&messages.room->completed, messages.issued);
    messages.registered =
        weft_device.gpu->sees_registered_memory && weft_gpu_register(messages.room, bytes) == 0;
    return weft_cuda_check(
        weft_cuda.cuStreamCreateWithPriority(&messages.stream, WEFT_CU_STREAM_NON_BLOCKING, 0),
        "a stream for messages of far PEs");
}

void weft_device_messages_close(void) {
    if (messages.stream)
        weft_cuda.cuStreamDestroy(messages.stream);
    if (messages.registered)
        weft_gpu_unregister(messages.room);
    free(messages.room);
    free(messages.senders);
    memset(&messages, 0, sizeof messages);
}
