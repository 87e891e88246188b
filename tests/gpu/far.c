/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: GPU memory of far PEs: a signal arrives after its data, whichever of the two is in
 * GPU memory; fences order both kinds of memory; after a quiet the data have arrived; near and far
 * atomics on one word are atomic; a PE that computes is served; memory that has just grown can be
 * accessed; and no kernel gets an address of it. PEs: 1 2 3 4
 * Far: each seed=7,reorder=16,delay_us=50
 * Far: cyclic:2 seed=3,reorder=8,refuse=10
 * Far: cyclic:2 seed=5,reorder=16,delay_us=200 WEFT_PROXIES=host */
#include <errno.h>
#include "gpu/gpu.h"
#include <weft.h>
#include <weft/device.cuh>
#include "reach.h"

enum { HOST, DEVICE, SPACES, BYTES_MAX = 1200000, WORDS = 4 };

static int me, npes, to, from;
static unsigned char *inbox[SPACES], *source[SPACES];
static uint64_t *words[SPACES];
static uint64_t round_number;

static void *alloc(int space, size_t bytes) {
    void *p = shmemx_calloc(space == DEVICE ? SHMEMX_SPACE_DEVICE : SHMEMX_SPACE_HOST, 1, bytes);
    if (!p)
        exit(1);
    return p;
}

static void await(uint64_t *word, uint64_t value) {
    shmem_uint64_wait_until(word, SHMEM_CMP_GE, value);
}

/* Data of a PE in a round: from some bytes to many pieces. */
struct piece {
    size_t bytes, offset;
    uint64_t key;
};
static struct piece piece_of(int sender) {
    uint64_t key = round_number * 64 + (uint64_t)sender;
    size_t most = (size_t)1 << gpu_draw(key * 4, 21), bytes = 1 + gpu_draw(key * 4 + 1, most);
    bytes = bytes < BYTES_MAX ? bytes : BYTES_MAX;
    return (struct piece){bytes, gpu_draw(key * 4 + 2, BYTES_MAX - bytes + 1), key};
}

static void bring(int space, struct piece piece) {
    gpu_write(source[space], gpu_data(piece.bytes, piece.key), piece.bytes);
}

static void expect_piece(int space, const char *what) {
    struct piece piece = piece_of(from);
    gpu_expect(inbox[space] + piece.offset, gpu_data(piece.bytes, piece.key), piece.bytes, "%s",
               what);
}

/* --- Order ----------------------------------------------------------------------------------- */

static void signal_behind_data(int data, int word, int local) {
    struct piece piece = piece_of(me);
    bring(local, piece);
    shmem_putmem_signal(inbox[data] + piece.offset, source[local], piece.bytes, words[word],
                        round_number, SHMEM_SIGNAL_SET, to);
    gpu_poison(source[local], piece.bytes);
    await(words[word], round_number);
    expect_piece(data, "behind its signal");
}

static void fence_between(int data, int word, int local) {
    struct piece piece = piece_of(me);
    bring(local, piece);
    shmem_putmem_nbi(inbox[data] + piece.offset, source[local], piece.bytes, to);
    shmem_fence();
    shmem_uint64_atomic_set(words[word], round_number, to);
    await(words[word], round_number);
    expect_piece(data, "behind a fence");
    shmem_quiet();
}

static void quiet_of_one_between(int data, int word, int local) {
    struct piece piece = piece_of(me);
    bring(local, piece);
    shmem_putmem_nbi(inbox[data] + piece.offset, source[local], piece.bytes, to);
    shmem_pe_quiet(&to, 1);
    shmem_uint64_atomic_set(words[word], round_number, to);
    await(words[word], round_number);
    expect_piece(data, "after a quiet of one PE");
}

static void in_order(void (*how)(int data, int word, int local)) {
    for (int i = 0; i < gpu_rounds(64, 16); i++) {
        round_number++;
        how(i >> 0 & 1, i >> 1 & 1, i >> 2 & 1);
        shmem_barrier_all();
    }
}

/* Words of both kinds, of which the second one of each pair is never ahead. */
static void small_puts(int first) {
    uint64_t rounds = (uint64_t)gpu_rounds(400, 100), base = round_number << 32, seen = base;
    for (int space = 0; space < SPACES; space++)
        shmem_uint64_p(&words[space][1], base, me);
    shmem_barrier_all();
    for (uint64_t i = 1; i <= rounds; i++) {
        shmem_uint64_p(&words[first][1], base + i, to);
        shmem_fence();
        shmem_uint64_p(&words[!first][1], base + i, to);
    }
    while (seen < base + rounds) {
        uint64_t second = shmem_uint64_g(&words[!first][1], me);
        uint64_t before = shmem_uint64_g(&words[first][1], me);
        EXPECT(before >= second, "the first word is %lu, the second one %lu behind",
               (unsigned long)(before - base), (unsigned long)(second - base));
        seen = second;
    }
    shmem_barrier_all();
}

