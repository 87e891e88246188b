/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: puts and gets of all sizes and offsets, strided and in blocks, blocking or not,
 * between the heap, the statics and private memory. PEs: 2 4
 * Far: each
 * Far: cyclic:2 seed=5,reorder=16,delay_us=30,refuse=5 */
#include <string.h>
#include "draw.h"

enum { BYTES = 1 << 17, GETS = 16, NELEMS = 3000, STRIDE_MAX = 5 };

static unsigned char statics[BYTES], *heap, *private;
static short strided[NELEMS * STRIDE_MAX], short_source[NELEMS * STRIDE_MAX];
static int me, npes;

/* Returns where either side of an access may be. */
static unsigned char *place(uint64_t which) {
    return which % 2 ? heap : statics;
}

static void get_all_sizes(int count) {
    uint64_t state = (uint64_t)me;
    fill(statics, BYTES, (uint64_t)me * 2);
    fill(heap, BYTES, (uint64_t)me * 2 + 1);
    shmem_barrier_all();
    for (int i = 0; i < count; i++) {
        int pe = (int)(draw(&state) % (uint64_t)npes);
        uint64_t which = draw(&state) % 2;
        size_t bytes = draw_size(&state, BYTES), offset = draw(&state) % (BYTES - bytes + 1);
        memset(private, 0xaa, bytes + 1);
        shmem_getmem(private, place(which) + offset, bytes, pe);
        for (size_t k = 0; k < bytes; k++)
            if (private[k] != byte_of((uint64_t)pe * 2 + which, offset + k)) {
                EXPECT(false, "byte %zu of %zu from PE %d at %zu", k, bytes, pe, offset);
                break;
            }
        EXPECT(private[bytes] == 0xaa, "a get of %zu bytes wrote behind them", bytes);
    }
}

static void get_without_waiting(int count) {
    uint64_t state = (uint64_t)me + 77;
    for (int i = 0; i < count; i++) {
        struct {
            int pe;
            size_t bytes, offset;
        } gets[GETS];
        for (int k = 0; k < GETS; k++) {
            gets[k].pe = (int)(draw(&state) % (uint64_t)npes);
            gets[k].bytes = draw_size(&state, BYTES / GETS);
            gets[k].offset = draw(&state) % (BYTES - gets[k].bytes + 1);
            shmem_getmem_nbi(private + k * (BYTES / GETS), heap + gets[k].offset, gets[k].bytes,
                             gets[k].pe);
        }
        shmem_quiet();
        for (int k = 0; k < GETS; k++)
            for (size_t b = 0; b < gets[k].bytes; b++)
                if (private[k * (BYTES / GETS) + b] !=
                    byte_of((uint64_t)gets[k].pe * 2 + 1, gets[k].offset + b)) {
                    EXPECT(false, "byte %zu of %zu from PE %d", b, gets[k].bytes, gets[k].pe);
                    break;
                }
    }
    shmem_barrier_all();
}

/* Every PE puts to its own part of every other PE's memory, at odd places; no other memory
 * changes. */
static void put_all_sizes(int count) {
    uint64_t state = (uint64_t)me + 5;
    size_t part = BYTES / (size_t)npes, mine = (size_t)me * part;
    unsigned char *model = malloc(part);
    for (int i = 0; i < count; i++) {
        int pe = (int)(draw(&state) % (uint64_t)npes);
        unsigned char *dest = place(draw(&state));
        size_t bytes = draw_size(&state, part), offset = draw(&state) % (part - bytes + 1);
        shmem_getmem(model, dest + mine, part, pe);
        fill(private, bytes, state);
        memcpy(model + offset, private, bytes);
        if (i % 2)
            shmem_putmem(dest + mine + offset, private, bytes, pe);
        else
            shmem_putmem_nbi(dest + mine + offset, private, bytes, pe);
        shmem_quiet();
        shmem_getmem(private, dest + mine, part, pe);
        EXPECT(memcmp(private, model, part) == 0, "%zu bytes at %zu of PE %d", bytes, offset, pe);
    }
    free(model);
    shmem_barrier_all();
}

