/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: shmemx_init_attr and shmemx_get_uniqueid. Every case forks processes that become
 * PEs, and checks their exit statuses. PEs: 1 */
#include <errno.h>
#include <pthread.h>
#include <shmemx.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <weft.h>
#include "tap.h"

enum { NPES_MAX = 4, DIED = 70 };

static shmemx_uniqueid_t id;
static long inbox = 5; /* symmetric, although nobody knew so before main */

#define CHECK(condition)                                                                      \
    do {                                                                                      \
        if (!(condition)) {                                                                   \
            fprintf(stderr, "# line %d: %s (%s)\n", __LINE__, #condition, weft_last_error()); \
            exit(1);                                                                          \
        }                                                                                     \
    } while (0)

/* --- A group that can gather: through memory that is shared before the fork --------------------
 */

struct group {
    _Atomic int arrived[2], round;
    int npes, pe, answer; /* pe: of this process, in its own copy of the struct */
    unsigned char (*slots)[256];
    struct group *shared;
};

static struct group *group_make(int npes) {
    size_t bytes = sizeof(struct group) + NPES_MAX * 256;
    struct group *group =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    group->npes = npes;
    group->slots = (unsigned char(*)[256])(group + 1);
    group->shared = group;
    return group;
}

static int gather(const void *mine, void *all, size_t bytes, void *context) {
    struct group *own = context, *shared = own->shared;
    memcpy(shared->slots[own->pe], mine, bytes);
    atomic_fetch_add(&shared->arrived[0], 1);
    while (atomic_load(&shared->arrived[0]) % own->npes != 0)
        usleep(100);
    for (int pe = 0; pe < own->npes; pe++)
        memcpy((unsigned char *)all + (size_t)pe * bytes, shared->slots[pe], bytes);
    return own->answer;
}

/* --- Calls of an initialised PE --------------------------------------------------------------- */

static void use(int pe, int npes, int level) {
    int provided = -1, right = (pe + 1) % npes, left = (pe + npes - 1) % npes;
    shmem_query_thread(&provided);
    CHECK(provided == level && shmem_my_pe() == pe && shmem_n_pes() == npes);
    long *heap = shmem_malloc(sizeof *heap);
    shmem_long_p(&inbox, 100 + pe, right);
    shmem_long_p(heap, 200 + pe, right);
    shmem_barrier_all();
    CHECK(inbox == 100 + left && *heap == 200 + left);
    shmem_barrier_all();
    shmem_free(heap);
}

static void by_id(int pe, int npes) {
    shmemx_init_attr_t attr = {
        .pe = pe, .npes = npes, .requested = SHMEM_THREAD_MULTIPLE, .uniqueid = &id};
    CHECK(shmemx_init_attr(SHMEMX_INIT_WITH_UNIQUEID, &attr) == 0);
    use(pe, npes, SHMEM_THREAD_MULTIPLE);
    CHECK(shmemx_init_attr(SHMEMX_INIT_WITH_UNIQUEID, &attr) == 0); /* nests */
    shmem_finalize();
    use(pe, npes, SHMEM_THREAD_MULTIPLE);
    shmem_finalize();
    shmem_init(); /* comes back to the same job */
    use(pe, npes, SHMEM_THREAD_SINGLE);
    shmem_finalize();
    CHECK(shmemx_init_attr(SHMEMX_INIT_WITH_UNIQUEID, &attr) == 0);
    use(pe, npes, SHMEM_THREAD_MULTIPLE);
    attr.npes++;
    CHECK(shmemx_init_attr(SHMEMX_INIT_WITH_UNIQUEID, &attr) == -EALREADY);
    CHECK(strstr(weft_last_error(), "cannot become PE"));
    exit(0); /* finalizes */
}

static struct group *group;

static void by_allgather(int pe, int npes) {
    struct group own = *group;
    own.pe = pe;
    shmemx_init_attr_t attr = {.pe = pe, .npes = npes, .allgather = gather, .context = &own};
    CHECK(shmemx_init_attr(SHMEMX_INIT_WITH_ALLGATHER, &attr) == 0);
    use(pe, npes, SHMEM_THREAD_SINGLE);
    shmem_finalize();
    exit(0);
}

/* --- Errors ----------------------------------------------------------------------------------- */

static void refused_gather(int pe, int npes) {
    struct group own = *group;
    own.pe = pe;
    own.answer = 5;
    shmemx_init_attr_t attr = {.pe = pe, .npes = npes, .allgather = gather, .context = &own};
    CHECK(shmemx_init_attr(SHMEMX_INIT_WITH_ALLGATHER, &attr) == -EIO);
    exit(0);
}

/* The group's numbers are not the PEs'. */
static void misplaced(int pe, int npes) {
    struct group own = *group;
    own.pe = npes - 1 - pe;
    shmemx_init_attr_t attr = {.pe = pe, .npes = npes, .allgather = gather, .context = &own};
    CHECK(shmemx_init_attr(SHMEMX_INIT_WITH_ALLGATHER, &attr) == -EINVAL);
    exit(0);
}

static void of_two_minds(int pe, int npes) {
    shmemx_init_attr_t attr = {.pe = pe, .npes = npes + pe, .uniqueid = &id};
    CHECK(shmemx_init_attr(SHMEMX_INIT_WITH_UNIQUEID, &attr) == -EPROTO);
    CHECK(weft_last_error()[0]);
    exit(0);
}

/* The others would wait for a PE 0 that can be called. */
static void from_elsewhere(int pe, int npes) {
    if (pe > 0)
        exit(0);
    shmemx_uniqueid_t foreign = id;
    for (int i = 40; i < 48; i++) /* behind the magic and the key */
        foreign.bytes[i] ^= 0xff;
    shmemx_init_attr_t attr = {.pe = pe, .npes = npes, .uniqueid = &foreign};
    CHECK(shmemx_init_attr(SHMEMX_INIT_WITH_UNIQUEID, &attr) == -EHOSTUNREACH);
    exit(0);
}

static void with_one_dead(int pe, int npes) {
    shmemx_init_attr_t attr = {.pe = pe, .npes = npes, .uniqueid = &id};
    CHECK(shmemx_init_attr(SHMEMX_INIT_WITH_UNIQUEID, &attr) == 0);
    if (pe == npes - 1)
        raise(SIGKILL);
    shmem_barrier_all();
    exit(0);
}

static void *sleeper(void *unused) {
    pause();
    return unused;
}

/* With a thread that might write to them, statics stay where they are and are not symmetric. */
static void with_threads(int pe, int npes) {
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, sleeper, NULL) == 0);
    shmemx_init_attr_t attr = {.pe = pe, .npes = npes, .uniqueid = &id};
    CHECK(shmemx_init_attr(SHMEMX_INIT_WITH_UNIQUEID, &attr) == 0);
    CHECK(npes == 1 || !shmem_addr_accessible(&inbox, (pe + 1) % npes));
    long *heap = shmem_calloc(1, sizeof *heap);
    shmem_long_p(heap, 7, (pe + 1) % npes);
    shmem_barrier_all();
    CHECK(*heap == 7);
    exit(0);
}

