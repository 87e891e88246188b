/* SPDX-License-Identifier: BSD-3-Clause */
/* The list of symmetric memory, and the collective step before an allocation, in which all PEs
 * compare their requests and their lists. That step is one reduction to the minimum. */
#include "memory.h"
#include <stdlib.h>
#include "closing.h"
#include "error.h"
#include "session.h"

static struct pyweft_memory
    *symmetric_list; /* symmetric memory in the order of allocation; protected by the GIL */
static size_t nsymmetric;

/* --- Holders and views ----------------------------------------------------------------------- */

void pyweft_memory_hold(struct pyweft_memory *memory) {
    atomic_fetch_add(&memory->holders, 1);
}

void pyweft_memory_drop(struct pyweft_memory *memory) {
    if (atomic_fetch_sub(&memory->holders, 1) != 1)
        return;
    if (memory->release)
        memory->release(memory->owner);
    free(memory);
}

bool pyweft_memory_hold_live(struct pyweft_memory *memory) {
    int holders = atomic_load(&memory->holders);
    while (holders > 0)
        if (atomic_compare_exchange_weak(&memory->holders, &holders, holders + 1))
            return true;
    return false;
}

void pyweft_memory_view(struct pyweft_memory *memory) {
    pyweft_memory_hold(memory);
    atomic_fetch_add(&memory->views, 1);
}

void pyweft_memory_unview(struct pyweft_memory *memory) {
    atomic_fetch_sub(&memory->views, 1);
    pyweft_memory_drop(memory);
}

bool pyweft_memory_check(const struct pyweft_memory *memory, const char *call, const char *name) {
    if (pyweft_session.forked)
        return pyweft_session_check(call);
    if (memory->symmetric &&
        (memory->session != pyweft_session.number || !pyweft_session.running)) {
        if (pyweft_session_check(call))
            PyErr_Format(PyExc_RuntimeError, "%s: %s is of before finalize()", call, name);
        return false;
    }
    if (atomic_load(&memory->freed))
        PyErr_Format(PyExc_ValueError, "%s: %s was freed", call, name);
    return !atomic_load(&memory->freed);
}

static struct pyweft_memory *make(void *begin, size_t bytes, int gpu) {
    struct pyweft_memory *memory = calloc(1, sizeof *memory);
    if (!memory) {
        PyErr_NoMemory();
        return NULL;
    }
    memory->begin = begin;
    memory->bytes = bytes;
    memory->gpu = gpu;
    memory->space = gpu < 0 ? SHMEMX_SPACE_HOST : SHMEMX_SPACE_DEVICE;
    memory->session = pyweft_session.number;
    atomic_store(&memory->holders, 1);
    return memory;
}

struct pyweft_memory *pyweft_memory_wrap(void *begin, size_t bytes, int gpu,
                                         void (*release)(void *), void *owner) {
    struct pyweft_memory *memory = make(begin, bytes, gpu);
    if (memory) {
        memory->release = release;
        memory->owner = owner;
    }
    return memory;
}

struct pyweft_memory *pyweft_memory_find(const void *p) {
    struct pyweft_memory *memory = symmetric_list;
    while (memory && (uintptr_t)p - (uintptr_t)memory->begin >= memory->bytes)
        memory = memory->next;
    return memory;
}

void pyweft_memory_place(const void *p, int64_t *number, int64_t *offset) {
    int64_t place = 0;
    *number = *offset = -1;
    for (const struct pyweft_memory *memory = symmetric_list; memory;
         memory = memory->next, place++)
        if ((uintptr_t)p - (uintptr_t)memory->begin < memory->bytes) {
            *number = place;
            *offset = (int64_t)((uintptr_t)p - (uintptr_t)memory->begin);
            return;
        }
}

/* --- Comparing PEs ---------------------------------------------------------------------------- */

/* Replaces numbers[i] by the minimum of all PEs' numbers[i]. */
static int reduce_to_minima(double *numbers, size_t count) {
    int error;
    PYWEFT_WITHOUT_GIL(error, weft_all_reduce(SHMEM_TEAM_WORLD, numbers, numbers, count, WEFT_F64,
                                              WEFT_MIN, WEFT_STREAM_HOST));
    return error;
}

static bool is_let_go(const struct pyweft_memory *memory) {
    bool holds = atomic_load(&memory->holders) > 1;
    bool refuses = atomic_load(&memory->freed) && !atomic_load(&memory->exposed);
    return atomic_load(&memory->views) == 0 && (refuses || !holds);
}

static int free_unlocked(void *begin) {
    int error;
    PYWEFT_WITHOUT_GIL(error, (shmem_free(begin), 0));
    return error;
}

/* Frees the memory that every PE has let go of: gone[i] is 1 for it. */
static void give_back(const double *gone) {
    struct pyweft_memory **link = &symmetric_list, *memory;
    for (size_t i = 0; (memory = *link); i++) {
        if (gone[i] < 1) {
            link = &memory->next;
            continue;
        }
        *link = memory->next;
        nsymmetric--;
        memory->gone = true;
        free_unlocked(memory->begin);
        pyweft_memory_drop(memory);
    }
}

