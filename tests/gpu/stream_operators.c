/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: the operators of weft.h on streams. Every reduction of every type, of all PEs and of
 * every second, in place and at odd sizes and offsets, has the bits that the host's threads
 * compute; moves of narrow and wide types; capture into a graph; and invalid arguments, which are
 * an error of the member that passes them and have no other effect.
 * PEs: 1 2 3 4, also staged
 * Far: cyclic:2 seed=7,reorder=16 */
#include <errno.h>
#include "gpu/graph.h"
#include "gpu/on_stream.h"

enum {
    NELEMS = 4099,
    MEMBERS = 8,
    BYTES = NELEMS * 16,
    ROOM = BYTES * MEMBERS + 4096,
    AROUND = 64
};

static char *source, *dest; /* symmetric GPU memory, ROOM bytes each */
static char *host_source, *host_dest;
static const char *const ops[] = {"", "sum", "avg", "max", "min", "prod"};

/* --- Reductions ------------------------------------------------------------------------------ */

/* Integers from their whole range; floats of very different sizes, so that another order gives
 * other bits, with finite products, because the bits of a NaN are unspecified. */
static void fill(void *to, size_t nelems, weft_dtype dtype, uint64_t key) {
    size_t bytes = nelems * weft_dtype_bytes(dtype);
    bool twice = dtype == WEFT_C64 || dtype == WEFT_C128;
    gpu_fill(to, bytes, key);
    for (size_t i = 0; dtype == WEFT_BOOL && i < bytes; i++)
        ((unsigned char *)to)[i] &= 1;
    for (size_t i = 0; dtype == WEFT_BF16 && i < nelems; i++)
        ((uint16_t *)to)[i] &= 0xbfff; /* below 2 */
    for (size_t i = 0; dtype == WEFT_F16 && i < nelems; i++)
        ((uint16_t *)to)[i] &= (uint16_t)(((uint16_t *)to)[i] & 0x0400 ? 0xbfff : 0xffff);
    for (size_t i = 0; (dtype == WEFT_F32 || dtype == WEFT_C64) && i < nelems << twice; i++)
        ((uint32_t *)to)[i] = (((uint32_t *)to)[i] & 0x87ffffff) | 0x38000000;
    for (size_t i = 0; (dtype == WEFT_F64 || dtype == WEFT_C128) && i < nelems << twice; i++)
        ((uint64_t *)to)[i] = (((uint64_t *)to)[i] & 0x80ffffffffffffff) | 0x3f00000000000000;
}

typedef int reduction(shmem_team_t, void *, const void *, size_t, weft_dtype, weft_op, weft_stream);

static void reduce(shmem_team_t team, bool scatter, weft_dtype dtype, weft_op op, uint64_t key) {
    static const size_t counts[] = {1, 2, 7, 15, 64, 129, 1000, NELEMS};
    reduction *call = scatter ? weft_reduce_scatter : weft_all_reduce;
    size_t element = weft_dtype_bytes(dtype), nelems = counts[gpu_draw(key * 8, 8)];
    size_t blocks = scatter ? (size_t)shmem_team_n_pes(team) : 1, bytes = nelems * element;
    size_t own = scatter ? bytes * (size_t)shmem_team_my_pe(team) : 0;
    char *from = source + AROUND + element * gpu_draw(key * 8 + 1, 4);
    char *to = dest + AROUND + element * gpu_draw(key * 8 + 2, 4);
    bool in_place = gpu_draw(key * 8 + 3, 3) == 0;
    to = in_place ? from + own : to;

    fill(host_source, nelems * blocks, dtype, key * 64 + (uint64_t)shmem_my_pe());
    gpu_poison(dest, AROUND * 2 + bytes + 64);
    gpu_write(from, host_source, bytes * blocks);
    expect_done(call(team, host_dest, host_source, nelems, dtype, op, WEFT_STREAM_HOST), "host");
    expect_done(call(team, to, from, nelems, dtype, op, (weft_stream)gpu_stream), ops[op]);
    gpu_drain(gpu_stream);
    gpu_expect(to, host_dest, bytes, "%s%s of %zu elements of type %d%s", ops[op],
               scatter ? " scattered" : "", nelems, (int)dtype, in_place ? ", in place" : "");
    if (!in_place)
        gpu_expect_poison(to + bytes, AROUND, "behind the destination");
}

static bool reduces(weft_dtype dtype, weft_op op) {
    bool integer = dtype >= WEFT_I8 && dtype <= WEFT_BOOL;
    bool complex = dtype == WEFT_C64 || dtype == WEFT_C128;
    bool eight_bits = dtype == WEFT_F8E4M3 || dtype == WEFT_F8E5M2;
    return !eight_bits && !(integer && op == WEFT_AVG) &&
           !(complex && (op == WEFT_MAX || op == WEFT_MIN));
}

