/* SPDX-License-Identifier: BSD-3-Clause */
/* The sender's side of messages: cuts calls into messages. Data is cut into pieces of one message
 * each; their lengths are multiples of 64 bytes, so that no element is cut. The word of a put is
 * part of the last message. A call that fetches sends all its requests before it waits. */
#include <errno.h>
#include <string.h>
#include "far/far.h"
#include "far/message.h"
#include "far/progress.h"
#include "far/protocol.h"

/* --- Places ---------------------------------------------------------------------------------- */

/* Finds the place of [p, p + bytes) on `pe`. Returns false if it lies in none of the first
 * `nwindows` windows. */
static bool place_name(const void *p, size_t bytes, int pe, uint32_t nwindows,
                       struct weft_far_place *place) {
    for (uint32_t window = 0; window < nwindows; window++) {
        const struct weft_window *w = weft_far_window(window);
        uintptr_t offset = w ? (uintptr_t)p - w->local : 0;
        if (!w || !weft_window_fits(weft_far_window_bytes(window), offset, bytes) ||
            (window == WEFT_FAR_STATICS && weft_statics_meet_hole(p, bytes)))
            continue;
        *place = (struct weft_far_place){window, weft_far_slot(pe), offset};
        return true;
    }
    return false;
}

/* Finds the place for a public call. Returns 0, -ERANGE or -EFAULT. */
static int place_resolve(const void *p, size_t bytes, int pe, struct weft_far_place *place) {
    if (pe < 0 || pe >= weft_job.npes)
        return -ERANGE;
    return place_name(p, bytes, pe, WEFT_FAR_SCRATCH, place) ? 0 : -EFAULT;
}

/* The statics are mapped twice in this process: at the program's addresses, which messages use, and
 * in this PE's slot. Translates an address of the slot to the program's. */
static const void *own_place_of(const void *p) {
    const struct weft_segment *statics = &weft_windows.statics;
    size_t offset = 0;
    bool again = weft_window_slot_of(&statics->window, p, &offset) == statics->mine;
    return again ? (const char *)statics->window.local + offset : p;
}

struct weft_far_place weft_far_place_of(const void *p, size_t bytes, int pe) {
    struct weft_far_place place = {0};
    if (!place_name(own_place_of(p), bytes, pe, WEFT_FAR_WINDOWS, &place))
        weft_job_panic("internal error: [%p, +%zu) on PE %d is not symmetric", p, bytes, pe);
    return place;
}

/* --- Putting --------------------------------------------------------------------------------- */

static struct iovec iovec_of(const void *p, size_t bytes) {
    return (struct iovec){(void *)p, bytes};
}

/* Returns the bytes of data that fit into a message next to `overhead` bytes. */
static size_t piece_bytes(size_t overhead) {
    return (weft_message_payload_max() - overhead) & ~(size_t)63;
}

/* Sends a message that may wait in a bundle, and wakes the progress thread if it does. */
static void put_send(int receiver, const struct weft_message *message) {
    weft_message_send(receiver, message);
    if (atomic_load(&weft_channels_bundles) != 0)
        weft_far_progress_wake();
}

static void data_send(struct weft_far_place place, const char *source, size_t bytes, int pe) {
    size_t most = piece_bytes(sizeof(struct weft_far_header));
    int receiver = weft_far_receiver(&place, pe);
    while (bytes > 0) {
        size_t piece = bytes < most ? bytes : most;
        struct weft_far_header header = {WEFT_FAR_PUT, 0, place};
        put_send(receiver, &(struct weft_message){.payload = {iovec_of(&header, sizeof header),
                                                              iovec_of(source, piece)},
                                                  .nparts = 2,
                                                  .may_wait = true});
        place.offset += piece;
        source += piece;
        bytes -= piece;
    }
}

/* Data, and a word to set after it. */
struct announced {
    struct weft_far_place data;
    const char *source;
    size_t bytes;
    enum weft_far_word_op op;
    struct weft_far_word word;
    bool no_quiet;
};

/* Returns how much of the data has to be sent before the message with the word: the part that does
 * not fit into it, or everything if data and word are in different kinds of memory. */
static size_t announced_before(const struct announced *put) {
    size_t most = piece_bytes(sizeof(struct weft_far_header) + sizeof put->word);
    if ((put->data.window == WEFT_FAR_DEVICE) != (put->word.place.window == WEFT_FAR_DEVICE))
        return put->bytes;
    return put->bytes > most ? (put->bytes - 1) / most * most : 0;
}

