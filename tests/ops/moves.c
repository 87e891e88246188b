/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: weft_broadcast, weft_all_to_all and weft_all_to_allv, byte for byte: all types and
 * teams, any root, private, heap and static memory in any mixture over the members, sizes from zero
 * to several bands, in place, unequal parts in any order and with gaps, a source that is
 * overwritten as soon as the call returns. */
#include "ops/tensor.h"

enum { DTYPES = WEFT_C128, PARTS_MAX = 3, PES_MAX = 16, ENTRIES_MAX = PES_MAX * PARTS_MAX };

/* The bytes that member `from` sends to member `to`; elements of all types are bytes here. */
static void pattern(void *p, size_t bytes, const struct test_team *t, uint64_t round, int from,
                    int to, size_t part) {
    uint64_t world = (uint64_t)(t->start + from * t->stride), seed = round * 64 + world;
    seed = mix(mix(seed * 64 + (uint64_t)to) + part);
    for (size_t i = 0; i < bytes; i++)
        ((unsigned char *)p)[i] = (unsigned char)(mix(seed + i / 8) >> i % 8 * 8);
}

static struct tensor vector_new(enum memory memory, size_t nelems, weft_dtype dtype) {
    return tensor_new(memory, 1, nelems, nelems, dtype);
}

/* Returns an array of the bytes that dest must have, guards included. */
static unsigned char *image_new(const struct tensor *dest) {
    return memset(malloc(dest->bytes), GUARD, dest->bytes);
}

static void expect_image(const struct tensor *dest, unsigned char *image, const char *what,
                         const struct test_team *t, uint64_t round) {
    size_t at = 0;
    while (at < dest->bytes && dest->block[at] == image[at])
        at++;
    EXPECT(at == dest->bytes, "%s, %s, round %d: byte %zd of %zu elements of %zu bytes", what,
           t->name, (int)round, (ssize_t)at - GUARD_BYTES, dest->m.cols,
           weft_dtype_bytes(dest->m.dtype));
    free(image);
}

static void broadcast(const struct test_team *t, weft_dtype dtype, size_t nelems, uint64_t round,
                      enum memory memory, bool in_place) {
    int root = (int)(round % (uint64_t)t->npes);
    size_t bytes = nelems * weft_dtype_bytes(dtype);
    struct tensor source = vector_new(memory, nelems, dtype);
    struct tensor dest = vector_new((memory + round) % MEMORIES, nelems, dtype);
    struct tensor *to = in_place ? &source : &dest;
    unsigned char *image = image_new(to);
    pattern(image + GUARD_BYTES, bytes, t, round, root, 0, 0);
    if (t->me == root)
        memcpy(source.m.data, image + GUARD_BYTES, bytes);
    const void *from = t->me == root || in_place ? source.m.data : NULL;
    int error = weft_broadcast(t->team, to->m.data, from, nelems, dtype, root, WEFT_STREAM_HOST);
    EXPECT(error == 0, "%d: %s", error, weft_last_error());
    if (!in_place)
        memset(source.block, 0xff, source.bytes);
    expect_image(to, image, "broadcast", t, round);
    tensor_free(&source);
    tensor_free(&dest);
}

static void all_to_all(const struct test_team *t, weft_dtype dtype, size_t nelems, uint64_t round,
                       enum memory memory) {
    size_t bytes = nelems * weft_dtype_bytes(dtype), all = nelems * (size_t)t->npes;
    struct tensor source = vector_new(memory, all, dtype);
    struct tensor dest = vector_new((memory + round) % MEMORIES, all, dtype);
    unsigned char *image = image_new(&dest);
    for (int member = 0; member < t->npes; member++) {
        size_t at = (size_t)member * bytes;
        pattern((char *)source.m.data + at, bytes, t, round, t->me, member, 0);
        pattern(image + GUARD_BYTES + at, bytes, t, round, member, t->me, 0);
    }
    int error =
        weft_all_to_all(t->team, dest.m.data, source.m.data, nelems, dtype, WEFT_STREAM_HOST);
    EXPECT(error == 0, "%d: %s", error, weft_last_error());
    memset(source.block, 0xff, source.bytes);
    expect_image(&dest, image, "all_to_all", t, round);
    tensor_free(&source);
    tensor_free(&dest);
}

/* --- Unequal parts --------------------------------------------------------------------------- */

struct side {
    size_t nelems[ENTRIES_MAX], offsets[ENTRIES_MAX], all;
    bool packed;
};

/* Returns the elements from one member to another: often none, and in some rounds all to one
 * member. */
static size_t nelems_of(uint64_t round, int from, int to, size_t part, size_t most) {
    uint64_t pick = mix(mix(round * 64 + (uint64_t)from) * 64 + (uint64_t)to + part * 7919);
    if (round % 7 == 3 && to > 0)
        return 0;
    return pick % 4 == 0 ? 0 : pick % (most + 1);
}

