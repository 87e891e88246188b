/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: collectives on a stream by the million, of random sizes, types, teams
 * and places, eager and in graphs; data come from a generator on the GPU, which also checks each
 * result. And packets of 16 bytes by the thousand million, none of which may arrive in parts
 * while the link is full. A few of each; make check-gpu-all makes many. PEs: 2 3
 *
 *   oshrun -n 2 build/tests/gpu/stress [WHAT:CALLS[:LEAST:MOST]]...
 *
 * WHAT is all_reduce, all_gather, reduce_scatter, all_to_all, broadcast, or mixed for all of them
 * in turns, followed by _graphs for graphs, or _wrap for epochs of packets that wrap around
 * repeatedly; LEAST and MOST are bytes of the larger array, like 4 or 16K. torn:PACKETS and
 * torn8:PACKETS send packets of one lane and of eight. */
#include <time.h>
#include "gpu/graph.h"
#include "gpu/image.h"
#include "gpu/on_stream.h"
#include "gpu/own_memory.h"
#include "gpu/stress/task.h"
#include "device/device.h"

enum { BATCH = 64, GRAPHS = 8, TEAMS = 4, BLOCKS = 64, THREADS = 256, AROUND = 64 };

static const char *const operation_names[STRESS_OPERATIONS] = {
    "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast"};

static struct phase {
    int operation; /* STRESS_NONE: all of them */
    bool graphs, wraps;
    uint64_t calls;
    size_t least, most;
} phase;

static weft_cu_function between, count, sender, receiver, loader;
static shmem_team_t teams[TEAMS];
static int nteams;
static char *sources[2], *dests[2]; /* symmetric; two calls in a row use different ones */
static char *own_sources[2];        /* not symmetric, of own_room bytes */
static size_t own_room;
static uint64_t *counter; /* calls whose data the next batch does not repeat */
static struct stress_found *found;
static uint64_t batches, enqueued; /* batches drawn, calls of this PE in them */

/* --- Kernels --------------------------------------------------------------------------------- */

static void find_kernels(void) {
    between = image_kernel("stress_between");
    count = image_kernel("stress_count");
    sender = image_kernel("stress_send");
    receiver = image_kernel("stress_receive");
    loader = image_kernel("stress_load");
}

/* Zeros that are the program's own. */
static void *device_memory(size_t bytes) {
    void *p = own_memory(bytes);
    gpu_enter();
    GPU(cuMemsetD8Async((weft_cu_address)p, 0, bytes, gpu_stream));
    GPU(cuStreamSynchronize(gpu_stream));
    gpu_leave();
    return p;
}

/* --- Drawing calls --------------------------------------------------------------------------- */

/* A call's random choices: equal on all PEs except `own`. */
struct draws {
    uint64_t key;
    int next;
};

static uint64_t draw(struct draws *draws, uint64_t limit) {
    return gpu_draw(draws->key * 32 + (uint64_t)draws->next++, limit);
}

/* Log-uniform over the phase's sizes. */
static size_t draw_bytes(struct draws *draws) {
    int octaves = 0;
    while (phase.least << (octaves + 1) <= phase.most)
        octaves++;
    size_t floor = phase.least << draw(draws, (uint64_t)octaves + 1);
    size_t bytes = floor + draw(draws, floor);
    return bytes < phase.most ? bytes : phase.most;
}

/* Mostly the sums of floats that have kernels of their own. */
static void draw_reduction(struct draws *draws, struct stress_task *task) {
    static const struct {
        weft_dtype dtype;
        weft_op op;
    } kinds[] = {
        {WEFT_BF16, WEFT_SUM}, {WEFT_BF16, WEFT_SUM}, {WEFT_F32, WEFT_SUM}, {WEFT_F32, WEFT_SUM},
        {WEFT_F16, WEFT_SUM},  {WEFT_BF16, WEFT_AVG}, {WEFT_F32, WEFT_AVG}, {WEFT_F32, WEFT_MAX},
        {WEFT_F64, WEFT_SUM},  {WEFT_I32, WEFT_SUM},  {WEFT_U8, WEFT_MIN},  {WEFT_I64, WEFT_MAX},
        {WEFT_F16, WEFT_PROD}, {WEFT_U16, WEFT_PROD}, {WEFT_I8, WEFT_SUM},  {WEFT_U32, WEFT_MAX}};
    uint64_t kind = draw(draws, sizeof kinds / sizeof kinds[0]);
    task->dtype = kinds[kind].dtype;
    task->op = kinds[kind].op;
}

