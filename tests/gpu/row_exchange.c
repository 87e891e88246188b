/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: weft_all_to_allv_on_device on streams, byte for byte: problems as on the host
 * (tests/exchange.h), on teams of all PEs, of every second, of a list and of one; rows that are
 * aligned and not; a dest in a block that the team shares; a graph that is replayed with other
 * numbers of rows; wrong arguments. PEs: 1 2 3 4 Far: cyclic:2 seed=7,reorder=16 */
#include <errno.h>
#include "exchange.h"
#include "gpu/graph.h"
#include "gpu/on_stream.h"

enum { ROOM = 4 << 20, NUMBERS = 1 << 16 };

/* GPU memory: symmetric, except the source. */
static unsigned char *dest_room, *source_room;
static int64_t *numbers_room; /* the four arrays of a call, NUMBERS bytes apart */

static int64_t *numbers(int which) {
    return numbers_room + which * NUMBERS / (int)sizeof(int64_t);
}

/* Copies what a member passes to GPU memory, and poisons what it must get. */
static void write_sent(const struct exchange_member *m, unsigned char *dest,
                       unsigned char *source) {
    size_t bytes = m->entries * sizeof(int64_t);
    if (m->dest_bytes > ROOM || m->source_bytes > ROOM || bytes > NUMBERS)
        exit(1);
    gpu_write(source, m->source, m->source_bytes);
    gpu_write(dest, m->dest, m->dest_bytes); /* the guard */
    gpu_write(numbers(0), m->source_splits, bytes);
    gpu_write(numbers(1), m->source_offsets, bytes);
    gpu_poison(numbers(2), bytes);
    gpu_poison(numbers(3), bytes);
}

static void expect_solved(const struct exchange *x, const struct exchange_member *m,
                          const unsigned char *dest) {
    size_t bytes = m->entries * sizeof(int64_t);
    unsigned long long key = x->key;
    gpu_expect(numbers(2), m->dest_splits, bytes, "splits, key %llu", key);
    gpu_expect(numbers(3), m->dest_offsets, bytes, "offsets, key %llu", key);
    gpu_expect(dest, m->dest, m->dest_bytes, "rows, key %llu", key);
}

static int exchange_rows(shmem_team_t team, const struct exchange *x, unsigned char *dest,
                         const unsigned char *source) {
    return weft_all_to_allv_on_device(team, &x->shape, dest, numbers(2), numbers(3), source,
                                      numbers(0), x->has_offsets ? numbers(1) : NULL,
                                      (weft_stream)gpu_stream);
}

/* `odd`: bytes after a multiple of 16 at which dest and source begin. */
static void exchange_once(shmem_team_t team, const struct exchange *x, size_t odd) {
    if (team == SHMEM_TEAM_INVALID)
        return;
    int me = shmem_team_my_pe(team);
    size_t element = weft_dtype_bytes(x->shape.dtype);
    unsigned char *dest = dest_room + odd * element, *source = source_room + odd / 2 * element;
    struct exchange_member m = exchange_member_new(x);
    exchange_send(x, &m, me);
    write_sent(&m, dest, source);
    shmem_team_sync(team); /* all have written the guards */
    expect_done(exchange_rows(team, x, dest, source), "exchange");
    gpu_drain(gpu_stream);
    exchange_solve(x, &m, me);
    expect_solved(x, &m, dest);
    exchange_member_free(&m);
}

/* --- Tests -------------------------------------------------------------------------------------
 */

static void all_teams(weft_dtype dtype, size_t rows, size_t cols, int rounds, uint64_t key) {
    shmem_team_t half, alone = SHMEM_TEAM_INVALID, list = gpu_list_team();
    shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 2, (shmem_n_pes() + 1) / 2, NULL, 0, &half);
    shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, 1, NULL, 0, &alone);
    shmem_team_t teams[] = {SHMEM_TEAM_WORLD, half, alone, list};
    for (int round = 0; round < rounds; round++, key++)
        for (size_t i = 0; i < sizeof teams / sizeof *teams; i++) {
            if (teams[i] == SHMEM_TEAM_INVALID)
                continue;
            struct exchange x = exchange_new(key, shmem_team_n_pes(teams[i]), 7, rows, cols, dtype);
            exchange_once(teams[i], &x, round % 3);
        }
    for (size_t i = 1; i < sizeof teams / sizeof *teams; i++)
        if (teams[i] != SHMEM_TEAM_INVALID)
            shmem_team_destroy(teams[i]);
}

