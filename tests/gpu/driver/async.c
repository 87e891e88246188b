/* SPDX-License-Identifier: BSD-3-Clause */
#include "async.h"
#include "block.h"
#include "bulk_add.h"
#include "grid.h"
#include <stdlib.h>
#include <string.h>

enum { LOAD = -1, BULK_BYTES = 16, SEEN_WORDS = 2048, GONE = 0x99 };

struct async_copy {
    int kind, thread; /* LOAD, or enum kernel_bulk */
    unsigned group;   /* 0: not committed */
    char *to;
    const char *from;
    uint64_t *mbarrier;
    char *data; /* the data read, or NULL */
    unsigned bytes;
};

/* The content that a load has found, and the block's number of acquires then. */
struct async_word {
    const char *at;
    uint64_t value, since;
};

/* An mbarrier, within its 8 bytes. */
struct mbarrier {
    int32_t bytes; /* to come */
    uint16_t pending;
    uint16_t count : 15, phase : 1;
};
_Static_assert(sizeof(struct mbarrier) == 8, "an mbarrier is a word");

/* --- Shared memory ------------------------------------------------------------------------------
 */

static struct shared *shared_of(const struct block *block, const void *at, size_t bytes) {
    const char *first = at;
    for (struct shared *shared = block->shared; shared; shared = shared->next)
        if (first >= shared->memory && first + bytes <= shared->memory + shared->bytes)
            return shared;
    return NULL;
}

/* Returns the proxy's copy of the place. */
static char *behind(const struct block *block, const void *at, size_t bytes) {
    const struct shared *shared = shared_of(block, at, bytes);
    return shared->behind + ((const char *)at - shared->memory);
}

static void check(const struct thread *thread, const void *shared, const void *global,
                  size_t bytes) {
    if (((uintptr_t)shared | (uintptr_t)global | bytes) % BULK_BYTES != 0)
        thread_fault("a bulk copy of %zu bytes, %p and %p: not multiples of %d", bytes, shared,
                     global, BULK_BYTES);
    if (thread && !shared_of(thread->block, shared, bytes))
        thread_fault("a bulk copy of %zu bytes at %p, which is no shared memory", bytes, shared);
    if (thread && shared_of(thread->block, global, 1))
        thread_fault("a bulk copy of %zu bytes at %p, which is no global memory", bytes, global);
}

/* --- mbarriers ----------------------------------------------------------------------------------
 */

static struct mbarrier *mbarrier_of(const struct thread *thread, const uint64_t *word) {
    if ((uintptr_t)word % sizeof *word != 0 ||
        (thread && !shared_of(thread->block, word, sizeof *word)))
        thread_fault("an mbarrier at %p, which is no word of shared memory", (const void *)word);
    return (struct mbarrier *)(uintptr_t)word;
}

static void mbarrier_turn(struct mbarrier *mbarrier) {
    if (mbarrier->pending > 0 || mbarrier->bytes != 0)
        return;
    mbarrier->phase ^= 1;
    mbarrier->pending = mbarrier->count;
}

static bool is_fresh(const struct async *async, const uint64_t *mbarrier) {
    for (unsigned i = 0; i < async->nfresh; i++)
        if (async->fresh[i] == mbarrier)
            return true;
    return false;
}

void kernel_mbarrier_init(uint64_t *mbarrier, unsigned count) {
    struct thread *thread = thread_self();
    *mbarrier_of(thread, mbarrier) = (struct mbarrier){0, (uint16_t)count, count & 0x7fff, 0};
    if (!kernel_is_weak)
        return;
    struct async *async = &thread->block->async;
    if (async->nfresh == ASYNC_FRESH_MAX)
        thread_fault("more than %d mbarriers begin at once", ASYNC_FRESH_MAX);
    async->fresh[async->nfresh++] = mbarrier;
}