static void reductions(shmem_team_t team, const char *name, uint64_t key) {
    tap_case(name);
    for (weft_dtype dtype = WEFT_F32; dtype <= WEFT_C128 && team != SHMEM_TEAM_INVALID; dtype++)
        for (weft_op op = WEFT_SUM; op <= WEFT_PROD; op++)
            for (int scatter = 0; scatter < 2 && reduces(dtype, op); scatter++)
                reduce(team, scatter, dtype, op, key++);
    shmem_barrier_all();
}

/* 16-bit floats keep more than they can show until all are in, and an average is one of them. */
static void rounded_once(void) {
    tap_case("floats of 16 bits are rounded once, at the end");
    int n = shmem_n_pes();
    uint16_t one[2] = {0x7bff, 0x7bff}, found[2]; /* 65504, the largest */
    gpu_write(source, one, sizeof one);
    expect_done(weft_all_reduce(SHMEM_TEAM_WORLD, dest, source, 2, WEFT_F16, WEFT_AVG,
                                (weft_stream)gpu_stream),
                "avg");
    gpu_drain(gpu_stream);
    gpu_write(found, dest, sizeof found);
    EXPECT(found[0] == 0x7bff && found[1] == 0x7bff, "avg of 65504 on %d PEs: %04x", n, found[0]);
    uint16_t nan[1] = {shmem_my_pe() == 0 ? 0x7fc1 : 0x3f80};
    for (weft_op op = WEFT_SUM; op <= WEFT_PROD; op++) {
        gpu_write(source, nan, sizeof nan);
        expect_done(weft_all_reduce(SHMEM_TEAM_WORLD, dest, source, 1, WEFT_BF16, op,
                                    (weft_stream)gpu_stream),
                    ops[op]);
        gpu_drain(gpu_stream);
        gpu_write(found, dest, sizeof *nan);
        EXPECT((found[0] & 0x7f80) == 0x7f80 && (found[0] & 0x7f), "%s with a NaN: %04x", ops[op],
               found[0]);
    }
}

/* --- Moves ----------------------------------------------------------------------------------- */

static void all_gather(weft_dtype dtype, size_t nelems, uint64_t key) {
    size_t bytes = nelems * weft_dtype_bytes(dtype), n = (size_t)shmem_n_pes();
    gpu_write(source, gpu_data(bytes, key + (uint64_t)shmem_my_pe()), bytes);
    gpu_poison(dest, bytes * n + AROUND);
    expect_done(
        weft_all_gather(SHMEM_TEAM_WORLD, dest, source, nelems, dtype, (weft_stream)gpu_stream),
        "all_gather");
    gpu_drain(gpu_stream);
    for (size_t i = 0; i < n; i++)
        gpu_expect(dest + i * bytes, gpu_data(bytes, key + i), bytes, "of PE %zu", i);
    gpu_expect_poison(dest + n * bytes, AROUND, "behind the destination");
}

static void all_to_all(weft_dtype dtype, size_t nelems, uint64_t key) {
    size_t bytes = nelems * weft_dtype_bytes(dtype), n = (size_t)shmem_n_pes();
    uint64_t me = (uint64_t)shmem_my_pe();
    for (size_t i = 0; i < n; i++)
        gpu_write(source + i * bytes, gpu_data(bytes, key + me * 64 + i), bytes);
    expect_done(
        weft_all_to_all(SHMEM_TEAM_WORLD, dest, source, nelems, dtype, (weft_stream)gpu_stream),
        "all_to_all");
    gpu_drain(gpu_stream);
    for (size_t i = 0; i < n; i++)
        gpu_expect(dest + i * bytes, gpu_data(bytes, key + i * 64 + me), bytes, "of PE %zu", i);
}

static void broadcast(weft_dtype dtype, size_t nelems, uint64_t key) {
    size_t bytes = nelems * weft_dtype_bytes(dtype);
    int root = (int)gpu_draw(key, (uint64_t)shmem_n_pes());
    bool gives = root == shmem_my_pe();
    gpu_write(source, gpu_data(bytes, key + (uint64_t)shmem_my_pe()), bytes);
    expect_done(weft_broadcast(SHMEM_TEAM_WORLD, dest, gives ? source : NULL, nelems, dtype, root,
                               (weft_stream)gpu_stream),
                "broadcast");
    gpu_drain(gpu_stream);
    gpu_expect(dest, gpu_data(bytes, key + (uint64_t)root), bytes, "of PE %d", root);
}

static void moves(void) {
    tap_case("all_gather, all_to_all and broadcast of narrow and wide types");
    static const weft_dtype dtypes[] = {WEFT_F8E4M3, WEFT_BF16, WEFT_F32, WEFT_C128};
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
        uint64_t key = 50000 + i * 3000;
        all_gather(dtypes[i], 1 + gpu_draw(key, NELEMS), key + 1);
        all_to_all(dtypes[i], 1 + gpu_draw(key + 1, NELEMS), key + 1000);
        broadcast(dtypes[i], 1 + gpu_draw(key + 2, NELEMS), key + 2000);
        shmem_barrier_all();
    }
}

/* --- Graphs ---------------------------------------------------------------------------------- */

