/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: a program that uses NVSHMEM's names finds its PEs, teams and memory, and its kernels
 * put, signal, wait, meet and reduce by thread, warp and block, in a module that is registered
 * before the job's GPUs are open, or after. PEs: 1 2 3 4 */
#include "gpu/gpu.h"
#include "gpu/image.h"
#include "weft/nvshmem/nvshmem.h"
#include "weft/nvshmem/nvshmemx.h"

enum { THREADS = 64, WORDS = 8, MOST = 4 };

static int me, n, next;
static uint32_t *wrong; /* number of errors that kernels have found */
static nvshmem_team_t evens = NVSHMEM_TEAM_INVALID, odds = NVSHMEM_TEAM_INVALID, mine;

/* Runs a kernel on all PEs; no thread may have found anything wrong. */
static void run(const char *kernel, void **arguments) {
    uint32_t found;
    nvshmem_barrier_all();
    image_launch(image_kernel(kernel), 1, THREADS, gpu_stream, arguments);
    gpu_drain(gpu_stream);
    gpu_copy(&found, wrong, sizeof found);
    EXPECT(found == 0, "%s: %u times wrong", kernel, found);
    gpu_write(wrong, &(uint32_t){0}, sizeof found);
}

static void *zeros(size_t bytes) {
    void *p = nvshmem_calloc(1, bytes);
    if (!p)
        exit(1);
    return p;
}

/* --- Beginning -------------------------------------------------------------------------------- */

static void begin(void) {
    int local;
    tap_case("a module that comes first is filled when the GPUs are opened");
    (void)image_kernel("names_who");
    EXPECT(nvshmemx_init_status() == NVSHMEM_STATUS_IS_BOOTSTRAPPED, "%d", nvshmemx_init_status());
    gpu_enter();
    EXPECT(nvshmemx_cumodule_init(image_module) == 0, "the module is refused");
    gpu_leave();
    wrong = zeros(sizeof *wrong);
    EXPECT(nvshmemx_init_status() == NVSHMEM_STATUS_IS_INITIALIZED, "%d", nvshmemx_init_status());
    EXPECT(nvshmem_ptr(wrong, me) == wrong && nvshmem_ptr(&local, me) == NULL, "nvshmem_ptr");
}

/* --- Teams ------------------------------------------------------------------------------------ */

static void split(void) {
    tap_case("teams are split, and kernels know them");
    nvshmem_team_config_t config = {0};
    int made =
        nvshmem_team_split_strided(NVSHMEM_TEAM_WORLD, 0, 2, (n + 1) / 2, &config, 0, &evens);
    EXPECT(made == 0 && (evens >= 0) == (me % 2 == 0), "%d, team %d", made, evens);
    if (n > 1)
        nvshmem_team_split_strided(NVSHMEM_TEAM_WORLD, 1, 2, n / 2, NULL, 0, &odds);
    mine = me % 2 ? odds : evens;
    EXPECT(nvshmem_team_my_pe(mine) == me / 2, "%d of %d", nvshmem_team_my_pe(mine), me);
    EXPECT(nvshmem_team_n_pes(mine) == (n + 1 - me % 2) / 2, "%d", nvshmem_team_n_pes(mine));
    EXPECT(nvshmem_team_translate_pe(mine, 0, NVSHMEM_TEAM_WORLD) == me % 2, "translated");
    EXPECT(nvshmem_team_n_pes(NVSHMEM_TEAM_INVALID) == -1, "no team has members");
}

static void who(void) {
    tap_case("kernels know this PE, the job, and the teams");
    int *object = zeros(sizeof *object), *out = zeros(16 * sizeof *out), found[16];
    int team = mine, other = next % 2 == me % 2 ? next / 2 : -1;
    run("names_who", (void *[]){&out, &object, &team});
    gpu_copy(found, out, sizeof found);
    int expected[] = {me, n, me / 2, (n + 1 - me % 2) / 2, me % 2, other, 1, 1, me, -2};
    for (int i = 0; i < 10; i++)
        EXPECT(found[i] == expected[i], "answer %d is %d, not %d", i, found[i], expected[i]);
    nvshmem_free(out);
    nvshmem_free(object);
}

/* --- Kernels ---------------------------------------------------------------------------------- */

static void words_and_copies(void) {
    tap_case("words of all sizes, puts and gets by thread, warp and block");
    char *box = zeros(8), *host;
    run("names_words", (void *[]){&box, &wrong});
    nvshmem_free(box);
    for (size_t bytes = 8; bytes <= 8192; bytes *= 32) {
        char *dest = zeros(6 * bytes), *source = zeros(bytes), *got = zeros(bytes);
        gpu_write(source, gpu_data(bytes, (uint64_t)me), bytes);
        run("names_copies", (void *[]){&dest, &source, &got, &bytes, &wrong});
        for (int i = 0; i < 6; i++)
            gpu_expect(dest + (size_t)i * bytes, gpu_data(bytes, (uint64_t)((me + n - 1) % n)),
                       bytes, "put %d", i);
        nvshmem_free(got);
        nvshmem_free(source);
        nvshmem_free(dest);
    }
    host = zeros(64);
    nvshmem_int_p((int *)host, me + 7, next);
    nvshmem_barrier_all();
    EXPECT(nvshmem_int_g((int *)host, me) == (me + n - 1) % n + 7, "the host's word");
    nvshmem_free(host);
}

