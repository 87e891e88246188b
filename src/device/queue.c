/* SPDX-License-Identifier: BSD-3-Clause */
/* Tickets are issued and enqueued under one lock, so that the word only grows. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include "base/size.h"
#include "device/device.h"

enum { QUERY_TURNS = 1024 }; /* polls between two questions whether the GPU still works */

/* Memory that the GPU writes and the host reads, in whole pages, because pages are registered. */
struct mailbox {
    _Atomic uint32_t completed; /* the last ticket that the GPU has written */
    _Alignas(64) char staging[WEFT_DEVICE_STAGING_BYTES];
};

static struct {
    pthread_mutex_t changing; /* protects mailbox, issued, and the order of tickets in the stream */
    pthread_mutex_t staging_taken;
    struct mailbox *_Atomic mailbox;
    bool registered;
    _Atomic bool unwritable; /* the driver has refused to write a word */
    _Atomic uint32_t issued;
    _Atomic bool noted; /* there is work after the last ticket */
} queue = {.changing = PTHREAD_MUTEX_INITIALIZER, .staging_taken = PTHREAD_MUTEX_INITIALIZER};

void weft_device_must(int result) {
    if (result < 0)
        weft_job_panic_bare("%s", weft_fail_text());
}

/* Returns the mailbox, which the first caller allocates. Called with `changing` held. */
static struct mailbox *mailbox_get(void) {
    struct mailbox *mailbox = atomic_load(&queue.mailbox);
    size_t bytes = weft_page_up(sizeof *mailbox);
    if (mailbox)
        return mailbox;
    mailbox = aligned_alloc(weft_page_bytes(), bytes);
    if (!mailbox)
        weft_job_panic_bare("no memory for the words that the GPU writes for the host (%zu bytes)",
                            bytes);
    atomic_init(&mailbox->completed, atomic_load(&queue.issued));
    queue.registered =
        weft_device.gpu->sees_registered_memory && weft_gpu_register(mailbox, bytes) == 0;
    atomic_store(&queue.mailbox, mailbox);
    return mailbox;
}

void weft_device_queue_close(void) {
    struct mailbox *mailbox = atomic_exchange(&queue.mailbox, NULL);
    if (mailbox && queue.registered)
        weft_gpu_unregister(mailbox);
    free(mailbox);
    atomic_store(&queue.noted, false);
}

void weft_device_note(void) {
    atomic_store(&queue.noted, true);
}

/* Returns the command that writes the next ticket. Called with `changing` held. */
static union weft_cu_word_op ticket_next(uint32_t *ticket) {
    struct mailbox *mailbox = mailbox_get();
    *ticket = atomic_load(&queue.issued) + 1;
    return (union weft_cu_word_op){.operation = WEFT_CU_OP_WRITE_32,
                                   .address = (weft_cu_address)&mailbox->completed,
                                   .value = *ticket,
                                   .flags = WEFT_CU_WRITE_ORDERED};
}

void weft_device_enqueue(void *to, const void *from, size_t bytes, int pe) {
    enum weft_direction direction = weft_device_direction(to, from, pe);
    weft_device_must(weft_gpu_copy(to, from, bytes, direction, weft_device.gpu->stream));
    weft_device_note();
}

uint32_t weft_device_ticket(void) {
    uint32_t ticket;
    int error = WEFT_CU_SUCCESS;
    pthread_mutex_lock(&queue.changing);
    union weft_cu_word_op op = ticket_next(&ticket);
    /* A thread that sees `noted` cleared waits for `issued`, so that is stored before; and the
     * write comes last, because it does not cover work that is noted later. */
    atomic_store(&queue.issued, ticket);
    atomic_store(&queue.noted, false);
    if (queue.registered)
        error =
            weft_cuda.cuStreamWriteValue32(weft_device.gpu->stream, op.address, op.value, op.flags);
    pthread_mutex_unlock(&queue.changing);
    weft_device_must(weft_cuda_check(error, "writing a word in stream order"));
    return ticket;
}

bool weft_device_write_word(void *word, uint64_t value, size_t bytes) {
    uint32_t ticket;
    bool wide = bytes == sizeof(uint64_t);
    if (atomic_load(&queue.unwritable))
        return false;
    union weft_cu_word_op ops[2] = {{.operation = wide ? WEFT_CU_OP_WRITE_64 : WEFT_CU_OP_WRITE_32,
                                     .address = (weft_cu_address)word,
                                     .value64 = value,
                                     .flags = WEFT_CU_WRITE_ORDERED}};
    pthread_mutex_lock(&queue.changing);
    ops[1] = ticket_next(&ticket);
    int error =
        weft_cuda.cuStreamBatchMemOp(weft_device.gpu->stream, queue.registered ? 2 : 1, ops, 0);
    if (error == WEFT_CU_SUCCESS)
        atomic_store(&queue.issued, ticket);
    pthread_mutex_unlock(&queue.changing);
    if (error == WEFT_CU_NOT_SUPPORTED || error == WEFT_CU_INVALID_VALUE) {
        atomic_store(&queue.unwritable, true);
        return false;
    }
    weft_device_must(weft_cuda_check(error, "writing words in stream order"));
    return true;
}

/* Returns whether the stream is idle, according to the driver. */
static bool stream_drained(void) {
    int error = weft_cuda.cuStreamQuery(weft_device.gpu->stream);
    if (error != WEFT_CU_NOT_READY)
        weft_device_must(weft_cuda_check(error, "waiting for the GPU"));
    return error == WEFT_CU_SUCCESS;
}

static bool ticket_is_reached(uint32_t ticket) {
    const struct mailbox *mailbox = atomic_load(&queue.mailbox);
    return !mailbox || weft_epoch_reached(
                           atomic_load_explicit(&mailbox->completed, memory_order_acquire), ticket);
}

void weft_device_await(uint32_t ticket) {
    struct weft_waiter waiter = {.pe = WEFT_PE_NONE};
    for (uint32_t turn = 1; !ticket_is_reached(ticket); turn++) {
        if (!queue.registered && stream_drained())
            atomic_store(&atomic_load(&queue.mailbox)->completed, ticket);
        else if (turn % QUERY_TURNS == 0)
            stream_drained();
        weft_waiter_turn(&waiter);
    }
    weft_waiter_end(&waiter);
    if (weft_job_aborted()) /* the GPU has abandoned its wait */
        weft_job_die_aborted();
}

bool weft_device_drained(void) {
    return !atomic_load(&queue.noted) && ticket_is_reached(atomic_load(&queue.issued));
}

void weft_device_drain(void) {
    bool noted = atomic_load(&queue.noted);
    weft_device_await(noted ? weft_device_ticket() : atomic_load(&queue.issued));
}

void *weft_device_staging_take(void) {
    pthread_mutex_lock(&queue.changing);
    struct mailbox *mailbox = mailbox_get();
    pthread_mutex_unlock(&queue.changing);
    if (!queue.registered)
        return NULL;
    pthread_mutex_lock(&queue.staging_taken);
    return mailbox->staging;
}

void weft_device_staging_give(void) {
    pthread_mutex_unlock(&queue.staging_taken);
}
