/* SPDX-License-Identifier: BSD-3-Clause */
/* The sender's side of messages: calls are cut into messages here. Data go in pieces of one message
 * each, whose lengths are multiples of 64 bytes, so that no element is cut; the word of a put rides
 * in the last one. A call that fetches sends all its requests before it waits. */
#include <errno.h>
#include <string.h>
#include "far/far.h"
#include "far/message.h"
#include "far/progress.h"
#include "far/protocol.h"

/* --- Places ---------------------------------------------------------------------------------- */

/* Names what [p, p + bytes) is on `pe`; false: it lies in none of the first so many windows here.
 */
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

/* As public calls name it: 0, -ERANGE or -EFAULT. */
static int place_resolve(const void *p, size_t bytes, int pe, struct weft_far_place *place) {
    if (pe < 0 || pe >= weft_job.npes)
        return -ERANGE;
    return place_name(p, bytes, pe, WEFT_FAR_SCRATCH, place) ? 0 : -EFAULT;
}

/* The statics are mapped twice here: where the program has them, which is how messages name them,
 * and in this PE's slot. An address of the slot becomes the program's. */
static const void *own_place_of(const void *p) {
    const struct weft_segment *statics = &weft_windows.statics;
    size_t offset = 0;
    bool again = weft_window_slot_of(&statics->window, p, &offset) == statics->mine;
    return again ? (const char *)statics->window.local + offset : p;
}

struct weft_far_place weft_far_place_of(const void *p, size_t bytes, int pe) {
    struct weft_far_place place = {0};
    if (!place_name(own_place_of(p), bytes, pe, WEFT_FAR_WINDOWS, &place))
        weft_job_panic("the library names [%p, +%zu) on PE %d, which is not symmetric", p, bytes,
                       pe);
    return place;
}

/* --- Putting --------------------------------------------------------------------------------- */

static struct iovec part_of(const void *p, size_t bytes) {
    return (struct iovec){(void *)p, bytes};
}

/* How many bytes of data go into a message that says so much else. */
static size_t piece_bytes(size_t said) {
    return (weft_channel_room() - said) & ~(size_t)63;
}

/* A message that may wait in a bundle: the progress thread sends that if nobody else does. */
static void put_send(int end, const struct weft_message *message) {
    weft_message_send(end, message);
    if (atomic_load(&weft_channels_bundles) != 0)
        weft_far_progress_wake();
}

static void data_send(struct weft_far_place place, const char *source, size_t bytes, int pe) {
    size_t most = piece_bytes(sizeof(struct weft_far_header));
    int end = weft_far_end_of(&place, pe);
    while (bytes > 0) {
        size_t piece = bytes < most ? bytes : most;
        struct weft_far_header text = {WEFT_FAR_PUT, 0, place};
        put_send(end, &(struct weft_message){
                          .text = {part_of(&text, sizeof text), part_of(source, piece)},
                          .nparts = 2,
                          .may_wait = true});
        place.offset += piece;
        source += piece;
        bytes -= piece;
    }
}

/* Data, and a word behind them. */
struct announced {
    struct weft_far_place data;
    const char *source;
    size_t bytes;
    enum weft_far_word_op op;
    struct weft_far_word word;
    bool by_the_way;
};

/* How much of the data goes before the message with the word: what does not fit into that, and all
 * if it is not the same who stores the data there and the word. */
static size_t announced_before(const struct announced *put) {
    size_t most = piece_bytes(sizeof(struct weft_far_header) + sizeof put->word);
    if ((put->data.window == WEFT_FAR_SPACE) != (put->word.place.window == WEFT_FAR_SPACE))
        return put->bytes;
    return put->bytes > most ? (put->bytes - 1) / most * most : 0;
}

