/* SPDX-License-Identifier: BSD-3-Clause */
/* Put and get, whole or in blocks: enqueued on the stream of the host's calls, and waited for where
 * the call has to be complete.
 *
 * Small transfers between a GPU and host memory that it does not reach go through the staging
 * buffer; large ones are left to the driver's own. */
#include "device/device.h"

void weft_device_enqueue(void *to, const void *from, size_t bytes, int pe) {
    enum weft_direction direction = weft_device_direction(to, from, pe);
    weft_device_must(weft_gpu_copy(to, from, bytes, direction, weft_device.gpu->stream));
    weft_device_note();
}

static bool host_is_out_of_reach(const void *p) {
    return weft_gpu_memory_kind(p) == WEFT_MEMORY_HOST;
}

/* Both false where there is no staging buffer. */
static bool put_by_staging(void *to, const void *from, size_t bytes, int pe) {
    void *staging = weft_device_staging_take();
    if (!staging)
        return false;
    memcpy(staging, from, bytes);
    weft_device_enqueue(to, staging, bytes, pe);
    weft_device_complete();
    weft_device_staging_give();
    return true;
}

static bool get_by_staging(void *to, const void *from, size_t bytes, int pe) {
    void *staging = weft_device_staging_take();
    if (!staging)
        return false;
    weft_device_enqueue(staging, from, bytes, pe);
    weft_device_complete();
    memcpy(to, staging, bytes);
    weft_device_staging_give();
    return true;
}

static void put_from_here(void *to, const void *from, size_t bytes, int pe, bool nbi) {
    if (bytes <= WEFT_DEVICE_STAGING_BYTES && host_is_out_of_reach(from) &&
        put_by_staging(to, from, bytes, pe))
        return;
    weft_device_enqueue(to, from, bytes, pe);
    if (!nbi)
        weft_device_complete();
}

static void get_to_here(void *to, const void *from, size_t bytes, int pe, bool nbi) {
    if (bytes <= WEFT_DEVICE_STAGING_BYTES && host_is_out_of_reach(to) &&
        get_by_staging(to, from, bytes, pe))
        return;
    weft_device_enqueue(to, from, bytes, pe);
    if (!nbi)
        weft_device_complete();
}

/* Whether the stream could be given the word to write, whose value the host has at `source`. */
static bool word_put(void *to, const void *dest, const void *source, size_t bytes) {
    uint64_t value = 0;
    if ((bytes != sizeof(uint64_t) && bytes != sizeof(uint32_t)) || (uintptr_t)to % bytes != 0 ||
        !weft_device_holds(dest))
        return false;
    memcpy(&value, source, bytes);
    return weft_device_write_word(to, value, bytes);
}

int weft_device_put(void *dest, const void *source, size_t bytes, int pe, bool nbi) {
    void *to = weft_device_near(dest, bytes, pe);
    if (!to || bytes == 0)
        return weft_near_error(bytes, pe);
    struct weft_gpu_scope scope = weft_gpu_enter(weft_device.gpu);
    bool is_word = bytes <= sizeof(uint64_t) && weft_gpu_memory_kind(source) != WEFT_MEMORY_DEVICE;
    if (weft_device_stages(dest, pe))
        weft_stage_copy(&(struct weft_transfer){to, source, bytes, true}, pe);
    else if (!is_word || !word_put(to, dest, source, bytes))
        put_from_here(to, source, bytes, pe, nbi);
    weft_gpu_leave(scope);
    return 0;
}

int weft_device_put_value(void *dest, const void *value, size_t bytes, int pe) {
    void *to = weft_device_near(dest, bytes, pe);
    if (!to)
        return weft_near_error(bytes, pe);
    struct weft_gpu_scope scope = weft_gpu_enter(weft_device.gpu);
    if (weft_device_stages(dest, pe))
        weft_stage_copy(&(struct weft_transfer){to, value, bytes, true}, pe);
    else if (!word_put(to, dest, value, bytes))
        put_from_here(to, value, bytes, pe, false);
    weft_gpu_leave(scope);
    return 0;
}

int weft_device_get(void *dest, const void *source, size_t bytes, int pe, bool nbi) {
    const void *from = weft_device_near(source, bytes, pe);
    if (!from || bytes == 0)
        return weft_near_error(bytes, pe);
    struct weft_gpu_scope scope = weft_gpu_enter(weft_device.gpu);
    if (weft_device_stages(source, pe))
        weft_stage_copy(&(struct weft_transfer){dest, from, bytes, false}, pe);
    else
        get_to_here(dest, from, bytes, pe, nbi);
    weft_gpu_leave(scope);
    return 0;
}

int weft_device_get_value(void *value, const void *source, size_t bytes, int pe) {
    const void *from = weft_device_near(source, bytes, pe);
    if (!from)
        return weft_near_error(bytes, pe);
    struct weft_gpu_scope scope = weft_gpu_enter(weft_device.gpu);
    if (weft_device_stages(source, pe))
        weft_stage_copy(&(struct weft_transfer){value, from, bytes, false}, pe);
    else if (!get_by_staging(value, from, bytes, pe))
        get_to_here(value, from, bytes, pe, false);
    weft_gpu_leave(scope);
    return 0;
}