static bool folds(int operation) {
    return operation == STRESS_ALL_REDUCE || operation == STRESS_REDUCE_SCATTER;
}

static void draw_kind(struct draws *draws, struct stress_task *task) {
    static const weft_dtype moved[] = {WEFT_U8, WEFT_BF16, WEFT_F32, WEFT_I64};
    task->operation =
        phase.operation == STRESS_NONE ? (int)draw(draws, STRESS_OPERATIONS) : phase.operation;
    task->op = WEFT_SUM;
    task->dtype = (int)moved[draw(draws, 4)];
    if (folds(task->operation))
        draw_reduction(draws, task);
}

/* In place, at another offset, or from memory that is not symmetric, each now and then. */
static void draw_places(struct draws *draws, struct stress_task *task, int parity) {
    size_t element = weft_dtype_bytes((weft_dtype)task->dtype);
    size_t block = task->nelems * element, own = block * (size_t)task->me;
    bool aligned = draw(draws, 2), in_place = draw(draws, 4) == 0, symmetric = draw(draws, 4) > 0;
    size_t to = aligned ? 0 : element * draw(draws, 8),
           from = aligned ? 0 : element * draw(draws, 8);
    task->dest = dests[parity] + to;
    task->source = sources[parity] + from;
    task->guarded = 1;
    if (!folds(task->operation) && !symmetric)
        task->source = own_sources[parity] + from;
    if (!in_place || task->operation == STRESS_ALL_TO_ALL)
        return;
    task->source = task->operation == STRESS_ALL_GATHER ? task->dest + own : task->dest;
    if (task->operation == STRESS_REDUCE_SCATTER)
        task->dest += own, task->guarded = 0;
}

/* Call number i of batch number `batch`, of this member; on which team? */
static shmem_team_t draw_call(struct stress_task *task, uint64_t batch, uint64_t i) {
    struct draws draws = {batch * BATCH + i, 0};
    shmem_team_t team = teams[draw(&draws, (uint64_t)nteams)];
    draw_kind(&draws, task);
    size_t bytes = draw_bytes(&draws), element = weft_dtype_bytes((weft_dtype)task->dtype);
    uint64_t root = draw(&draws, 1 << 20);
    task->n = team == SHMEM_TEAM_INVALID ? 1 : shmem_team_n_pes(team);
    task->me = team == SHMEM_TEAM_INVALID ? 0 : shmem_team_my_pe(team);
    bool whole = task->operation == STRESS_ALL_REDUCE || task->operation == STRESS_BROADCAST;
    size_t blocks = whole ? 1 : (size_t)task->n;
    task->nelems = bytes / element / blocks > 0 ? bytes / element / blocks : 1;
    task->root = (int)(root % (uint64_t)task->n);
    task->seed = (uint32_t)gpu_seed;
    task->call = i;
    draw_places(&draws, task, (int)(i % 2));
    return team;
}

/* --- Making calls ---------------------------------------------------------------------------- */