/* Each signal counts the words before it. No PE waits between them, so that many are sent in one
 * message. */
static void signals_in_bursts(int data, int word) {
    uint64_t rounds = (uint64_t)gpu_rounds(400, 100), base = round_number << 32, seen = base, last;
    uint64_t *numbers = (uint64_t *)inbox[data];
    shmem_uint64_p(&words[word][1], base, me);
    shmem_barrier_all();
    for (uint64_t i = 1; i <= rounds; i++) {
        uint64_t value = base + i;
        shmem_uint64_p(&numbers[i * 5 + 1], value, to);
        shmem_putmem_signal(&numbers[i * 5], &value, sizeof value, &words[word][1], value,
                            SHMEM_SIGNAL_SET, to);
    }
    for (; seen < base + rounds; seen = shmem_uint64_g(&words[word][1], me)) {
        last = shmem_uint64_g(&numbers[(seen - base) * 5], me);
        EXPECT(seen == base || last == seen, "signal %lu: %#lx", (unsigned long)(seen - base),
               (unsigned long)last);
    }
    shmem_barrier_all();
    for (uint64_t i = 1; i <= rounds; i++)
        EXPECT(shmem_uint64_g(&numbers[i * 5 + 1], me) == base + i, "word %lu", (unsigned long)i);
    shmem_barrier_all();
}

/* All PEs put to one PE, which has a part of its memory for each. */
static void many_to_one(void) {
    size_t share = BYTES_MAX / (size_t)npes / 8 * 8;
    for (int target = 0; target < npes; target++) {
        uint64_t key = 5000 + (uint64_t)(target * npes);
        shmem_putmem(inbox[DEVICE] + (size_t)me * share, gpu_data(share, key + (uint64_t)me), share,
                     target);
        shmem_barrier_all();
        for (int pe = 0; pe < npes && me == target; pe++)
            gpu_expect(inbox[DEVICE] + (size_t)pe * share, gpu_data(share, key + (uint64_t)pe),
                       share, "from PE %d", pe);
    }
    shmem_barrier_all();
}

/* One PE puts and completes, another one signals the target, through a path of its own. */
static void quiet_completes(void) {
    for (int i = 0; i < gpu_rounds(40, 12) && npes > 2; i++) {
        int writer = i % npes, target = (i + 1) % npes, teller = (i + 2) % npes;
        round_number++;
        from = writer;
        if (me == writer) {
            struct piece piece = piece_of(me);
            bring(i & 1, piece);
            shmem_putmem_nbi(inbox[DEVICE] + piece.offset, source[i & 1], piece.bytes, target);
            shmem_quiet();
            shmem_uint64_p(&words[HOST][2], round_number, teller);
        } else if (me == teller) {
            await(&words[HOST][2], round_number);
            shmem_uint64_p(&words[HOST][2], round_number, target);
        } else if (me == target) {
            await(&words[HOST][2], round_number);
            expect_piece(DEVICE, "behind a quiet");
        }
        shmem_barrier_all();
    }
    from = (me + npes - 1) % npes;
}

/* --- Words ----------------------------------------------------------------------------------- */

static void atomics(void) {
    enum { EACH = 60 };
    static uint64_t bits, fetched, sum;
    uint64_t *word = words[DEVICE] + 3;
    uint32_t *half = (uint32_t *)(words[DEVICE] + 2);
    shmem_uint64_atomic_set(word, 0, me);
    shmem_uint64_atomic_set(words[DEVICE] + 2, 0, me);
    fetched = sum = 0;
    shmem_barrier_all();
    for (int i = 0; i < EACH; i++) {
        bits = shmem_uint64_atomic_fetch_add(word, 1, 0);
        fetched += bits;
        shmem_uint32_atomic_inc(half, 0);
        uint32_t before = shmem_uint32_atomic_fetch(half + 1, 0), seen;
        while ((seen = shmem_uint32_atomic_compare_swap(half + 1, before, before + 1, 0)) != before)
            before = seen;
    }
    shmem_quiet();
    shmem_sum_reduce(SHMEM_TEAM_WORLD, &sum, &fetched, 1);
    uint64_t all = (uint64_t)npes * EACH;
    EXPECT(sum == all * (all - 1) / 2, "each number is fetched once: %lu", (unsigned long)sum);
    EXPECT(shmem_uint64_g(word, 0) == all, "%lu of %lu", (unsigned long)shmem_uint64_g(word, 0),
           (unsigned long)all);
    EXPECT(shmem_uint32_g(half, 0) == all && shmem_uint32_g(half + 1, 0) == all, "%u, %u of %lu",
           shmem_uint32_g(half, 0), shmem_uint32_g(half + 1, 0), (unsigned long)all);
    shmem_barrier_all();
}