/* The requests that PEs compare before they allocate. Each number comes with its negative, so that
 * the minima show whether all PEs ask for the same. The numbers are followed by one for each piece
 * of memory: whether this PE has let go of it. */
enum { ASKED_BYTES, ASKED_SPACE, ASKED = 4 };

static bool compare(const char *call, const double *asked, const double *minima) {
    if (minima[ASKED_BYTES] < 0) {
        if (asked[ASKED_BYTES] >= 0)
            PyErr_Format(PyExc_ValueError,
                         "%s: another PE cannot take part: see the error of that PE", call);
        return false;
    }
    if (minima[ASKED_BYTES] == -minima[ASKED_BYTES + 2] &&
        minima[ASKED_SPACE] == -minima[ASKED_SPACE + 2])
        return true;
    PyErr_Format(
        PyExc_ValueError,
        "%s: asks for %zu bytes, but PEs ask for %zu to %zu, or in different spaces: all PEs "
        "must ask for the same",
        call, (size_t)asked[ASKED_BYTES], (size_t)minima[ASKED_BYTES],
        (size_t)-minima[ASKED_BYTES + 2]);
    return false;
}

/* Collective. Returns whether all PEs ask for the same, and frees the memory that all have let go
 * of. */
static bool meet(const char *call, shmemx_space_t space, size_t bytes) {
    double size = bytes == SIZE_MAX ? -1 : (double)bytes;
    const double asked[ASKED] = {size, (double)space, -size, -(double)space};
    double *numbers = malloc((ASKED + nsymmetric) * sizeof *numbers), *to = numbers;
    if (!numbers) {
        PyErr_NoMemory();
        return false;
    }
    for (int i = 0; i < ASKED; i++)
        *to++ = asked[i];
    for (const struct pyweft_memory *memory = symmetric_list; memory; memory = memory->next)
        *to++ = is_let_go(memory);
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    int error = reduce_to_minima(numbers, ASKED + nsymmetric);
    PyErr_Restore(type, value, traceback);
    bool same = false;
    if (error && !PyErr_Occurred())
        pyweft_error_raise(call, error);
    else if (!error)
        same = compare(call, asked, numbers);
    if (!error)
        give_back(numbers + ASKED);
    free(numbers);
    return same;
}

static void enter(struct pyweft_memory *memory) {
    struct pyweft_memory **link = &symmetric_list;
    while (*link)
        link = &(*link)->next;
    *link = memory;
    nsymmetric++;
}

/* Allocates the struct before the collective step, because this is what may fail on a single PE. */
static struct pyweft_memory *prepare(shmemx_space_t space, size_t bytes) {
    int gpu = space == SHMEMX_SPACE_DEVICE ? pyweft_session.device : -1;
    struct pyweft_memory *memory = bytes == SIZE_MAX ? NULL : make(NULL, bytes, gpu);
    if (memory)
        memory->symmetric = true;
    return memory;
}

static int make_symmetric(shmemx_space_t space, size_t bytes, bool zero, void **begin) {
    int error = pyweft_closing_prepare();
    if (!error)
        *begin = zero ? shmemx_calloc(space, bytes, 1) : shmemx_malloc(space, bytes);
    return error || *begin ? error : -ENOMEM;
}

static int allocate_unlocked(shmemx_space_t space, size_t bytes, bool zero, void **begin) {
    int error;
    PYWEFT_WITHOUT_GIL(error, make_symmetric(space, bytes, zero, begin));
    return error;
}

struct pyweft_memory *pyweft_memory_allocate(const char *call, shmemx_space_t space, size_t bytes,
                                             bool zero) {
    struct pyweft_memory *memory = prepare(space, bytes);
    void *begin;
    if (!meet(call, space, memory ? bytes : SIZE_MAX)) {
        free(memory);
        return NULL;
    }
    struct pyweft_capture captured;
    pyweft_capture_begin(&captured);
    int error = allocate_unlocked(space, bytes ? bytes : 1, zero, &begin);
    pyweft_capture_end(&captured, error);
    if (error) {
        pyweft_error_raise_captured(call, error, &captured);
        free(memory);
        return NULL;
    }
    memory->begin = begin;
    pyweft_memory_hold(memory);
    enter(memory);
    return memory;
}

bool pyweft_memory_needed(void) {
    for (const struct pyweft_memory *memory = symmetric_list; memory; memory = memory->next)
        if (atomic_load(&memory->views) > 0 ||
            (atomic_load(&memory->exposed) && atomic_load(&memory->holders) > 1))
            return true;
    return false;
}

void pyweft_memory_close(bool keep) {
    if (keep)
        return;
    pyweft_closing_forget();
    while (symmetric_list) {
        struct pyweft_memory *memory = symmetric_list;
        symmetric_list = memory->next;
        pyweft_memory_drop(memory);
    }
    nsymmetric = 0;
}