static void ring(void) {
    size_t nwords = 300;
    uint32_t rounds = 13, *box = zeros(nwords * 4), *out = zeros(nwords * 4);
    uint64_t *sig = zeros(sizeof *sig);
    run("names_ring", (void *[]){&box, &out, &nwords, &sig, &rounds, &wrong});
    nvshmem_free(sig);
    nvshmem_free(out);
    nvshmem_free(box);
}

static void atomics(void) {
    tap_case("threads of all PEs share lists by atomics");
    uint32_t *taken = zeros(sizeof *taken), *list = zeros(THREADS * MOST * sizeof *list);
    int64_t *sums = zeros(8 * sizeof *sums);
    run("names_atomics", (void *[]){&taken, &list, &sums, &wrong});
    nvshmem_free(sums);
    nvshmem_free(list);
    nvshmem_free(taken);
}

static void waits(void) {
    tap_case("waits and tests of one word and of many, signed and not");
    int *words = nvshmem_malloc(WORDS * sizeof *words), never[WORDS];
    short *shorts = nvshmem_malloc(WORDS * sizeof *shorts), unset[WORDS];
    uint64_t *sig = zeros(sizeof *sig);
    for (int i = 0; i < WORDS; i++) {
        never[i] = 99;
        unset[i] = 1;
    }
    gpu_write(words, never, sizeof never);
    gpu_write(shorts, unset, sizeof unset);
    run("names_waits", (void *[]){&words, &shorts, &sig, &wrong});
    nvshmem_free(sig);
    nvshmem_free(shorts);
    nvshmem_free(words);
}

static void meetings(void) {
    tap_case("threads, warps and blocks meet, also with each other, in all teams");
    uint32_t rounds = 12, *words = zeros(2 * MOST * sizeof *words);
    int teams[] = {NVSHMEM_TEAM_WORLD, NVSHMEM_TEAM_SHARED, NVSHMEMX_TEAM_NODE, mine};
    for (int i = 0; i < 4; i++) {
        gpu_write(words, (uint32_t[2 * MOST]){0}, 2 * MOST * sizeof *words);
        run("names_meetings", (void *[]){&words, &teams[i], &rounds, &wrong});
    }
    gpu_write(words, (uint32_t[2 * MOST]){0}, 2 * MOST * sizeof *words);
    run("names_meet_all", (void *[]){&words, &rounds, &wrong});
    nvshmem_free(words);
}

static void collectives(void) {
    tap_case("collectives of kernels, in the world and in a team, also in place");
    for (size_t nelems = 1; nelems <= 150; nelems += 149) {
        int *box = zeros(2 * MOST * nelems * sizeof *box), world = NVSHMEM_TEAM_WORLD, team = mine;
        run("names_collectives", (void *[]){&box, &nelems, &world, &wrong});
        run("names_collectives", (void *[]){&box, &nelems, &team, &wrong});
        run("names_scatters", (void *[]){&box, &nelems, &world, &wrong});
        run("names_scatters", (void *[]){&box, &nelems, &team, &wrong});
        nvshmem_free(box);
        double *pairs = zeros(4 * nelems * sizeof *pairs);
        run("names_largest", (void *[]){&pairs, &nelems, &world, &wrong});
        run("names_largest", (void *[]){&pairs, &nelems, &team, &wrong});
        nvshmem_free(pairs);
    }
}

/* --- The host's ------------------------------------------------------------------------------- */

static void on_host(void) {
    tap_case("collectives of the host, and calls in the order of a stream");
    int *source = zeros(sizeof *source), *dest = zeros((MOST + 1) * sizeof *dest), found[MOST];
    int *last = dest + MOST;
    uint64_t *sig = zeros(sizeof *sig);
    gpu_write(source, &(int){me + 1}, sizeof *source);
    EXPECT(nvshmem_int_sum_reduce(NVSHMEM_TEAM_WORLD, dest, source, 1) == 0, "a reduction");
    gpu_copy(found, dest, sizeof *found);
    EXPECT(found[0] == n * (n + 1) / 2, "the sum is %d", found[0]);
    gpu_enter();
    nvshmemx_putmem_signal_on_stream(last, source, sizeof *source, sig, 3, NVSHMEM_SIGNAL_SET, next,
                                     gpu_stream);
    nvshmemx_signal_wait_until_on_stream(sig, NVSHMEM_CMP_EQ, 3, gpu_stream);
    nvshmemx_barrier_all_on_stream(gpu_stream);
    EXPECT(nvshmemx_int_fcollect_on_stream(NVSHMEM_TEAM_WORLD, dest, last, 1, gpu_stream) == 0,
           "fcollect");
    gpu_leave();
    gpu_drain(gpu_stream);
    gpu_copy(found, dest, sizeof found);
    for (int pe = 0; pe < n; pe++)
        EXPECT(found[pe] == (pe + n - 1) % n + 1, "element %d is %d", pe, found[pe]);
    nvshmem_free(sig);
    nvshmem_free(dest);
    nvshmem_free(source);
}

