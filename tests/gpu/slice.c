/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: slices and signals of 32 bits on streams, with numbers that the host knows and with
 * numbers that the GPU reads: puts and gets of random pieces around the ring, by each engine, in
 * streams and in a graph that is replayed with other numbers; signals with and without data, set
 * and added, negative ones too; the six comparisons; refused arguments; and the behaviour of a
 * kernel that reads an invalid number. PEs: 1 2 3 4 */
#include "inside.h"
#include "graph.h"
#include "on_stream.h"
#include "trap.h"
#include <errno.h>
#include <time.h>
#include "transport/gpu_slice.h"

enum { ROUNDS = 40, ROOM = 150000, WORDS = 7, POISON = 0xee };

/* The numbers that the GPU reads, and the host writes before each round. */
struct numbers {
    int64_t to, from, nelems, index;
    int32_t to32, from32, nelems32, value, bound;
};

static struct numbers *there;
static unsigned char *dest, *source;
static int32_t *words;
static weft_cu_stream stream;
static int left;

static shmemx_number_t value_of(int64_t value) {
    return (shmemx_number_t){.value = value};
}
static shmemx_number_t at(const int64_t *p) {
    return (shmemx_number_t){.at = p, .bytes = 8};
}
static shmemx_number_t at32(const int32_t *p) {
    return (shmemx_number_t){.at = p, .bytes = 4};
}

/* --- Invalid arguments ------------------------------------------------------------------------ */

/* 0 when all is as it should be. */
static int trap(int scene) {
    char *memory = trap_memory(), *array = memory + 4096;
    if (!memory)
        return 1;
    int64_t *number = (int64_t *)memory, wrong = scene == 2 ? INT64_C(1) << 31 : 9;
    if (gpu.cuMemcpyAsync((uintptr_t)number, (uintptr_t)&wrong, 8, trap_gpu->stream) != 0)
        return 2;
    struct weft_gpu_slices slices = {value_of(4), value_of(0), at(number), 12, 12, 4, 5};
    struct weft_gpu_word32 word = {(int32_t *)array, 12, value_of(0), 5};
    struct weft_gpu_word32 beyond = {(int32_t *)array, 9, at(number), 5};
    struct weft_gpu_signal32 signal = {word, at(number), false};
    int error;
    if (scene == 0)
        error = weft_gpu_copy_slice(array, array + 4096, &slices, trap_gpu->stream);
    else if (scene == 1)
        error = weft_gpu_wait32(&beyond, SHMEM_CMP_EQ, value_of(0), trap_gpu->stream);
    else
        error = weft_gpu_signal32(&signal, trap_gpu->stream);
    if (error)
        return 3;
    return gpu.cuStreamSynchronize(trap_gpu->stream) == 0 ? 4 : 0;
}

static const char *const texts[] = {
    "PE 5: the dest of a copy on a stream has 12 elements: the GPU finds that 9 are to be copied, "
    "from number 4 on",
    "PE 5: there are 9 signals: the GPU finds that number 9 is meant",
    "PE 5: a signal has 32 bits: the GPU finds a value of 2147483648",
};
enum { TRAPS = sizeof texts / sizeof *texts };

/* --- Pieces ------------------------------------------------------------------------------------
 */

/* The piece moved in a round; equal on all PEs. */
struct piece {
    size_t elem, array, to, from, nelems; /* array: elements of either side */
};

static struct piece draw(uint64_t key) {
    static const size_t elems[] = {1, 2, 4, 8, 16, 12};
    struct piece piece = {.elem = elems[gpu_draw(key, 6)]};
    piece.array = ROOM / piece.elem - gpu_draw(key + 1, 5);
    size_t most = gpu_draw(key + 2, 3) ? piece.array : 2000 / piece.elem;
    piece.nelems = gpu_draw(key + 3, 8) ? gpu_draw(key + 4, most + 1) : 0;
    piece.to = gpu_draw(key + 5, piece.array - piece.nelems + 1);
    piece.from = gpu_draw(key + 6, piece.array - piece.nelems + 1);
    return piece;
}

static const unsigned char *data_of(uint64_t round, int pe) {
    return gpu_data(ROOM, round * 64 + (uint64_t)pe + 1);
}

static void settle(void) {
    gpu_drain(stream);
    shmem_barrier_all();
}