/* Two ends keep no order between them. */
static void announced_send(struct announced put, int pe) {
    size_t before = announced_before(&put);
    int end = weft_far_end_of(&put.word.place, pe), data_end = weft_far_end_of(&put.data, pe);
    data_send(put.data, put.source, before, pe);
    if (before > 0 && data_end != end)
        weft_messages_quiet(&data_end, 1, true);
    put.data.offset += before;
    struct weft_far_header text = {WEFT_FAR_PUT_WORD, put.op, put.data};
    weft_message_send(end,
                      &(struct weft_message){
                          .text = {part_of(&text, sizeof text), part_of(&put.word, sizeof put.word),
                                   part_of(put.source + before, put.bytes - before)},
                          .nparts = 3,
                          .by_the_way = put.by_the_way});
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
                            .by_the_way = true};
    if (bytes > 0)
        put.data = weft_far_place_of(dest, bytes, pe);
    announced_send(put, pe);
}

/* --- Fetching -------------------------------------------------------------------------------- */

/* A fetch that is cut into requests; `missing` of them are not answered. */
struct fetch {
    int pe;
    bool nbi;
    _Atomic uint32_t missing;
};

static void fetch_send(struct fetch *fetch, int end, const void *text, size_t bytes,
                       struct weft_message_request *request) {
    if (!fetch->nbi) {
        atomic_fetch_add_explicit(&fetch->missing, 1, memory_order_relaxed);
        request->missing = &fetch->missing;
    }
    weft_message_send(end, &(struct weft_message){
                               .text = {part_of(text, bytes)}, .nparts = 1, .request = request});
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

/* Asks for blocks that fit into one answer. */
static void blocks_fetch(struct fetch *fetch, const struct weft_far_place *place,
                         const struct weft_far_blocks *blocks, char *dest, ptrdiff_t dest_step) {
    struct {
        struct weft_far_header text;
        struct weft_far_blocks blocks;
    } said = {{WEFT_FAR_GET, 0, *place}, *blocks};
    fetch_send(fetch, weft_far_end_of(place, fetch->pe), &said, sizeof said,
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

/* The blocks of one access: there, and here. */
struct strided {
    struct weft_far_place place; /* of the first */
    struct weft_far_blocks there;
    char *here;
    ptrdiff_t here_step;
};

/* Those of a shape that begin at `there` on `pe` and at `here`: 0, -ERANGE, or -EFAULT when not all
 * there are symmetric. Without a gap on either side they are one. */
static int strided_find(struct strided *all, const struct weft_strided *shape, const void *there,
                        ptrdiff_t there_stride, const void *here, ptrdiff_t here_stride, int pe,
                        uint32_t nwindows) {
    struct weft_strided_side theirs, ours;
    if (pe < 0 || pe >= weft_job.npes)
        return -ERANGE;
    if (!weft_strided_lay_out(shape, there_stride, &theirs) ||
        !weft_strided_lay_out(shape, here_stride, &ours))
        return -EFAULT;
    const void *lowest = (const void *)((uintptr_t)there + (uintptr_t)theirs.low);
    if (!place_name(lowest, theirs.span, pe, nwindows, &all->place))
        return -EFAULT;
    all->place.offset -= (uint64_t)theirs.low;
    all->there =
        (struct weft_far_blocks){theirs.step, shape->bsize * shape->elem_bytes, shape->nblocks};
    all->here = (char *)here;
    all->here_step = ours.step;
    if (theirs.step == ours.step && (size_t)ours.step == all->there.bytes)
        all->there = (struct weft_far_blocks){0, theirs.span, 1};
    return 0;
}

/* Does `each` for runs of blocks that fit into one message. */
static void strided_cut(struct strided all, void *context,
                        void (*each)(const struct strided *run, void *context)) {
    size_t most = WEFT_FAR_PACKED_BYTES / all.there.bytes, left = all.there.count;
    if (most == 0)
        most = 1; /* a large block goes by itself, in pieces */
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
    struct weft_far_header text = {WEFT_FAR_PUT_BLOCKS, 0, run->place};
    char packed[WEFT_FAR_PACKED_BYTES];
    for (size_t i = 0; i < blocks->count; i++)
        memcpy(packed + i * blocks->bytes, run->here + (ptrdiff_t)i * run->here_step,
               blocks->bytes);
    put_send(weft_far_end_of(&run->place, pe),
             &(struct weft_message){.text = {part_of(&text, sizeof text),
                                             part_of(blocks, sizeof *blocks),
                                             part_of(packed, blocks->bytes * blocks->count)},
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

/* Both are 0 or the errors of struct weft_operations; an empty access is 0. */
static int strided_put(void *dest, const void *source, const struct weft_strided *shape, int pe,
                       uint32_t nwindows) {
    struct strided all;
    if (weft_strided_is_empty(shape))
        return 0;
    int error = strided_find(&all, shape, dest, shape->dest_stride, source, shape->source_stride,
                             pe, nwindows);
    if (error == 0)
        strided_cut(all, &pe, run_put);
    return error;
}

static int strided_get(void *dest, const void *source, const struct weft_strided *shape, int pe,
                       bool nbi, uint32_t nwindows) {
    struct fetch fetch = {.pe = pe, .nbi = nbi};
    struct strided all;
    if (weft_strided_is_empty(shape))
        return 0;
    int error = strided_find(&all, shape, source, shape->source_stride, dest, shape->dest_stride,
                             pe, nwindows);
    if (error)
        return error;
    strided_cut(all, &fetch, run_get);
    fetch_await(&fetch);
    return 0;
}

void weft_far_get_strided(void *dest, const void *source, const struct weft_strided *shape, int pe,
                          bool nbi) {
    if (strided_get(dest, source, shape, pe, nbi, WEFT_FAR_WINDOWS) != 0)
        weft_job_panic("the library names blocks from %p on PE %d, which are not symmetric", source,
                       pe);
}

/* --- Atomics --------------------------------------------------------------------------------- */

/* `fetch`: where the word before goes; NULL: nobody wants it. */
static void amo_send(const struct weft_far_place *word, const struct weft_amo *amo, bool wake,
                     int pe) {
    uint32_t detail = (uint32_t)amo->op | (uint32_t)amo->bytes << WEFT_FAR_AMO_BYTES_SHIFT |
                      (amo->fetch ? WEFT_FAR_AMO_FETCHES : 0) | (wake ? WEFT_FAR_AMO_WAKES : 0);
    struct {
        struct weft_far_header text;
        struct weft_far_amo_text amo;
    } said = {{WEFT_FAR_AMO, detail, *word}, {amo->value, amo->cond}};
    if (!amo->fetch) {
        weft_message_send(
            weft_far_end_of(word, pe),
            &(struct weft_message){.text = {part_of(&said, sizeof said)}, .nparts = 1});
        return;
    }
    struct fetch fetch = {.pe = pe};
    fetch_send(&fetch, weft_far_end_of(word, pe), &said, sizeof said,
               &(struct weft_message_request){
                   .dest = amo->fetch, .block_bytes = amo->bytes, .nblocks = 1});
    fetch_await(&fetch);
}

uint64_t weft_far_amo(enum weft_amo_op op, size_t bytes, bool fetch, void *word, uint64_t value,
                      uint64_t cond, bool wake, int pe) {
    uint64_t before = 0;
    struct weft_far_place place = weft_far_place_of(word, bytes, pe);
    struct weft_amo amo = {op, bytes, word, value, cond, fetch ? &before : NULL};
    amo_send(&place, &amo, wake, pe);
    return before;
}

/* --- The operations
 * ------------------------------------------------------------------------------- */

static int operation_put(void *dest, const void *source, size_t bytes, int pe, bool nbi) {
    struct weft_far_place place;
    (void)nbi; /* a message is taken at once */
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
    return strided_put(dest, source, shape, pe, WEFT_FAR_SCRATCH);
}

static int operation_get_strided(void *dest, const void *source, const struct weft_strided *shape,
                                 int pe) {
    return strided_get(dest, source, shape, pe, false, WEFT_FAR_SCRATCH);
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