static void call(shmem_team_t team, const struct stress_task *task) {
    weft_stream stream = (weft_stream)gpu_stream;
    weft_dtype dtype = (weft_dtype)task->dtype;
    weft_op op = (weft_op)task->op;
    int rc = 0;
    switch (task->operation) {
    case STRESS_ALL_REDUCE:
        rc = weft_all_reduce(team, task->dest, task->source, task->nelems, dtype, op, stream);
        break;
    case STRESS_ALL_GATHER:
        rc = weft_all_gather(team, task->dest, task->source, task->nelems, dtype, stream);
        break;
    case STRESS_REDUCE_SCATTER:
        rc = weft_reduce_scatter(team, task->dest, task->source, task->nelems, dtype, op, stream);
        break;
    case STRESS_ALL_TO_ALL:
        rc = weft_all_to_all(team, task->dest, task->source, task->nelems, dtype, stream);
        break;
    default:
        rc =
            weft_broadcast(team, task->dest, task->source, task->nelems, dtype, task->root, stream);
    }
    EXPECT(rc == 0, "%s of %llu elements: %d: %s", operation_names[task->operation],
           (unsigned long long)task->nelems, rc, weft_last_error());
}

static unsigned blocks_for(const struct stress_task *a, const struct stress_task *b) {
    uint64_t most = a->nelems > b->nelems ? a->nelems : b->nelems;
    uint64_t blocks = (most + THREADS - 1) / THREADS;
    return blocks < 1 ? 1 : blocks > 8 * BLOCKS ? 8 * BLOCKS : (unsigned)blocks;
}

static void launch_between(struct stress_task *before, struct stress_task *behind) {
    void *arguments[] = {before, behind, &counter, &found};
    image_launch(between, blocks_for(before, behind), THREADS, gpu_stream, arguments);
}

/* One kernel checks and fills: two calls in a row use different arrays, unless calls between them
 * are of a team that this PE is not in. */
static void enqueue_between(struct stress_task *before, struct stress_task *behind) {
    struct stress_task none = {.operation = STRESS_NONE};
    bool same_arrays = before->operation != STRESS_NONE && before->call % 2 == behind->call % 2;
    if (same_arrays && behind->operation != STRESS_NONE) {
        launch_between(before, &none);
        launch_between(&none, behind);
        return;
    }
    launch_between(before, behind);
}

/* A batch is whole in itself: it begins with data, ends with a check, and counts. */
static void enqueue_batch(void) {
    struct stress_task none = {.operation = STRESS_NONE}, before = none, next = none;
    uint64_t calls = BATCH;
    for (uint64_t i = 0; i < BATCH; i++) {
        shmem_team_t team = draw_call(&next, batches, i);
        if (team == SHMEM_TEAM_INVALID)
            continue;
        next.call = i;
        enqueue_between(&before, &next);
        call(team, &next);
        enqueued++;
        before = next;
    }
    enqueue_between(&before, &none);
    void *arguments[] = {&counter, &calls};
    image_launch(count, 1, 32, gpu_stream, arguments);
    batches++;
}

/* --- A phase --------------------------------------------------------------------------------- */

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Returns how many calls this PE has made. */
static uint64_t run_eager(uint64_t calls) {
    uint64_t before = enqueued;
    for (uint64_t made = 0; made < calls; made += BATCH)
        enqueue_batch();
    return enqueued - before;
}

/* A form's inbox as it is when its last packets before the wrap have been read. */
static void clear_inbox(const struct weft_team *team, enum weft_gpu_form form) {
    struct weft_gpu_channels channels;
    int error = weft_device_channels(&channels, team, form);
    EXPECT(error >= 0, "a team has no channels: %d", error);
    if (error)
        return;
    gpu_enter();
    GPU(cuMemsetD8Async((weft_cu_address)weft_gpu_channel_slot(&channels, channels.me, 0, 0, 0), 0,
                        weft_gpu_inbox_bytes(form, channels.n), gpu_stream));
    gpu_leave();
}

/* The epochs of packets of all teams' channels, the same on all members: the low half soon comes
 * round. No call is under way. Channels that have not come so far since the last time have packets
 * of the very epochs that are to come, which no program lives to see: they go. */
