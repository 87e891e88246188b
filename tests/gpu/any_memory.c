/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: small collectives on streams accept any memory of this member's GPU as dest and
 * source: with memory that CUDA allocated on all members, on some of them, and for one of the two
 * arrays; the driver is asked once about each. A larger call is an error on all members that names
 * the argument that is not symmetric, and the next call works. PEs: 1 2 3 4 */
#include <errno.h>
#include "on_stream.h"
#include "own_memory.h"
#include "device/device.h"
#include "coll/stream_choice.h"

enum { ROOM = 2 << 20, LARGE = 1 << 18, MEMBERS = 4 };

static char *own_dest, *own_source, *heap_dest, *heap_source; /* ROOM bytes */
static int me, npes;

/* Which arrays are CUDA's own, by the number of the call; members differ. */
static char *dest_of(int call) {
    return call % 4 == 1 || (call % 4 == 3 && me % 2) ? heap_dest : own_dest;
}

static char *source_of(int call) {
    return call % 4 == 2 || (call % 4 == 3 && me % 2 == 0) ? heap_source : own_source;
}

/* Returns element e of member i's block for member k. */
static float number(int call, int i, int k, size_t e) {
    return (float)(call * 7 + i * 5 + k * 3 + (int)(e % 50));
}

static void fill(char *source, int call, size_t nelems, int blocks) {
    static float numbers[LARGE * MEMBERS / sizeof(float)];
    for (int k = 0; k < blocks; k++)
        for (size_t e = 0; e < nelems; e++)
            numbers[(size_t)k * nelems + e] = number(call, me, k, e);
    gpu_write(source, numbers, nelems * (size_t)blocks * sizeof *numbers);
}

/* Returns element e of block k of the operation's result. */
static float expected(enum weft_stream_operation operation, int call, int k, size_t e) {
    float sum = 0;
    int to = operation == WEFT_STREAM_REDUCE_SCATTER ? me : 0;
    for (int i = 0; i < npes; i++)
        sum += number(call, i, to, e);
    switch (operation) {
    case WEFT_STREAM_ALL_GATHER:
        return number(call, k, 0, e);
    case WEFT_STREAM_ALL_TO_ALL:
        return number(call, k, me, e);
    case WEFT_STREAM_BROADCAST:
        return number(call, npes - 1, 0, e);
    default:
        return sum;
    }
}

static bool has_blocks(enum weft_stream_operation operation, bool of_source) {
    return operation == WEFT_STREAM_ALL_TO_ALL ||
           operation == (of_source ? WEFT_STREAM_REDUCE_SCATTER : WEFT_STREAM_ALL_GATHER);
}

static int enqueue(enum weft_stream_operation operation, void *dest, const void *source,
                   size_t nelems) {
    weft_stream on = (weft_stream)gpu_stream;
    shmem_team_t all = SHMEM_TEAM_WORLD;
    switch (operation) {
    case WEFT_STREAM_ALL_GATHER:
        return weft_all_gather(all, dest, source, nelems, WEFT_F32, on);
    case WEFT_STREAM_ALL_TO_ALL:
        return weft_all_to_all(all, dest, source, nelems, WEFT_F32, on);
    case WEFT_STREAM_BROADCAST:
        return weft_broadcast(all, dest, source, nelems, WEFT_F32, npes - 1, on);
    case WEFT_STREAM_REDUCE_SCATTER:
        return weft_reduce_scatter(all, dest, source, nelems, WEFT_F32, WEFT_SUM, on);
    default:
        return weft_all_reduce(all, dest, source, nelems, WEFT_F32, WEFT_SUM, on);
    }
}