/* Elements of two bytes in blocks: with a block of 1, iput and iget. */
static void move_strided(int count) {
    uint64_t state = (uint64_t)me + 9;
    int to = (me + 1) % npes, from = (me + npes - 1) % npes;
    for (int i = 0; i < count; i++) {
        ptrdiff_t dest_stride = 1 + (ptrdiff_t)(draw(&state) % STRIDE_MAX);
        ptrdiff_t source_stride = 1 + (ptrdiff_t)(draw(&state) % STRIDE_MAX);
        size_t nelems = 1 + draw(&state) % NELEMS;
        for (size_t k = 0; k < NELEMS * STRIDE_MAX; k++)
            short_source[k] = (short)(me * 100 + i + (int)k);
        memset(strided, 0, sizeof strided);
        shmem_barrier_all();
        shmem_short_iput(strided, short_source, dest_stride, source_stride, nelems, to);
        shmem_barrier_all();
        /* PEs draw different numbers: the first element identifies the data. */
        EXPECT(strided[0] == (short)(from * 100 + i), "first element %d", strided[0]);
        static short taken[NELEMS * STRIDE_MAX];
        memset(taken, 0, sizeof taken);
        shmem_short_iget(taken, strided, source_stride, dest_stride, nelems, to);
        size_t wrong = 0;
        for (size_t k = 0; k < nelems; k++)
            wrong +=
                taken[(ptrdiff_t)k * source_stride] != short_source[(ptrdiff_t)k * source_stride];
        EXPECT(wrong == 0, "%zu of %zu elements, strides %td and %td", wrong, nelems, dest_stride,
               source_stride);
        size_t touched = 0;
        for (size_t k = 0; k < NELEMS * STRIDE_MAX; k++)
            touched += taken[k] != 0 && k % (size_t)source_stride != 0;
        EXPECT(touched == 0, "%zu elements between the others", touched);
        shmem_barrier_all();
    }
}

static void move_blocks(int count) {
    uint64_t state = (uint64_t)me + 13;
    int to = (me + 1) % npes;
    for (int i = 0; i < count; i++) {
        size_t bsize = 1 + draw(&state) % 40, nblocks = 1 + draw(&state) % (NELEMS / bsize);
        ptrdiff_t gap = (ptrdiff_t)(bsize + draw(&state) % bsize);
        static short taken[NELEMS * STRIDE_MAX];
        for (size_t k = 0; k < NELEMS * STRIDE_MAX; k++)
            short_source[k] = (short)(me * 1000 + i + (int)k);
        shmem_barrier_all();
        shmem_short_ibput(strided, short_source, gap, (ptrdiff_t)bsize, bsize, nblocks, to);
        shmem_quiet();
        shmem_short_ibget(taken, strided, (ptrdiff_t)bsize, gap, bsize, nblocks, to);
        EXPECT(memcmp(taken, short_source, bsize * nblocks * sizeof *taken) == 0,
               "%zu blocks of %zu", nblocks, bsize);
        shmem_barrier_all();
    }
}

static void move_elements(int count) {
    static int64_t array[64];
    for (int pe = 0; pe < npes; pe++)
        for (int i = 0; i < count; i++) {
            shmem_int64_p(&array[me], i, pe);
            int64_t seen = shmem_int64_g(&array[me], pe);
            EXPECT(seen == i, "PE %d has %ld behind a p of %d", pe, (long)seen, i);
        }
}

int main(void) {
    shmem_init();
    me = shmem_my_pe();
    npes = shmem_n_pes();
    tap_start(me);
    heap = shmem_malloc(BYTES);
    private = malloc(BYTES + 1);
    tap_case("gets of all sizes");
    get_all_sizes(rounds(60));
    tap_case("gets that nobody waits for");
    get_without_waiting(rounds(10));
    tap_case("puts of all sizes");
    put_all_sizes(rounds(30));
    tap_case("strided");
    move_strided(rounds(15));
    tap_case("in blocks");
    move_blocks(rounds(15));
    tap_case("single elements, a get behind a put");
    move_elements(rounds(50));
    free(private);
    shmem_barrier_all();
    int result = tap_finish();
    shmem_finalize();
    return result;
}
