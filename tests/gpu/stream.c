/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: puts and gets in the order of a stream, by both engines, between device heap, host
 * heap, statics and the program's own memory of either kind, to every PE, of odd sizes at odd
 * offsets, without changes around them; and refused arguments.
 * PEs: 1 2 3 4, also staged
 * Far: cyclic:2 seed=7,reorder=16 */
#include <errno.h>
#include "on_stream.h"
#include "own_memory.h"

enum { LARGEST = 1 << 20, AROUND = 64, ROOM = LARGEST + 4 * AROUND };

static unsigned char statics[2][ROOM];

/* Memory of one kind: the destinations and the sources. */
struct place {
    const char *name;
    unsigned char *to, *from;
    bool symmetric;
};
static struct place places[5];
enum { SYMMETRIC = 3, PLACES = 5 };

static void make_places(void) {
    enum { BYTES = 2 * ROOM };
    unsigned char *device = allocated(shmemx_malloc(SHMEMX_SPACE_DEVICE, BYTES));
    unsigned char *host = allocated(shmem_malloc(BYTES)), *own_host = allocated(malloc(BYTES));
    unsigned char *own_device = own_memory(BYTES);
    places[0] = (struct place){"the device heap", device, device + ROOM, true};
    places[1] = (struct place){"the host heap", host, host + ROOM, true};
    places[2] = (struct place){"statics", statics[0], statics[1], true};
    places[3] = (struct place){"own device memory", own_device, own_device + ROOM, false};
    places[4] = (struct place){"own host memory", own_host, own_host + ROOM, false};
}

static const char *const engines[] = {"auto", "SM", "copy engine"};

/* A copy that all PEs draw equally. */
struct draw {
    size_t bytes, to, from;
    int distance; /* of the other PE */
};

static struct draw draw(uint64_t key) {
    static const size_t sizes[] = {1, 2, 3, 4, 8, 15, 16, 17, 63, 255, 4096, 32767, 32768, 32769};
    struct draw it;
    size_t n = sizeof sizes / sizeof *sizes;
    size_t kind = gpu_draw(key, n + 3);
    it.bytes = kind < n ? sizes[kind] : 1 + gpu_draw(key + 1, kind == n ? LARGEST : 5000);
    bool aligned = gpu_draw(key + 2, 3) == 0;
    it.to = AROUND + (aligned ? 0 : gpu_draw(key + 3, AROUND));
    it.from = AROUND + (aligned ? 0 : gpu_draw(key + 4, AROUND));
    it.distance = (int)gpu_draw(key + 5, (uint64_t)shmem_n_pes());
    return it;
}

static void expect_only(const struct place *at, const struct draw *it, uint64_t key,
                        const char *what, const char *from, const char *engine) {
    gpu_expect(at->to + it->to, gpu_data(it->bytes, key), it->bytes,
               "%s of %zu bytes to %s + %zu from %s + %zu by %s", what, it->bytes, at->name, it->to,
               from, it->from, engine);
    gpu_expect_poison(at->to, it->to, "before the destination");
    gpu_expect_poison(at->to + it->to + it->bytes, AROUND, "behind the destination");
}

static void put_one(const struct place *to, const struct place *from, int engine, uint64_t key) {
    int me = shmem_my_pe(), npes = shmem_n_pes();
    struct draw it = draw(key * 16);
    uint64_t mine = key * 4096 + (uint64_t)me;
    int pe = (me + it.distance) % npes, writer = (me + npes - it.distance) % npes;
    gpu_poison(to->to, it.to + it.bytes + AROUND);
    gpu_write(from->from + it.from, gpu_data(it.bytes, mine), it.bytes);
    shmem_barrier_all();
    ON(putmem_on_stream(to->to + it.to, from->from + it.from, it.bytes, pe, gpu_stream));
    ON(quiet_on_stream(gpu_stream));
    gpu_drain(gpu_stream);
    shmem_barrier_all();
    expect_only(to, &it, key * 4096 + (uint64_t)writer, "put", from->name, engines[engine]);
}

