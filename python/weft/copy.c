/* SPDX-License-Identifier: BSD-3-Clause */
/* Walks over both sides together, in runs of elements that are contiguous on both. */
#include "copy.h"
#include <stdlib.h>
#include <string.h>
#include "element.h"
#include "error.h"
#include "rma.h"
#include "session.h"

enum { CHUNK_BYTES = 1 << 20 }; /* of a repeated element on the way to a GPU */

struct copy_run {
    const struct pyweft_buffer *buffer;
    enum pyweft_copy_direction direction;
    bool repeat; /* `here` is a single element, for the whole run */
    size_t nelems, itemsize;
};

/* --- Memory of the host ---------------------------------------------------------------------- */

static void copy_bytes(char *to, const char *from, size_t bytes) {
    if (bytes <= PYWEFT_SHORT_BYTES) {
        memmove(to, from, bytes);
        return;
    }
    Py_BEGIN_ALLOW_THREADS;
    memmove(to, from, bytes);
    Py_END_ALLOW_THREADS;
}

/* Doubles the part that is already written, in pieces that stay in the cache. */
static void repeat_element(char *to, const char *element, size_t itemsize, size_t nelems) {
    size_t bytes = nelems * itemsize, done = itemsize;
    pyweft_element_copy(to, element, itemsize);
    while (done < bytes) {
        size_t piece = done < PYWEFT_SHORT_BYTES ? done : PYWEFT_SHORT_BYTES;
        piece = piece < bytes - done ? piece : bytes - done;
        memcpy(to + done, to, piece);
        done += piece;
    }
}

static void copy_by_processor(const struct copy_run *run, char *there, char *here) {
    char *to = run->direction == PYWEFT_TO_BUFFER ? there : here;
    char *from = run->direction == PYWEFT_TO_BUFFER ? here : there;
    if (run->nelems == 1)
        pyweft_element_copy(to, from, run->itemsize);
    else if (!run->repeat)
        copy_bytes(to, from, run->nelems * run->itemsize);
    else if (run->nelems * run->itemsize <= PYWEFT_SHORT_BYTES)
        repeat_element(to, from, run->itemsize, run->nelems);
    else {
        Py_BEGIN_ALLOW_THREADS;
        repeat_element(to, from, run->itemsize, run->nelems);
        Py_END_ALLOW_THREADS;
    }
}

/* --- Memory of GPUs -------------------------------------------------------------------------- */

static bool check_gpu(const struct pyweft_buffer *buffer) {
    if (!buffer->memory->symmetric) {
        PyErr_SetString(
            PyExc_NotImplementedError,
            "Buffer: this is GPU memory that is not symmetric, and the host cannot read or "
            "write it: put it to a Buffer of weft.empty, or use torch.from_dlpack");
        return false;
    }
    return pyweft_session_check("Buffer");
}

static bool put_unlocked(const struct pyweft_buffer *buffer, char *there, const char *source,
                         size_t bytes) {
    int error;
    PYWEFT_WITHOUT_GIL(
        error, (shmem_putmem(there - buffer->shift, source, bytes, buffer->pe), shmem_quiet(), 0));
    if (error)
        pyweft_error_raise("Buffer", error);
    return error == 0;
}

static bool get_unlocked(const struct pyweft_buffer *buffer, char *dest, const char *there,
                         size_t bytes) {
    int error;
    PYWEFT_WITHOUT_GIL(error, (shmem_getmem(dest, there - buffer->shift, bytes, buffer->pe), 0));
    if (error)
        pyweft_error_raise("Buffer", error);
    return error == 0;
}

static bool repeat_to_gpu(const struct copy_run *run, char *there, const char *element) {
    size_t nelems = CHUNK_BYTES / run->itemsize;
    nelems = nelems < run->nelems ? nelems : run->nelems;
    char *chunk = malloc(nelems * run->itemsize);
    bool right = chunk != NULL;
    if (!chunk)
        PyErr_NoMemory();
    else
        repeat_element(chunk, element, run->itemsize, nelems);
    for (size_t done = 0; right && done < run->nelems; done += nelems) {
        size_t left = run->nelems - done < nelems ? run->nelems - done : nelems;
        right =
            put_unlocked(run->buffer, there + done * run->itemsize, chunk, left * run->itemsize);
    }
    free(chunk);
    return right;
}

static bool copy_by_library(const struct copy_run *run, char *there, char *here) {
    size_t bytes = run->nelems * run->itemsize;
    if (run->direction == PYWEFT_FROM_BUFFER)
        return get_unlocked(run->buffer, here, there, bytes);
    return run->repeat ? repeat_to_gpu(run, there, here)
                       : put_unlocked(run->buffer, there, here, bytes);
}

/* --- Both kinds of memory --------------------------------------------------------------------- */

/* Returns the dimension from which on the elements of both sides form one run. A run may repeat one
 * element of `here`. */
static int find_run(const struct pyweft_part *there, const struct pyweft_part *here,
                    struct copy_run *run) {
    int64_t next = 1;
    int dim = there->ndim;
    for (; dim > 0; dim--) {
        int64_t shape = there->shape[dim - 1], stride = here->strides[dim - 1];
        bool repeats = stride == 0, follows = stride == next;
        if (shape != 1 && (there->strides[dim - 1] != next ||
                           (next > 1 && repeats != run->repeat) || (!repeats && !follows)))
            break;
        if (shape != 1)
            run->repeat = repeats;
        next *= shape;
    }
    run->nelems = (size_t)next;
    return dim;
}

static bool go(const struct copy_run *run, const struct pyweft_part *there,
               const struct pyweft_part *here, int ndim, int dim, char *there_at, char *here_at) {
    if (dim == ndim && run->buffer->memory->space == SHMEMX_SPACE_DEVICE)
        return copy_by_library(run, there_at, here_at);
    if (dim == ndim) {
        copy_by_processor(run, there_at, here_at);
        return true;
    }
    bool right = true;
    for (int64_t i = 0; right && i < there->shape[dim]; i++) {
        right = go(run, there, here, ndim, dim + 1, there_at, here_at);
        there_at += there->strides[dim] * (int64_t)run->itemsize;
        here_at += here->strides[dim] * (int64_t)run->itemsize;
    }
    return right;
}

bool pyweft_copy(const struct pyweft_buffer *buffer, const struct pyweft_part *there,
                 const struct pyweft_part *here, enum pyweft_copy_direction direction) {
    struct copy_run run = {.buffer = buffer, .direction = direction, .itemsize = there->itemsize};
    if (buffer->memory->space == SHMEMX_SPACE_DEVICE && !check_gpu(buffer))
        return false;
    if (there->nelems == 0)
        return true;
    int ndim = find_run(there, here, &run);
    pyweft_memory_view(buffer->memory);
    bool right = go(&run, there, here, ndim, 0, there->data, here->data);
    pyweft_memory_unview(buffer->memory);
    return right;
}

bool pyweft_copy_from_gpu(const struct pyweft_buffer *buffer, const struct pyweft_part *there,
                          const char *source) {
    if (!check_gpu(buffer))
        return false;
    pyweft_memory_view(buffer->memory);
    bool right = put_unlocked(buffer, there->data, source, there->nelems * there->itemsize);
    pyweft_memory_unview(buffer->memory);
    return right;
}
