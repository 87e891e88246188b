/* SPDX-License-Identifier: BSD-3-Clause */
/* Put and get, contiguous or in blocks: enqueued on the stream of host calls, and waited for if the
 * call has to be complete.
 *
 * Small transfers between a GPU and host memory that it cannot access pass through the staging
 * buffer; large transfers are left to the driver's own buffers. */
#include "device/device.h"

/* Copies through the staging buffer. Returns false if there is none. */
static bool copy_by_staging(const struct weft_transfer *t, int pe) {
    void *staging = weft_device_staging_take();
    if (!staging)
        return false;
    if (t->put)
        memcpy(staging, t->from, t->bytes);
    weft_device_enqueue(t->put ? t->to : staging, t->put ? staging : t->from, t->bytes, pe);
    weft_device_complete();
    if (!t->put)
        memcpy(t->to, staging, t->bytes);
    weft_device_staging_give();
    return true;
}

static void copy_by_own_gpu(const struct weft_transfer *t, int pe, bool nbi) {
    const void *local = t->put ? t->from : t->to;
    if (t->bytes <= WEFT_DEVICE_STAGING_BYTES && !weft_device_reaches(local) &&
        copy_by_staging(t, pe))
        return;
    weft_device_enqueue(t->to, t->from, t->bytes, pe);
    if (!nbi)
        weft_device_complete();
}

/* Lets the stream itself write a word whose value the host has. Returns false if that is not
 * possible. */
static bool word_put(const struct weft_transfer *t, const void *dest) {
    uint64_t value = 0;
    if ((t->bytes != sizeof(uint64_t) && t->bytes != sizeof(uint32_t)) ||
        (uintptr_t)t->to % t->bytes != 0 || !weft_device_holds(dest) ||
        weft_device_holds(t->from) || weft_gpu_memory_kind(t->from) == WEFT_MEMORY_DEVICE)
        return false;
    memcpy(&value, t->from, t->bytes);
    return weft_device_write_word(t->to, value, t->bytes);
}

/* Does a put or a get with a near PE; `symmetric` is the symmetric address of pe's side. */
static int transfer(const struct weft_transfer *t, const void *symmetric, int pe, bool nbi) {
    if (!(t->put ? t->to : t->from) || t->bytes == 0)
        return weft_near_error(t->bytes, pe);
    struct weft_gpu_scope scope = weft_gpu_enter(weft_device.gpu);
    if (weft_device_stages(symmetric, pe))
        weft_stage_copy(t, pe);
    else if (!t->put || !word_put(t, symmetric))
        copy_by_own_gpu(t, pe, nbi);
    weft_gpu_leave(scope);
    return 0;
}

int weft_device_put(void *dest, const void *source, size_t bytes, int pe, bool nbi) {
    if (weft_is_far(pe))
        return weft_device_far_put(dest, source, bytes, pe, nbi);
    struct weft_transfer put = {weft_device_near(dest, bytes, pe), source, bytes, true};
    return transfer(&put, dest, pe, nbi);
}

int weft_device_get(void *dest, const void *source, size_t bytes, int pe, bool nbi) {
    if (weft_is_far(pe))
        return weft_device_far_get(dest, source, bytes, pe, nbi);
    struct weft_transfer get = {dest, weft_device_near(source, bytes, pe), bytes, false};
    return transfer(&get, source, pe, nbi);
}

/* --- Blocks ---------------------------------------------------------------------------------- */

/* Copies blocks. If the GPU cannot access the host's side, the processor packs or unpacks it in the
 * staging buffer. */
static void blocks_copy(const struct weft_strided_copy *c, int pe) {
    struct weft_packer gpu = {0}, in = {.processor = !weft_device_reaches(c->source)},
                       out = {.processor = !weft_device_reaches(c->dest)};
    char *staging;
    if (!in.processor && !out.processor) {
        weft_stage_pack(c, gpu);
    } else if (c->bytes <= WEFT_DEVICE_STAGING_BYTES && (staging = weft_device_staging_take())) {
        weft_stage_copy_packed(c, staging, WEFT_DEVICE_STAGING_BYTES, in, out);
        weft_device_staging_give();
    } else {
        for (ptrdiff_t i = 0; i < (ptrdiff_t)c->nblocks; i++)
            weft_device_enqueue(c->dest + i * c->dest_step, c->source + i * c->source_step,
                                c->bytes, pe);
        weft_device_complete();
    }
}

static int strided_transfer(void *dest, const void *source, const struct weft_strided *shape,
                            int pe, bool put) {
    ptrdiff_t elem = (ptrdiff_t)shape->elem_bytes;
    const void *symmetric = put ? dest : source, *lowest, *lowest_here;
    size_t span, span_here;
    if (shape->nblocks == 0 || shape->bsize == 0)
        return 0;
    if (!weft_rma_strided_extent(shape, symmetric, put ? shape->dest_stride : shape->source_stride,
                                 &lowest, &span) ||
        !weft_rma_strided_extent(shape, NULL, put ? shape->source_stride : shape->dest_stride,
                                 &lowest_here, &span_here))
        return -EFAULT;
    char *near = weft_device_near(lowest, span, pe);
    if (!near)
        return weft_near_error(span, pe);
    near += (const char *)symmetric - (const char *)lowest;
    struct weft_strided_copy copy = {put ? near : dest,
                                     put ? source : near,
                                     shape->dest_stride * elem,
                                     shape->source_stride * elem,
                                     shape->bsize * shape->elem_bytes,
                                     shape->nblocks};
    struct weft_gpu_scope scope = weft_gpu_enter(weft_device.gpu);
    if (weft_device_stages(symmetric, pe))
        weft_stage_copy_strided(&copy, put, pe);
    else
        blocks_copy(&copy, pe);
    weft_gpu_leave(scope);
    return 0;
}

int weft_device_put_strided(void *dest, const void *source, const struct weft_strided *shape,
                            int pe) {
    if (weft_is_far(pe))
        return weft_device_far_put_strided(dest, source, shape, pe);
    return strided_transfer(dest, source, shape, pe, true);
}

int weft_device_get_strided(void *dest, const void *source, const struct weft_strided *shape,
                            int pe) {
    if (weft_is_far(pe))
        return weft_device_far_get_strided(dest, source, shape, pe);
    return strided_transfer(dest, source, shape, pe, false);
}
