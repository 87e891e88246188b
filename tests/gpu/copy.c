/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: copies by multiprocessors and by copy engines: random sizes and offsets in every
 * direction, strided blocks with steps of either sign, small copies with a signal, and the choice
 * of the engine. PEs: 1 2 4 */
#include "inside.h"
#include "base/env.h"
#include "transport/gpu_copy.h"

enum { LARGE = 3 << 20, MARGIN = 64, AREA = LARGE + 4 * MARGIN };

static char *device, *target; /* in this PE's own GPU memory */
static char *lent;            /* of which the PE before this one has the use */
static char *registered;      /* in the host heap */
static char *plain;           /* in memory unknown to CUDA */
static uint64_t keys;         /* one for each draw */
static int rounds;            /* of each kind of copy */
static weft_cu_stream stream; /* not the stream of host calls, which prefer copy engines */

static uint64_t draw(uint64_t limit) {
    return gpu_draw(UINT64_C(1000000) * (uint64_t)(me + 1) + keys++, limit);
}

/* All magnitudes are equally likely, including 0. */
static size_t draw_bytes(size_t limit) {
    size_t bytes = draw((uint64_t)2 << draw(23));
    return bytes < limit ? bytes : bytes % limit;
}

/* --- Whole areas ------------------------------------------------------------------------------ */

static void copy_once(char *to, const char *from, size_t bytes, enum weft_direction direction,
                      const char *what) {
    size_t to_offset = MARGIN + draw(MARGIN), from_offset = draw(MARGIN);
    const char *data = gpu_data(bytes, keys + (uint64_t)me * 1000000);
    gpu_write((void *)(from + from_offset), data, bytes);
    gpu_poison(to, to_offset + bytes + MARGIN);
    INSIDE(weft_gpu_copy(to + to_offset, from + from_offset, bytes, direction, stream));
    inside_synchronize(stream);
    gpu_expect(to + to_offset, data, bytes, "%s, %zu bytes from offset %zu to %zu", what, bytes,
               from_offset, to_offset);
    gpu_expect_poison(to, to_offset, "in front of a copy");
    gpu_expect_poison(to + to_offset + bytes, MARGIN, "behind a copy");
}

static void copies(enum weft_copy_engine engine, const char *name) {
    char *peer = weft_device_near(lent, AREA, next);
    const struct {
        const char *what;
        char *to, *from;
        enum weft_direction direction;
    } ways[] = {
        {"within", target, device, WEFT_WITHIN},
        {"to a peer", peer, device, WEFT_TO_PEER},
        {"from a peer", target, peer, WEFT_FROM_PEER},
        {"to the host", registered, device, WEFT_TO_HOST},
        {"from the host", target, registered, WEFT_FROM_HOST},
        {"to private host memory", plain, device, WEFT_TO_HOST},
        {"from private host memory", target, plain, WEFT_FROM_HOST},
        {"from host to host", registered, plain, WEFT_TO_HOST},
    };
    tap_case(name);
    weft_engine_set(engine);
    for (size_t way = 0; way < sizeof ways / sizeof ways[0]; way++)
        for (int round = 0; round < rounds; round++)
            copy_once(ways[way].to, ways[way].from, round < 24 ? (size_t)round : draw_bytes(LARGE),
                      ways[way].direction, ways[way].what);
    weft_engine_set(WEFT_ENGINE_AUTO);
}

/* All alignments of both sides, at sizes around a vector. */
static void alignments(void) {
    tap_case("every pair of alignments");
    char *peer = weft_device_near(lent, AREA, next);
    for (size_t to = 0; to < 16; to++)
        for (size_t from = 0; from < 16; from++) {
            size_t bytes = 1 + draw(100);
            const char *data = gpu_data(MARGIN + 256, keys);
            gpu_write(device, data, MARGIN + 256);
            gpu_poison(peer, MARGIN + 256);
            weft_engine_set(WEFT_ENGINE_SM);
            INSIDE(weft_gpu_copy(peer + to, device + from, bytes, WEFT_TO_PEER, stream));
            inside_synchronize(stream);
            gpu_expect(peer + to, data + from, bytes, "%zu bytes, %zu to %zu", bytes, from, to);
            gpu_expect_poison(peer, to, "in front of a copy");
            gpu_expect_poison(peer + to + bytes, MARGIN, "behind a copy");
        }
    weft_engine_set(WEFT_ENGINE_AUTO);
}

/* --- Blocks ----------------------------------------------------------------------------------- */

struct blocks {
    size_t bytes, nblocks;
    ptrdiff_t to_step, from_step;
};

/* Blocks must not overlap where they are written; they may where they are read. */
static struct blocks draw_blocks(void) {
    struct blocks b = {.bytes = (size_t)1 << draw(5), .nblocks = 1 + draw(200)};
    if (draw(3) == 0)
        b.bytes = 1 + draw(3000);
    size_t unit = draw(2) ? b.bytes : 1;
    b.to_step = (ptrdiff_t)(b.bytes + unit * draw(4));
    b.from_step = (ptrdiff_t)(unit * draw(5));
    if (draw(2))
        b.to_step = -b.to_step;
    if (draw(2))
        b.from_step = -b.from_step;
    return b;
}

static size_t span(ptrdiff_t step, const struct blocks *b) {
    return (size_t)(step < 0 ? -step : step) * (b->nblocks - 1) + b->bytes;
}

static size_t first(ptrdiff_t step, const struct blocks *b) {
    return step < 0 ? span(step, b) - b->bytes : 0;
}