/* Prepares new data, poison in the destination, and the numbers. */
static void prepare(uint64_t round, const struct piece *piece, const struct numbers *other) {
    struct numbers numbers = *other;
    numbers.to = (int64_t)piece->to, numbers.to32 = (int32_t)piece->to;
    numbers.from = (int64_t)piece->from, numbers.from32 = (int32_t)piece->from;
    numbers.nelems = (int64_t)piece->nelems, numbers.nelems32 = (int32_t)piece->nelems;
    gpu_write(source, data_of(round, me), ROOM);
    gpu_poison(dest, ROOM);
    gpu_write(there, &numbers, sizeof numbers);
    shmem_barrier_all();
}

static void expect_piece(uint64_t round, const struct piece *piece, int from_pe, const char *what) {
    static unsigned char expected[ROOM];
    memset(expected, POISON, ROOM);
    memcpy(expected + piece->to * piece->elem, data_of(round, from_pe) + piece->from * piece->elem,
           piece->nelems * piece->elem);
    gpu_expect(dest, expected, ROOM, "%s: %zu of %zu elements of %zu bytes, %zu to %zu", what,
               piece->nelems, piece->array, piece->elem, piece->from, piece->to);
}

/* Bit by bit, which of the numbers the GPU reads: 1 to, 2 from, 4 nelems; 8: of 32 bits. */
struct call {
    shmemx_slice_t to, from;
    shmemx_number_t nelems;
};

static struct call call_of(const struct piece *piece, unsigned read) {
    struct call call = {{dest, piece->array, value_of((int64_t)piece->to)},
                        {source, piece->array, value_of((int64_t)piece->from)},
                        value_of((int64_t)piece->nelems)};
    if (read & 1)
        call.to.begin = read & 8 ? at32(&there->to32) : at(&there->to);
    if (read & 2)
        call.from.begin = read & 8 ? at32(&there->from32) : at(&there->from);
    if (read & 4)
        call.nelems = read & 8 ? at32(&there->nelems32) : at(&there->nelems);
    return call;
}

static const struct numbers no_more;

static void puts_and_gets(void) {
    static const char *const engines[] = {"auto", "SM", "copy engine"};
    tap_case("puts and gets of slices, numbers known and read");
    for (uint64_t round = 0; round < 2 * ROUNDS; round++) {
        struct piece piece = draw(round * 100);
        struct call call = call_of(&piece, (unsigned)round % 16);
        bool put = gpu_draw(round * 100 + 9, 2);
        shmemx_set_engine((shmemx_engine_t)(round % 3));
        prepare(round, &piece, &no_more);
        if (put)
            ON(put_slice_on_stream(&call.to, &call.from, call.nelems, piece.elem, next, stream));
        else
            ON(get_slice_on_stream(&call.to, &call.from, call.nelems, piece.elem, left, stream));
        settle();
        expect_piece(round, &piece, left, engines[round % 3]);
        shmem_barrier_all();
    }
    shmemx_set_engine(SHMEMX_ENGINE_AUTO);
}

/* --- Signals -----------------------------------------------------------------------------------
 */

static void set_words(int32_t value) {
    int32_t all[WORDS];
    for (int i = 0; i < WORDS; i++)
        all[i] = value;
    gpu_write(words, all, sizeof all);
    shmem_barrier_all();
}

static shmemx_slice_t word(int64_t index) {
    return (shmemx_slice_t){words, WORDS, value_of(index)};
}
static shmemx_slice_t word_there(void) {
    return (shmemx_slice_t){words, WORDS, at(&there->index)};
}

static void expect_words(int32_t others, int64_t index, int32_t value, const char *what) {
    int32_t all[WORDS];
    for (int i = 0; i < WORDS; i++)
        all[i] = i == index ? value : others;
    gpu_expect(words, all, sizeof all, "the words after %s", what);
}

/* The piece is there when the signal is. */
static void puts_with_signal(void) {
    tap_case("puts of slices with a signal, numbers known and read");
    for (uint64_t round = 0; round < 2 * ROUNDS; round++) {
        struct piece piece = draw(round * 100 + 50);
        struct call call = call_of(&piece, round % 2 ? (unsigned)gpu_draw(round + 7, 16) : 0);
        bool add = round / 2 % 2, read = round / 4 % 2;
        int32_t given = (int32_t)gpu_draw(round + 10, 200) - 100;
        int64_t index = (int64_t)gpu_draw(round + 11, WORDS);
        struct numbers other = {.index = index, .value = given + !given};
        shmemx_slice_t at_peer = read ? word_there() : word(index);
        set_words(add ? 1000 : 0);
        shmemx_set_engine((shmemx_engine_t)(round / 8 % 3));
        prepare(round, &piece, &other);
        ON(put_slice_signal_on_stream(&call.to, &call.from, call.nelems, piece.elem, &at_peer,
                                      read ? at32(&there->value) : value_of(other.value),
                                      add ? SHMEM_SIGNAL_ADD : SHMEM_SIGNAL_SET, next, stream));
        ON(int32_signal_wait_until_on_stream(&at_peer, SHMEM_CMP_NE, value_of(add ? 1000 : 0),
                                             stream));
        gpu_drain(stream); /* and no barrier */
        expect_piece(round, &piece, left, "put with signal");
        expect_words(add ? 1000 : 0, index, add ? 1000 + other.value : other.value, "the put");
        shmem_barrier_all();
    }
    shmemx_set_engine(SHMEMX_ENGINE_AUTO);
}