/* The parts are contiguous, or in reverse order with gaps. */
static void lay_out(struct side *side, size_t entries, bool packed) {
    side->all = 0;
    side->packed = packed;
    for (size_t i = 0; i < entries; i++) {
        size_t entry = packed ? i : entries - 1 - i;
        side->all += packed ? 0 : random_below(5);
        side->offsets[entry] = side->all;
        side->all += side->nelems[entry];
    }
}

static void all_to_allv(const struct test_team *t, weft_dtype dtype, size_t most, uint64_t round,
                        enum memory memory) {
    static struct side to, from;
    size_t nparts = 1 + round % PARTS_MAX, entries = nparts * (size_t)t->npes;
    size_t element = weft_dtype_bytes(dtype);
    for (size_t i = 0; i < entries; i++) {
        int member = (int)(i / nparts);
        to.nelems[i] = nelems_of(round, member, t->me, i % nparts, most);
        from.nelems[i] = nelems_of(round, t->me, member, i % nparts, most);
    }
    lay_out(&to, entries, random_below(2));
    lay_out(&from, entries, random_below(2));
    struct tensor source = vector_new(memory, from.all, dtype);
    struct tensor dest = vector_new((memory + round) % MEMORIES, to.all, dtype);
    unsigned char *image = image_new(&dest);
    for (size_t i = 0; i < entries; i++) {
        int member = (int)(i / nparts);
        pattern((char *)source.m.data + from.offsets[i] * element, from.nelems[i] * element, t,
                round, t->me, member, i % nparts);
        pattern(image + GUARD_BYTES + to.offsets[i] * element, to.nelems[i] * element, t, round,
                member, t->me, i % nparts);
    }
    int error = weft_all_to_allv(t->team, dest.m.data, to.nelems, to.packed ? NULL : to.offsets,
                                 source.m.data, from.nelems, from.packed ? NULL : from.offsets,
                                 nparts, dtype, WEFT_STREAM_HOST);
    EXPECT(error == 0, "%d: %s", error, weft_last_error());
    memset(source.block, 0xff, source.bytes);
    expect_image(&dest, image, "all_to_allv", t, round);
    tensor_free(&source);
    tensor_free(&dest);
}

static void one_of_each(const struct test_team *t, weft_dtype dtype, size_t nelems,
                        uint64_t round) {
    enum memory memory = (enum memory)((round + (uint64_t)shmem_my_pe()) % MEMORIES);
    tensors_reset();
    broadcast(t, dtype, nelems, round, memory, round % 2);
    tensors_reset();
    all_to_all(t, dtype, nelems, round, memory);
    tensors_reset();
    all_to_allv(t, dtype, nelems, round, memory);
}

static void nothing_at_all(void) {
    tap_case("no parts, and no memory where nothing goes");
    size_t none[PES_MAX] = {0};
    int error = weft_all_to_allv(SHMEM_TEAM_WORLD, NULL, NULL, NULL, NULL, NULL, NULL, 0, WEFT_U8,
                                 WEFT_STREAM_HOST);
    EXPECT(error == 0, "no parts: %d, %s", error, weft_last_error());
    error = weft_all_to_allv(SHMEM_TEAM_WORLD, NULL, none, NULL, NULL, none, NULL, 1, WEFT_U8,
                             WEFT_STREAM_HOST);
    EXPECT(error == 0, "empty parts: %d, %s", error, weft_last_error());
    error = weft_broadcast(SHMEM_TEAM_WORLD, NULL, NULL, 0, WEFT_U8, 0, WEFT_STREAM_HOST);
    EXPECT(error == 0, "an empty broadcast: %d, %s", error, weft_last_error());
}

int main(void) {
    static const size_t sizes[] = {0, 1, 2, 3, 8, 16, 33, 64, 500, 1025};
    tensors_open(true);
    struct test_team teams[4];
    int nteams = teams_open(teams);
    random_state = (uint64_t)shmem_my_pe() + 3;
    uint64_t round = 0;
    for (int dtype = WEFT_F32; dtype <= DTYPES; dtype++) {
        tap_case(dtype_names[dtype]);
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++, round++)
            for (int team = 0; team < nteams; team++)
                one_of_each(&teams[team], (weft_dtype)dtype, sizes[s], round);
    }
    tap_case("several bands");
    for (round = 1000; round < 1021; round++)
        one_of_each(&teams[round % 2 ? 0 : nteams - 1], round % 3 ? WEFT_I16 : WEFT_C128,
                    round % 3 ? 40003 : 4001, round);
    nothing_at_all();
    shmem_free(heap_arena);
    return tap_finish();
}
