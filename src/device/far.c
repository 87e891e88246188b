/* SPDX-License-Identifier: BSD-3-Clause */
/* Host calls to far PEs with GPU memory on either side. The far PE's memory is reached by messages
 * (far/rma.c, device/messages.c). Messages neither read nor write this PE's GPU memory, so its data
 * pass through host memory here.
 *
 *   this GPU's memory --its copy engine--> a piece of host memory --messages--> the far PE
 *
 * Local GPU memory may be used again on return; host memory with nbi only after quiet. */
#include <errno.h>
#include "device/device.h"

/* An object that is symmetric here is symmetric there. Returns -EFAULT before any access if it is
 * not. */
static int check_symmetric(const void *p, size_t bytes) {
    return bytes == 0 || weft_device_near(p, bytes, weft_job.pe) ? 0 : -EFAULT;
}

static bool is_device(const void *p) {
    return weft_device_holds(p) || weft_gpu_memory_kind(p) == WEFT_MEMORY_DEVICE;
}

static size_t piece_of(size_t bytes) {
    return bytes < WEFT_STAGE_BYTES ? bytes : WEFT_STAGE_BYTES;
}

/* Copies between GPU memory and the piece; complete on return. */
static void copy_own(void *to, const void *from, size_t bytes) {
    weft_device_enqueue(to, from, bytes, weft_job.pe);
    weft_device_complete();
}

void weft_device_copy(void *to, const void *from, size_t bytes) {
    if (bytes == 0)
        return;
    struct weft_gpu_scope scope = weft_gpu_enter(weft_device.gpu);
    if (is_device(to) || is_device(from))
        copy_own(to, from, bytes);
    else
        memcpy(to, from, bytes);
    weft_gpu_leave(scope);
}

/* --- Contiguous ------------------------------------------------------------------------------- */

/* Puts all but the last `kept` bytes, which are left in the piece. */
static void put_pieces(char *piece, const struct weft_transfer *put, size_t kept, int pe) {
    const char *from = put->from;
    for (size_t at = 0, sent = put->bytes - kept, part; at < put->bytes; at += part) {
        part = at < sent ? piece_of(sent - at) : kept;
        copy_own(piece, from + at, part);
        if (at < sent)
            weft_far_operations.put((char *)put->to + at, piece, part, pe, false);
    }
}

int weft_device_far_put(void *dest, const void *source, size_t bytes, int pe, bool nbi) {
    int error = check_symmetric(dest, bytes);
    if (error || bytes == 0)
        return error;
    struct weft_gpu_scope scope = weft_gpu_enter(weft_device.gpu);
    if (is_device(source)) {
        struct weft_transfer put = {dest, source, bytes, true};
        put_pieces(weft_stage_take(NULL), &put, 0, pe);
        weft_stage_give();
    } else {
        error = weft_far_operations.put(dest, source, bytes, pe, nbi);
    }
    weft_gpu_leave(scope);
    return error;
}

int weft_device_far_get(void *dest, const void *source, size_t bytes, int pe, bool nbi) {
    int error = check_symmetric(source, bytes);
    if (error || bytes == 0)
        return error;
    struct weft_gpu_scope scope = weft_gpu_enter(weft_device.gpu);
    if (is_device(dest)) {
        char *piece = weft_stage_take(NULL);
        for (size_t at = 0, part; at < bytes; at += part) {
            part = piece_of(bytes - at);
            weft_far_operations.get(piece, (const char *)source + at, part, pe, false);
            copy_own((char *)dest + at, piece, part);
        }
        weft_stage_give();
    } else {
        error = weft_far_operations.get(dest, source, bytes, pe, nbi);
    }
    weft_gpu_leave(scope);
    return error;
}

/* Sends the signal with the last bytes. */
int weft_device_far_put_signal(const struct weft_put_signal *put, int pe) {
    int error = check_symmetric(put->sig_addr, sizeof *put->sig_addr);
    error = error ? error : check_symmetric(put->dest, put->bytes);
    if (error)
        return error;
    struct weft_gpu_scope scope = weft_gpu_enter(weft_device.gpu);
    if (put->bytes > 0 && is_device(put->source)) {
        struct weft_put_signal last = *put;
        char *piece = weft_stage_take(NULL);
        last.bytes = piece_of(put->bytes);
        last.dest = (char *)put->dest + (put->bytes - last.bytes);
        last.source = piece;
        struct weft_transfer all = {put->dest, put->source, put->bytes, true};
        put_pieces(piece, &all, last.bytes, pe);
        error = weft_far_operations.put_signal(&last, pe);
        weft_stage_give();
    } else {
        error = weft_far_operations.put_signal(put, pe);
    }
    weft_gpu_leave(scope);
    return error;
}

/* --- Blocks ----------------------------------------------------------------------------------- */