static void set_epochs(void) {
    const uint64_t epoch = (UINT64_C(1) << 32) - 24;
    for (int i = 0; i < nteams; i++) {
        struct weft_gpu_channels channels;
        const struct weft_team *team = weft_team_find(teams[i]);
        if (!team || team->npes == 1 || weft_device_channels(&channels, team, WEFT_FORM_LL) != 0)
            continue;
        for (uint32_t channel = 0; channel < WEFT_GPU_CHANNELS; channel++) {
            struct weft_gpu_channel_head *head =
                weft_gpu_channel_head(&channels, channels.me, channel);
            gpu_write(&head->packets, &epoch, sizeof epoch);
            gpu_write(&head->directed, &epoch, sizeof epoch);
        }
        clear_inbox(team, WEFT_FORM_LL);
        clear_inbox(team, WEFT_FORM_DIRECTED);
    }
    gpu_drain(gpu_stream);
}

static uint64_t run_wraps(uint64_t calls) {
    uint64_t before = enqueued;
    for (uint64_t made = 0; made < calls; made += 8 * BATCH) {
        gpu_drain(gpu_stream);
        shmem_barrier_all();
        set_epochs();
        shmem_barrier_all();
        run_eager(8 * BATCH);
    }
    return enqueued - before;
}

/* Some graphs, replayed in an order drawn at random, with eager batches in between. */
static uint64_t run_graphs(uint64_t calls) {
    weft_cu_graph_exec graphs[GRAPHS];
    uint64_t calls_of[GRAPHS], made = 0;
    for (int k = 0; k < GRAPHS; k++) {
        uint64_t before = enqueued;
        graphs[k] = graph_capture(gpu_stream, enqueue_batch);
        calls_of[k] = enqueued - before;
    }
    for (uint64_t turn = 0; turn < calls / BATCH; turn++) {
        uint64_t k = gpu_draw(UINT64_MAX - batches - turn, GRAPHS + 1);
        if (k < GRAPHS)
            graph_replay(graphs[k], gpu_stream);
        made += k < GRAPHS ? calls_of[k] : run_eager(BATCH);
    }
    gpu_drain(gpu_stream);
    for (int k = 0; k < GRAPHS; k++)
        graph_drop(graphs[k]);
    return made;
}

static void expect_right(uint64_t made) {
    struct stress_found seen;
    gpu_copy(&seen, found, sizeof seen);
    const struct stress_task *task = &seen.task;
    EXPECT(seen.wrong == 0,
           "%llu elements are wrong; first, in call %llu, %s of %llu x dtype %d, op %d, member %d "
           "of %d, root %d, dest %p, source %p: element %llu is %#llx, not %#llx",
           (unsigned long long)seen.wrong, (unsigned long long)seen.call,
           operation_names[task->operation], (unsigned long long)task->nelems, task->dtype,
           task->op, task->me, task->n, task->root, (void *)task->dest, (void *)task->source,
           (unsigned long long)seen.index, (unsigned long long)seen.found,
           (unsigned long long)seen.wanted);
    EXPECT(seen.checked == made, "%llu of %llu calls were checked",
           (unsigned long long)seen.checked, (unsigned long long)made);
}

static void make_arrays(void) {
    size_t room = phase.most + (size_t)shmem_n_pes() * 8 + 2 * AROUND + STRESS_GUARD_BYTES;
    for (int k = 0; k < 2; k++) {
        sources[k] = allocated(shmemx_malloc(SHMEMX_SPACE_DEVICE, room));
        dests[k] = allocated(shmemx_malloc(SHMEMX_SPACE_DEVICE, room));
        if (room > own_room)
            own_sources[k] = device_memory(room);
    }
    own_room = room > own_room ? room : own_room;
}

static void free_arrays(void) {
    for (int k = 0; k < 2; k++) {
        shmem_free(dests[k]);
        shmem_free(sources[k]);
    }
}

