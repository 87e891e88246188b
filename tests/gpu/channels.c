/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: the channels of teams are made at first use, in captures and by members that reach
 * it in different ways; a team sees nothing of the previous team in its slot, and leaves no memory
 * behind; if one member has no memory, all use another algorithm; different settings are an error
 * that names them. PEs: 2 3 4 */
#include <errno.h>
#include <stdio.h>
#include "inside.h"
#include "graph.h"
#include "on_stream.h"
#include "coll/stream_choice.h"

enum { NELEMS = 40000, FEW = 300, REPLAYS = 2 };

static shmem_team_t team;
static float *source, *dest; /* device heap */
static size_t nelems;

/* More than packets carry. */
static size_t large(void) {
    return 2 * NELEMS / (size_t)npes;
}

/* --- Sums ------------------------------------------------------------------------------------- */

static void enqueue(void) {
    ON(float_sum_reduce_on_stream(team, dest, source, nelems, gpu_stream));
}

static void prepare(int key) {
    static float numbers[NELEMS];
    for (int i = 0; i < NELEMS; i++)
        numbers[i] = (float)(key + me + i % 100);
    gpu_write(source, numbers, sizeof numbers);
    gpu_poison(dest, sizeof numbers);
}

static void check(int key) {
    static float sums[NELEMS];
    int n = shmem_team_n_pes(team);
    float members = 0;
    for (int i = 0; i < n; i++)
        members += (float)shmem_team_translate_pe(team, i, SHMEM_TEAM_WORLD);
    for (size_t i = 0; i < nelems; i++)
        sums[i] = members + (float)n * (float)(key + (int)i % 100);
    gpu_expect(dest, sums, nelems * sizeof *sums, "sum of %zu, %d", nelems, key);
}

/* Sums FEW elements, by packets, and large() ones, by marked words. */
static void sum(int key) {
    nelems = key % 2 ? FEW : large();
    prepare(key);
    enqueue();
    gpu_drain(gpu_stream);
    check(key);
}

static shmem_team_t new_team(int first) {
    shmem_team_t made = SHMEM_TEAM_INVALID;
    int pes[16];
    for (int i = 0; i < npes; i++)
        pes[i] = (first + i) % npes;
    ON(team_create(pes, npes, 0, &made));
    return made;
}

/* --- First use -------------------------------------------------------------------------------- */

/* Some members replay graphs, whose capture is their first use; others call. */
static void differently(void) {
    tap_case("first use in a capture by some members, eager by others");
    for (int round = 0; round < 2; round++) {
        team = new_team(1 + round);
        nelems = round ? FEW : large();
        bool captures = (me + round) % 2;
        prepare(10 + round);
        weft_cu_graph_exec graph = NULL;
        if (captures)
            graph = graph_capture(gpu_stream, enqueue);
        for (int replay = 0; replay < REPLAYS; replay++) {
            prepare(100 * replay + round);
            if (captures)
                graph_replay(graph, gpu_stream);
            else
                enqueue();
            gpu_drain(gpu_stream);
            check(100 * replay + round);
        }
        if (captures)
            graph_drop(graph);
        shmem_team_destroy(team);
    }
}

/* --- Slots and memory ------------------------------------------------------------------------- */

static void one_behind_the_other(void) {
    tap_case("teams in one slot: nothing of the last one is found, and its memory comes back");
    size_t before = gpu_memory_left(), meanwhile = before;
    for (int round = 0; round < 3; round++) {
        team = new_team(round);
        for (int call = 0; call < 1 + round; call++)
            sum(round + call);
        meanwhile = gpu_memory_left();
        shmem_team_destroy(team);
    }
    size_t after = gpu_memory_left();
    EXPECT(meanwhile < before, "%zu bytes while there is a team, %zu without", meanwhile, before);
    if (gpu_is_pretended()) /* on a GPU others may have taken some */
        EXPECT(after == before, "%zu bytes are left of %zu", after, before);
}

/* Only a pretended GPU is small. */
static void no_memory(void) {
    tap_case(gpu_is_pretended() ? "no memory on one PE: all take another way"
                                : "no memory on one PE # SKIP only a pretended GPU is small");
    if (!gpu_is_pretended())
        return;
    gpu_memory_limit(3);
    team = new_team(1);
    sum(1);
    sum(2);
    struct weft_gpu_channels channels;
    struct weft_gpu_scope scope = weft_gpu_enter(weft_device.gpu);
    int rc = weft_device_channels(&channels, weft_team_find(team), WEFT_FORM_LL);
    weft_gpu_leave(scope);
    EXPECT(rc == -ENOTSUP, "%d", rc);
    unsetenv("WEFT_FAKE_MEMORY_MB");
    sum(3);
    shmem_team_destroy(team);
    team = new_team(1);
    sum(1);
    INSIDE(weft_device_channels(&channels, weft_team_find(team), WEFT_FORM_LL));
    shmem_team_destroy(team);
}

