/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies and fills. As in the real driver, pageable host memory is read before the call returns,
 * and has been written when it returns; all other memory is accessed when the stream gets there. If
 * tests ask for disorder, the halves of a copy are made in either order. */
#include "capture.h"
#include "host.h"
#include "memory.h"
#include "space.h"
#include "stream.h"
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { STAGED_BYTES_MAX = 64 << 10, SPLIT_BYTES_MIN = 64, PAGES_MIN = 16 };

struct copy {
    struct work work;
    uintptr_t to, from;
    enum place to_place, from_place;
    size_t bytes;
    void *staged; /* content of `from` at the call, or NULL */
};

/* --- Running -----------------------------------------------------------------------------------
 */

/* Both sides of the first bytes of a copy. */
static int pieces(uintptr_t to, uintptr_t from, size_t bytes, int gpu, struct piece *into,
                  struct piece *out) {
    pthread_mutex_lock(&driver_lock);
    int error = space_piece(from, bytes, gpu, out);
    if (!error) {
        error = space_piece(to, out->bytes, gpu, into);
        if (error)
            space_piece_drop(out);
    }
    pthread_mutex_unlock(&driver_lock);
    return error;
}

static void drop_pieces(struct piece *into, struct piece *out) {
    pthread_mutex_lock(&driver_lock);
    space_piece_drop(into);
    space_piece_drop(out);
    pthread_mutex_unlock(&driver_lock);
}

static int copy_bytes(uintptr_t to, uintptr_t from, size_t bytes, int gpu) {
    while (bytes) {
        struct piece into, out;
        int error = pieces(to, from, bytes, gpu, &into, &out);
        if (error)
            return error;
        memmove(into.at, out.at, into.bytes);
        drop_pieces(&into, &out);
        to += into.bytes;
        from += into.bytes;
        bytes -= into.bytes;
    }
    return 0;
}

/* Returns whether memory that was registered at the call is no longer registered. */
static bool gone(uintptr_t at, size_t bytes, enum place place) {
    pthread_mutex_lock(&driver_lock);
    bool is = place == PLACE_REGISTERED && !host_holds(at, bytes);
    pthread_mutex_unlock(&driver_lock);
    return is;
}

static int run_copy(struct work *work, struct CUstream_st *stream) {
    struct copy *copy = (struct copy *)work;
    uintptr_t from = copy->staged ? (uintptr_t)copy->staged : copy->from;
    size_t first = copy->bytes;
    int error, gpu = stream->context->gpu;
    if (gone(copy->to, copy->bytes, copy->to_place) ||
        gone(copy->from, copy->bytes, copy->from_place))
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    if (copy->bytes >= SPLIT_BYTES_MIN && stream_dither(stream)) {
        first = copy->bytes / 16 * 8;
        error = copy_bytes(copy->to + first, from + first, copy->bytes - first, gpu);
        if (error)
            return error;
        stream_dither(stream);
    }
    return copy_bytes(copy->to, from, first, gpu);
}

static void drop_copy(struct work *work) {
    free(((struct copy *)work)->staged);
}

/* --- Calling -----------------------------------------------------------------------------------
 */

static struct copy *copy_new(uintptr_t to, uintptr_t from, size_t bytes, enum place to_place,
                             enum place from_place) {
    struct copy *copy = work_new(sizeof *copy, run_copy, drop_copy);
    copy->work.passes_writes = true;
    copy->to = to;
    copy->from = from;
    copy->bytes = bytes;
    copy->to_place = to_place;
    copy->from_place = from_place;
    return copy;
}

static void stage(struct copy *copy) {
    copy->staged = malloc(copy->bytes);
    memcpy(copy->staged, (const void *)copy->from, copy->bytes);
}