/* A batch before the timed ones, and before graphs, makes everything that first calls make. */
static void run_collectives(void) {
    static char text[160];
    static const struct stress_found nothing;
    const char *what = phase.operation == STRESS_NONE ? "mixed" : operation_names[phase.operation];
    const char *form = phase.graphs ? " in graphs" : phase.wraps ? " around the wrap" : "";
    snprintf(text, sizeof text, "%s%s, %zu to %zu bytes", what, form, phase.least, phase.most);
    tap_case(text);
    make_arrays();
    uint64_t made = run_eager(BATCH);
    gpu_drain(gpu_stream);
    expect_right(made);
    gpu_write(found, &nothing, sizeof nothing);
    shmem_barrier_all();
    double start = now();
    made = phase.graphs  ? run_graphs(phase.calls)
           : phase.wraps ? run_wraps(phase.calls)
                         : run_eager(phase.calls);
    gpu_drain(gpu_stream);
    double us = 1e6 * (now() - start) / (double)phase.calls;
    expect_right(made);
    gpu_write(found, &nothing, sizeof nothing);
    shmem_barrier_all();
    snprintf(text, sizeof text,
             "%llu calls, %s%s, %zu to %zu bytes: %.2f us each with their checks",
             (unsigned long long)phase.calls, what, form, phase.least, phase.most, us);
    tap_close_case();
    free_arrays();
}

/* --- Packets --------------------------------------------------------------------------------- */

static struct {
    struct weft_quad *ring;
    uint32_t *acknowledged, *stop;
    char *from, *to; /* the data that fill the link */
    struct stress_torn *torn;
} packets;
static size_t load_bytes = 64 << 20;

static void *reached(void *p, int pe) {
    void *there = shmemx_ptr(SHMEMX_SPACE_DEVICE, p, pe);
    if (!there)
        gpu_skip("GPUs do not reach each other's memory");
    return there;
}

/* All PEs send to the next one, and fill the link to it at the same time. */
static void send_packets(uint32_t rounds, int width, unsigned blocks, unsigned threads) {
    weft_cu_stream streams[3] = {gpu_stream_new(), gpu_stream_new(), gpu_stream_new()};
    int me = shmem_my_pe(), n = shmem_n_pes(), next = (me + 1) % n, last = (me + n - 1) % n;
    void *there = reached(packets.ring, next), *back = reached(packets.acknowledged, last);
    void *to = reached(packets.to, next);
    uint64_t quads = load_bytes / 16;
    uint32_t end = 1;
    void *loads[] = {&to, &packets.from, &quads, &packets.stop};
    void *sends[] = {&there, &packets.acknowledged, &rounds};
    void *receives[] = {&packets.ring, &back, &rounds, &width, &packets.torn};
    image_launch(loader, blocks, threads, streams[0], loads);
    image_launch(receiver, blocks, threads, streams[1], receives);
    image_launch(sender, blocks, threads, streams[2], sends);
    gpu_drain(streams[2]);
    gpu_drain(streams[1]);
    gpu_write(packets.stop, &end, sizeof end);
    gpu_drain(streams[0]);
}

static void run_torn(uint64_t wanted, int width) {
    static char text[160];
    bool pretended = gpu_is_pretended();
    unsigned blocks = pretended ? 1 : 32, threads = pretended ? 1 : 512;
    load_bytes = pretended ? 4 << 10 : load_bytes;
    size_t lanes = (size_t)blocks * threads, ring = lanes * STRESS_RING * 16;
    uint64_t rounds = wanted * (uint64_t)width / lanes / STRESS_ACKNOWLEDGED + 1;
    struct stress_torn torn;
    snprintf(text, sizeof text, "packets of %d lanes", width);
    tap_case(text);
    packets.ring = allocated(shmemx_calloc(SHMEMX_SPACE_DEVICE, 1, ring));
    packets.acknowledged = allocated(shmemx_calloc(SHMEMX_SPACE_DEVICE, lanes, 4));
    packets.to = allocated(shmemx_malloc(SHMEMX_SPACE_DEVICE, load_bytes));
    packets.from = device_memory(load_bytes);
    packets.stop = device_memory(4);
    packets.torn = device_memory(sizeof *packets.torn);
    shmem_barrier_all();
    double start = now();
    send_packets((uint32_t)(rounds * STRESS_ACKNOWLEDGED), width, blocks, threads);
    double seconds = now() - start;
    gpu_copy(&torn, packets.torn, sizeof torn);
    EXPECT(torn.halves == 0, "%llu times 8 bytes came in parts", (unsigned long long)torn.halves);
    EXPECT(torn.quads == 0, "%llu packets came in parts", (unsigned long long)torn.quads);
    EXPECT(torn.seen == rounds * STRESS_ACKNOWLEDGED * lanes, "%llu came",
           (unsigned long long)torn.seen);
    snprintf(text, sizeof text,
             "%.3g packets of %d lanes' 16 bytes to the next PE, the link full: "
             "none torn, %.1f s",
             (double)torn.seen / width, width, seconds);
    tap_close_case();
    shmem_barrier_all();
    shmem_free(packets.to);
    shmem_free(packets.acknowledged);
    shmem_free(packets.ring);
}

