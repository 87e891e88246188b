/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: weft_all_to_allv_on_device on the host, byte for byte: random numbers of rows, rows
 * for one member only, members and parts without rows; sources with and without gaps; entries by
 * member and by part; alignment of parts; private, heap and static memory, one band and many; a
 * dest that is too small and splits that source does not have, which are the same error on all
 * members and write nothing; wrong arguments. */
#include <errno.h>
#include "expect.h"
#include "exchange.h"
#include "ops/tensor.h"

/* The arrays of a call in one kind of memory, or private where there is no more of it. */
struct passed {
    struct tensor source, dest;
    int64_t *splits; /* four arrays */
};

static int exchange_rows(const struct test_team *t, const struct exchange *x,
                         const struct passed *p, size_t entries) {
    return weft_all_to_allv_on_device(
        t->team, &x->shape, p->dest.m.data, p->splits + 2 * entries, p->splits + 3 * entries,
        p->source.m.data, p->splits, x->has_offsets ? p->splits + entries : NULL, WEFT_STREAM_HOST);
}

static struct passed pass(const struct exchange_member *m, enum memory memory) {
    struct passed p = {tensor_new(memory, 1, m->source_bytes, m->source_bytes, WEFT_U8),
                       tensor_new(memory, 1, m->dest_bytes, m->dest_bytes, WEFT_U8),
                       malloc(4 * m->entries * sizeof *p.splits)};
    memcpy(p.source.m.data, m->source, m->source_bytes);
    memcpy(p.splits, m->source_splits, 4 * m->entries * sizeof *p.splits);
    return p;
}

static void expect_solved(const struct exchange *x, const struct passed *p,
                          const struct exchange_member *m, const struct test_team *t) {
    size_t bytes = m->entries * sizeof *p->splits;
    EXPECT(memcmp(p->splits + 2 * m->entries, m->dest_splits, bytes) == 0, "%s key %llu", t->name,
           (unsigned long long)x->key);
    EXPECT(memcmp(p->splits + 3 * m->entries, m->dest_offsets, bytes) == 0, "%s key %llu", t->name,
           (unsigned long long)x->key);
    EXPECT(memcmp(p->dest.m.data, m->dest, m->dest_bytes) == 0 && tensor_guarded(&p->dest),
           "%s key %llu nparts %zu align %zu", t->name, (unsigned long long)x->key, x->shape.nparts,
           x->shape.align);
}

static void drop(struct passed *p, struct exchange_member *m) {
    tensor_free(&p->source);
    tensor_free(&p->dest);
    free(p->splits);
    exchange_member_free(m);
    tensors_reset();
}

static void exchange_once(const struct test_team *t, const struct exchange *x) {
    struct exchange_member m = exchange_member_new(x);
    exchange_send(x, &m, t->me);
    struct passed p = pass(&m, (enum memory)((x->key + (uint64_t)t->me) % MEMORIES));
    exchange_solve(x, &m, t->me);
    int error = exchange_rows(t, x, &p, m.entries);
    EXPECT(error == 0, "%d: %s", error, weft_last_error());
    expect_solved(x, &p, &m, t);
    drop(&p, &m);
}

/* --- Errors ----------------------------------------------------------------------------------- */

/* One member has too little room, or sends rows that it does not have. */
static void rows_do_not_fit(const struct test_team *t, bool in_dest) {
    struct exchange x = exchange_new(77, t->npes, 3, 6, 5, WEFT_I16);
    x.routing = EXCHANGE_RANDOM;
    x.has_offsets = false;
    struct exchange_member m = exchange_member_new(&x);
    exchange_send(&x, &m, t->me);
    struct passed p = pass(&m, HEAP);
    char text[64];
    int last = t->npes - 1;
    if (t->me == last && in_dest)
        x.shape.dest_rows = 0;
    if (t->me == last && !in_dest)
        p.splits[0] = -1;
    snprintf(text, sizeof text, in_dest ? "PE %d receives rows up to row" : "PE %d: source_splits",
             t->start + last * t->stride);
    expect_error(exchange_rows(t, &x, &p, m.entries), in_dest ? -ENOSPC : -EINVAL, text);
    EXPECT(tensor_untouched(&p.dest), "dest was written");
    drop(&p, &m);
}

static void wrong_arguments(const struct test_team *t) {
    struct exchange right = exchange_new(78, t->npes, 3, 6, 5, WEFT_I16), x = right;
    struct exchange_member m = exchange_member_new(&x);
    exchange_send(&x, &m, t->me);
    struct passed p = pass(&m, HEAP), wrong = p;
    bool last = t->me == t->npes - 1;
    x.shape.nparts = last ? 0 : right.shape.nparts;
    expect_error(exchange_rows(t, &x, &p, m.entries), -EINVAL, "exchange->nparts is 0");
    x = right;
    x.shape.dtype = last ? (weft_dtype)99 : WEFT_I16;
    expect_error(exchange_rows(t, &x, &p, m.entries), -EINVAL, "dtype is");
    x = right;
    x.shape.source_rows = last ? SIZE_MAX / 2 : right.shape.source_rows;
    expect_error(exchange_rows(t, &x, &p, m.entries), -EINVAL, "more than memory has");
    wrong.source.m.data = last ? NULL : p.source.m.data;
    expect_error(exchange_rows(t, &right, &wrong, m.entries), -EINVAL, "source is NULL");
    x = right;
    x.shape.align = right.shape.align + (last ? 1 : 0);
    if (t->npes > 1)
        expect_error(exchange_rows(t, &x, &p, m.entries), -EINVAL, "exchange->align is");
    exchange_solve(&right, &m, t->me);
    EXPECT(exchange_rows(t, &right, &p, m.entries) == 0, "%s", weft_last_error());
    expect_solved(&right, &p, &m, t);
    drop(&p, &m);
}

int main(void) {
    static const weft_dtype dtypes[] = {WEFT_U8, WEFT_BF16, WEFT_F32, WEFT_C128};
    tensors_open(true);
    struct test_team teams[4];
    int nteams = teams_open(teams);
    uint64_t key = 0;
    for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++) {
        tap_case(dtype_names[dtypes[d]]);
        for (int round = 0; round < 30; round++, key++)
            for (int team = 0; team < nteams; team++) {
                struct exchange x = exchange_new(key, teams[team].npes, 5, 4, 9, dtypes[d]);
                exchange_once(&teams[team], &x);
            }
    }
    tap_case("several bands");
    for (int round = 0; round < 4; round++, key++) {
        struct exchange x = exchange_new(key, teams[0].npes, 2, 300, 400, WEFT_I16);
        x.routing = EXCHANGE_RANDOM;
        exchange_once(&teams[0], &x);
    }
    tap_case("rows that do not fit are the same error on all members");
    for (int team = 0; team < nteams; team++)
        for (int in_dest = 0; in_dest < 2; in_dest++)
            rows_do_not_fit(&teams[team], in_dest);
    tap_case("wrong arguments are an error of all members");
    for (int team = 0; team < nteams; team++)
        wrong_arguments(&teams[team]);
    shmem_finalize();
    return tap_finish();
}