/* Words before the signal, the signal's value, and a bound that only the new word satisfies. */
static const struct {
    const char *name;
    int cmp;
    int32_t before, after, bound;
} conditions[] = {
    {"EQ", SHMEM_CMP_EQ, 1, -1, -1}, {"NE", SHMEM_CMP_NE, -3, 2, -3},
    {"GT", SHMEM_CMP_GT, -1, 1, 0},  {"GE", SHMEM_CMP_GE, INT32_MIN, 0, 0},
    {"LT", SHMEM_CMP_LT, 0, -1, 0},  {"LE", SHMEM_CMP_LE, INT32_MAX, -5, -5},
};

static bool passed(weft_cu_event event) {
    gpu_enter();
    int error = gpu.cuEventQuery(event);
    gpu_leave();
    return error == 0;
}

static void comparisons(void) {
    tap_case("the six comparisons, of numbers with a sign, hold a stream until they are met");
    weft_cu_event event;
    weft_cu_stream side = gpu_stream_new();
    gpu_enter();
    GPU(cuEventCreate(&event, WEFT_CU_EVENT_NO_TIMING));
    gpu_leave();
    for (size_t c = 0; c < 2 * sizeof conditions / sizeof *conditions; c++) {
        int64_t index = (int64_t)c % WORDS;
        bool read = c % 2;
        struct numbers numbers = {
            .index = index, .value = conditions[c / 2].after, .bound = conditions[c / 2].bound};
        shmemx_slice_t there_or_not = read ? word_there() : word(index);
        gpu_write(there, &numbers, sizeof numbers);
        set_words(conditions[c / 2].before);
        ON(int32_signal_wait_until_on_stream(&there_or_not, conditions[c / 2].cmp,
                                             read ? at32(&there->bound) : value_of(numbers.bound),
                                             stream));
        gpu_enter();
        GPU(cuEventRecord(event, stream));
        gpu_leave();
        nanosleep(&(struct timespec){.tv_nsec = 3000000}, NULL);
        EXPECT(!passed(event), "%s: went on before", conditions[c / 2].name);
        shmem_barrier_all();
        ON(int32_signal_op_on_stream(&there_or_not,
                                     read ? at32(&there->value) : value_of(numbers.value),
                                     SHMEM_SIGNAL_SET, next, side));
        gpu_drain(stream);
        gpu_drain(side);
        shmem_barrier_all();
    }
}

static void sums(void) {
    tap_case("no addition is lost, from streams or from hosts, of negative numbers either");
    enum { ADDITIONS = 100 };
    shmemx_slice_t sum = word(3);
    set_words(0);
    for (int i = 0; i < ADDITIONS; i++) {
        ON(int32_signal_op_on_stream(&sum, value_of(-3), SHMEM_SIGNAL_ADD, 0, stream));
        shmem_int32_atomic_add(&words[3], 5, 0);
    }
    settle();
    if (me == 0)
        expect_words(0, 3, 2 * ADDITIONS * npes, "sums");
    shmem_barrier_all();
}

/* A word of the host is set and waited for like a word of the GPU; adding is refused if it would
 * not be atomic. */
static void host_words(void) {
    tap_case("signals in host memory");
    int32_t *host = shmem_calloc(2, sizeof *host);
    shmemx_slice_t first = {host, 2, value_of(0)}, second = {host, 2, value_of(1)};
    ON(int32_signal_op_on_stream(&first, value_of(-7), SHMEM_SIGNAL_SET, next, stream));
    ON(int32_signal_wait_until_on_stream(&first, SHMEM_CMP_LT, value_of(0), stream));
    settle();
    EXPECT(host[0] == -7, "the word is %d", host[0]);
    int rc = shmemx_int32_signal_op_on_stream(&second, value_of(2), SHMEM_SIGNAL_ADD, next, stream);
    settle();
    EXPECT(rc == (weft_device.gpu->host_atomics ? 0 : -ENOTSUP), "%d: %s", rc, weft_last_error());
    EXPECT(host[1] == (rc ? 0 : 2), "the word is %d", host[1]);
    shmem_barrier_all();
    shmem_free(host);
}

