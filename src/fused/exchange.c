/* SPDX-License-Identifier: BSD-3-Clause */
#include "fused/exchange.h"
#include "base/size.h"
#include "fused/fused.h"
#include "fused/product.h"

bool weft_fused_reaches(const weft_matrix *m) {
    size_t bytes = weft_matrix_span(m);
    return bytes == 0 || weft_stream_locate("", m->data, bytes).reached;
}

int weft_fused_open(struct weft_fused *f, const struct weft_on_stream *on,
                    const struct weft_fused_sizes *sizes) {
    enum { ALIGNMENT = 256 };
    void *room = NULL;
    size_t own = weft_round_up(sizes->own, ALIGNMENT);
    bool apart = weft_on_stream_is_apart(on);
    *f = (struct weft_fused){.on = on};
    int error =
        weft_device_channels_copy(&room, on->team, sizes->room + own + (apart ? sizes->half : 0));
    f->room = room;
    f->own = f->room + sizes->room;
    if (apart)
        f->half.all.first = f->own + own;
    else if (error == 0 && sizes->half > 0)
        error = weft_device_channels_half(&f->half, on->team, sizes->half, on->stream);
    return error;
}

char *weft_fused_at(const struct weft_fused *f, int member, size_t at) {
    return weft_array_at(&f->half.all, member) + at;
}

int weft_fused_member(const struct weft_fused *f, int distance) {
    return weft_team_member_after(f->on->team, distance);
}

/* The meeting is on the program's stream: beside the product its kernel would find no free
 * multiprocessor, and the pushes would start only when the product ends. */
int weft_fused_begin_writes(struct weft_fused *f) {
    bool meets = f->half.meets;
    f->half.meets = false;
    return meets ? weft_stream_sync(f->on->team, f->on->stream) : 0;
}

int weft_fused_fork(struct weft_fused *f) {
    int error = weft_fused_begin_writes(f);
    return error ? error : weft_gpu_lane_fork(weft_device.gpu, f->on->stream, &f->beside);
}

int weft_fused_push(const struct weft_fused *f, int member, size_t at, const void *from,
                    size_t bytes) {
    return weft_gpu_copy(weft_fused_at(f, member, at), from, bytes, WEFT_BESIDE, f->beside);
}

int weft_fused_meet(const struct weft_fused *f) {
    return weft_stream_sync(f->on->team, f->beside);
}

int weft_fused_join(const struct weft_fused *f, int error) {
    int joined = f->beside ? weft_gpu_lane_join(weft_device.gpu, f->on->stream) : 0;
    return error ? error : joined;
}

int weft_fused_copy_rows(struct weft_fused_rows to, struct weft_fused_rows from, size_t bytes,
                         size_t nrows, weft_cu_stream stream) {
    bool whole = nrows <= 1 || (to.step == bytes && from.step == bytes);
    int error = 0;
    if (whole)
        return weft_gpu_copy(to.at, from.at, bytes * nrows, WEFT_FROM_HOST, stream);
    if (weft_device_reaches(from.at) && weft_device_reaches(to.at))
        return weft_gpu_copy_blocks((struct weft_array){to.at, (ptrdiff_t)to.step, NULL},
                                    (struct weft_array){from.at, (ptrdiff_t)from.step, NULL}, bytes,
                                    nrows, stream);
    for (size_t row = 0; row < nrows && error == 0; row++)
        error = weft_gpu_copy(to.at + row * to.step, from.at + row * from.step, bytes,
                              WEFT_FROM_HOST, stream);
    return error;
}
