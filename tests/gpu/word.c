/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: words: every atomic of either width against a model and from many streams at once,
 * signals, waits of all comparisons, and barriers and meetings of a team, in streams and in graphs
 * that are replayed. PEs: 1 2 4 */
#include "inside.h"
#include "graph.h"
#include "transport/gpu_word.h"
#include <unistd.h>

enum { STREAMS = 3, ADDS = 40, REPLAYS = 100, BOARD_MAX = 64 };

static weft_cu_stream streams[STREAMS];
static uint64_t *lent;    /* of which the PE before this one has the use */
static uint64_t *own;     /* in this PE's GPU memory */
static uint64_t *host;    /* in the host heap */
static uint64_t *counter; /* of which PE 0's counts for all */

static uint64_t draw(uint64_t limit) {
    static uint64_t keys;
    return gpu_draw(UINT64_C(1000000) * (uint64_t)(me + 1) + keys++, limit);
}

static uint64_t read_word(const uint64_t *word) {
    uint64_t value;
    gpu_copy(&value, word, sizeof value);
    return value;
}

static void write_word(uint64_t *word, uint64_t value) {
    gpu_write(word, &value, sizeof value);
}

/* --- Atomics ---------------------------------------------------------------------------------- */

static uint64_t model(enum weft_amo_op op, uint64_t word, uint64_t value, uint64_t cond) {
    switch (op) {
    case WEFT_AMO_FETCH:
        return word;
    case WEFT_AMO_SET:
    case WEFT_AMO_SWAP:
        return value;
    case WEFT_AMO_COMPARE_SWAP:
        return word == cond ? value : word;
    case WEFT_AMO_ADD:
        return word + value;
    case WEFT_AMO_AND:
        return word & value;
    case WEFT_AMO_OR:
        return word | value;
    default:
        return word ^ value;
    }
}

/* Processors change words of the host, unless the link has atomics of its own. */
static bool is_allowed(enum weft_amo_op op, const uint64_t *word) {
    return word != host || op == WEFT_AMO_FETCH || op == WEFT_AMO_SET ||
           weft_device.gpu->host_atomics;
}

/* The word beside a narrow one does not change. */
static void amo_once(enum weft_amo_op op, size_t bytes, uint64_t *word, uint64_t *fetched) {
    uint64_t mask = bytes == 4 ? UINT32_MAX : UINT64_MAX;
    uint64_t before = draw(UINT64_MAX), value = draw(UINT64_MAX), poison = 0;
    uint64_t cond = draw(2) ? before : draw(UINT64_MAX);
    uint64_t narrow = model(op, before & mask, value & mask, cond & mask) & mask;
    uint64_t after = (before & ~mask) | narrow;
    memset(&poison, GPU_POISON, sizeof poison);
    write_word(word, before);
    if (fetched)
        write_word(fetched, poison);
    struct weft_amo amo = {op, bytes, word, value, cond, fetched};
    INSIDE(weft_gpu_amo(&amo, streams[0]));
    inside_synchronize(streams[0]);
    gpu_expect(word, &after, sizeof after, "operation %d of %zu bytes", (int)op, bytes);
    if (!fetched || op == WEFT_AMO_SET)
        return;
    uint64_t seen = (poison & ~mask) | (before & mask);
    gpu_expect(fetched, &seen, sizeof seen, "fetched by operation %d of %zu bytes", (int)op, bytes);
}

static void amos(void) {
    tap_case("atomics of 4 and 8 bytes, on words of GPUs, fetching to any memory");
    uint64_t *peer = weft_device_near(lent, sizeof *lent, next);
    uint64_t *words[] = {own, peer, host}, *fetched[] = {NULL, own + 1, host + 1};
    for (int op = WEFT_AMO_FETCH; op <= WEFT_AMO_XOR; op++)
        for (int word = 0; word < 3; word++)
            for (int to = 0; to < 3; to++)
                for (size_t bytes = 4; bytes <= 8; bytes += 4)
                    if (is_allowed((enum weft_amo_op)op, words[word]))
                        amo_once((enum weft_amo_op)op, bytes, words[word], fetched[to]);
}