/* --- A graph ------------------------------------------------------------------------------------
 */

static struct piece replayed;

/* Numbers change from replay to replay, so that all are read. */
static void enqueue_round(void) {
    struct call call = call_of(&replayed, 7);
    shmemx_slice_t signal = word_there();
    ON(put_slice_signal_on_stream(&call.to, &call.from, call.nelems, replayed.elem, &signal,
                                  at32(&there->value), SHMEM_SIGNAL_SET, next, stream));
    ON(int32_signal_wait_until_on_stream(&signal, SHMEM_CMP_EQ, at32(&there->bound), stream));
    ON(int32_signal_op_on_stream(&signal, value_of(0), SHMEM_SIGNAL_SET, me, stream));
}

static void graph(void) {
    tap_case("a graph is replayed with other numbers");
    replayed = (struct piece){.elem = 4, .array = ROOM / 4};
    set_words(0);
    weft_cu_graph_exec exec = graph_capture(stream, enqueue_round);
    for (uint64_t round = 0; round < ROUNDS; round++) {
        struct piece piece = replayed;
        int32_t value = (int32_t)(round + 1) * (round % 2 ? 1 : -1);
        piece.nelems = gpu_draw(round + 500, gpu_draw(round, 3) ? 3000 : piece.array + 1);
        piece.to = gpu_draw(round + 600, piece.array - piece.nelems + 1);
        piece.from = gpu_draw(round + 700, piece.array - piece.nelems + 1);
        prepare(round, &piece,
                &(struct numbers){.index = (int64_t)round % WORDS, .value = value, .bound = value});
        graph_replay(exec, stream);
        settle();
        expect_piece(round, &piece, left, "replay");
        expect_words(0, 0, 0, "the replay");
        shmem_barrier_all();
    }
    graph_drop(exec);
}

/* --- Refused calls ---------------------------------------------------------------------------- */

#define REFUSED(code, text, call)                                                        \
    do {                                                                                 \
        int rc = shmemx_##call;                                                          \
        EXPECT(rc == -(code) && strstr(weft_last_error(), text), #call ": %d: '%s'", rc, \
               weft_last_error());                                                       \
    } while (0)

static void refuse_host_stream(const shmemx_slice_t *to, const shmemx_slice_t *from,
                               const shmemx_slice_t *one) {
    const char *no_stream = "_on_stream: argument stream is SHMEMX_STREAM_HOST";
    REFUSED(EINVAL, no_stream,
            put_slice_on_stream(to, from, value_of(1), 4, next, SHMEMX_STREAM_HOST));
    REFUSED(EINVAL, no_stream,
            get_slice_on_stream(to, from, value_of(1), 4, next, SHMEMX_STREAM_HOST));
    REFUSED(EINVAL, no_stream,
            put_slice_signal_on_stream(to, from, value_of(1), 4, one, value_of(1), SHMEM_SIGNAL_SET,
                                       next, SHMEMX_STREAM_HOST));
    REFUSED(
        EINVAL, no_stream,
        int32_signal_op_on_stream(one, value_of(1), SHMEM_SIGNAL_SET, next, SHMEMX_STREAM_HOST));
    REFUSED(EINVAL, no_stream,
            int32_signal_wait_until_on_stream(one, SHMEM_CMP_EQ, value_of(1), SHMEMX_STREAM_HOST));
}

