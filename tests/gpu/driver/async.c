/* SPDX-License-Identifier: BSD-3-Clause */
#include "async.h"
#include "block.h"
#include "bulk_add.h"
#include "grid.h"
#include "tensor.h"
#include <stdlib.h>
#include <string.h>

enum { LOAD = -1, BULK_BYTES = 16, SEEN_WORDS = 2048, GONE = 0x99 };

/* Turns that a wait may take, and one in some arrivals at another block. */
enum { WAIT_TURNS = 8, REMOTE_TURNS = 128, REMOTE_LATE_IN = 4 };

struct async_copy {
    int kind, thread;     /* LOAD, or enum kernel_bulk */
    uint64_t proxied;     /* what a load has to find: the thread's view */
    struct tensor tensor; /* if the copy is of a box, that of column x and row y */
    int x, y;
    unsigned group; /* 0: not committed */
    char *to;
    const char *from;
    uint64_t *mbarrier;
    char *data; /* the data read, or NULL */
    unsigned bytes;
    bool lazy; /* of a store: advances when a thread waits for it, or all threads wait */
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

/* Returns the proxy's copy of the place. */
static char *behind(const struct block *block, const void *at, size_t bytes) {
    const struct shared *shared = block_shared(block, at, bytes);
    return shared->behind + ((const char *)at - shared->memory);
}

static void check(const struct thread *thread, const void *shared, const void *global,
                  size_t bytes) {
    if (((uintptr_t)shared | (uintptr_t)global | bytes) % BULK_BYTES != 0)
        thread_fault("a bulk copy of %zu bytes, %p and %p: not multiples of %d", bytes, shared,
                     global, BULK_BYTES);
    if (thread && !block_shared(thread->block, shared, bytes))
        thread_fault("a bulk copy of %zu bytes at %p, which is no shared memory", bytes, shared);
    if (thread && block_shared(thread->block, global, 1))
        thread_fault("a bulk copy of %zu bytes at %p, which is no global memory", bytes, global);
}

/* --- mbarriers ----------------------------------------------------------------------------------
 */

static struct mbarrier *mbarrier_of(const struct thread *thread, const uint64_t *word) {
    if ((uintptr_t)word % sizeof *word != 0 ||
        (thread && !block_shared(thread->block, word, sizeof *word)))
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

/* Lets others run for fewer turns than `most`. */
static void take_turns(struct thread *thread, size_t most) {
    for (size_t turns = buffer_draw(&thread->block->grid->random, most); turns > 0; turns--)
        fibre_leave(&thread->fibre, false);
}

static void arrive(struct thread *thread, struct mbarrier *mbarrier, unsigned bytes) {
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

void kernel_mbarrier_expect(uint64_t *word, unsigned bytes) {
    struct thread *thread = thread_self();
    arrive(thread, mbarrier_of(thread, word), bytes);
}

void kernel_mbarrier_arrive_at(uint64_t *word, unsigned rank) {
    struct thread *thread = thread_self();
    if (kernel_is_weak && rank != kernel_cluster_rank() &&
        buffer_draw(&thread->block->grid->random, REMOTE_LATE_IN) == 0)
        take_turns(thread, REMOTE_TURNS);
    struct block *there = block_of_cluster(thread->block, rank);
    arrive(thread, block_there(thread->block, there, mbarrier_of(thread, word)), 0);
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

/* The word as the loads of a thread with that view find it. */
static uint64_t find_word(struct block *block, uint64_t proxied, const char *at) {
    struct async_word *seen = &block->async.seen[(uintptr_t)at / 8 % SEEN_WORDS];
    if (seen->at != at || seen->since < proxied)
        *seen = (struct async_word){at, buffer_load(&block->buffer, at, 8, BUFFER_PROXY),
                                    block->cache->now};
    return seen->value;
}

/* --- Copies -------------------------------------------------------------------------------------
 */

/* The copy as chunks of 16 bytes. A plain one is a row. */
static struct tensor_chunk chunk_of(const struct async_copy *copy, unsigned number) {
    unsigned at = number * BULK_BYTES;
    char *global = copy->kind == LOAD ? (char *)(uintptr_t)copy->from : copy->to;
    if (copy->tensor.mark)
        return tensor_chunk_of(&copy->tensor, copy->x, copy->y, number);
    return (struct tensor_chunk){global + at, at, BULK_BYTES};
}

/* What is outside of a matrix is 0. Of a word that is partly inside, the proxy reads that part. */
static void load_chunk(struct block *block, const struct async_copy *copy, unsigned number) {
    struct tensor_chunk chunk = chunk_of(copy, number);
    uint64_t words[2] = {0, 0};
    for (unsigned i = 0; i < chunk.inside; i += 8)
        if (chunk.inside - i >= 8)
            words[i / 8] = find_word(block, copy->proxied, chunk.global + i);
        else
            memcpy(&words[i / 8], chunk.global + i, chunk.inside - i);
    memcpy(copy->to + chunk.shared, words, sizeof words);
    memcpy(behind(block, copy->to, copy->bytes) + chunk.shared, words, sizeof words);
}

static void load_now(struct block *block, const struct async_copy *copy) {
    if (!block->async.seen)
        block->async.seen = calloc(SEEN_WORDS, sizeof *block->async.seen);
    for (unsigned i = 0; i < copy->bytes / BULK_BYTES; i++)
        load_chunk(block, copy, i);
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

static void forget(struct block *block, const char *at) {
    cache_forget(block->cache, at);
    async_forget(&block->async, at);
}

/* Of a chunk that is partly inside a matrix all is written, as a Hopper GPU does (H200). */
static void write_chunk(struct block *block, const struct async_copy *copy, unsigned number,
                        bool waits) {
    struct tensor_chunk chunk = chunk_of(copy, number);
    for (unsigned i = 0; i < BULK_BYTES && chunk.inside > 0; i += 8) {
        uint64_t word;
        memcpy(&word, copy->data + chunk.shared + i, 8);
        forget(block, chunk.global + i);
        if (waits)
            buffer_add(&block->buffer,
                       (struct buffer_store){chunk.global + i, word, 8, copy->thread, false});
        else
            __atomic_store_n((uint64_t *)(chunk.global + i), word, __ATOMIC_RELEASE);
    }
}

static void add_chunk(struct block *block, const struct async_copy *copy, unsigned number) {
    struct tensor_chunk chunk = chunk_of(copy, number);
    for (unsigned i = 0; i < BULK_BYTES && chunk.inside > 0; i += 8)
        forget(block, chunk.global + i);
    if (chunk.inside > 0)
        bulk_add((enum kernel_bulk)copy->kind, chunk.global, copy->data + chunk.shared, BULK_BYTES);
}

/* Writes directly, or as a store of the thread, which waits for it. */
static void write_now(struct block *block, struct async_copy *copy, bool waits) {
    for (unsigned i = 0; i < copy->bytes / BULK_BYTES; i++)
        if (copy->kind == KERNEL_BULK_PUT)
            write_chunk(block, copy, i, waits);
        else
            add_chunk(block, copy, i);
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

void async_drain(struct block *block, size_t of, bool idle) {
    for (unsigned i = 0; i < block->async.n;) {
        bool waits = block->async.copies[i]->lazy && !idle;
        if (waits || buffer_draw(&block->grid->random, of) != 0 || !advance(block, i))
            i++;
    }
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
    copy.lazy = copy.kind != LOAD && buffer_draw(&block->grid->random, 2) == 0;
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
                                                .proxied = thread->view.proxied,
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

/* --- Boxes ------------------------------------------------------------------------------------ */

static struct async_copy box_of(const struct weft_cu_tensor_map *map, const void *shared, int x,
                                int y) {
    const struct thread *thread = thread_self();
    struct tensor tensor = tensor_of(map);
    unsigned bytes = tensor_box_bytes(&tensor);
    if ((uintptr_t)shared % (tensor.swizzled ? 1024 : 128) != 0 ||
        block_shared(thread->block, shared, bytes) != thread->block->dynamic)
        thread_fault("a box of %u bytes at %p: not in the dynamic shared memory, or not aligned",
                     bytes, shared);
    if (!tensor_reaches(&tensor, x, y, thread->block->grid->gpu))
        thread_fault("a box at column %d and row %d of a matrix at %p: no memory of the GPU", x, y,
                     (void *)tensor.at);
    return (struct async_copy){.thread = thread_number(thread),
                               .proxied = thread->view.proxied,
                               .tensor = tensor,
                               .x = x,
                               .y = y,
                               .bytes = bytes};
}

/* Makes a copy at once. */
static void load_strong(struct async_copy *copy) {
    struct mbarrier *counts = (struct mbarrier *)copy->mbarrier;
    for (unsigned i = 0; i < copy->bytes / BULK_BYTES; i++) {
        struct tensor_chunk chunk = chunk_of(copy, i);
        memset(copy->to + chunk.shared, 0, BULK_BYTES);
        if (chunk.inside > 0)
            memcpy(copy->to + chunk.shared, chunk.global, chunk.inside);
    }
    counts->bytes -= (int32_t)copy->bytes;
    mbarrier_turn(counts);
}

static void store_strong(const struct async_copy *copy) {
    for (unsigned i = 0; i < copy->bytes / BULK_BYTES; i++) {
        struct tensor_chunk chunk = chunk_of(copy, i);
        if (chunk.inside > 0 && copy->kind == KERNEL_BULK_PUT)
            memcpy(chunk.global, copy->from + chunk.shared, BULK_BYTES);
        else if (chunk.inside > 0)
            bulk_add((enum kernel_bulk)copy->kind, chunk.global, copy->from + chunk.shared,
                     BULK_BYTES);
    }
}

void kernel_box_load(void *shared, const struct weft_cu_tensor_map *map, unsigned x, unsigned y,
                     uint64_t *mbarrier, bool both) {
    struct thread *thread = thread_self();
    struct async_copy copy = box_of(map, shared, (int)x, (int)y);
    copy.kind = LOAD;
    mbarrier_of(thread, mbarrier);
    if (kernel_is_weak)
        thread_before_access(thread);
    unsigned own = thread->block->number % thread->block->grid->cluster_blocks;
    for (unsigned rank = both ? 0 : own; rank <= (both ? 1 : own); rank++) {
        struct block *there = block_of_cluster(thread->block, rank);
        copy.to = block_there(thread->block, there, shared);
        copy.mbarrier = block_there(thread->block, there, mbarrier);
        if (kernel_is_weak)
            add_copy(there, copy);
        else
            load_strong(&copy);
    }
}

void kernel_box_store(const struct weft_cu_tensor_map *map, const void *shared, unsigned x,
                      unsigned y, bool add) {
    struct thread *thread = thread_self();
    struct async_copy copy = box_of(map, shared, (int)x, (int)y);
    copy.kind = !add              ? KERNEL_BULK_PUT
                : copy.tensor.f16 ? KERNEL_BULK_ADD_F16
                                  : KERNEL_BULK_ADD_BF16;
    copy.from = shared;
    if (kernel_is_weak) {
        thread_before_access(thread);
        add_copy(thread->block, copy);
    } else {
        store_strong(&copy);
    }
}

/* --- Groups ----------------------------------------------------------------------------------- */

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

/* It takes some turns, in which other threads may do what has to come after it. */
void kernel_bulk_wait(bool read, unsigned newest) {
    struct thread *thread = thread_self();
    if (!kernel_is_weak)
        return;
    take_turns(thread, WAIT_TURNS);
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
        if (of != block->dynamic)
            memcpy(of->behind, of->memory, of->bytes);
    for (; thread->nwritten > 0; thread->nwritten--) {
        uint32_t *word = thread->written[thread->nwritten - 1];
        memcpy(behind(block, word, sizeof *word), word, sizeof *word);
    }
}