/* There is no order between messages to two processes. */
static void announced_send(struct announced put, int pe) {
    size_t before = announced_before(&put);
    int receiver = weft_far_receiver(&put.word.place, pe),
        data_receiver = weft_far_receiver(&put.data, pe);
    data_send(put.data, put.source, before, pe);
    if (before > 0 && data_receiver != receiver)
        weft_messages_quiet(&data_receiver, 1, true);
    put.data.offset += before;
    struct weft_far_header header = {WEFT_FAR_PUT_WORD, put.op, put.data};
    weft_message_send(receiver, &(struct weft_message){
                                    .payload = {iovec_of(&header, sizeof header),
                                                iovec_of(&put.word, sizeof put.word),
                                                iovec_of(put.source + before, put.bytes - before)},
                                    .nparts = 3,
                                    .no_quiet = put.no_quiet});
}

void weft_far_put(void *dest, const void *source, size_t bytes, int pe) {
    if (bytes > 0)
        data_send(weft_far_place_of(dest, bytes, pe), source, bytes, pe);
}

void weft_far_put_word(void *dest, const void *source, size_t bytes, struct weft_word *word,
                       uint32_t value, int pe) {
    struct announced put = {.source = source,
                            .bytes = bytes,
                            .op = WEFT_FAR_WORD,
                            .word = {weft_far_place_of(word, sizeof *word, pe), value},
                            .no_quiet = true};
    if (bytes > 0)
        put.data = weft_far_place_of(dest, bytes, pe);
    announced_send(put, pe);
}

/* --- Fetching -------------------------------------------------------------------------------- */

/* A fetch that is cut into requests, `missing` of which are unanswered. */
struct fetch {
    int pe;
    bool nbi;
    _Atomic uint32_t missing;
};

static void fetch_send(struct fetch *fetch, int receiver, const void *payload, size_t bytes,
                       struct weft_message_request *request) {
    if (!fetch->nbi) {
        atomic_fetch_add_explicit(&fetch->missing, 1, memory_order_relaxed);
        request->missing = &fetch->missing;
    }
    weft_message_send(receiver, &(struct weft_message){.payload = {iovec_of(payload, bytes)},
                                                       .nparts = 1,
                                                       .request = request});
}

static bool fetch_has_come(struct fetch *fetch) {
    return atomic_load_explicit(&fetch->missing, memory_order_acquire) == 0;
}

static void fetch_await(struct fetch *fetch) {
    struct weft_waiter waiter = {.pe = fetch->pe};
    while (!fetch_has_come(fetch))
        weft_message_turn(&waiter);
    weft_waiter_end(&waiter);
}

/* Requests blocks that fit into one answer. */
static void blocks_fetch(struct fetch *fetch, const struct weft_far_place *place,
                         const struct weft_far_blocks *blocks, char *dest, ptrdiff_t dest_step) {
    struct {
        struct weft_far_header header;
        struct weft_far_blocks blocks;
    } body = {{WEFT_FAR_GET, 0, *place}, *blocks};
    fetch_send(fetch, weft_far_receiver(place, fetch->pe), &body, sizeof body,
               &(struct weft_message_request){.dest = dest,
                                              .step = dest_step,
                                              .block_bytes = blocks->bytes,
                                              .nblocks = blocks->count});
}

static void data_fetch(struct fetch *fetch, struct weft_far_place place, char *dest, size_t bytes) {
    size_t most = piece_bytes(0);
    while (bytes > 0) {
        struct weft_far_blocks piece = {0, bytes < most ? bytes : most, 1};
        blocks_fetch(fetch, &place, &piece, dest, 0);
        place.offset += piece.bytes;
        dest += piece.bytes;
        bytes -= piece.bytes;
    }
}

static void data_get(struct weft_far_place place, void *dest, size_t bytes, int pe, bool nbi) {
    struct fetch fetch = {.pe = pe, .nbi = nbi};
    data_fetch(&fetch, place, dest, bytes);
    fetch_await(&fetch);
}

void weft_far_get(void *dest, const void *source, size_t bytes, int pe, bool nbi) {
    if (bytes > 0)
        data_get(weft_far_place_of(source, bytes, pe), dest, bytes, pe, nbi);
}

/* --- Strided --------------------------------------------------------------------------------- */

/* The blocks of one access, on both sides. */
struct strided {
    struct weft_far_place place; /* of the first block */
    struct weft_far_blocks there;
    char *here;
    ptrdiff_t here_step;
};