/* --- Arguments -------------------------------------------------------------------------------- */

static size_t bytes_of(const char *text) {
    char *end;
    size_t bytes = (size_t)strtod(text, &end);
    return bytes << (*end == 'K' ? 10 : *end == 'M' ? 20 : 0);
}

static bool parse(char *text) {
    char *what = strtok(text, ":"), *calls = strtok(NULL, ":"), *least = strtok(NULL, ":");
    char *most = least ? strtok(NULL, ":") : NULL, *form = what ? strrchr(what, '_') : NULL;
    bool graphs = form && strcmp(form, "_graphs") == 0, wraps = form && strcmp(form, "_wrap") == 0;
    phase = (struct phase){STRESS_NONE, graphs, wraps, 0, 4, 16 << 10};
    if (!calls || (least && !most))
        return false;
    phase.calls = (uint64_t)strtod(calls, NULL);
    if (least)
        phase.least = bytes_of(least), phase.most = bytes_of(most);
    if (graphs || wraps)
        *form = '\0';
    for (int operation = 0; operation < STRESS_OPERATIONS; operation++)
        if (strcmp(what, operation_names[operation]) == 0)
            phase.operation = operation;
    return phase.least >= 1 && phase.most >= phase.least &&
           (phase.operation != STRESS_NONE || strcmp(what, "mixed") == 0);
}

static void run_asked(const char *asked) {
    char text[128];
    snprintf(text, sizeof text, "%s", asked);
    if (strncmp(asked, "torn:", 5) == 0) {
        run_torn((uint64_t)strtod(asked + 5, NULL), 1);
    } else if (strncmp(asked, "torn8:", 6) == 0) {
        run_torn((uint64_t)strtod(asked + 6, NULL), 8);
    } else if (parse(text)) {
        run_collectives();
    } else {
        tap_case("what is asked for");
        EXPECT(false, "'%s' is no WHAT:CALLS[:LEAST:MOST]", asked);
    }
}

/* The world, its twin, its members in reverse order, and from three PEs on all but the last. */
static void make_teams(void) {
    int n = shmem_n_pes(), backwards[n];
    for (int pe = 0; pe < n; pe++)
        backwards[pe] = n - 1 - pe;
    teams[nteams++] = SHMEM_TEAM_WORLD;
    shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, n, NULL, 0, &teams[nteams++]);
    EXPECT(shmemx_team_create(backwards, n, 0, &teams[nteams++]) == 0, "%s", weft_last_error());
    if (n > 2)
        shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, n - 1, NULL, 0, &teams[nteams++]);
}

/* Large calls take pretended GPUs long. */
static void run_few(void) {
    run_asked("mixed:128:4:4K");
    run_asked("mixed_graphs:192:4:4K");
    run_asked("mixed_wrap:1024:4:1K");
    run_asked("torn:100");
    if (!gpu_is_pretended())
        run_asked("mixed:384:4:16M");
}

int main(int argc, char **argv) {
    shmem_init();
    gpu_start();
    find_kernels();
    make_teams();
    counter = device_memory(sizeof *counter);
    found = device_memory(sizeof *found);
    for (int i = 1; i < argc; i++)
        run_asked(argv[i]);
    if (argc == 1)
        run_few();
    return gpu_finish();
}
