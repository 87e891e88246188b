/* SPDX-License-Identifier: BSD-3-Clause */
/* Applies messages of far PEs to this PE's GPU memory; contracts in job/space.h.
 *
 *   message --processor--> ring --a stream of the GPU's--> GPU memory
 *   answer <--processor-- ring <--the same stream-------- GPU memory
 *
 * All messages share one stream, which executes their operations in order; atomics are executed by
 * kernels, as those of near PEs are. The ring is host memory that the GPU can access. A share of it
 * is free again when the stream has passed it, or when its answer has been taken. The stream
 * reports its progress by tickets (as in device/queue.c), which are enqueued only when somebody
 * asks. The lock of messages protects everything here. */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include "base/size.h"
#include "device/device.h"

enum {
    RING_BYTES = 4 << 20, /* one message uses at most a quarter of WEFT_CHANNEL_BYTES */
    SHARES = 1024,        /* of the ring, in use at the same time */
    ALIGNMENT = 64,
    QUERY_LOOKS = 1024, /* polls between two questions whether the GPU still works */
};

/* Memory that the GPU reads and writes, in whole pages. */
struct room {
    _Atomic uint32_t completed; /* the last ticket that the stream has written */
    _Alignas(ALIGNMENT) char ring[RING_BYTES];
};

struct share {
    uint64_t end; /* in bytes of the ring, counted from the beginning of the job */
    uint32_t ticket;
    bool held; /* contains an answer that has not been taken */
};

/* A PE whose messages have started GPU work. */
struct sender {
    uint32_t ticket; /* follows all of that work */
    bool busy;
    struct share *answer; /* the share of the answer that it waits for; NULL if it waits for none */
    const char *at;       /* the address of that share */
};

static struct {
    weft_cu_stream stream;
    struct room *room;
    bool registered;
    struct sender *senders; /* by PE */
    uint32_t issued;        /* the last ticket */
    bool noted;             /* there is work after it */
    uint32_t looks;
    uint64_t begin, end; /* in bytes of the ring; the part in use */
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

/* Asks the driver: always if the stream cannot write a word, otherwise now and then to see whether
 * it still works. */
static int query_stream(void) {
    struct weft_gpu_scope scope = weft_gpu_enter(weft_device.gpu);
    int error = weft_cuda.cuStreamQuery(messages.stream);
    weft_gpu_leave(scope);
    if (error == 0 && !messages.registered)
        atomic_store(&messages.room->completed, messages.issued);
    return error == WEFT_CU_NOT_READY
               ? 0
               : weft_cuda_check(error, "an operation of a far PE on memory of this GPU");
}

/* Returns 0 if the stream has reached the ticket, -EAGAIN if it has not, or -errno with text. */
static int reach_ticket(uint32_t ticket) {
    int error = messages.noted ? issue_ticket() : 0;
    if (error == 0 && (!messages.registered || ++messages.looks % QUERY_LOOKS == 0))
        error = query_stream();
    if (error)
        return error;
    uint32_t completed = atomic_load_explicit(&messages.room->completed, memory_order_acquire);
    return weft_epoch_reached(completed, ticket) ? 0 : -EAGAIN;
}

/* Records that work of that PE has been started. */
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

/* Returns a share for an operation that is about to be started, or NULL if there is no room now. */
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

/* --- Operations ------------------------------------------------------------------------------- */

/* Uses copy engines, which can work while the program's kernels run. */
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

/* Writes an aligned word as a whole, with its value in the command. */
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

/* Leaves the GPU's context after an operation, which has been started or has failed with `error`.
 */
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

/* Returns a share for an answer that is about to be started, or NULL if there is no room now. */
static char *take_answer_share(struct sender *sender, size_t bytes) {
    char *share = take_share(bytes);
    if (!share)
        return NULL;
    sender->at = share;
    sender->answer = &messages.shares[(messages.next - 1) % SHARES];
    sender->answer->held = true;
    return share;
}

/* Takes the answer if it has arrived; *at receives its address. Returns 0, -EAGAIN or -errno. */
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
                         "atomics on GPU memory need host memory that the GPU can access, and "
                         "%s of PE %d can access none",
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

/* --- Opening and closing ---------------------------------------------------------------------- */

int weft_device_messages_open(void) {
    size_t bytes = weft_page_up(sizeof *messages.room);
    messages.senders = calloc((size_t)weft_job.npes, sizeof *messages.senders);
    messages.room = aligned_alloc(weft_page_bytes(), bytes);
    if (!messages.senders || !messages.room)
        return weft_fail(-ENOMEM, "no memory for messages that access a GPU (%zu bytes)", bytes);
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
