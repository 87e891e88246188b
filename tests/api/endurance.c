/* SPDX-License-Identifier: BSD-3-Clause */
/* Very many jobs in one process, and very many barriers in one job: memory, mappings and
 * descriptors of the PE and of its launcher do not grow. With WEFT_TEST_LONG in the environment
 * 10^5 jobs, and on 2 PEs 10^8 barriers. PEs: 1 2 3 5 8 */
#include <shmem.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "entries.h"
#include "reach.h"
#include "tap.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SANITIZED = 1 }; /* a sanitizer's own memory grows: only descriptors are checked */
#else
enum { SANITIZED = 0 };
#endif

enum { WARM_UP = 20, GROWTH_KB_MAX = 100 };

struct use {
    long descriptors, mappings, kilobytes;
};

static long count_lines(const char *path) {
    FILE *file = fopen(path, "r");
    long lines = 0;
    for (int c; file && (c = getc(file)) != EOF;)
        lines += c == '\n';
    if (file)
        fclose(file);
    return lines;
}

/* Returns the private memory of another process. */
static long anonymous_kilobytes(const char *path) {
    FILE *file = fopen(path, "r");
    char line[256];
    long kilobytes = 0;
    while (file && fgets(line, sizeof line, file))
        sscanf(line, "RssAnon: %ld", &kilobytes);
    if (file)
        fclose(file);
    return kilobytes;
}

/* Returns the memory that is allocated in this process. The allocator keeps more than that, in
 * pieces left by jobs with several threads and by long messages, which varies from run to run. */
static long allocated_kilobytes(void) {
    struct mallinfo2 now = mallinfo2();
    return (long)((now.uordblks + now.hblkhd) / 1024);
}

static struct use use_of(long pid) {
    char fds[64], maps[64], status[64];
    snprintf(fds, sizeof fds, "/proc/%ld/fd", pid);
    snprintf(maps, sizeof maps, "/proc/%ld/maps", pid);
    snprintf(status, sizeof status, "/proc/%ld/status", pid);
    long kilobytes = pid == getpid() ? allocated_kilobytes() : anonymous_kilobytes(status);
    return (struct use){entries_of(fds), count_lines(maps), kilobytes};
}

/* `slack` is the number of descriptors that may be open at this moment. */
static void expect_no_growth(const char *whose, const struct use *before, const struct use *after,
                             long slack) {
    long grown = after->kilobytes - before->kilobytes;
    EXPECT(after->descriptors <= before->descriptors + slack, "%s: %ld descriptors, then %ld",
           whose, before->descriptors, after->descriptors);
    EXPECT(SANITIZED || after->mappings <= before->mappings + 4, "%s: %ld mappings, then %ld",
           whose, before->mappings, after->mappings);
    EXPECT(SANITIZED || grown <= GROWTH_KB_MAX, "%s: grown by %ld KB", whose, grown);
}

/* Runs a job that makes something of every kind, and frees only a part of it explicitly. */
static void one_job(long turn) {
    int provided;
    shmem_team_t team;
    shmem_ctx_t ctx;
    shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided);
    int me = shmem_my_pe(), npes = shmem_n_pes();
    long *word = shmem_malloc(5000 * sizeof *word);
    shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, npes, NULL, 0, &team);
    shmem_team_create_ctx(team, 0, &ctx);
    shmem_ctx_long_p(ctx, &word[17], turn + me, (me + 1) % npes);
    shmem_ctx_quiet(ctx);
    shmem_barrier_all();
    EXPECT(word[17] == turn + (me + npes - 1) % npes, "turn %ld: %ld", turn, word[17]);
    if (turn % 2) {
        shmem_ctx_destroy(ctx);
        shmem_team_destroy(team);
        shmem_free(word);
    }
    shmem_finalize();
}

static void jobs(long turns) {
    struct use mine, launchers;
    for (long turn = 0; turn < WARM_UP + turns; turn++) {
        if (turn == WARM_UP) {
            mine = use_of(getpid());
            launchers = use_of(getppid());
        }
        one_job(turn);
    }
    struct use mine_then = use_of(getpid()), launchers_then = use_of(getppid());
    expect_no_growth("this PE", &mine, &mine_then, 0);
    /* A round of an exchange may be under way: three descriptors for each PE, and twice that. */
    expect_no_growth("the launcher", &launchers, &launchers_then, 6 * 8);
}

/* A store to the next PE, and two barriers. Returns whether the store to this PE has arrived. */
static bool turn_comes(long *stored, long *peer, int next, long turn) {
    if (peer)
        *peer = turn;
    else
        shmem_long_p(stored, turn, next);
    shmem_barrier_all();
    bool comes = *stored == turn;
    shmem_sync_all();
    return comes;
}

/* The first turns make the channels to far PEs. */
static void barriers(long turns) {
    static long stored;
    int me = shmem_my_pe(), next = (me + 1) % shmem_n_pes();
    long *peer = shmem_ptr(&stored, next);
    EXPECT(!!peer == reach_is_near(next), "the pointer is %p", (void *)peer);
    for (long turn = 0; turn < WARM_UP; turn++)
        turn_comes(&stored, peer, next, turn);
    struct use mine = use_of(getpid());
    for (long turn = 0; turn < turns; turn++)
        if (!turn_comes(&stored, peer, next, turn)) {
            EXPECT(false, "%ld in turn %ld", stored, turn);
            break;
        }
    struct use then = use_of(getpid());
    expect_no_growth("this PE", &mine, &then, 0);
}

int main(void) {
    int long_form = getenv("WEFT_TEST_LONG") && !getenv("WEFT_TEST_HOSTS") && !SANITIZED;
    shmem_init();
    int npes = shmem_n_pes();
    long_form = long_form && reach_is_near_to_all();
    tap_start(shmem_my_pe());
    tap_case("barriers");
    barriers(!long_form ? 3000 : npes <= 2 ? 50000000 : 300000); /* two a turn */
    shmem_finalize();
    tap_case("jobs");
    jobs(!long_form ? 100 : npes <= 3 ? 100000 : 5000);
    return tap_finish();
}