/* --- Running -----------------------------------------------------------------------------------
 */

static void fork_all(void (*body)(int pe, int npes), int npes, pid_t *children) {
    fflush(stdout);
    for (int pe = 0; pe < npes; pe++)
        if ((children[pe] = fork()) == 0)
            body(pe, npes);
}

static void expect_all(const pid_t *children, int npes, int status) {
    for (int pe = 0; pe < npes; pe++) {
        int wait = 0;
        EXPECT(waitpid(children[pe], &wait, 0) == children[pe], "%d", errno);
        bool killed = WIFSIGNALED(wait) && status == DIED && pe == npes - 1;
        EXPECT(killed || (WIFEXITED(wait) && WEXITSTATUS(wait) == status), "PE %d of %d: %#x", pe,
               npes, wait);
    }
}

static void run(void (*body)(int pe, int npes), int npes, int status) {
    pid_t children[NPES_MAX];
    EXPECT(shmemx_get_uniqueid(&id) == 0, "%s", weft_last_error());
    group = group_make(npes);
    fork_all(body, npes, children);
    expect_all(children, npes, status);
}

static void expect_invalid(unsigned flags, const shmemx_init_attr_t *attr, const char *text) {
    EXPECT(shmemx_init_attr(flags, attr) == -EINVAL, "%s", text);
    EXPECT(strstr(weft_last_error(), text), "'%s' is not in '%s'", text, weft_last_error());
}

