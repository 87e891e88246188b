/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: every call inside kernels, at every scope, in rounds drawn at random: what is done,
 * how many bytes, how far from any alignment, by how many blocks and threads, in which team; the
 * GPUs make fresh data for each round and check all data received. A few rounds; more are asked for
 * on a command line. PEs: 1 2 3 4
 *
 *   oshrun -n 2 build/tests/gpu/device_stress [KIND:]ROUNDS...
 *
 * KIND is put, get, signal, copy, words, atomics, packets, bulk or grid; without one all of them.
 */
#include <shmemx.h>
#include <time.h>
#include <weft.h>
#include <weft/device.cuh>
#include "gpu/image.h"
#include "gpu/own_memory.h"
#include "gpu/device_stress/task.h"

enum { TEAMS = 4, IN_LAUNCH = 32, SLOT_BYTES = STRESS_PACKETS * STRESS_THREADS * 16 };

static const char *const kinds[STRESS_KINDS] = {"put",     "get",     "signal", "copy", "words",
                                                "atomics", "packets", "bulk",   "grid"};
static const char *const scopes[] = {"thread", "warp", "block"};

static weft_cu_function kernel;
static struct stress_plan plan;
static struct weft_device_team handles[TEAMS];
static const struct weft_device_team *addresses[TEAMS];
static shmem_team_t teams[TEAMS];
static int nteams;
static uint64_t blocks_run; /* rounds of this PE's blocks */

/* --- The arrays of the rounds ----------------------------------------------------------------- */

static void *allocated(size_t bytes) {
    void *p = shmemx_calloc(SHMEMX_SPACE_DEVICE, 1, bytes);
    if (!p) {
        fprintf(stderr, "# PE %d: %s\n", tap_pe, weft_last_error());
        exit(1);
    }
    return p;
}

static void make_arrays(void) {
    const size_t slots = (size_t)STRESS_BLOCKS * STRESS_MEMBERS;
    int major = 0;
    GPU(cuDeviceGetAttribute(&major, WEFT_CU_DEVICE_CAPABILITY_MAJOR, gpu_device));
    plan.seed = (uint32_t)gpu_seed;
    plan.bulk = gpu_is_pretended() || major >= 9;
    plan.dest = allocated(slots * STRESS_SLOT);
    plan.source = allocated((size_t)STRESS_BLOCKS * STRESS_SLOT);
    plan.signals = allocated(slots * STRESS_THREADS * sizeof *plan.signals);
    plan.words = allocated((size_t)STRESS_BLOCKS * STRESS_WORDS * sizeof *plan.words);
    plan.seen = (struct stress_seen *)own_memory(sizeof *plan.seen);
}

/* The world, its members in reverse order, its first ones, and every second one. */
static void make_teams(void) {
    int n = shmem_n_pes(), backwards[n];
    for (int pe = 0; pe < n; pe++)
        backwards[pe] = n - 1 - pe;
    teams[nteams++] = SHMEM_TEAM_WORLD;
    EXPECT(shmemx_team_create(backwards, n, 0, &teams[nteams++]) == 0, "%s", weft_last_error());
    if (n > 2)
        shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, n - 1, NULL, 0, &teams[nteams++]);
    if (n > 2)
        shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 2, (n + 1) / 2, NULL, 0, &teams[nteams++]);
    for (int i = 0; i < nteams; i++) {
        if (teams[i] == SHMEM_TEAM_INVALID)
            continue;
        int rc = shmemx_device_team(teams[i], STRESS_BLOCKS, SLOT_BYTES, &handles[i]);
        if (rc == 0)
            rc = shmemx_device_team_address(&handles[i], &addresses[i]);
        EXPECT(rc == 0, "team %d: %d: %s", i, rc, weft_last_error());
    }
}

static void free_all(void) {
    for (int i = 0; i < nteams; i++)
        if (teams[i] != SHMEM_TEAM_INVALID)
            EXPECT(shmemx_device_team_free(&handles[i]) == 0, "%s", weft_last_error());
    shmem_free(plan.words);
    shmem_free(plan.signals);
    shmem_free(plan.source);
    shmem_free(plan.dest);
}

/* --- Rounds --------------------------------------------------------------------------------------
 */

/* Pretended and shared GPUs are slow for large rounds. */
static bool is_slow(void) {
    return gpu_is_pretended() || shmem_n_pes() > gpu_count;
}