static void refusals(void) {
    tap_case("what cannot be is refused, and nothing is enqueued");
    int64_t *private_memory = calloc(1, sizeof *private_memory);
    shmemx_slice_t to = {dest, 10, value_of(0)}, from = {source, 10, value_of(0)}, one = word(0);
    shmemx_slice_t late = {dest, 10, value_of(8)}, early = {dest, 10, value_of(-1)};
    shmemx_slice_t none = {NULL, 10, value_of(0)}, beside = {(char *)words + 2, 1, value_of(0)};
    shmemx_slice_t many = {dest, 20, value_of(0)}, own = {private_memory, 1, value_of(0)},
                   after = word(WORDS);
    shmemx_number_t odd = {.at = there, .bytes = 2}, askew = {.at = (char *)there + 2, .bytes = 4};
    gpu_poison(dest, ROOM);
    set_words(0);
    REFUSED(EINVAL, "dest has 10 elements: there are no 3 from number 8 on",
            put_slice_on_stream(&late, &from, value_of(3), 4, next, stream));
    REFUSED(EINVAL, "from number -1 on",
            put_slice_on_stream(&early, &from, value_of(3), 4, next, stream));
    REFUSED(EINVAL, "no -3 from", get_slice_on_stream(&to, &from, value_of(-3), 4, next, stream));
    REFUSED(EINVAL, "source has 10 elements",
            get_slice_on_stream(&many, &from, value_of(11), 4, next, stream));
    REFUSED(EINVAL, "source is NULL",
            put_slice_on_stream(&to, &none, value_of(3), 4, next, stream));
    REFUSED(EINVAL, "elem_bytes is 0",
            put_slice_on_stream(&to, &from, value_of(3), 0, next, stream));
    REFUSED(EINVAL, "nelems has 2 bytes", put_slice_on_stream(&to, &from, odd, 4, next, stream));
    REFUSED(EINVAL, "align it to 4", put_slice_on_stream(&to, &from, askew, 4, next, stream));
    REFUSED(EFAULT, "dest", put_slice_on_stream(&own, &from, value_of(1), 8, next, stream));
    REFUSED(EFAULT, "dest",
            put_slice_on_stream(&to, &from, value_of(1), SIZE_MAX / 2, next, stream));
    REFUSED(ERANGE, "pe", put_slice_on_stream(&to, &from, value_of(1), 4, npes, stream));
    REFUSED(ENOTSUP, "nelems lies at",
            put_slice_on_stream(&to, &from, at(private_memory), 4, next, stream));
    REFUSED(EINVAL, "no 1 from number 7 on",
            put_slice_signal_on_stream(&to, &from, value_of(1), 4, &after, value_of(1),
                                       SHMEM_SIGNAL_SET, next, stream));
    REFUSED(EINVAL, "a signal has 32 bits",
            int32_signal_op_on_stream(&one, value_of(INT64_C(1) << 31), SHMEM_SIGNAL_SET, next,
                                      stream));
    REFUSED(EINVAL, "sig_op is 77", int32_signal_op_on_stream(&one, value_of(1), 77, next, stream));
    REFUSED(EINVAL, "align it to 4",
            int32_signal_op_on_stream(&beside, value_of(1), SHMEM_SIGNAL_SET, next, stream));
    REFUSED(EFAULT, "signals",
            int32_signal_op_on_stream(&own, value_of(1), SHMEM_SIGNAL_SET, next, stream));
    REFUSED(EINVAL, "cmp is 99", int32_signal_wait_until_on_stream(&one, 99, value_of(1), stream));
    refuse_host_stream(&to, &from, &one);
    settle();
    gpu_expect_poison(dest, ROOM, "dest");
    expect_words(0, 0, 0, "refusals");
    free(private_memory);
    shmem_barrier_all();
}

/* An array without elements may have any address, and receives nothing. */
static void nothing(void) {
    tap_case("empty arrays, and nothing out of full ones");
    shmemx_slice_t none = {NULL, 0, value_of(0)}, from = {source, 10, value_of(10)}, one = word(1);
    set_words(0);
    ON(put_slice_on_stream(&none, &from, value_of(0), 4, next, stream));
    ON(get_slice_on_stream(&none, &from, value_of(0), 4, next, stream));
    ON(put_slice_signal_on_stream(&none, &from, value_of(0), 4, &one, value_of(9), SHMEM_SIGNAL_SET,
                                  next, stream));
    settle();
    expect_words(0, 1, 9, "nothing");
    shmem_barrier_all();
}

int main(void) {
    static char said[TRAPS][4096];
    int trapped[TRAPS] = {0};
    shmem_init();
    for (int i = 0; i < TRAPS && shmem_my_pe() == 0; i++)
        trapped[i] = trap_run(trap, i, said[i], sizeof said[i]);
    inside_start();
    tap_case("a kernel that finds a number that cannot be says so, and traps");
    for (int i = 0; i < TRAPS; i++) {
        EXPECT(trapped[i] == 0, "process %d ended with %d", i, trapped[i]);
        EXPECT(me != 0 || strstr(said[i], texts[i]), "it said '%s'", said[i]);
    }
    left = (me + npes - 1) % npes;
    there = inside_malloc(sizeof *there);
    dest = inside_malloc(ROOM);
    source = inside_malloc(ROOM);
    words = inside_malloc(sizeof *words * WORDS);
    stream = gpu_stream_new();
    puts_and_gets();
    puts_with_signal();
    comparisons();
    sums();
    host_words();
    graph();
    refusals();
    nothing();
    return gpu_finish();
}