/* Memory that the program has allocated itself. */
static void buffers(void) {
    enum { PAGE = 4096 };
    tap_case("the program's own memory: known to the GPU by registration, never symmetric");
    char *host = aligned_alloc(PAGE, PAGE), *object = zeros(64);
    int type;
    int (*ask)(void *, int, unsigned long long);
    *(void **)&ask = dlsym(dlopen("libcuda.so.1", RTLD_LAZY), "cuPointerGetAttribute");
    gpu_enter();
    EXPECT(nvshmemx_buffer_register(NULL, 8) == NVSHMEMX_ERROR_INVALID_VALUE &&
               nvshmemx_buffer_register(host, 0) == NVSHMEMX_ERROR_INVALID_VALUE,
           "a buffer without bytes is registered");
    EXPECT(nvshmemx_buffer_register(object, 64) == NVSHMEMX_SUCCESS, "GPU memory");
    for (int round = 0; round < 2; round++) {
        EXPECT(nvshmemx_buffer_register(host, PAGE) == NVSHMEMX_SUCCESS, "host memory");
        EXPECT(ask(&type, WEFT_NVSHMEM_MEMORY_TYPE, (uintptr_t)host) == 0, "CUDA knows it not");
        if (round == 0)
            EXPECT(nvshmemx_buffer_unregister(host) == NVSHMEMX_SUCCESS, "unregister");
        else
            nvshmemx_buffer_unregister_all();
        EXPECT(ask(&type, WEFT_NVSHMEM_MEMORY_TYPE, (uintptr_t)host) != 0, "CUDA knows it still");
    }
    EXPECT(nvshmemx_buffer_unregister(host) == NVSHMEMX_SUCCESS, "nothing to unregister");
    EXPECT(!nvshmemx_buffer_register_symmetric(object, 64, 0), "the program's own is symmetric");
    EXPECT(nvshmemx_buffer_unregister_symmetric(object, 64) == NVSHMEMX_ERROR_NOT_SUPPORTED, "?");
    gpu_leave();
    nvshmem_free(object);
    free(host);
}

/* Writes the state of a module's kernels, bypassing nvshmemx_cumodule_init. */
static void set_state(weft_cu_module module, const struct weft_nvshmem_state *state) {
    int (*find)(weft_cu_address *, size_t *, weft_cu_module, const char *);
    int (*copy)(weft_cu_address, const void *, size_t);
    void *driver = dlopen("libcuda.so.1", RTLD_LAZY);
    weft_cu_address there = 0;
    size_t bytes = 0;
    *(void **)&find = dlsym(driver, "cuModuleGetGlobal_v2");
    *(void **)&copy = dlsym(driver, "cuMemcpyHtoD_v2");
    gpu_enter();
    int error = find(&there, &bytes, module, "weft_nvshmem_state");
    EXPECT(error == 0 && bytes == sizeof *state, "error %d, %zu bytes", error, bytes);
    EXPECT(copy(there, state, sizeof *state) == 0, "the state is not to be written");
    gpu_leave();
}

/* The abort word is one of the test's own. */
static void over(void) {
    tap_case("waits return when the job is over");
    struct weft_nvshmem_state state = weft_nvshmem_job.state;
    int *words = zeros(2 * sizeof *words);
    uint64_t *sig = zeros(sizeof *sig);
    uint32_t *told = zeros(16 * sizeof *told);
    gpu_write(told, &(uint32_t){1}, sizeof *told);
    state.world.abort = told;
    state.world.gave_up = told + 8;
    set_state(image_module, &state);
    run("names_over", (void *[]){&words, &sig, &wrong});
    set_state(image_module, &weft_nvshmem_job.state);
    nvshmem_free(told);
    nvshmem_free(sig);
    nvshmem_free(words);
}

static void late(void) {
    tap_case("a module that comes later is filled at once, and one without names is refused");
    nvshmemx_cumodule_finalize(image_module);
    gpu_enter();
    GPU(cuModuleLoadData(&image_module, image_bytes()));
    gpu_leave();
    set_state(image_module, &(struct weft_nvshmem_state){0}); /* pretended modules have one state */
    gpu_enter();
    EXPECT(nvshmemx_cumodule_init(image_module) == 0, "the module is refused");
    EXPECT(nvshmemx_cumodule_init(NULL) != 0, "no module is one");
    gpu_leave();
    who();
}