static void run_one(enum weft_stream_operation operation, int call, size_t nelems) {
    static float wanted[LARGE * MEMBERS / sizeof(float)];
    int blocks = has_blocks(operation, false) ? npes : 1;
    char *dest = dest_of(call), *source = source_of(call);
    size_t bytes = nelems * (size_t)blocks * sizeof *wanted;
    fill(source, call, nelems, has_blocks(operation, true) ? npes : 1);
    gpu_poison(dest, bytes + 64);
    int rc = enqueue(operation, dest, source, nelems);
    EXPECT(rc == 0, "operation %d of %zu: %d: %s", (int)operation, nelems, rc, weft_last_error());
    gpu_drain(gpu_stream);
    for (int k = 0; k < blocks; k++)
        for (size_t e = 0; e < nelems; e++)
            wanted[(size_t)k * nelems + e] = expected(operation, call, k, e);
    gpu_expect(dest, wanted, bytes, "operation %d of %zu, call %d", (int)operation, nelems, call);
    gpu_expect_poison(dest + bytes, 64, "behind the destination");
}

/* Returns the size, in elements, of the largest block that is sent without using the peers' dest.
 */
static size_t most(enum weft_stream_operation operation) {
    size_t bytes = 0;
    for (int way = WEFT_WAY_LL; way <= WEFT_WAY_MARKED_TWICE; way++) {
        size_t here = weft_stream_bytes_max(operation, (enum weft_stream_way)way, npes);
        bytes = here > bytes ? here : bytes;
    }
    return (bytes < LARGE ? bytes : LARGE) / sizeof(float);
}

static void small(void) {
    static const char *const names[WEFT_STREAM_OPERATIONS] = {
        "all-gather of any memory", "all-to-all of any memory", "broadcast of any memory",
        "reduce-scatter of any memory", "all-reduce of any memory"};
    for (int operation = 0; operation < WEFT_STREAM_OPERATIONS; operation++) {
        enum weft_stream_operation of = (enum weft_stream_operation)operation;
        size_t sizes[] = {1, 3000, 1001, 300, most(of)};
        tap_case(names[operation]);
        for (int call = 0; call < (npes == 2 ? 5 : 4); call++)
            run_one(of, call, sizes[call]);
        shmem_barrier_all();
    }
}

/* --- Questions to the driver ------------------------------------------------------------------ */

static int (*pointer_attribute)(void *, int, weft_cu_address);
static int questions;

static int count_question(void *value, int attribute, weft_cu_address address) {
    questions++;
    return pointer_attribute(value, attribute, address);
}

/* Both ends of both arrays; a copy's source is located at its first byte. */
static void located_once(void) {
    tap_case("a call asks the driver once about each array");
    pointer_attribute = weft_cuda.cuPointerGetAttribute;
    weft_cuda.cuPointerGetAttribute = count_question;
    for (int operation = 0; operation < WEFT_STREAM_OPERATIONS; operation++) {
        int reduces = operation >= WEFT_STREAM_REDUCE_SCATTER, questions_max = reduces ? 4 : 3;
        questions = 0;
        int rc = enqueue((enum weft_stream_operation)operation, own_dest, own_source, 100);
        EXPECT(rc == 0 && questions <= questions_max, "operation %d: %d, %d questions", operation,
               rc, questions);
        gpu_drain(gpu_stream);
    }
    weft_cuda.cuPointerGetAttribute = pointer_attribute;
    shmem_barrier_all();
}

/* A single member needs no peer to find its memory. */
static void large(void) {
    tap_case("a larger call is an error of all members, and nothing is lost by it");
    for (int operation = 0; operation < WEFT_STREAM_OPERATIONS && npes > 1; operation++) {
        int rc = enqueue((enum weft_stream_operation)operation, own_dest, heap_source, 4 << 20);
        EXPECT(rc == -EFAULT && strstr(weft_last_error(), "dest is"), "%d: %s", rc,
               weft_last_error());
        run_one((enum weft_stream_operation)operation, operation, 100);
    }
    shmem_barrier_all();
}

int main(void) {
    shmem_init();
    gpu_start();
    me = shmem_my_pe();
    npes = shmem_n_pes();
    heap_dest = allocated(shmemx_malloc(SHMEMX_SPACE_DEVICE, ROOM));
    heap_source = allocated(shmemx_malloc(SHMEMX_SPACE_DEVICE, ROOM));
    own_dest = (char *)own_memory(ROOM);
    own_source = (char *)own_memory(ROOM);
    small();
    located_once();
    large();
    return gpu_finish();
}
