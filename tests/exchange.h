/* SPDX-License-Identifier: BSD-3-Clause */
/* Problems for weft_all_to_allv_on_device, and their solutions. All PEs compute the numbers and the
 * bytes of all members' rows from a key. */
#ifndef TESTS_EXCHANGE_H
#define TESTS_EXCHANGE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <weft.h>

enum exchange_routing { EXCHANGE_RANDOM, EXCHANGE_ONE_RECEIVER, EXCHANGE_SOME, EXCHANGE_NOTHING };
enum { EXCHANGE_ROUTINGS = 4, EXCHANGE_GUARD = 0x5a };

struct exchange {
    uint64_t key;
    int npes;
    size_t rows_most; /* of a part */
    enum exchange_routing routing;
    bool has_offsets; /* parts in source have gaps of a row before them */
    weft_row_exchange shape;
};

/* What a member passes, and what it must get. Arrays of numbers have npes * nparts entries. */
struct exchange_member {
    size_t entries, source_bytes, dest_bytes;
    unsigned char *source, *dest;
    int64_t *source_splits, *source_offsets, *dest_splits, *dest_offsets;
};

static inline uint64_t exchange_mix(uint64_t x) { /* splitmix64 */
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static inline uint64_t exchange_draw(const struct exchange *x, uint64_t what, uint64_t below) {
    return exchange_mix(exchange_mix(x->key) + what) % below;
}

static inline size_t exchange_split(const struct exchange *x, int from, int to, size_t k) {
    uint64_t what = ((uint64_t)from * 64 + (uint64_t)to) * 4096 + k;
    size_t rows = exchange_draw(x, what, x->rows_most + 1);
    if (x->routing == EXCHANGE_ONE_RECEIVER)
        return to == (int)(x->key % (uint64_t)x->npes) ? rows : 0;
    if (x->routing == EXCHANGE_SOME)
        return exchange_draw(x, what + 1, 3) == 0 ? rows : 0;
    return x->routing == EXCHANGE_NOTHING ? 0 : rows;
}

static inline size_t exchange_row_bytes(const struct exchange *x) {
    return x->shape.cols * weft_dtype_bytes(x->shape.dtype);
}

static inline void exchange_fill(const struct exchange *x, unsigned char *row, int from,
                                 uint64_t number) {
    for (size_t i = 0; i < exchange_row_bytes(x); i++)
        row[i] =
            (unsigned char)(exchange_mix(x->key + (uint64_t)from * 1000003 + number * 64 + i / 8) >>
                            i % 8 * 8);
}

static inline size_t exchange_entry(const struct exchange *x, bool by_part, int member, size_t k) {
    return by_part ? k * (size_t)x->npes + (size_t)member : (size_t)member * x->shape.nparts + k;
}

/* Returns the row of source at which the part of an entry begins. */
static inline size_t exchange_from(const struct exchange *x, int from, size_t entry) {
    size_t row = x->has_offsets, npes = (size_t)x->npes, nparts = x->shape.nparts;
    for (size_t i = 0; i < entry; i++) {
        int to = (int)(x->shape.source_by_part ? i % npes : i / nparts);
        row += exchange_split(x, from, to, x->shape.source_by_part ? i / npes : i % nparts);
        row += x->has_offsets;
    }
    return row;
}

/* Draws a problem with room for rows_most rows in each part. */
static inline struct exchange exchange_new(uint64_t key, int npes, size_t nparts_most,
                                           size_t rows_most, size_t cols_most, weft_dtype dtype) {
    struct exchange x = {.key = key, .npes = npes, .rows_most = rows_most};
    x.shape.dtype = dtype;
    x.shape.nparts = 1 + exchange_draw(&x, 1u << 30, nparts_most);
    x.shape.cols = 1 + exchange_draw(&x, (1u << 30) + 1, cols_most);
    x.routing = (enum exchange_routing)exchange_draw(&x, (1u << 30) + 2, EXCHANGE_ROUTINGS);
    x.has_offsets = exchange_draw(&x, (1u << 30) + 3, 2);
    x.shape.source_by_part = exchange_draw(&x, (1u << 30) + 4, 2);
    x.shape.dest_by_part = exchange_draw(&x, (1u << 30) + 5, 2);
    x.shape.align = x.shape.dest_by_part ? exchange_draw(&x, (1u << 30) + 6, 5) : 0;
    size_t most = (rows_most + 5) * x.shape.nparts * (size_t)npes + 1;
    x.shape.source_rows = x.shape.dest_rows = most;
    return x;
}

static inline struct exchange_member exchange_member_new(const struct exchange *x) {
    size_t row = exchange_row_bytes(x), entries = (size_t)x->npes * x->shape.nparts;
    struct exchange_member m = {.entries = entries,
                                .source_bytes = x->shape.source_rows * row,
                                .dest_bytes = x->shape.dest_rows * row};
    m.source = calloc(1, m.source_bytes);
    m.dest = malloc(m.dest_bytes);
    m.source_splits = calloc(4 * entries, sizeof(int64_t));
    m.source_offsets = m.source_splits + entries;
    m.dest_splits = m.source_splits + 2 * entries;
    m.dest_offsets = m.source_splits + 3 * entries;
    memset(m.dest, EXCHANGE_GUARD, m.dest_bytes);
    return m;
}

static inline void exchange_member_free(struct exchange_member *m) {
    free(m->source);
    free(m->dest);
    free(m->source_splits);
}

/* Sets what member `me` passes. */
static inline void exchange_send(const struct exchange *x, struct exchange_member *m, int me) {
    size_t row = exchange_row_bytes(x);
    for (int to = 0; to < x->npes; to++)
        for (size_t k = 0; k < x->shape.nparts; k++) {
            size_t entry = exchange_entry(x, x->shape.source_by_part, to, k);
            size_t begin = exchange_from(x, me, entry), rows = exchange_split(x, me, to, k);
            m->source_splits[entry] = (int64_t)rows;
            m->source_offsets[entry] = (int64_t)begin;
            for (size_t i = begin; i < begin + rows; i++)
                exchange_fill(x, m->source + i * row, me, i);
        }
}

static inline void exchange_take(const struct exchange *x, struct exchange_member *m, int me,
                                 int from, size_t k, size_t *next) {
    size_t rows = exchange_split(x, from, me, k), row = exchange_row_bytes(x);
    size_t begin = exchange_from(x, from, exchange_entry(x, x->shape.source_by_part, me, k));
    size_t entry = exchange_entry(x, x->shape.dest_by_part, from, k);
    m->dest_splits[entry] = (int64_t)rows;
    m->dest_offsets[entry] = (int64_t)*next;
    for (size_t i = 0; i < rows; i++)
        exchange_fill(x, m->dest + (*next)++ * row, from, begin + i);
}

/* Sets what member `me` must get. */
static inline void exchange_solve(const struct exchange *x, struct exchange_member *m, int me) {
    size_t next = 0, align = x->shape.align;
    if (!x->shape.dest_by_part)
        for (int from = 0; from < x->npes; from++)
            for (size_t k = 0; k < x->shape.nparts; k++)
                exchange_take(x, m, me, from, k, &next);
    else
        for (size_t k = 0; k < x->shape.nparts; k++) {
            size_t first = next;
            for (int from = 0; from < x->npes; from++)
                exchange_take(x, m, me, from, k, &next);
            while (align > 0 && (next == first || next % align != 0))
                next++;
        }
}

#endif