static void average_twice(void) {
    weft_stream stream = (weft_stream)gpu_stream;
    expect_done(weft_all_reduce(SHMEM_TEAM_WORLD, dest, source, 1000, WEFT_BF16, WEFT_SUM, stream),
                "captured sum");
    expect_done(weft_all_reduce(SHMEM_TEAM_WORLD, dest, dest, 1000, WEFT_BF16, WEFT_AVG, stream),
                "captured avg");
}

static void graph(void) {
    tap_case("a graph of operators, replayed on new numbers");
    size_t bytes = 1000 * sizeof(uint16_t);
    weft_cu_graph_exec exec = graph_capture(gpu_stream, average_twice);
    for (uint64_t round = 0; round < 5; round++) {
        fill(host_source, 1000, WEFT_BF16, 90000 + round * 64 + (uint64_t)shmem_my_pe());
        gpu_write(source, host_source, bytes);
        shmem_barrier_all();
        graph_replay(exec, gpu_stream);
        gpu_drain(gpu_stream);
        expect_done(weft_all_reduce(SHMEM_TEAM_WORLD, host_dest, host_source, 1000, WEFT_BF16,
                                    WEFT_SUM, WEFT_STREAM_HOST),
                    "host");
        gpu_expect(dest, host_dest, bytes, "round %d", (int)round);
    }
    graph_drop(exec);
}

/* --- Errors ---------------------------------------------------------------------------------- */

/* On PE 0 only: the others notice nothing. */
static void wrong_arguments(void) {
    tap_case("a wrong argument is an error of its member, and the next call works");
    weft_stream on = (weft_stream)gpu_stream;
    shmem_team_t all = SHMEM_TEAM_WORLD;
    if (shmem_my_pe() == 0) {
        expect_error(weft_all_reduce(all, dest, source, 1, (weft_dtype)99, WEFT_SUM, on), -EINVAL,
                     "weft_all_reduce: dtype is 99");
        expect_error(weft_all_reduce(all, dest, source, 1, WEFT_F32, (weft_op)9, on), -EINVAL,
                     "op is 9");
        expect_error(weft_reduce_scatter(all, dest, source, 1, WEFT_I16, WEFT_AVG, on), -EINVAL,
                     "weft_reduce_scatter: op is WEFT_AVG, which WEFT_I16 does not have");
        expect_error(weft_all_reduce(all, dest, source, 1, WEFT_F8E4M3, WEFT_SUM, on), -EINVAL,
                     "WEFT_F8E4M3 does not have");
        expect_error(weft_all_gather(all, dest, NULL, 1, WEFT_F32, on), -EINVAL, "source is NULL");
        expect_error(weft_all_to_all(all, host_dest, source, 1, WEFT_F32, on), -EFAULT, "dest");
        expect_error(weft_all_reduce(all, dest, host_source, 1, WEFT_F32, WEFT_SUM, on), -EFAULT,
                     "source");
        expect_error(weft_all_reduce(all, dest, source, SIZE_MAX / 2, WEFT_F32, WEFT_SUM, on),
                     -EFAULT, "dest");
        expect_error(weft_all_gather(all, dest, source, SIZE_MAX / 2, WEFT_F32, on), -EFAULT,
                     "dest");
        expect_error(weft_broadcast(all, dest, source, 1, WEFT_F32, -1, on), -EINVAL, "root is -1");
        expect_error(weft_all_reduce(SHMEM_TEAM_INVALID, dest, source, 1, WEFT_F32, WEFT_SUM, on),
                     -EINVAL, "team");
    }
    all_gather(WEFT_U16, 100, 70000);
    shmem_barrier_all();
}

static void elsewhere(void) {
    tap_case("GPU memory by threads: an error of all that says so");
    weft_matrix m = {source, 1, 1, 1, WEFT_F32, false}, c = {dest, 1, 1, 1, WEFT_F32, false};
    expect_error(
        weft_all_reduce(SHMEM_TEAM_WORLD, dest, source, 1, WEFT_F32, WEFT_SUM, WEFT_STREAM_HOST),
        -ENOTSUP, "pass a stream");
    expect_error(weft_matmul_all_reduce(SHMEM_TEAM_WORLD, &m, &m, WEFT_SUM, &c, WEFT_STREAM_HOST),
                 -ENOTSUP, "pass a stream");
}

int main(void) {
    shmem_init();
    gpu_start();
    source = allocated(shmemx_malloc(SHMEMX_SPACE_DEVICE, ROOM));
    dest = allocated(shmemx_malloc(SHMEMX_SPACE_DEVICE, ROOM));
    host_source = allocated(malloc(ROOM)), host_dest = allocated(malloc(ROOM));
    shmem_team_t half;
    shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 2, (shmem_n_pes() + 1) / 2, NULL, 0, &half);
    reductions(SHMEM_TEAM_WORLD, "every reduction of every type", 1000);
    reductions(half, "of every second PE", 20000);
    rounded_once();
    moves();
    graph();
    wrong_arguments();
    elsewhere();
    free(host_source);
    free(host_dest);
    return gpu_finish();
}
