/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: copies, puts and gets inside kernels, by threads, warps and blocks, move all bytes
 * of any size between any addresses, and touch no bytes beside them. PEs: 1 2 3 4 */
#include "gpu/handles.h"
#include "gpu/own_memory.h"
#include "gpu/device_copies/task.h"

/* A place holds the largest piece, misaligned by 15 bytes, and a guard after it. */
enum { BLOCKS = 2, THREADS = 80, PIECES = 64, LARGE = 6000, PLACE = LARGE + 48, SMALL = 100 };

static char *dests, *sources; /* symmetric: [member][piece] of PLACE bytes */
static size_t room;
static uint64_t round_key;

/* Returns piece i of a member's call; all members draw equal ones. Sizes from 0 on, a few large. */
static struct copies_piece piece_of(const weft_device_team *t, int member, unsigned i) {
    uint64_t key = (round_key * 64 + (uint64_t)member) * 1024 + i * 4;
    uint32_t most = i % 8 == 0 ? LARGE : SMALL, bytes = (uint32_t)gpu_draw(key, most + 1);
    int other = (int)gpu_draw(key + 1, (uint64_t)t->n);
    uint32_t place = ((uint32_t)member * PIECES + i) * PLACE;
    uint32_t to = place + (uint32_t)gpu_draw(key + 2, 16);
    uint32_t from = place + (uint32_t)gpu_draw(key + 3, 16);
    if (i % 16 == 1) /* equal alignment on both sides, the usual case */
        from = place + to % 16;
    return (struct copies_piece){to, from, bytes, other};
}

/* Returns the content of a member's sources. */
static const unsigned char *sources_of(int member) {
    return gpu_data(room, round_key * 64 + 1000000 + (uint64_t)member);
}

/* A put to this member brings the putter's bytes; a get by this one brings the other member's. */
static void expect(const weft_device_team *t, int kind, int scope) {
    const unsigned char *held[32];
    unsigned char *expected = malloc(room);
    for (int m = 0; m < t->n; m++)
        held[m] = sources_of(m);
    memset(expected, GPU_POISON, room);
    for (int m = 0; m < t->n; m++)
        for (unsigned i = 0; i < PIECES; i++) {
            struct copies_piece piece = piece_of(t, m, i);
            int holder = kind == COPY_GET ? m : piece.member;
            if (holder != t->me)
                continue;
            const unsigned char *from = held[kind == COPY_GET ? piece.member : m];
            memcpy(expected + piece.to, from + piece.from, piece.bytes);
        }
    gpu_expect(dests, expected, room, "%d by %d, %d members", kind, scope, t->n);
    free(expected);
}

static void copy_by(const weft_device_team *t, int kind, int scope, void *pieces) {
    static struct copies_piece mine[PIECES];
    uint32_t count = PIECES;
    round_key++;
    for (unsigned i = 0; i < PIECES; i++)
        mine[i] = piece_of(t, t->me, i);
    gpu_write(pieces, mine, sizeof mine);
    gpu_write(sources, sources_of(t->me), room);
    gpu_poison(dests, room);
    handles_sync();
    handles_launch("copies_make", BLOCKS, THREADS, t, &kind, &scope, &dests, &sources, &pieces,
                   &count);
    handles_sync();
    expect(t, kind, scope);
    handles_sync();
}

static void copies(const weft_device_team *t) {
    round_key = (uint64_t)t->n << 32; /* equal on all members */
    void *pieces = own_memory(PIECES * sizeof(struct copies_piece));
    for (int turn = 0; turn < gpu_rounds(30, 1); turn++)
        for (int kind = 0; kind < COPY_KINDS; kind++)
            for (int scope = 0; scope < COPY_SCOPES; scope++)
                copy_by(t, kind, scope, pieces);
}

int main(void) {
    shmem_init();
    handles_start();
    room = (size_t)shmem_n_pes() * PIECES * PLACE;
    dests = handles_malloc(room);
    sources = handles_malloc(room);
    tap_case("copies, puts and gets bring all bytes, and no others, by threads, warps and blocks");
    handles_for_each(copies);
    return handles_finish();
}