static void get_one(const struct place *to, const struct place *from, int engine, uint64_t key) {
    int me = shmem_my_pe(), npes = shmem_n_pes();
    struct draw it = draw(key * 16);
    int pe = (me + it.distance) % npes;
    gpu_poison(to->to, it.to + it.bytes + AROUND);
    gpu_write(from->from + it.from, gpu_data(it.bytes, key * 4096 + (uint64_t)me), it.bytes);
    shmem_barrier_all();
    ON(getmem_on_stream(to->to + it.to, from->from + it.from, it.bytes, pe, gpu_stream));
    gpu_drain(gpu_stream);
    expect_only(to, &it, key * 4096 + (uint64_t)pe, "get", from->name, engines[engine]);
    shmem_barrier_all();
}

static void copies(void) {
    enum { ROUNDS = 4 };
    uint64_t key = 1;
    for (int engine = 0; engine < 3; engine++) {
        shmemx_set_engine((shmemx_engine_t)engine);
        tap_case(engines[engine]);
        for (int s = 0; s < SYMMETRIC; s++)
            for (int local = 0; local < PLACES; local++)
                for (int round = 0; round < ROUNDS; round++, key += 2) {
                    put_one(&places[s], &places[local], engine, key);
                    get_one(&places[local], &places[s], engine, key + 1);
                }
    }
    shmemx_set_engine(SHMEMX_ENGINE_AUTO);
}

/* Copies on one stream need no synchronisation: the next reads what the last one wrote. */
static void in_order(void) {
    tap_case("a chain of copies on one stream, and on the default stream");
    unsigned char *a = places[0].to, *b = places[0].from, *c = places[1].to;
    int me = shmem_my_pe();
    weft_cu_stream streams[] = {gpu_stream, NULL};
    for (int s = 0; s < 2; s++) {
        uint64_t key = 1000000 + (uint64_t)(10 * s + me) * 100;
        gpu_write(a, gpu_data(LARGEST, key), LARGEST);
        gpu_poison(b, LARGEST);
        gpu_poison(c, LARGEST);
        ON(putmem_on_stream(b, a, LARGEST, me, streams[s]));
        ON(putmem_on_stream(c, b, LARGEST, me, streams[s]));
        ON(getmem_on_stream(b + 1, c, LARGEST - 1, me, streams[s]));
        gpu_drain(streams[s]);
        gpu_expect(c, gpu_data(LARGEST, key), LARGEST, "the second copy");
        gpu_expect(b + 1, gpu_data(LARGEST, key), LARGEST - 1, "the third copy");
    }
}

/* Operations that the host has begun are complete when the stream continues. */
static void quiet(void) {
    tap_case("quiet on a stream completes puts that the host has begun");
    int me = shmem_my_pe(), npes = shmem_n_pes(), right = (me + 1) % npes;
    uint64_t key = 2000000;
    for (int round = 0; round < 5; round++, key += 16) {
        gpu_poison(places[0].to, LARGEST);
        gpu_write(places[0].from, gpu_data(LARGEST, key + (uint64_t)me), LARGEST);
        shmem_barrier_all();
        shmem_putmem_nbi(places[0].to, places[0].from, LARGEST, right);
        ON(quiet_on_stream(gpu_stream));
        ON(getmem_on_stream(places[1].to, places[0].to, LARGEST, right, gpu_stream));
        gpu_drain(gpu_stream);
        gpu_expect(places[1].to, gpu_data(LARGEST, key + (uint64_t)me), LARGEST, "round %d", round);
        shmem_barrier_all();
    }
}