/* PEs of one host share blocks; the test's world may have PEs of others. */
static void shared_block(void) {
    tap_case("a dest in a block that the team shares");
    int npes = shmem_n_pes(), pes[64];
    shmemx_block_t block;
    shmemx_share_t share;
    for (int i = 0; i < npes; i++)
        pes[i] = i;
    if (getenv("WEFT_PRETEND_HOSTS"))
        return;
    expect_done(shmemx_block_alloc(SHMEMX_SPACE_DEVICE, ROOM, &block), "block");
    expect_done(shmemx_share_attach(block, pes, npes, 5, &share), "share");
    unsigned char *symmetric = dest_room;
    dest_room = shmemx_block_ptr(block);
    for (uint64_t key = 4000; key < 4006; key++) {
        struct exchange x = exchange_new(key, npes, 4, 9, 40, WEFT_BF16);
        exchange_once(SHMEM_TEAM_WORLD, &x, key % 2);
    }
    dest_room = symmetric;
    shmemx_share_release(share);
    shmemx_block_free(block);
}

static struct exchange captured;

static void capture(void) {
    expect_done(exchange_rows(SHMEM_TEAM_WORLD, &captured, dest_room, source_room), "capture");
}

static void graph(void) {
    tap_case("a graph, replayed with other numbers of rows");
    struct exchange *x = &captured;
    int me = shmem_my_pe();
    *x = exchange_new(5000, shmem_n_pes(), 4, 6, 30, WEFT_F32);
    x->has_offsets = true;
    weft_cu_graph_exec exec = graph_capture(gpu_stream, capture);
    for (int round = 0; round < gpu_rounds_together(2000, 20); round++) {
        x->key = 6000 + (uint64_t)round;
        x->routing = (enum exchange_routing)(round % EXCHANGE_ROUTINGS);
        struct exchange_member m = exchange_member_new(x);
        exchange_send(x, &m, me);
        write_sent(&m, dest_room, source_room);
        shmem_barrier_all();
        graph_replay(exec, gpu_stream);
        gpu_drain(gpu_stream);
        exchange_solve(x, &m, me);
        expect_solved(x, &m, dest_room);
        exchange_member_free(&m);
    }
    graph_drop(exec);
}

/* On PE 0 only: the others notice nothing. */
static void wrong_arguments(void) {
    tap_case("a wrong argument is an error of its member, and the next call works");
    struct exchange right = exchange_new(7000, shmem_n_pes(), 4, 6, 30, WEFT_F32), x = right;
    if (shmem_my_pe() == 0) {
        x.shape.nparts = 0;
        expect_error(exchange_rows(SHMEM_TEAM_WORLD, &x, dest_room, source_room), -EINVAL,
                     "exchange->nparts is 0");
        expect_error(exchange_rows(SHMEM_TEAM_WORLD, &right, NULL, source_room), -EINVAL,
                     "dest is NULL");
        expect_error(exchange_rows(SHMEM_TEAM_WORLD, &right, dest_room, NULL), -EINVAL,
                     "source is NULL");
        if (shmem_n_pes() > 1 && !getenv("WEFT_PRETEND_HOSTS"))
            expect_error(exchange_rows(SHMEM_TEAM_WORLD, &right, source_room, dest_room), -EFAULT,
                         "not symmetric");
    }
    exchange_once(SHMEM_TEAM_WORLD, &right, 0);
}

int main(void) {
    static const weft_dtype dtypes[] = {WEFT_U8, WEFT_BF16, WEFT_F32, WEFT_C128};
    static const char *const names[] = {"u8", "bf16", "f32", "c128"};
    shmemx_block_t block; /* not shared */
    shmem_init();
    gpu_start();
    dest_room = allocated(shmemx_malloc(SHMEMX_SPACE_DEVICE, ROOM + 64));
    numbers_room = allocated(shmemx_malloc(SHMEMX_SPACE_DEVICE, 4 * NUMBERS));
    expect_done(shmemx_block_alloc(SHMEMX_SPACE_DEVICE, ROOM + 64, &block), "block");
    source_room = shmemx_block_ptr(block);
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
        tap_case(names[i]);
        all_teams(dtypes[i], 5, 40, gpu_rounds_together(60, 6), 1000 * i);
    }
    tap_case("parts of several pieces");
    all_teams(WEFT_BF16, 30, 900, gpu_rounds_together(20, 1), 8000);
    shared_block();
    graph();
    wrong_arguments();
    shmemx_block_free(block);
    return gpu_finish();
}