/* Without a call of the target's. */
static void computing(void) {
    volatile uint64_t *told = words[HOST] + 3;
    for (int turn = 0; turn < npes && npes > 1; turn++) {
        round_number++;
        if (me == turn) {
            while (__atomic_load_n(told, __ATOMIC_ACQUIRE) < round_number)
                continue;
        } else if (me == (turn + 1) % npes) {
            struct piece piece = piece_of(me);
            bring(HOST, piece);
            shmem_putmem(inbox[DEVICE] + piece.offset, source[HOST], piece.bytes, turn);
            shmem_uint64_atomic_add(words[DEVICE], 1, turn);
            shmem_getmem(source[DEVICE], inbox[DEVICE] + piece.offset, piece.bytes, turn);
            gpu_expect(source[DEVICE], gpu_data(piece.bytes, piece.key), piece.bytes, "got back");
            shmem_uint64_p(words[HOST] + 3, round_number, turn);
        }
        shmem_barrier_all();
    }
}

/* --- Memory ---------------------------------------------------------------------------------- */

static void growth(void) {
    enum { OBJECTS = 5 };
    unsigned char *p[OBJECTS];
    size_t bytes = 3 << 20;
    for (int i = 0; i < OBJECTS; i++, bytes *= 2) {
        p[i] = shmemx_malloc(SHMEMX_SPACE_DEVICE, bytes);
        EXPECT(p[i], "%zu bytes: %s", bytes, weft_last_error());
        uint64_t key = 1000 + (uint64_t)(i * npes);
        shmem_putmem(p[i] + bytes - 1001, gpu_data(1001, key + (uint64_t)me), 1001, to);
        shmem_barrier_all();
        gpu_expect(p[i] + bytes - 1001, gpu_data(1001, key + (uint64_t)from), 1001, "object %d", i);
    }
    for (int i = 0; i < OBJECTS; i++)
        shmem_free(p[i]);
}

static void addresses(void) {
    for (int pe = 0; pe < npes; pe++) {
        EXPECT(!shmem_ptr(inbox[DEVICE], pe), "PE %d", pe);
        bool near = shmemx_ptr(SHMEMX_SPACE_DEVICE, inbox[DEVICE], pe);
        EXPECT(near == reach_is_near(pe), "PE %d: %d", pe, near);
        EXPECT(shmem_addr_accessible(inbox[DEVICE], pe), "PE %d", pe);
    }
    weft_device_team handle;
    int rc = shmemx_device_team(SHMEM_TEAM_WORLD, 1, 16, &handle);
    if (reach_is_near_to_all())
        EXPECT(rc == 0 && shmemx_device_team_free(&handle) == 0, "%d: %s", rc, weft_last_error());
    else
        EXPECT(rc == -ENOTSUP && strstr(weft_last_error(), "far"), "%d: %s", rc, weft_last_error());
    EXPECT(shmemx_device_team(SHMEM_TEAM_SHARED, 1, 16, &handle) == 0, "%s", weft_last_error());
    EXPECT(shmemx_device_team_free(&handle) == 0, "%s", weft_last_error());
}

int main(void) {
    shmem_init();
    me = shmem_my_pe();
    npes = shmem_n_pes();
    to = (me + 1) % npes;
    from = (me + npes - 1) % npes;
    gpu_start();
    for (int space = 0; space < SPACES; space++) {
        inbox[space] = alloc(space, BYTES_MAX);
        source[space] = alloc(space, BYTES_MAX);
        words[space] = alloc(space, WORDS * sizeof(uint64_t));
    }
    tap_case("a signal comes behind its data");
    in_order(signal_behind_data);
    tap_case("a fence orders both kinds of memory");
    in_order(fence_between);
    tap_case("so does a quiet of one PE");
    in_order(quiet_of_one_between);
    tap_case("small puts are in order");
    small_puts(DEVICE);
    round_number++;
    small_puts(HOST);
    for (int i = 0; i < 4; i++, round_number++)
        signals_in_bursts(i & 1, i >> 1);
    tap_case("all put to one at once");
    many_to_one();
    tap_case("behind a quiet all is there");
    quiet_completes();
    tap_case("atomics");
    atomics();
    tap_case("a PE that computes is served");
    computing();
    tap_case("memory that has just grown");
    growth();
    tap_case("addresses");
    addresses();
    return gpu_finish();
}