static void wrong_arguments(void) {
    shmemx_uniqueid_t zero = {{0}};
    shmemx_init_attr_t attr = {.pe = 0, .npes = 2, .uniqueid = &zero};
    EXPECT(shmemx_get_uniqueid(NULL) == -EINVAL, "%s", weft_last_error());
    expect_invalid(SHMEMX_INIT_WITH_UNIQUEID, NULL, "attr is NULL");
    expect_invalid(SHMEMX_INIT_WITH_UNIQUEID, &attr,
                   "uniqueid was not made by shmemx_get_uniqueid");
    expect_invalid(SHMEMX_INIT_WITH_ALLGATHER, &attr, "allgather is NULL");
    expect_invalid(0, &attr, "flags is 0");
    expect_invalid(3, &attr, "flags is 0x3");
    expect_invalid(4, &attr, "flags is 0x4");
    attr.uniqueid = NULL;
    expect_invalid(SHMEMX_INIT_WITH_UNIQUEID, &attr, "uniqueid is NULL");
    static const int places[][2] = {{-1, 2}, {2, 2}, {0, 0}, {0, -1}, {0, 4097}, {5000, 6000}};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        attr.pe = places[i][0];
        attr.npes = places[i][1];
        expect_invalid(SHMEMX_INIT_WITH_UNIQUEID, &attr, "is not valid: a job has");
    }
    attr = (shmemx_init_attr_t){.npes = 1, .requested = 4, .uniqueid = &id};
    expect_invalid(SHMEMX_INIT_WITH_UNIQUEID, &attr, "requested is 4");
}

static void side_by_side(void) {
    pid_t first[2], second[2], third[3];
    shmemx_get_uniqueid(&id);
    fork_all(by_id, 2, first);
    shmemx_get_uniqueid(&id);
    fork_all(by_id, 2, second);
    shmemx_get_uniqueid(&id);
    fork_all(by_id, 3, third);
    expect_all(first, 2, 0);
    expect_all(second, 2, 0);
    expect_all(third, 3, 0);
}

static void ids_differ(void) {
    shmemx_uniqueid_t one, other;
    shmemx_get_uniqueid(&one);
    shmemx_get_uniqueid(&other);
    EXPECT(memcmp(&one, &other, sizeof one) != 0, "the same id twice");
}

int main(void) {
    tap_start(0);
    tap_case("wrong arguments are told");
    wrong_arguments();
    tap_case("two ids are different");
    ids_differ();
    tap_case("by unique id: use, nesting, coming back, statics");
    for (int npes = 1; npes <= NPES_MAX; npes++)
        run(by_id, npes, 0);
    tap_case("by the caller's gathering");
    for (int npes = 1; npes <= NPES_MAX; npes++)
        run(by_allgather, npes, 0);
    tap_case("jobs side by side do not mix");
    side_by_side();
    tap_case("a gathering that fails, or that numbers otherwise");
    run(refused_gather, 3, 0);
    run(misplaced, 2, 0);
    tap_case("PEs that are not of one mind, and an id of another host");
    run(of_two_minds, 2, 0);
    run(from_elsewhere, 2, 0);
    tap_case("a death is noticed");
    run(with_one_dead, 3, DIED);
    tap_case("with threads: the heap is symmetric, statics are not");
    run(with_threads, 2, 0);
    return tap_finish();
}