/* An access with one side in this PE's GPU memory, and the other on PE `pe`. */
struct far_blocks {
    char *here, *there;
    size_t block_bytes;
    ptrdiff_t here_step, there_step, there_stride; /* steps in bytes, the stride in elements */
    const struct weft_strided *shape;
    int pe;
    bool put;
};

/* Passes `count` blocks, from number `first` on, through the piece, packed side by side. */
static void pass_packed(const struct far_blocks *b, char *piece, size_t first, size_t count) {
    struct weft_packer gpu = {0};
    char *here = b->here + (ptrdiff_t)first * b->here_step;
    char *there = b->there + (ptrdiff_t)first * b->there_step;
    ptrdiff_t packed = (ptrdiff_t)b->block_bytes, packed_stride = (ptrdiff_t)b->shape->bsize;
    struct weft_strided shape = *b->shape;
    shape.nblocks = count;
    shape.dest_stride = b->put ? b->there_stride : packed_stride;
    shape.source_stride = b->put ? packed_stride : b->there_stride;
    if (b->put) {
        weft_stage_pack(
            &(struct weft_strided_copy){piece, here, packed, b->here_step, b->block_bytes, count},
            gpu);
        weft_far_operations.put_strided(there, piece, &shape, b->pe);
    } else {
        weft_far_operations.get_strided(piece, there, &shape, b->pe);
        weft_stage_pack(
            &(struct weft_strided_copy){here, piece, b->here_step, packed, b->block_bytes, count},
            gpu);
    }
}

/* Blocks that do not fit, or that no kernel could pack, are copied one by one. */
static void pass_blocks(const struct far_blocks *b) {
    bool registered;
    char *piece = weft_stage_take(&registered);
    bool packs = registered && b->block_bytes <= WEFT_STAGE_BYTES;
    size_t most = packs ? WEFT_STAGE_BYTES / b->block_bytes : 1, nblocks = b->shape->nblocks;
    for (size_t done = 0, count; packs && done < nblocks; done += count) {
        count = nblocks - done < most ? nblocks - done : most;
        pass_packed(b, piece, done, count);
    }
    weft_stage_give();
    for (size_t i = 0; !packs && i < nblocks; i++) {
        char *here = b->here + (ptrdiff_t)i * b->here_step;
        char *there = b->there + (ptrdiff_t)i * b->there_step;
        if (b->put)
            weft_device_far_put(there, here, b->block_bytes, b->pe, false);
        else
            weft_device_far_get(here, there, b->block_bytes, b->pe, false);
    }
}

static int far_strided(void *dest, const void *source, const struct weft_strided *shape, int pe,
                       bool put) {
    char *here = put ? (char *)source : dest, *there = put ? dest : (char *)source;
    ptrdiff_t here_stride = put ? shape->source_stride : shape->dest_stride;
    ptrdiff_t there_stride = put ? shape->dest_stride : shape->source_stride;
    struct weft_strided_side theirs, ours;
    if (weft_strided_is_empty(shape))
        return 0;
    if (!weft_strided_lay_out(shape, there_stride, &theirs) ||
        !weft_strided_lay_out(shape, here_stride, &ours))
        return -EFAULT;
    int error = check_symmetric(there + theirs.low, theirs.span);
    if (error)
        return error;
    struct weft_gpu_scope scope = weft_gpu_enter(weft_device.gpu);
    if (is_device(here))
        pass_blocks(&(struct far_blocks){here, there, shape->bsize * shape->elem_bytes, ours.step,
                                         theirs.step, there_stride, shape, pe, put});
    else
        error = put ? weft_far_operations.put_strided(dest, source, shape, pe)
                    : weft_far_operations.get_strided(dest, source, shape, pe);
    weft_gpu_leave(scope);
    return error;
}

int weft_device_far_put_strided(void *dest, const void *source, const struct weft_strided *shape,
                                int pe) {
    return far_strided(dest, source, shape, pe, true);
}

int weft_device_far_get_strided(void *dest, const void *source, const struct weft_strided *shape,
                                int pe) {
    return far_strided(dest, source, shape, pe, false);
}

/* --- Words ------------------------------------------------------------------------------------ */

int weft_device_far_amo(const struct weft_amo *amo, int pe) {
    uint64_t before = 0;
    struct weft_amo fetched = *amo;
    if (amo->fetch)
        fetched.fetch = &before;
    int error = weft_far_operations.amo(&fetched, pe);
    if (error || !amo->fetch)
        return error;
    struct weft_gpu_scope scope = weft_gpu_enter(weft_device.gpu);
    if (is_device(amo->fetch))
        copy_own(amo->fetch, &before, amo->bytes);
    else
        memcpy(amo->fetch, &before, amo->bytes);
    weft_gpu_leave(scope);
    return 0;
}