static void blocks_once(char *to, char *from) {
    struct blocks b = draw_blocks();
    size_t to_bytes = span(b.to_step, &b) + 2 * MARGIN, from_bytes = span(b.from_step, &b);
    size_t to_first = MARGIN + first(b.to_step, &b), from_first = first(b.from_step, &b);
    const char *data = gpu_data(from_bytes, keys + (uint64_t)me * 1000000);
    char *expected = malloc(to_bytes);
    memset(expected, GPU_POISON, to_bytes);
    for (size_t i = 0; i < b.nblocks; i++)
        memcpy(expected + to_first + (ptrdiff_t)i * b.to_step,
               data + from_first + (ptrdiff_t)i * b.from_step, b.bytes);
    gpu_write(from, data, from_bytes);
    gpu_poison(to, to_bytes);
    struct weft_array from_array = {from + from_first, b.from_step, NULL};
    INSIDE(weft_gpu_copy_blocks((struct weft_array){to + to_first, b.to_step, NULL}, from_array,
                                b.bytes, b.nblocks, stream));
    inside_synchronize(stream);
    gpu_expect(to, expected, to_bytes, "%zu blocks of %zu bytes, steps of %td from %td", b.nblocks,
               b.bytes, b.to_step, b.from_step);
    free(expected);
}

static void blocks(void) {
    tap_case("blocks apart, steps of either sign");
    char *peer = weft_device_near(lent, AREA, next);
    for (int round = 0; round < rounds; round++) {
        blocks_once(peer, device);
        blocks_once(target, peer);
        blocks_once(registered, device);
    }
    INSIDE(weft_gpu_copy_blocks((struct weft_array){0}, (struct weft_array){0}, 0, 7, stream));
    INSIDE(weft_gpu_copy_blocks((struct weft_array){0}, (struct weft_array){0}, 7, 0, stream));
}

/* --- A copy and its signal -------------------------------------------------------------------- */

static void put_signal_once(char *to, uint64_t *word, size_t bytes, bool add) {
    size_t offset = draw(MARGIN);
    uint64_t before = draw(UINT64_MAX), value = draw(UINT64_MAX);
    uint64_t after = add ? before + value : value;
    const char *data = gpu_data(bytes, keys + (uint64_t)me * 1000000);
    gpu_write(device, data, bytes);
    gpu_poison(to, offset + bytes + MARGIN);
    gpu_write(word, &before, sizeof before);
    struct weft_put_signal put = {
        to + offset, device, bytes, word, value, add ? WEFT_SIGNAL_ADD : WEFT_SIGNAL_SET, true};
    INSIDE(weft_gpu_put_signal(&put, stream));
    inside_synchronize(stream);
    gpu_expect(to + offset, data, bytes, "%zu bytes with a signal", bytes);
    gpu_expect_poison(to + offset + bytes, MARGIN, "behind a copy");
    gpu_expect(word, &after, sizeof after, "the signal of %zu bytes, %s", bytes,
               add ? "added" : "set");
}

static void put_signals(void) {
    tap_case("small copies with a signal, set or added");
    char *peer = weft_device_near(lent, AREA, next);
    uint64_t *word = (uint64_t *)(peer + AREA - 8);
    for (int round = 0; round < rounds; round++)
        put_signal_once(peer, word, draw_bytes(WEFT_GPU_SMALL + 1), round % 2);
    put_signal_once(peer, word, 0, true);
    put_signal_once(peer, word, WEFT_GPU_SMALL, false);
    put_signal_once(registered, (uint64_t *)(registered + AREA - 8), 100,
                    weft_device.gpu->host_atomics);
}

/* --- Which engine ----------------------------------------------------------------------------- */

static void choices(void) {
    tap_case("sizes choose the engine, unless the user does");
    weft_engine_set(WEFT_ENGINE_AUTO);
    for (int i = 0; i < WEFT_DIRECTIONS; i++) {
        enum weft_direction direction = (enum weft_direction)i;
        char line[128] = "";
        weft_engine_describe(line, sizeof line, direction);
        EXPECT((strstr(line, " SM ") != NULL) ==
                   (weft_engine_choose(direction, 8) == WEFT_ENGINE_SM),
               "8 bytes: %s", line);
        EXPECT(weft_engine_choose(direction, SIZE_MAX) == WEFT_ENGINE_COPY, "the most: %s", line);
    }
    weft_engine_set(WEFT_ENGINE_SM);
    EXPECT(weft_engine_choose(WEFT_TO_PEER, SIZE_MAX) == WEFT_ENGINE_SM, "SM was asked for");
    weft_engine_set(WEFT_ENGINE_COPY);
    EXPECT(weft_engine_choose(WEFT_TO_PEER, 8) == WEFT_ENGINE_COPY, "COPY was asked for");
    weft_engine_set(WEFT_ENGINE_AUTO);
}

int main(void) {
    shmem_init();
    inside_start();
    stream = gpu_stream_new();
    rounds = gpu_rounds(60, 32);
    device = inside_malloc(AREA);
    target = inside_malloc(AREA);
    lent = inside_malloc(AREA);
    registered = shmem_malloc(AREA);
    plain = malloc(AREA);
    shmem_barrier_all();
    copies(WEFT_ENGINE_SM, "copies by multiprocessors");
    copies(WEFT_ENGINE_COPY, "copies by copy engines");
    copies(WEFT_ENGINE_AUTO, "copies by whichever is faster");
    alignments();
    blocks();
    put_signals();
    choices();
    shmem_barrier_all();
    free(plain);
    return gpu_finish();
}