/* A strided access as the call gives it, seen from this PE. */
struct access {
    const struct weft_strided *shape;
    const void *there, *here;
    ptrdiff_t there_stride, here_stride;
    int pe;
    uint32_t nwindows; /* that may be named */
};

/* Finds the blocks of an access. Returns 0, -ERANGE, or -EFAULT if not all blocks there are
 * symmetric. Blocks without gaps on both sides become one block. */
static int strided_find(struct strided *all, const struct access *access) {
    const struct weft_strided *shape = access->shape;
    struct weft_strided_side theirs, ours;
    if (access->pe < 0 || access->pe >= weft_job.npes)
        return -ERANGE;
    if (!weft_strided_lay_out(shape, access->there_stride, &theirs) ||
        !weft_strided_lay_out(shape, access->here_stride, &ours))
        return -EFAULT;
    const void *lowest = (const void *)((uintptr_t)access->there + (uintptr_t)theirs.low);
    if (!place_name(lowest, theirs.span, access->pe, access->nwindows, &all->place))
        return -EFAULT;
    all->place.offset -= (uint64_t)theirs.low;
    all->there =
        (struct weft_far_blocks){theirs.step, shape->bsize * shape->elem_bytes, shape->nblocks};
    all->here = (char *)access->here;
    all->here_step = ours.step;
    if (theirs.step == ours.step && (size_t)ours.step == all->there.bytes)
        all->there = (struct weft_far_blocks){0, theirs.span, 1};
    return 0;
}

/* Calls `each` for runs of blocks that fit into one message. */
static void strided_cut(struct strided all, void *context,
                        void (*each)(const struct strided *run, void *context)) {
    size_t most = WEFT_FAR_PACKED_BYTES / all.there.bytes, left = all.there.count;
    if (most == 0)
        most = 1; /* a large block is sent by itself, in pieces */
    while (left > 0) {
        all.there.count = left < most ? left : most;
        each(&all, context);
        all.place.offset += all.there.count * (uint64_t)all.there.step;
        all.here += (ptrdiff_t)all.there.count * all.here_step;
        left -= all.there.count;
    }
}

static void packed_send(const struct strided *run, int pe) {
    const struct weft_far_blocks *blocks = &run->there;
    struct weft_far_header header = {WEFT_FAR_PUT_BLOCKS, 0, run->place};
    char packed[WEFT_FAR_PACKED_BYTES];
    for (size_t i = 0; i < blocks->count; i++)
        memcpy(packed + i * blocks->bytes, run->here + (ptrdiff_t)i * run->here_step,
               blocks->bytes);
    put_send(weft_far_receiver(&run->place, pe),
             &(struct weft_message){.payload = {iovec_of(&header, sizeof header),
                                                iovec_of(blocks, sizeof *blocks),
                                                iovec_of(packed, blocks->bytes * blocks->count)},
                                    .nparts = 3,
                                    .may_wait = true});
}

static void run_put(const struct strided *run, void *pe) {
    if (run->there.count == 1)
        data_send(run->place, run->here, run->there.bytes, *(int *)pe);
    else
        packed_send(run, *(int *)pe);
}

static void run_get(const struct strided *run, void *fetch) {
    if (run->there.count == 1)
        data_fetch(fetch, run->place, run->here, run->there.bytes);
    else
        blocks_fetch(fetch, &run->place, &run->there, run->here, run->here_step);
}

/* Returns 0 or the errors of struct weft_operations; an empty access returns 0. */
static int strided_get(void *dest, const void *source, const struct weft_strided *shape,
                       struct fetch *fetch, uint32_t nwindows) {
    struct access access = {shape,     source,  dest, shape->source_stride, shape->dest_stride,
                            fetch->pe, nwindows};
    struct strided all;
    if (weft_strided_is_empty(shape))
        return 0;
    int error = strided_find(&all, &access);
    if (error)
        return error;
    strided_cut(all, fetch, run_get);
    fetch_await(fetch);
    return 0;
}

void weft_far_get_strided(void *dest, const void *source, const struct weft_strided *shape, int pe,
                          bool nbi) {
    struct fetch fetch = {.pe = pe, .nbi = nbi};
    if (strided_get(dest, source, shape, &fetch, WEFT_FAR_WINDOWS) != 0)
        weft_job_panic("internal error: the blocks from %p on PE %d are not symmetric", source, pe);
}

