/* SPDX-License-Identifier: BSD-3-Clause */
/* The rows of collectives, in C and in C++: operations, sizes, types, places and memories, measured
 * and checked in the same way for each library. A program provides a table of its calls. */
#ifndef BENCH_GPU_COLLECTIVES_H
#define BENCH_GPU_COLLECTIVES_H

#include "rows.h"

enum operation { ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, ALL_TO_ALL, OPERATIONS };

/* Bytes of the array, of a shard, of a PE's whole input, and of a pair. */
static const struct {
    const char *name;
    size_t bytes[8]; /* the last is followed by a 0 */
} operations[OPERATIONS] = {
    {"all-reduce", {1 << 10, 16 << 10, 128 << 10, 1 << 20, 8 << 20, 64 << 20, 256 << 20}},
    {"all-gather", {1 << 10, 16 << 10, 128 << 10, 1 << 20, 8 << 20, 64 << 20, 256 << 20}},
    {"reduce-scatter", {1 << 10, 16 << 10, 128 << 10, 1 << 20, 8 << 20, 64 << 20, 256 << 20}},
    {"all-to-all", {4 << 10, 1 << 20, 16 << 20, 64 << 20}}};

/* A run measures one table, so that no run takes long: BENCH_TABLE names it. */
enum table { CALLS, SMALL, LARGE, ORDINARY, WAYS, TABLES };
static const char *const table_names[TABLES] = {"calls", "small", "large", "ordinary", "ways"};
static const size_t SMALL_MAX = 1 << 20;

/* Returns size number k of an operation; after the last, 0. The table that compares algorithms has
 * many sizes. */
static inline size_t size_number(enum table table, int operation, int k) {
    if (table == WAYS)
        return k <= 16 ? KIB << k : 0;
    return operations[operation].bytes[k];
}

static inline enum table table_asked(void) {
    const char *asked = getenv("BENCH_TABLE");
    for (int table = 0; table < TABLES; table++)
        if (!asked || strcmp(asked, table_names[table]) == 0)
            return (enum table)table;
    give_up("BENCH_TABLE", "is calls, small, large, ordinary or ways");
    return CALLS;
}

/* The arguments of the measured call. Sums are of bf16 or f32; copies have their size, too. */
static struct {
    enum operation operation;
    bool f32, in_place;
    size_t bytes, nelems; /* of the row; from each PE to each PE, or of a result */
    char *dest, *source;
} args;

static inline size_t elem_bytes(void) {
    return args.f32 ? sizeof(float) : sizeof(uint16_t);
}

static inline size_t dest_bytes(enum operation operation, size_t size) {
    switch (operation) {
    case ALL_GATHER:
    case ALL_TO_ALL:
        return size * (size_t)npes;
    case REDUCE_SCATTER:
        return size / (size_t)npes;
    default:
        return size;
    }
}

static inline size_t source_bytes(enum operation operation, size_t size) {
    return operation == ALL_TO_ALL ? size * (size_t)npes : size;
}

/* --- Data ------------------------------------------------------------------------------------ */

/* Returns element i of a PE's source: sums are exact in any order, also in bf16. */
static inline float element_of(int pe, size_t i) {
    return (float)(int)(word_at((uint64_t)pe + 1, i) & 15) - 8;
}

/* Returns the expected dest[i]. */
static inline float result_of(size_t i) {
    size_t from = i / args.nelems, at = i % args.nelems, mine = (size_t)me * args.nelems;
    float sum = 0;
    if (args.operation == ALL_GATHER)
        return element_of((int)from, at);
    if (args.operation == ALL_TO_ALL)
        return element_of((int)from, mine + at);
    for (int pe = 0; pe < npes; pe++)
        sum += element_of(pe, args.operation == REDUCE_SCATTER ? mine + i : i);
    return sum;
}

/* A bf16 is the upper half of a float. */
static inline void store_element(void *array, size_t i, float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (args.f32)
        ((uint32_t *)array)[i] = bits;
    else
        ((uint16_t *)array)[i] = (uint16_t)(bits >> 16);
}

static inline void fill_elements(void *device, size_t size) {
    void *host = malloc(size);
    for (size_t i = 0; i < size / elem_bytes(); i++)
        store_element(host, i, element_of(me, i));
    CUDA(cudaMemcpy(device, host, size, cudaMemcpyHostToDevice));
    free(host);
}

/* The check reads this many bytes at several places of a long array. */
#define SPOT  ((size_t)4096)
#define SPOTS ((size_t)64)

static inline bool spot_is_right(size_t at, size_t size) {
    char found[SPOT], wanted[SPOT];
    size_t elem = elem_bytes(), first = at / elem;
    CUDA(cudaMemcpy(found, args.dest + at, size, cudaMemcpyDeviceToHost));
    for (size_t i = 0; i < size / elem; i++)
        store_element(wanted, i, result_of(first + i));
    return memcmp(found, wanted, size) == 0;
}

/* Checks all of dest, or its ends and places in between that differ from run to run. */
static inline bool result_is_right(void) {
    size_t size = dest_bytes(args.operation, args.bytes), nspots = (size + SPOT - 1) / SPOT;
    uint64_t seed = (uint64_t)(now() * 1e9);
    for (size_t k = 0; k < (nspots < SPOTS ? nspots : SPOTS); k++) {
        size_t spot = nspots <= SPOTS ? k
                      : k == 0        ? 0
                      : k == 1        ? nspots - 1
                                      : word_at(seed, k) % nspots;
        size_t at = spot * SPOT;
        if (!spot_is_right(at, size - at < SPOT ? size - at : SPOT))
            return false;
    }
    return true;
}