static void amos_at_once(void) {
    tap_case("adds of all PEs and streams to one word, each of which sees another sum");
    uint64_t *tickets = inside_malloc(STREAMS * ADDS * sizeof *tickets), seen[STREAMS * ADDS];
    uint64_t *word = weft_device_near(counter, sizeof *counter, 0);
    uint64_t sum = 0, total = (uint64_t)npes * STREAMS * ADDS;
    static uint64_t sums[BOARD_MAX];
    for (int i = 0; i < ADDS; i++)
        for (int s = 0; s < STREAMS; s++) {
            struct weft_amo amo = {WEFT_AMO_ADD, 8, word, 1, 0, &tickets[s * ADDS + i]};
            INSIDE(weft_gpu_amo(&amo, streams[s]));
        }
    for (int s = 0; s < STREAMS; s++)
        inside_synchronize(streams[s]);
    gpu_copy(seen, tickets, sizeof seen);
    for (int i = 0; i < STREAMS * ADDS; i++) {
        sum += seen[i];
        EXPECT(i % ADDS == 0 || seen[i] > seen[i - 1], "%d: %llu, not behind the one before", i,
               (unsigned long long)seen[i]);
    }
    for (int pe = 0; pe < npes; pe++)
        shmem_uint64_p(&sums[me], sum, pe);
    shmem_barrier_all();
    EXPECT(read_word(word) == total, "%llu adds of %llu", (unsigned long long)read_word(word),
           (unsigned long long)total);
    sum = 0;
    for (int pe = 0; pe < npes; pe++)
        sum += sums[pe];
    EXPECT(sum == total * (total - 1) / 2, "tickets are missing or have been given twice");
    shmem_barrier_all();
    weft_device_free(&weft_device_arena, tickets);
}

/* --- Signals and waits ------------------------------------------------------------------------ */

static void signals(void) {
    tap_case("signals, set and added, on any memory");
    uint64_t *words[] = {own, weft_device_near(lent, sizeof *lent, next), host};
    for (int word = 0; word < 3; word++)
        for (int round = 0; round < 10; round++) {
            uint64_t before = draw(UINT64_MAX), value = draw(UINT64_MAX);
            bool add = round % 2 && (words[word] != host || weft_device.gpu->host_atomics);
            uint64_t after = add ? before + value : value;
            write_word(words[word], before);
            INSIDE(weft_gpu_signal(words[word], value, add, streams[0]));
            inside_synchronize(streams[0]);
            gpu_expect(words[word], &after, sizeof after, "round %d on memory %d", round, word);
        }
}

static bool compares(int cmp, uint64_t a, uint64_t b) {
    const bool results[] = {
        [SHMEM_CMP_EQ] = a == b, [SHMEM_CMP_NE] = a != b, [SHMEM_CMP_GT] = a > b,
        [SHMEM_CMP_GE] = a >= b, [SHMEM_CMP_LT] = a < b,  [SHMEM_CMP_LE] = a <= b};
    return results[cmp];
}

static bool is_done(weft_cu_stream stream) {
    gpu_enter();
    int error = gpu.cuStreamQuery(stream);
    gpu_leave();
    EXPECT(error == WEFT_CU_SUCCESS || error == WEFT_CU_NOT_READY, "cuStreamQuery: %d", error);
    return error == WEFT_CU_SUCCESS;
}

/* Numbers that signed comparisons would order otherwise. */
static const uint64_t numbers[] = {0, 1, INT64_MAX, (uint64_t)INT64_MAX + 1, UINT64_MAX};
enum { NUMBERS = sizeof numbers / sizeof numbers[0] };

/* An unsatisfied wait ends when a number that satisfies it is stored. */
static void wait_once(uint64_t *word, int cmp, uint64_t now, uint64_t value) {
    write_word(word, now);
    INSIDE(weft_gpu_wait(word, cmp, value, streams[0]));
    if (!compares(cmp, now, value)) {
        usleep(1000);
        EXPECT(!is_done(streams[0]), "comparison %d of %#llx with %#llx did not wait", cmp,
               (unsigned long long)now, (unsigned long long)value);
        for (int i = 0; i < NUMBERS; i++)
            if (compares(cmp, numbers[i], value)) {
                INSIDE(weft_gpu_signal(word, numbers[i], false, streams[1]));
                break;
            }
    }
    inside_synchronize(streams[0]);
    inside_synchronize(streams[1]);
}