/* As a library does that may be used alone. */
static void begin_again(void) {
    tap_case("as many ends as beginnings end the job");
    nvshmem_init();
    nvshmem_barrier_all();
    nvshmem_finalize();
    EXPECT(nvshmemx_init_status() == NVSHMEM_STATUS_IS_INITIALIZED, "%d", nvshmemx_init_status());
    ring();
}

/* The program has begun the job by the standard's name, too. */
static void close_and_open(void) {
    tap_case("kernels know the job again that has gone on behind the last end, and its teams");
    shmem_init();
    nvshmem_finalize();
    EXPECT(nvshmemx_init_status() == NVSHMEM_STATUS_NOT_INITIALIZED, "%d", nvshmemx_init_status());
    set_state(image_module, &(struct weft_nvshmem_state){0}); /* their state is invalid now */
    nvshmem_init();
    EXPECT(nvshmem_team_my_pe(mine) == me / 2, "the team is gone");
    who();
    meetings();
    shmem_finalize();
}

static void end(void) {
    int running = 1;
    nvshmem_finalize();
    shmem_query_initialized(&running);
    EXPECT(!running, "the job goes on");
    EXPECT(nvshmemx_init_status() == NVSHMEM_STATUS_NOT_INITIALIZED, "%d", nvshmemx_init_status());
}

static void anew(const char *behind, void (*init)(void), void (*finalize)(void)) {
    nvshmem_team_t team;
    tap_case(behind);
    init();
    EXPECT(nvshmemx_init_status() != NVSHMEM_STATUS_IS_INITIALIZED, "%d", nvshmemx_init_status());
    EXPECT(nvshmem_team_n_pes(NVSHMEM_TEAM_WORLD) == n, "%d", nvshmem_n_pes());
    for (team = WEFT_NVSHMEM_TEAMS_MADE; team < WEFT_NVSHMEM_TEAMS; team++)
        EXPECT(nvshmem_team_n_pes(team) == -1, "team %d is there", team);
    wrong = zeros(sizeof *wrong);
    ring();
    nvshmem_free(wrong);
    nvshmem_team_split_strided(NVSHMEM_TEAM_WORLD, 0, 1, n, NULL, 0, &team);
    gpu_drain(gpu_stream);
    finalize();
    EXPECT(nvshmemx_init_status() == NVSHMEM_STATUS_NOT_INITIALIZED, "%d", nvshmemx_init_status());
}

/* Only PE 0 is full, in the end. */
static void too_many(void) {
    tap_case(
        "a team for which one member has no room is refused on all of them, and room is found");
    nvshmem_team_t own[WEFT_NVSHMEM_TEAMS], all;
    int made = WEFT_NVSHMEM_TEAMS - WEFT_NVSHMEM_TEAMS_MADE;
    for (int i = 0; i < made; i++)
        EXPECT(nvshmem_team_split_strided(NVSHMEM_TEAM_WORLD, 0, 1, 1, NULL, 0, &own[i]) == 0,
               "team %d", i);
    int error = nvshmem_team_split_strided(NVSHMEM_TEAM_WORLD, 0, 1, n, NULL, 0, &all);
    EXPECT(error == -1 && all == NVSHMEM_TEAM_INVALID, "%d, team %d", error, all);
    for (int i = 0; i < made; i++)
        nvshmem_team_destroy(own[i]);
    error = nvshmem_team_split_strided(NVSHMEM_TEAM_WORLD, 0, 1, n, NULL, 0, &all);
    EXPECT(error == 0 && nvshmem_team_n_pes(all) == n, "%d, team %d", error, all);
    nvshmem_team_destroy(all);
}

int main(void) {
    nvshmem_init();
    gpu_start();
    me = nvshmem_my_pe();
    n = nvshmem_n_pes();
    next = (me + 1) % n;
    begin();
    split();
    who();
    words_and_copies();
    tap_case("a message goes round a ring, with a signal of each kind");
    ring();
    atomics();
    waits();
    meetings();
    collectives();
    on_host();
    buffers();
    over();
    late();
    close_and_open();
    nvshmem_team_destroy(mine);
    too_many();
    begin_again();
    nvshmem_free(wrong);
    gpu_drain(gpu_stream);
    end();
    anew("a job behind the first one has its kernels, and none of the teams", nvshmem_init,
         shmem_finalize);
    anew("and so has one that is begun by the standard's name, behind one ended by that name",
         shmem_init, shmem_finalize);
    anew("and one behind that", nvshmem_init, nvshmem_finalize);
    return tap_finish();
}