static int enqueue(struct CUstream_st *stream, struct copy *copy) {
    bool pageable_source = copy->from_place == PLACE_PAGEABLE;
    bool waits = copy->to_place == PLACE_PAGEABLE;
    if (pageable_source && copy->bytes > STAGED_BYTES_MAX)
        waits = true;
    else if (pageable_source && !waits && !stream->capture)
        stage(copy);
    int error = stream_enqueue(stream, &copy->work);
    return error || !waits || stream->capture ? error : stream_finish(stream, stream->pushed);
}

static int check_and_copy(struct CUstream_st *stream, uintptr_t to, uintptr_t from, size_t bytes) {
    if (!stream)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!bytes)
        return 0;
    enum place to_place, from_place;
    int gpu = stream->context->gpu, error = space_place(to, bytes, gpu, &to_place);
    if (!error)
        error = space_place(from, bytes, gpu, &from_place);
    if (error)
        return error;
    return enqueue(stream, copy_new(to, from, bytes, to_place, from_place));
}

int cuMemcpyAsync(weft_cu_address to, weft_cu_address from, size_t bytes, weft_cu_stream stream) {
    CALL(CONTEXT, check_and_copy(stream_of(stream), to, from, bytes));
}

/* --- Filling -----------------------------------------------------------------------------------
 */

struct fill {
    struct work work;
    uintptr_t at;
    size_t bytes;
    unsigned char value;
};

/* Pages of zeros are given back: most memory that the library clears is never used by a test, and
 * half of a short job's time would pass with touching it. */
static void clear(const struct piece *piece) {
    uintptr_t begin = (uintptr_t)piece->at, end = begin + piece->bytes;
    uintptr_t first = (begin + PAGE - 1) & -(uintptr_t)PAGE, last = end & -(uintptr_t)PAGE;
    if (!piece->memory || first + PAGES_MIN * PAGE > last ||
        madvise((void *)first, last - first, MADV_REMOVE)) {
        memset(piece->at, 0, piece->bytes);
        return;
    }
    memset(piece->at, 0, first - begin);
    memset((void *)last, 0, end - last);
}

static int run_fill(struct work *work, struct CUstream_st *stream) {
    struct fill *fill = (struct fill *)work;
    for (size_t at = 0; at < fill->bytes;) {
        struct piece piece, none = {NULL, 0, NULL};
        pthread_mutex_lock(&driver_lock);
        int error = space_piece(fill->at + at, fill->bytes - at, stream->context->gpu, &piece);
        pthread_mutex_unlock(&driver_lock);
        if (error)
            return error;
        if (fill->value == 0)
            clear(&piece);
        else
            memset(piece.at, fill->value, piece.bytes);
        at += piece.bytes;
        drop_pieces(&piece, &none);
    }
    return 0;
}

static int check_and_fill(struct CUstream_st *stream, uintptr_t at, unsigned char value,
                          size_t bytes) {
    if (!stream)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!bytes)
        return 0;
    if (!space_reaches(at, bytes, stream->context->gpu))
        return CUDA_ERROR_INVALID_VALUE;
    struct fill *fill = work_new(sizeof *fill, run_fill, NULL);
    fill->at = at;
    fill->bytes = bytes;
    fill->value = value;
    return stream_enqueue(stream, &fill->work);
}

int cuMemsetD8Async(weft_cu_address at, unsigned char value, size_t bytes, weft_cu_stream stream) {
    CALL(CONTEXT, check_and_fill(stream_of(stream), at, value, bytes));
}

static int fill_rows(struct CUstream_st *stream, uintptr_t at, size_t step, unsigned char value,
                     size_t bytes, size_t rows) {
    int error = rows > 1 && step < bytes ? CUDA_ERROR_INVALID_VALUE : 0;
    for (size_t row = 0; row < rows && !error; row++)
        error = check_and_fill(stream, at + row * step, value, bytes);
    return error;
}

int cuMemsetD2D8Async(weft_cu_address at, size_t step, unsigned char value, size_t bytes,
                      size_t rows, weft_cu_stream stream) {
    CALL(CONTEXT, fill_rows(stream_of(stream), at, step, value, bytes, rows));
}