void kernel_mbarrier_expect(uint64_t *word, unsigned bytes) {
    struct thread *thread = thread_self();
    struct mbarrier *mbarrier = mbarrier_of(thread, word);
    if (mbarrier->pending == 0)
        thread_fault("more threads arrive at an mbarrier than its count, %u", mbarrier->count);
    if (kernel_is_weak) {
        thread_before_access(thread);
        buffer_publish(&thread->block->buffer, thread_number(thread), block_owns,
                       thread->block->grid->gpu);
    }
    mbarrier->bytes += (int32_t)bytes;
    mbarrier->pending--;
    mbarrier_turn(mbarrier);
}

bool kernel_mbarrier_test(const uint64_t *word, unsigned parity) {
    struct thread *thread = thread_self();
    if (kernel_is_weak)
        thread_before_access(thread);
    return mbarrier_of(thread, word)->phase != (parity & 1);
}

/* --- Contents of global memory ---------------------------------------------------------------- */

void async_forget(struct async *async, const char *at) {
    if (async->seen)
        async->seen[(uintptr_t)at / 8 % SEEN_WORDS].at = NULL;
}

/* The word as the thread's loads find it. */
static uint64_t find_word(struct block *block, const struct thread *thread, const char *at) {
    struct async_word *seen = &block->async.seen[(uintptr_t)at / 8 % SEEN_WORDS];
    if (seen->at != at || seen->since < thread->view.proxied)
        *seen = (struct async_word){at, buffer_load(&block->buffer, at, 8, BUFFER_PROXY),
                                    block->cache->now};
    return seen->value;
}

static void write_word(char *at, uint64_t value) {
    __atomic_store_n((uint64_t *)at, value, __ATOMIC_RELEASE);
}

/* --- Copies -------------------------------------------------------------------------------------
 */

static void load_now(struct block *block, const struct async_copy *copy) {
    if (!block->async.seen)
        block->async.seen = calloc(SEEN_WORDS, sizeof *block->async.seen);
    char *shadow = behind(block, copy->to, copy->bytes);
    for (unsigned i = 0; i < copy->bytes; i += 8) {
        uint64_t word = find_word(block, &block->threads[copy->thread], copy->from + i);
        memcpy(copy->to + i, &word, 8);
        memcpy(shadow + i, &word, 8);
    }
    if (is_fresh(&block->async, copy->mbarrier))
        return; /* counted nowhere */
    struct mbarrier *mbarrier = (struct mbarrier *)copy->mbarrier;
    mbarrier->bytes -= (int32_t)copy->bytes;
    mbarrier_turn(mbarrier);
}

static void read_now(const struct block *block, struct async_copy *copy) {
    if (copy->data)
        return;
    copy->data = malloc(copy->bytes);
    memcpy(copy->data, behind(block, copy->from, copy->bytes), copy->bytes);
}

static void forget(struct block *block, const struct async_copy *copy) {
    for (unsigned i = 0; i < copy->bytes; i += 8) {
        cache_forget(block->cache, copy->to + i);
        async_forget(&block->async, copy->to + i);
    }
}

/* Writes directly, or as a store of the thread, which waits for it. */
static void write_now(struct block *block, struct async_copy *copy, bool waits) {
    forget(block, copy);
    if (copy->kind != KERNEL_BULK_PUT)
        bulk_add((enum kernel_bulk)copy->kind, copy->to, copy->data, copy->bytes);
    for (unsigned i = 0; i < copy->bytes && copy->kind == KERNEL_BULK_PUT; i += 8) {
        uint64_t word;
        memcpy(&word, copy->data + i, 8);
        if (waits)
            buffer_add(&block->buffer,
                       (struct buffer_store){copy->to + i, word, 8, copy->thread, false});
        else
            write_word(copy->to + i, word);
    }
}

static void drop_copy(struct async *async, unsigned i) {
    free(async->copies[i]->data);
    free(async->copies[i]);
    memmove(&async->copies[i], &async->copies[i + 1], (--async->n - i) * sizeof *async->copies);
}

/* Advances the i-th copy. Returns true if it has ended. */
static bool advance(struct block *block, unsigned i) {
    struct async_copy *copy = block->async.copies[i];
    block->grid->polls = block->grid->turns = 0;
    if (copy->kind != LOAD && !copy->data) {
        read_now(block, copy);
        return false;
    }
    if (copy->kind == LOAD)
        load_now(block, copy);
    else
        write_now(block, copy, false);
    drop_copy(&block->async, i);
    return true;
}