/* --- Atomics --------------------------------------------------------------------------------- */

/* Sends the atomic and, if amo->fetch is not NULL, waits for the old value. */
static void amo_send(const struct weft_far_place *word, const struct weft_amo *amo, bool wake,
                     int pe) {
    uint32_t detail = (uint32_t)amo->op | (uint32_t)amo->bytes << WEFT_FAR_AMO_BYTES_SHIFT |
                      (amo->fetch ? WEFT_FAR_AMO_FETCHES : 0) | (wake ? WEFT_FAR_AMO_WAKES : 0);
    struct {
        struct weft_far_header header;
        struct weft_far_amo_operands amo;
    } body = {{WEFT_FAR_AMO, detail, *word}, {amo->value, amo->cond}};
    if (!amo->fetch) {
        weft_message_send(
            weft_far_receiver(word, pe),
            &(struct weft_message){.payload = {iovec_of(&body, sizeof body)}, .nparts = 1});
        return;
    }
    struct fetch fetch = {.pe = pe};
    fetch_send(&fetch, weft_far_receiver(word, pe), &body, sizeof body,
               &(struct weft_message_request){
                   .dest = amo->fetch, .block_bytes = amo->bytes, .nblocks = 1});
    fetch_await(&fetch);
}

void weft_far_amo(const struct weft_amo *amo, bool wake, int pe) {
    struct weft_far_place place = weft_far_place_of(amo->dest, amo->bytes, pe);
    amo_send(&place, amo, wake, pe);
}

/* --- The operations -------------------------------------------------------------------------- */

static int operation_put(void *dest, const void *source, size_t bytes, int pe, bool nbi) {
    struct weft_far_place place;
    (void)nbi; /* a message copies its data */
    if (bytes == 0)
        return 0;
    int error = place_resolve(dest, bytes, pe, &place);
    if (error == 0)
        data_send(place, source, bytes, pe);
    return error;
}

static int operation_get(void *dest, const void *source, size_t bytes, int pe, bool nbi) {
    struct weft_far_place place;
    if (bytes == 0)
        return 0;
    int error = place_resolve(source, bytes, pe, &place);
    if (error == 0)
        data_get(place, dest, bytes, pe, nbi);
    return error;
}

static int operation_put_strided(void *dest, const void *source, const struct weft_strided *shape,
                                 int pe) {
    struct access access = {
        shape, dest, source, shape->dest_stride, shape->source_stride, pe, WEFT_FAR_SCRATCH};
    struct strided all;
    if (weft_strided_is_empty(shape))
        return 0;
    int error = strided_find(&all, &access);
    if (error == 0)
        strided_cut(all, &pe, run_put);
    return error;
}

static int operation_get_strided(void *dest, const void *source, const struct weft_strided *shape,
                                 int pe) {
    struct fetch fetch = {.pe = pe};
    return strided_get(dest, source, shape, &fetch, WEFT_FAR_SCRATCH);
}

static int operation_put_signal(const struct weft_put_signal *put, int pe) {
    struct announced announced = {.source = put->source,
                                  .bytes = put->bytes,
                                  .op = put->op == WEFT_SIGNAL_SET ? WEFT_FAR_SIGNAL_SET
                                                                   : WEFT_FAR_SIGNAL_ADD,
                                  .word.value = put->signal};
    int error = place_resolve(put->sig_addr, sizeof *put->sig_addr, pe, &announced.word.place);
    if (error == 0 && put->bytes)
        error = place_resolve(put->dest, put->bytes, pe, &announced.data);
    if (error == 0)
        announced_send(announced, pe);
    return error;
}

static int operation_signal(uint64_t *sig_addr, uint64_t signal, enum weft_signal_op op, int pe) {
    struct weft_put_signal put = {.sig_addr = sig_addr, .signal = signal, .op = op};
    return operation_put_signal(&put, pe);
}

static int operation_amo(const struct weft_amo *amo, int pe) {
    struct weft_far_place place;
    int error = place_resolve(amo->dest, amo->bytes, pe, &place);
    if (error == 0)
        amo_send(&place, amo, false, pe);
    return error;
}

const struct weft_operations weft_far_operations = {.put = operation_put,
                                                    .get = operation_get,
                                                    .put_strided = operation_put_strided,
                                                    .get_strided = operation_get_strided,
                                                    .put_signal = operation_put_signal,
                                                    .signal = operation_signal,
                                                    .amo = operation_amo,
                                                    .quiet = weft_far_quiet};