static void launch_rounds(uint64_t number, uint32_t rounds) {
    uint64_t k = number * 8;
    int team = (int)gpu_draw(k, (uint64_t)nteams);
    unsigned most = is_slow() ? 4 : STRESS_BLOCKS, warps = gpu_is_pretended() ? 3 : 8;
    unsigned blocks = 1 + (unsigned)gpu_draw(k + 1, most);
    unsigned threads = 32 * (1 + (unsigned)gpu_draw(k + 2, warps));
    const struct weft_device_team *address = gpu_draw(k + 3, 2) ? addresses[team] : NULL;
    if (teams[team] == SHMEM_TEAM_INVALID)
        return;
    plan.first = number * IN_LAUNCH;
    plan.rounds = rounds;
    void *arguments[] = {&handles[team], &address, &plan};
    image_launch(kernel, blocks, threads, gpu_stream, arguments);
    blocks_run += (uint64_t)blocks * rounds;
}

static void expect_right(const struct stress_seen *seen) {
    uint64_t checked = 0;
    for (int kind = 0; kind < STRESS_KINDS; kind++)
        checked += seen->checked[kind];
    EXPECT(seen->wrong == 0,
           "%llu results are wrong; first, in round %llu, %s by a %s, variant %d, block %u, group "
           "%u, %u bytes shifted by %u to %u, from %d: at %d %#llx, not %#llx",
           (unsigned long long)seen->wrong, (unsigned long long)seen->round, kinds[seen->kind],
           scopes[seen->scope], seen->variant, seen->block, seen->group, seen->bytes,
           seen->from_shift, seen->to_shift, seen->from, seen->index,
           (unsigned long long)seen->found, (unsigned long long)seen->wanted);
    EXPECT(seen->given_up == 0, "%llu rounds were given up", (unsigned long long)seen->given_up);
    EXPECT(checked == blocks_run, "%llu of %llu rounds were checked", (unsigned long long)checked,
           (unsigned long long)blocks_run);
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Runs rounds of one kind, or of all; each launch has numbers of its own. */
static void run(int only, uint64_t rounds) {
    static uint64_t launches;
    static const struct stress_seen nothing;
    static char text[256];
    struct stress_seen seen;
    const char *name = only < 0 ? "all kinds" : kinds[only];
    snprintf(text, sizeof text, "%s", name);
    tap_case(text);
    plan.only = only;
    blocks_run = 0;
    gpu_write(plan.seen, &nothing, sizeof nothing);
    shmem_barrier_all();
    double start = now();
    for (uint64_t made = 0; made < rounds; made += IN_LAUNCH) {
        uint64_t left = rounds - made;
        launch_rounds(launches++, left < IN_LAUNCH ? (uint32_t)left : IN_LAUNCH);
    }
    gpu_drain(gpu_stream);
    double us = 1e6 * (now() - start) / (double)rounds;
    gpu_copy(&seen, plan.seen, sizeof seen);
    expect_right(&seen);
    shmem_barrier_all();
    snprintf(text, sizeof text, "%s: %llu rounds, %llu of a block, %.1f us each", name,
             (unsigned long long)rounds, (unsigned long long)blocks_run, us);
    tap_close_case();
}

static void run_asked(const char *asked) {
    const char *colon = strchr(asked, ':');
    for (int kind = 0; colon && kind < STRESS_KINDS; kind++)
        if (strlen(kinds[kind]) == (size_t)(colon - asked) &&
            strncmp(kinds[kind], asked, (size_t)(colon - asked)) == 0) {
            run(kind, (uint64_t)strtod(colon + 1, NULL));
            return;
        }
    if (!colon) {
        run(-1, (uint64_t)strtod(asked, NULL));
        return;
    }
    tap_case("what is asked for");
    EXPECT(false, "'%s' is no [KIND:]ROUNDS", asked);
}

int main(int argc, char **argv) {
    shmem_init();
    gpu_start();
    kernel = image_kernel("device_stress");
    make_arrays();
    make_teams();
    for (int i = 1; i < argc; i++)
        run_asked(argv[i]);
    for (int kind = 0; argc == 1 && !is_slow() && kind < STRESS_KINDS; kind++)
        run(kind, 512);
    if (argc == 1)
        run(-1, is_slow() ? 96 : 4096);
    free_all();
    return gpu_finish();
}