static void waits(void) {
    tap_case("waits of all comparisons, as unsigned numbers");
    for (int cmp = SHMEM_CMP_EQ; cmp <= SHMEM_CMP_LE; cmp++)
        for (int now = 0; now < NUMBERS; now++)
            for (int value = 0; value < NUMBERS; value++) {
                bool never = (cmp == SHMEM_CMP_GT && numbers[value] == UINT64_MAX) ||
                             (cmp == SHMEM_CMP_LT && numbers[value] == 0);
                if (!never)
                    wait_once((now + value) % 2 ? own : host, cmp, numbers[now], numbers[value]);
            }
}

/* Data copied before a signal have arrived after the wait for it, without a host in between. */
static void chain(void) {
    tap_case("data, signal, wait, data: around the ring and back");
    enum { ROUNDS = 100, BYTES = 4096 };
    char *box = inside_malloc(BYTES), *log = inside_malloc((size_t)ROUNDS * BYTES);
    char *data = inside_malloc((size_t)ROUNDS * BYTES);
    uint64_t *words = inside_malloc(2 * sizeof *words); /* full, empty */
    int before = (me + npes - 1) % npes;
    uint64_t *full = weft_device_near(words, 16, next);
    uint64_t *empty = (uint64_t *)weft_device_near(words, 16, before) + 1;
    gpu_write(data, gpu_data((size_t)ROUNDS * BYTES, (uint64_t)me), (size_t)ROUNDS * BYTES);
    for (uint64_t round = 0; round < ROUNDS; round++) {
        INSIDE(weft_gpu_wait(words + 1, SHMEM_CMP_GE, round, streams[0]));
        if (round % 2) {
            struct weft_put_signal put = {.dest = weft_device_near(box, BYTES, next),
                                          .source = data + round * BYTES,
                                          .bytes = BYTES,
                                          .sig_addr = full,
                                          .signal = round + 1};
            INSIDE(weft_gpu_put_signal(&put, streams[0]));
        } else {
            INSIDE(weft_gpu_copy(weft_device_near(box, BYTES, next), data + round * BYTES, BYTES,
                                 WEFT_TO_PEER, streams[0]));
            INSIDE(weft_gpu_signal(full, round + 1, false, streams[0]));
        }
        INSIDE(weft_gpu_wait(words, SHMEM_CMP_GT, round, streams[0]));
        INSIDE(weft_gpu_copy(log + round * BYTES, box, BYTES, WEFT_WITHIN, streams[0]));
        INSIDE(weft_gpu_signal(empty, 1, true, streams[0]));
    }
    inside_synchronize(streams[0]);
    gpu_expect(log, gpu_data((size_t)ROUNDS * BYTES, (uint64_t)before), (size_t)ROUNDS * BYTES,
               "what the PE before has sent");
    shmem_barrier_all();
    weft_device_free(&weft_device_arena, words);
    weft_device_free(&weft_device_arena, data);
    weft_device_free(&weft_device_arena, log);
    weft_device_free(&weft_device_arena, box);
}

/* --- Teams ------------------------------------------------------------------------------------ */

/* A round: every member stores its count at all others, all arrive, all check, all have checked.
 * The count is in GPU memory, so that a replay stores another one. */
static struct {
    struct weft_array words;
    struct weft_gpu_call call;
    uint64_t *count, *board, *snapshot;
    bool meets;
} team;

static void come_together(enum weft_gpu_half half) {
    uint32_t *words[BOARD_MAX];
    for (int i = 0; i < npes; i++) {
        struct weft_gpu_team_words *member = (void *)weft_array_at(&team.words, i);
        words[i] = half == WEFT_GPU_READY ? member->ready : member->done;
    }
    if (team.meets)
        INSIDE(weft_gpu_meet(weft_device.gpu, words, me, npes, streams[0]));
    else
        INSIDE(weft_gpu_barrier(team.words, me, npes, team.call, streams[0]));
}