#define REFUSED(error, name, call)                                                          \
    do {                                                                                    \
        int rc = call;                                                                      \
        EXPECT(rc == (error), "%s: %d, not %d", #call, rc, error);                          \
        EXPECT(strstr(weft_last_error(), name), "%s: says '%s'", #call, weft_last_error()); \
    } while (0)

static void refused(void) {
    tap_case("what is wrong is refused, with its name");
    static uint64_t word;
    unsigned char stack[64], *there = places[0].to;
    int npes = shmem_n_pes();
    REFUSED(-ERANGE, "pe", shmemx_putmem_on_stream(there, stack, 8, npes, gpu_stream));
    REFUSED(-ERANGE, "pe", shmemx_getmem_on_stream(stack, there, 8, -1, gpu_stream));
    REFUSED(-EFAULT, "dest", shmemx_putmem_on_stream(stack, there, 8, 0, gpu_stream));
    REFUSED(-EFAULT, "source", shmemx_getmem_on_stream(there, stack, 8, 0, gpu_stream));
    REFUSED(-EINVAL, "source", shmemx_putmem_on_stream(there, NULL, 8, 0, gpu_stream));
    REFUSED(-EINVAL, "dest", shmemx_getmem_on_stream(NULL, there, 8, 0, gpu_stream));
    REFUSED(-EINVAL, "sig_op", shmemx_signal_op_on_stream(&word, 1, 77, 0, gpu_stream));
    REFUSED(
        -EFAULT, "sig_addr",
        shmemx_signal_op_on_stream((uint64_t *)(void *)stack, 1, SHMEM_SIGNAL_SET, 0, gpu_stream));
    uint64_t *askew = (uint64_t *)((char *)there + 4);
    REFUSED(-EINVAL, "sig_addr",
            shmemx_signal_op_on_stream(askew, 1, SHMEM_SIGNAL_SET, 0, gpu_stream));
    REFUSED(-EINVAL, "sig_addr",
            shmemx_signal_wait_until_on_stream(askew, SHMEM_CMP_EQ, 0, gpu_stream));
    REFUSED(-EINVAL, "cmp", shmemx_signal_wait_until_on_stream(&word, 77, 0, gpu_stream));
    REFUSED(-EINVAL, "team", shmemx_barrier_on_stream(SHMEM_TEAM_INVALID, gpu_stream));
    REFUSED(-EINVAL, "PE_root",
            shmemx_broadcastmem_on_stream(SHMEM_TEAM_WORLD, there, there, 8, npes, gpu_stream));
    REFUSED(
        -EINVAL, "source",
        shmemx_broadcastmem_on_stream(SHMEM_TEAM_WORLD, there, NULL, 8, shmem_my_pe(), gpu_stream));
    REFUSED(-EFAULT, "dest",
            shmemx_fcollectmem_on_stream(SHMEM_TEAM_WORLD, stack, there, 8, gpu_stream));
    REFUSED(-EFAULT, "dest",
            shmemx_fcollectmem_on_stream(SHMEM_TEAM_WORLD, there, there, SIZE_MAX, gpu_stream));
    REFUSED(-ENOTSUP, "long double",
            shmemx_longdouble_sum_reduce_on_stream(SHMEM_TEAM_WORLD, (long double *)(void *)there,
                                                   (long double *)(void *)there, 1, gpu_stream));
    REFUSED(-EINVAL, "engine", shmemx_set_engine((shmemx_engine_t)9));
    EXPECT(shmemx_putmem_on_stream(NULL, NULL, 0, 0, gpu_stream) == 0, "an empty put");
    EXPECT(shmemx_getmem_on_stream(NULL, NULL, 0, 0, gpu_stream) == 0, "an empty get");
    shmem_barrier_all();
}

/* Memory of the host alone, before the GPUs of all PEs are up. */
static void before(void) {
    tap_case("what needs this PE's GPU alone works before there is device memory");
    int me = shmem_my_pe(), npes = shmem_n_pes(), right = (me + 1) % npes;
    unsigned char *own = own_memory(LARGEST);
    gpu_write(own, gpu_data(4099, 77 + (uint64_t)me), 4099);
    gpu_poison(statics[0], 5000);
    shmem_barrier_all();
    ON(putmem_on_stream(statics[0], own, 4099, right, gpu_stream));
    gpu_drain(gpu_stream);
    shmem_barrier_all();
    gpu_expect(statics[0], gpu_data(4099, 77 + (uint64_t)((me + npes - 1) % npes)), 4099, "put");
    gpu_expect_poison(statics[0] + 4099, 901, "behind it");
    if (npes > 2) {
        shmem_team_t some;
        shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, npes - 1, NULL, 0, &some);
        if (me < npes - 1) {
            REFUSED(-ENODEV, "SHMEM_TEAM_WORLD", shmemx_barrier_on_stream(some, gpu_stream));
            shmem_team_destroy(some);
        }
    }
    shmem_barrier_all();
}

int main(void) {
    shmem_init();
    gpu_start();
    before();
    make_places();
    copies();
    in_order();
    quiet();
    refused();
    return gpu_finish();
}