/* Memory that no kernel can access: a source in host memory that is not registered. */
static void pageable(void) {
    tap_case("a source that kernels do not reach");
    enum { BYTES = 150000 };
    char *from = malloc(BYTES), *to = shmemx_malloc(SHMEMX_SPACE_DEVICE, (size_t)npes * BYTES);
    static const size_t sizes[] = {100, 5000, BYTES};
    for (int i = 0; i < 3; i++) {
        memcpy(from, gpu_data(sizes[i], (uint64_t)(100 * i + me)), sizes[i]);
        ON(fcollectmem_on_stream(SHMEM_TEAM_WORLD, to, from, sizes[i], gpu_stream));
        gpu_drain(gpu_stream);
        for (int pe = 0; pe < npes; pe++)
            gpu_expect(to + sizes[i] * (size_t)pe, gpu_data(sizes[i], (uint64_t)(100 * i + pe)),
                       sizes[i], "%zu bytes of PE %d", sizes[i], pe);
    }
    shmem_free(to);
    free(from);
}

/* --- Settings --------------------------------------------------------------------------------- */

/* Begins another job. */
static void *start_with(const char *name, const char *value) {
    shmem_finalize();
    if (name)
        setenv(name, value, 1);
    shmem_init();
    void *p = shmemx_malloc(SHMEMX_SPACE_DEVICE, 64);
    if (name)
        unsetenv(name);
    return p;
}

static void few_multiprocessors(void) {
    tap_case("SHMEMX_SMS is the most that a call takes");
    struct weft_gpu_channels channels;
    void *p = start_with("SHMEMX_SMS", "1");
    EXPECT(p, "no memory: %s", weft_last_error());
    INSIDE(weft_device_channels(&channels, weft_team_find(SHMEM_TEAM_WORLD), WEFT_FORM_LL));
    EXPECT(channels.blocks_max == 1, "%u blocks", channels.blocks_max);
    shmem_free(p);
}

static void all_gather(size_t bytes) {
    char *from = shmemx_malloc(SHMEMX_SPACE_DEVICE, bytes);
    char *to = shmemx_malloc(SHMEMX_SPACE_DEVICE, bytes * (size_t)npes);
    gpu_write(from, gpu_data(bytes, (uint64_t)me), bytes);
    ON(fcollectmem_on_stream(SHMEM_TEAM_WORLD, to, from, bytes, gpu_stream));
    gpu_drain(gpu_stream);
    for (int pe = 0; pe < npes; pe++)
        gpu_expect(to + bytes * (size_t)pe, gpu_data(bytes, (uint64_t)pe), bytes, "%zu bytes of %d",
                   bytes, pe);
    shmem_free(to);
    shmem_free(from);
}

/* Sums of floats use the selected algorithm where it applies. */
static void algorithms(void) {
    static const struct {
        const char *name;
        enum weft_stream_way few; /* where sums of FEW go first; WEFT_WAYS: nowhere */
    } settings[] = {{"marked", WEFT_WAY_MARKED}, {"meet", WEFT_WAYS}, {"any", WEFT_WAY_LL}};
    tap_case("SHMEMX_ALGORITHM says how calls go");
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        void *p = start_with("SHMEMX_ALGORITHM", settings[i].name);
        struct weft_stream_call call = {.operation = WEFT_STREAM_ALL_REDUCE,
                                        .op = WEFT_FOLD_SUM,
                                        .number = WEFT_NUMBER_FLOAT,
                                        .n = npes,
                                        .bytes = FEW * sizeof(float)};
        enum weft_stream_way tries[WEFT_STREAM_TRIES_MAX] = {WEFT_WAYS};
        int count = weft_stream_ways(&call, tries);
        EXPECT((count ? tries[0] : WEFT_WAYS) == settings[i].few, "%s: way %d", settings[i].name,
               (int)tries[0]);
        source = inside_malloc(NELEMS * sizeof *source);
        dest = inside_malloc(NELEMS * sizeof *dest);
        team = SHMEM_TEAM_WORLD;
        sum(1);
        sum(2);
        all_gather(5000);
        shmem_free(p);
    }
}

static void settings_that_differ(void) {
    tap_case("a setting that differs is an error that names PEs, values and variable");
    char expected[128];
    void *p = start_with("SHMEMX_ALGORITHM", me == 1 ? "meet" : "ll");
    snprintf(expected, sizeof expected,
             "SHMEMX_ALGORITHM is 'll' on PE 0 and 'meet' on PE 1: set it to the same on all PEs");
    EXPECT(!p && strstr(weft_last_error(), expected), "%p: %s", p, weft_last_error());
    p = start_with(NULL, NULL);
    EXPECT(p, "behind it: %s", weft_last_error());
    shmem_free(p);
}

int main(void) {
    shmem_init();
    inside_start();
    source = inside_malloc(NELEMS * sizeof *source);
    dest = inside_malloc(NELEMS * sizeof *dest);
    differently();
    one_behind_the_other();
    no_memory();
    pageable();
    few_multiprocessors();
    algorithms();
    settings_that_differ();
    return gpu_finish();
}