void async_drain(struct block *block, size_t of) {
    for (unsigned i = 0; i < block->async.n;)
        if (buffer_draw(&block->grid->random, of) != 0 || !advance(block, i))
            i++;
}

void async_end_threads(struct block *block) {
    for (struct shared *shared = block->shared; shared; shared = shared->next)
        if (shared->behind)
            memset(shared->behind, GONE, shared->bytes);
}

void async_end(struct block *block) {
    while (block->async.n > 0)
        drop_copy(&block->async, 0);
    free(block->async.copies);
    free(block->async.seen);
}

static void add_copy(struct block *block, struct async_copy copy) {
    struct async *async = &block->async;
    if (async->n == async->room) {
        async->room = async->room ? 2 * async->room : 16;
        async->copies = realloc(async->copies, async->room * sizeof *async->copies);
    }
    async->copies[async->n] = malloc(sizeof copy);
    *async->copies[async->n++] = copy;
}

/* --- Calls of threads ------------------------------------------------------------------------- */

void kernel_bulk_load(void *shared, const void *from, unsigned bytes, uint64_t *mbarrier) {
    struct thread *thread = thread_self();
    check(thread, shared, from, bytes);
    struct mbarrier *counts = mbarrier_of(thread, mbarrier);
    if (!kernel_is_weak) {
        memcpy(shared, from, bytes);
        counts->bytes -= (int32_t)bytes;
        mbarrier_turn(counts);
        return;
    }
    thread_before_access(thread);
    add_copy(thread->block, (struct async_copy){.kind = LOAD,
                                                .thread = thread_number(thread),
                                                .to = shared,
                                                .from = from,
                                                .mbarrier = mbarrier,
                                                .bytes = bytes});
}

void kernel_bulk_store(enum kernel_bulk kind, void *to, const void *shared, unsigned bytes) {
    struct thread *thread = thread_self();
    check(thread, shared, to, bytes);
    if (kernel_is_weak) {
        thread_before_access(thread);
        add_copy(thread->block, (struct async_copy){.kind = (int)kind,
                                                    .thread = thread_number(thread),
                                                    .to = to,
                                                    .from = shared,
                                                    .bytes = bytes});
    } else if (kind == KERNEL_BULK_PUT) {
        memcpy(to, shared, bytes);
    } else {
        bulk_add(kind, to, shared, bytes);
    }
}

void kernel_bulk_commit(void) {
    struct thread *thread = thread_self();
    if (!kernel_is_weak)
        return;
    thread->groups++;
    const struct async *async = &thread->block->async;
    for (unsigned i = 0; i < async->n; i++)
        if (async->copies[i]->thread == thread_number(thread) && async->copies[i]->group == 0)
            async->copies[i]->group = thread->groups;
}

void kernel_bulk_wait(bool read, unsigned newest) {
    struct thread *thread = thread_self();
    if (!kernel_is_weak)
        return;
    thread_before_access(thread);
    struct block *block = thread->block;
    for (unsigned i = 0; i < block->async.n; i++) {
        struct async_copy *copy = block->async.copies[i];
        if (copy->kind == LOAD || copy->thread != thread_number(thread) || copy->group == 0 ||
            copy->group + newest > thread->groups)
            continue;
        read_now(block, copy);
        if (read)
            continue;
        write_now(block, copy, true);
        drop_copy(&block->async, i--);
    }
}

void kernel_fence_async(bool shared) {
    struct thread *thread = thread_self();
    if (!kernel_is_weak)
        return;
    thread_before_access(thread);
    struct block *block = thread->block;
    if (!shared) {
        thread->view.proxied = thread->view.acquired;
        buffer_proxy(&block->buffer, thread_number(thread));
        return;
    }
    block->async.nfresh = 0;
    for (struct shared *of = block->shared; of; of = of->next)
        memcpy(of->behind, of->memory, of->bytes);
}