/* --- Measuring ------------------------------------------------------------------------------- */

/* A library's functions for the operations, with arguments from `args`; NULL: it has no such
 * call. */
struct collectives {
    enqueue *call[OPERATIONS];
    bool in_place[OPERATIONS]; /* the row is also measured so */
    const char *more;          /* follows the name of each row */
};
static bool refused; /* set by a call that this library does not support for these arguments */

/* In place the input is where the result belongs or, in a reduce-scatter, the result is where this
 * PE's part of the input was. Memory that the call writes is poisoned. */
static inline void prepare(char *to, char *from) {
    size_t input = source_bytes(args.operation, args.bytes);
    size_t output = dest_bytes(args.operation, args.bytes);
    bool scatters = args.operation == REDUCE_SCATTER;
    args.dest = args.in_place && scatters ? to + (size_t)me * output : to;
    args.source = !args.in_place                 ? from
                  : args.operation == ALL_GATHER ? to + (size_t)me * input
                                                 : to;
    CUDA(cudaMemset(args.dest, 0xa5, output));
    if (args.in_place)
        CUDA(cudaMemcpy(args.source, from, input, cudaMemcpyDeviceToDevice));
    CUDA(cudaDeviceSynchronize());
    meet();
}

/* In a table a wrong result replaces the time; it also sets the exit status. */
static bool any_wrong;

static inline void check_result(const char *text) {
    if (!result_is_right()) {
        fprintf(stderr, "PE %d: %s, %s: wrong data\n", me, library, text);
        row(text, NAN, "us");
        any_wrong = true;
    }
}

/* Makes one call to check its result; the library may also refuse it. */
static inline bool call_checked(enqueue *call, const char *text, char *to, char *from) {
    prepare(to, from);
    refused = false;
    call(0);
    CUDA(cudaStreamSynchronize(stream));
    if (!refused)
        check_result(text);
    meet();
    return !refused;
}

/* Repeated in-place calls do not have the result of one call, so it is not checked. */
static inline void measure_graph(enqueue *call, const char *text, char *to, char *from) {
    prepare(to, from);
    row(text, graph_us(call, calls_for(args.bytes)), "us");
    if (!args.in_place)
        check_result(text);
    meet();
}

static inline void measure_row(const struct collectives *library_has, bool eagerly, char *to,
                               char *from) {
    char text[96], eager[104];
    enqueue *call = library_has->call[args.operation];
    size_t per_pe = args.operation == REDUCE_SCATTER ? args.bytes / (size_t)npes : args.bytes;
    args.nelems = per_pe / elem_bytes();
    snprintf(text, sizeof text, "%s %s %s%s%s", operations[args.operation].name,
             size_name(args.bytes), args.f32 ? "f32" : "bf16", args.in_place ? ", in place" : "",
             library_has->more);
    snprintf(eager, sizeof eager, "%s, eager", text);
    if (!is_asked(text) || !call_checked(call, text, to, from))
        return;
    measure_graph(call, text, to, from);
    if (eagerly)
        row(eager, eager_us(call, eager_calls_for(args.bytes)), "us");
    meet();
    call_checked(call, text, to, from);
}

/* Returns whether a table has a row: f32 at three sizes, in place and ordinary memory for bf16. */
static inline bool is_wanted(enum table table, size_t size, bool f32, bool in_place) {
    bool some = size == (1 << 10) || size == (1 << 20) || size == (256 << 20);
    if (table >= ORDINARY)
        return !f32 && !in_place;
    return (size <= SMALL_MAX) == (table == SMALL) && (!f32 || (some && !in_place));
}

static inline void measure_operation(const struct collectives *library_has, enum table table,
                                     char *to, char *from) {
    size_t size;
    for (int k = 0; (size = size_number(table, args.operation, k)) > 0; k++)
        for (int in_place = 0; in_place <= (int)library_has->in_place[args.operation]; in_place++) {
            args.bytes = size, args.in_place = in_place;
            if (is_wanted(table, size, args.f32, in_place))
                measure_row(library_has, table != WAYS, to, from);
        }
}

/* Returns the room for the largest row of a table. In-place input is in the memory of results. */
static inline size_t largest_of(enum table table, size_t (*bytes_of)(enum operation, size_t)) {
    size_t most = 0, size;
    for (int operation = 0; operation < OPERATIONS; operation++)
        for (int k = 0; (size = size_number(table, operation, k)) > 0; k++)
            if (is_wanted(table, size, false, false)) {
                size_t wanted = bytes_of((enum operation)operation, size);
                most = wanted > most ? wanted : most;
            }
    return most;
}

static inline size_t room_for_source(enum table table) {
    return largest_of(table, source_bytes);
}

static inline size_t room_for_dest(enum table table) {
    size_t dests = largest_of(table, dest_bytes), sources = room_for_source(table);
    return dests > sources ? dests : sources;
}

/* Measures all rows of a table. The arrays have the sizes of room_for_dest and room_for_source. */
static inline void measure_table(const struct collectives *library_has, enum table table, char *to,
                                 char *from) {
    for (int f32 = 0; f32 <= (table < ORDINARY); f32++) {
        args.f32 = f32;
        fill_elements(from, room_for_source(table));
        for (int operation = 0; operation < OPERATIONS; operation++) {
            args.operation = (enum operation)operation;
            if (library_has->call[operation])
                measure_operation(library_has, table, to, from);
        }
    }
}

#endif