/* --- Blocks ---------------------------------------------------------------------------------- */

static void blocks_enqueue(const struct weft_strided_copy *c) {
    weft_device_must(
        weft_gpu_copy_blocks((struct weft_array){c->dest, c->dest_step, NULL},
                             (struct weft_array){(char *)c->source, c->source_step, NULL}, c->bytes,
                             c->nblocks, weft_device.gpu->stream));
    weft_device_note();
}

static void blocks_copy_each(const struct weft_strided_copy *c, int pe) {
    for (ptrdiff_t i = 0; i < (ptrdiff_t)c->nblocks; i++)
        weft_device_enqueue(c->dest + i * c->dest_step, c->source + i * c->source_step, c->bytes,
                            pe);
    weft_device_complete();
}

/* With one side packed in the staging buffer, which has room for it. */
static void blocks_copy_staged(const struct weft_strided_copy *c, char *staging, bool pack) {
    struct weft_strided_copy in = *c, out = *c;
    in.dest = staging, in.dest_step = (ptrdiff_t)c->bytes;
    out.source = staging, out.source_step = (ptrdiff_t)c->bytes;
    if (pack)
        weft_rma_copy_strided(&in);
    blocks_enqueue(pack ? &out : &in);
    weft_device_complete();
    if (!pack)
        weft_rma_copy_strided(&out);
}

static void blocks_copy_packed(const struct weft_strided_copy *c, bool pack, int pe) {
    size_t most = WEFT_DEVICE_STAGING_BYTES / c->bytes;
    char *staging = most ? weft_device_staging_take() : NULL;
    if (!staging) {
        blocks_copy_each(c, pe);
        return;
    }
    struct weft_strided_copy part = *c;
    for (size_t left = c->nblocks; left > 0; left -= part.nblocks) {
        part.nblocks = left < most ? left : most;
        blocks_copy_staged(&part, staging, pack);
        part.dest += (ptrdiff_t)part.nblocks * c->dest_step;
        part.source += (ptrdiff_t)part.nblocks * c->source_step;
    }
    weft_device_staging_give();
}

static void blocks_copy(const struct weft_strided_copy *c, int pe) {
    bool pack = host_is_out_of_reach(c->source), unpack = host_is_out_of_reach(c->dest);
    if (pack || unpack) {
        blocks_copy_packed(c, pack, pe);
    } else {
        blocks_enqueue(c);
        weft_device_complete();
    }
}

/* Where `pe` keeps the blocks whose first is at `first`; NULL and *error where it does not. */
static void *blocks_near(const void *first, const struct weft_strided *shape, ptrdiff_t stride,
                         int pe, int *error) {
    const void *lowest;
    size_t span;
    *error = -EFAULT;
    if (!weft_rma_strided_extent(shape, first, stride, &lowest, &span))
        return NULL;
    char *near = weft_device_near(lowest, span, pe);
    *error = near ? 0 : weft_near_error(span, pe);
    return near ? near + ((const char *)first - (const char *)lowest) : NULL;
}

static struct weft_strided_copy copy_of(void *dest, const void *source,
                                        const struct weft_strided *shape) {
    ptrdiff_t elem = (ptrdiff_t)shape->elem_bytes;
    return (struct weft_strided_copy){dest,
                                      source,
                                      shape->dest_stride * elem,
                                      shape->source_stride * elem,
                                      shape->bsize * shape->elem_bytes,
                                      shape->nblocks};
}

static bool shape_is_empty(const struct weft_strided *shape) {
    return shape->nblocks == 0 || shape->bsize == 0;
}

static bool shape_has_extent(const struct weft_strided *shape, ptrdiff_t stride) {
    const void *lowest;
    size_t bytes;
    return weft_rma_strided_extent(shape, NULL, stride, &lowest, &bytes);
}

int weft_device_put_strided(void *dest, const void *source, const struct weft_strided *shape,
                            int pe) {
    int error;
    if (shape_is_empty(shape))
        return 0;
    void *to = blocks_near(dest, shape, shape->dest_stride, pe, &error);
    if (!to || !shape_has_extent(shape, shape->source_stride))
        return to ? -EFAULT : error;
    struct weft_strided_copy copy = copy_of(to, source, shape);
    struct weft_gpu_scope scope = weft_gpu_enter(weft_device.gpu);
    if (weft_device_stages(dest, pe))
        weft_stage_copy_strided(&copy, true, pe);
    else
        blocks_copy(&copy, pe);
    weft_gpu_leave(scope);
    return 0;
}

int weft_device_get_strided(void *dest, const void *source, const struct weft_strided *shape,
                            int pe) {
    int error;
    if (shape_is_empty(shape))
        return 0;
    const void *from = blocks_near(source, shape, shape->source_stride, pe, &error);
    if (!from || !shape_has_extent(shape, shape->dest_stride))
        return from ? -EFAULT : error;
    struct weft_strided_copy copy = copy_of(dest, from, shape);
    struct weft_gpu_scope scope = weft_gpu_enter(weft_device.gpu);
    if (weft_device_stages(source, pe))
        weft_stage_copy_strided(&copy, false, pe);
    else
        blocks_copy(&copy, pe);
    weft_gpu_leave(scope);
    return 0;
}