static void team_round(void) {
    come_together(WEFT_GPU_READY);
    for (int i = 0; i < npes; i++) {
        int pe = (me + 1 + i) % npes;
        uint64_t *board = weft_device_near(team.board, (size_t)npes * 8, pe);
        INSIDE(weft_gpu_copy(board + me, team.count, 8, pe == me ? WEFT_WITHIN : WEFT_TO_PEER,
                             streams[0]));
    }
    come_together(WEFT_GPU_DONE);
    INSIDE(weft_gpu_copy(team.snapshot, team.board, (size_t)npes * 8, WEFT_WITHIN, streams[0]));
    struct weft_amo amo = {WEFT_AMO_ADD, 8, team.count, 1, 0, NULL};
    INSIDE(weft_gpu_amo(&amo, streams[0]));
}

static void check_round(uint64_t round, const char *what) {
    uint64_t expected[BOARD_MAX];
    for (int pe = 0; pe < npes; pe++)
        expected[pe] = round + 1000 * (uint64_t)pe;
    inside_synchronize(streams[0]);
    gpu_expect(team.snapshot, expected, (size_t)npes * 8, "%s, round %llu", what,
               (unsigned long long)round);
}

/* Rounds one by one, rounds without the host, and a graph, all on the same words. */
static void team_rounds(bool meets, const char *name) {
    tap_case(name);
    uint64_t round = 0;
    team.meets = meets;
    weft_engine_set(meets ? WEFT_ENGINE_COPY : WEFT_ENGINE_AUTO);
    write_word(team.count, 1000 * (uint64_t)me);
    for (; round < 20; round++) {
        team_round();
        check_round(round, "in a stream");
    }
    for (; round < 60; round++)
        team_round();
    check_round(round - 1, "without the host");
    weft_cu_graph_exec graph = graph_capture(streams[0], team_round);
    for (; round < 60 + REPLAYS; round++) {
        graph_replay(graph, streams[0]);
        if (round % 4 == 0)
            check_round(round, "in a graph");
    }
    check_round(round - 1, "in a graph");
    team_round();
    check_round(round, "behind a graph");
    graph_drop(graph);
    weft_engine_set(WEFT_ENGINE_AUTO);
    shmem_barrier_all();
}

/* A member that is far behind has not arrived, whatever the low halves of the epochs are. */
static void far_behind(struct weft_gpu_team_words *mine) {
    tap_case("a barrier waits for members that are billions of epochs behind");
    static const uint64_t epochs[] = {INT32_MAX, UINT32_MAX, (uint64_t)1 << 40};
    struct weft_gpu_team_words words = {0};
    for (int i = 0; i < 3; i++) {
        words.epoch = epochs[i];
        gpu_write(mine, &words, sizeof words);
        shmem_barrier_all();
        if (me == 0) {
            INSIDE(weft_gpu_barrier(team.words, me, npes, team.call, streams[0]));
            usleep(1000);
            EXPECT(npes == 1 || !is_done(streams[0]), "passed epoch %llu alone",
                   (unsigned long long)epochs[i]);
        }
        shmem_barrier_all();
        if (me != 0)
            INSIDE(weft_gpu_barrier(team.words, me, npes, team.call, streams[0]));
        inside_synchronize(streams[0]);
        shmem_barrier_all();
    }
}

static void teams(void) {
    struct weft_gpu_team_words *mine = inside_malloc(sizeof *mine);
    team.call.mine = mine;
    team.words.first = weft_device_near(mine, 1, 0);
    team.words.step =
        npes < 2 ? 0 : (char *)weft_device_near(mine, 1, 1) - (char *)team.words.first;
    team.count = inside_malloc(8);
    team.board = inside_malloc((size_t)npes * 8);
    team.snapshot = inside_malloc((size_t)npes * 8);
    team_rounds(false, "barriers of kernels");
    team_rounds(true, weft_device.gpu->unordered_writes
                          ? "meetings of stream memory operations, with one fence each"
                          : "meetings of stream memory operations, whose writes all have fences");
    team_rounds(false, "barriers again");
    far_behind(mine);
}

int main(void) {
    shmem_init();
    inside_start();
    for (int s = 0; s < STREAMS; s++)
        streams[s] = gpu_stream_new();
    lent = inside_malloc(sizeof *lent);
    own = inside_malloc(2 * sizeof *own);
    counter = inside_malloc(sizeof *counter);
    host = shmem_calloc(2, sizeof *host);
    shmem_barrier_all();
    amos();
    shmem_barrier_all();
    amos_at_once();
    signals();
    waits();
    shmem_barrier_all();
    chain();
    teams();
    return gpu_finish();
}
