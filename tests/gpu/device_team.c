/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: handles through which kernels use a team, as the host makes them: each leads to the
 * members' objects in the device heap, and to words and inboxes of its own, shared with no other
 * handle on any PE; errors are the same on all members; memory is returned; a handle outlives its
 * team, and the job frees remaining handles. Kernels that use them are tested elsewhere. PEs: 1 2 3
 * 4 */
#include <errno.h>
#include <pthread.h>
#include "inside.h"
#include "graph.h"
#include "on_stream.h"
#include "channels.h"
#include "weft/device/team.cuh"
#include "transport/gpu_kernel.h"

enum { CHANNELS = 3, SLOT = 64, HANDLES = 4, REMAKES = 100 };

static weft_device_team made(shmem_team_t team, uint32_t channels, uint32_t slot_bytes) {
    weft_device_team handle;
    memset(&handle, GPU_POISON, sizeof handle);
    ON(device_team(team, channels, slot_bytes, &handle));
    return handle;
}

static void dropped(weft_device_team *handle) {
    static const weft_device_team zero;
    ON(device_team_free(handle));
    EXPECT(memcmp(handle, &zero, sizeof zero) == 0, "it is not zero");
}

/* --- Objects of a handle ---------------------------------------------------------------------- */

static size_t words_bytes(const weft_device_team *handle) {
    return weft_device_words_bytes(handle->n, handle->channels);
}

static size_t inbox_bytes(const weft_device_team *handle) {
    return weft_device_inbox_bytes(handle->n, handle->channels, handle->slot_bytes);
}

static int place_of(const weft_device_team *handle, int member) {
    uint16_t places[64];
    if (!handle->places)
        return member;
    gpu_copy(places, handle->places, (size_t)handle->n * sizeof *places);
    return places[member];
}

static void check_fields(const weft_device_team *handle, shmem_team_t team) {
    int n = shmem_team_n_pes(team), neighbours = 0, of_all = 0;
    for (int pe = 0; pe < npes; pe++) {
        bool same = pe % gpu_count == me % gpu_count;
        of_all += same;
        neighbours += same && shmem_team_translate_pe(SHMEM_TEAM_WORLD, pe, team) >= 0;
    }
    int rests = (handle->heap ? of_all : neighbours) > 1;
    EXPECT(handle->version == WEFT_DEVICE_VERSION && handle->generation != 0, "%u, %u",
           handle->version, handle->generation);
    EXPECT(handle->me == shmem_team_my_pe(team) && handle->n == n && handle->pe == me,
           "%d of %d, PE %d", handle->me, handle->n, handle->pe);
    EXPECT(handle->abort == weft_gpu_abort.word && handle->gave_up == weft_gpu_abort.gave_up,
           "%p, %p", (const void *)handle->abort, (void *)handle->gave_up);
    EXPECT((int)handle->neighbours == neighbours, "%u", handle->neighbours);
    EXPECT((handle->rest_ns != 0) == rests, "%u ns with %d PEs on %d GPUs", handle->rest_ns, npes,
           gpu_count);
    EXPECT(handle->reserved[0] == 0 && handle->reserved[1] == 0 && handle->reserved[2] == 0, "set");
    EXPECT((uintptr_t)handle->words % 128 == 0 && (uintptr_t)handle->inbox % 128 == 0, "%p, %p",
           (void *)handle->words, (void *)handle->inbox);
}

static void check_heap(const weft_device_team *handle, shmem_team_t team, const char *object) {
    uintptr_t offset = (uintptr_t)object - handle->heap;
    EXPECT(offset < handle->heap_bytes, "%p is not in %zu bytes at %#zx", (const void *)object,
           handle->heap_bytes, (size_t)handle->heap);
    EXPECT((int)handle->my_place == place_of(handle, handle->me), "place %u", handle->my_place);
    for (int m = 0; m < handle->n; m++) {
        int pe = shmem_team_translate_pe(team, m, SHMEM_TEAM_WORLD);
        const char *at =
            object + (place_of(handle, m) - (ptrdiff_t)handle->my_place) * handle->stride;
        EXPECT(at == shmemx_ptr(SHMEMX_SPACE_DEVICE, object, pe), "member %d: %p", m,
               (const void *)at);
    }
}

static void check_copy(const weft_device_team *handle) {
    const weft_device_team *address = NULL;
    ON(device_team_address(handle, &address));
    gpu_expect(address, handle, sizeof *handle, "the copy");
}

/* Members write words that only they know to all inboxes and words except the head, and check the
 * words that they receive. */
static char *member_words(const weft_device_team *handle, int member) {
    return handle->words + (member - handle->me) * handle->share_stride;
}

static uint64_t key_of(const weft_device_team *handle, int from, int to) {
    return (uint64_t)handle->generation * 10000 + (uint64_t)from * 100 + (uint64_t)to;
}

enum { HEAD = 128 };

static size_t part_bytes(const weft_device_team *handle) {
    return (words_bytes(handle) - HEAD + inbox_bytes(handle)) / (size_t)handle->n;
}

static void write_parts(const weft_device_team *handle) {
    size_t part = part_bytes(handle);
    EXPECT(handle->inbox == handle->words + words_bytes(handle), "the inbox lies elsewhere");
    for (int m = 0; m < handle->n; m++)
        gpu_write(member_words(handle, m) + HEAD + (size_t)handle->me * part,
                  gpu_data(part, key_of(handle, handle->me, m)), part);
}

static void check_parts(const weft_device_team *handle) {
    size_t part = part_bytes(handle);
    for (int m = 0; m < handle->n; m++)
        gpu_expect(handle->words + HEAD + (size_t)m * part,
                   gpu_data(part, key_of(handle, m, handle->me)), part, "from member %d", m);
    gpu_expect(handle->words, &handle->generation, sizeof handle->generation, "the generation");
}

static void check_zero(const weft_device_team *handle) {
    size_t bytes = words_bytes(handle) + inbox_bytes(handle) - sizeof(uint32_t);
    char *zeros = calloc(1, bytes);
    gpu_expect(handle->words + sizeof(uint32_t), zeros, bytes, "of a new handle");
    free(zeros);
}

static void check_all(const weft_device_team *handle, shmem_team_t team, const char *object) {
    check_fields(handle, team);
    check_heap(handle, team, object);
    check_copy(handle);
    check_zero(handle);
    shmem_team_sync(team);
    write_parts(handle);
    shmem_team_sync(team);
    check_parts(handle);
}

/* --- Before the GPUs of all are up ------------------------------------------------------------ */

static void before_the_heap(void) {
    tap_case("a handle of some PEs before there is a heap; a later one has it");
    int pes[] = {npes - 1, 0};
    shmem_team_t team = SHMEM_TEAM_INVALID;
    if (npes > 2 && (me == 0 || me == npes - 1)) {
        ON(team_create(pes, 2, 0, &team));
        weft_device_team handle = made(team, CHANNELS, SLOT);
        check_fields(&handle, team);
        check_copy(&handle);
        EXPECT(handle.heap == 0 && handle.heap_bytes == 0 && handle.stride == 0, "%zu bytes",
               handle.heap_bytes);
        write_parts(&handle);
        shmem_team_sync(team);
        check_parts(&handle);
        dropped(&handle);
    }
    shmem_barrier_all();
    char *object = allocated(shmemx_malloc(SHMEMX_SPACE_DEVICE, 1000));
    if (team != SHMEM_TEAM_INVALID) {
        weft_device_team handle = made(team, CHANNELS, SLOT);
        check_all(&handle, team, object);
        dropped(&handle);
        shmem_team_destroy(team);
    }
    shmem_free(object);
}

/* --- Teams ------------------------------------------------------------------------------------ */

/* PEs that are no members do nothing. */
static void with_team(shmem_team_t team, const char *object) {
    if (team == SHMEM_TEAM_INVALID)
        return;
    weft_device_team handle = made(team, CHANNELS, SLOT);
    check_all(&handle, team, object);
    dropped(&handle);
}

static shmem_team_t split(int start, int stride, int size) {
    shmem_team_t team = SHMEM_TEAM_INVALID;
    shmem_team_split_strided(SHMEM_TEAM_WORLD, start, stride, size, NULL, 0, &team);
    return team;
}

static void teams(void) {
    tap_case("of WORLD, every second PE, backwards, and lists");
    char *object = allocated(shmemx_malloc(SHMEMX_SPACE_DEVICE, 1000));
    shmem_team_t all[] = {SHMEM_TEAM_WORLD, split(me % 2, 2, (npes + 1 - me % 2) / 2),
                          SHMEM_TEAM_INVALID, gpu_list_team()};
    if (npes == 1)
        all[1] = SHMEM_TEAM_INVALID;
    all[2] = split(npes - 1, -1, npes);
    for (int i = 0; i < 4; i++)
        with_team(all[i], object);
    for (int i = 1; i < 4; i++)
        if (all[i] != SHMEM_TEAM_INVALID)
            shmem_team_destroy(all[i]);
    shmem_barrier_all();
    shmem_free(object);
}

static void several(void) {
    tap_case("several at once, and collectives beside them: none touches another's memory");
    weft_device_team handles[HANDLES];
    int *numbers = allocated(shmemx_malloc(SHMEMX_SPACE_DEVICE, 2 * sizeof *numbers));
    for (int i = 0; i < HANDLES; i++)
        handles[i] = made(SHMEM_TEAM_WORLD, (uint32_t)(1 + 7 * i), (uint32_t)(48 * i));
    shmem_barrier_all();
    for (int i = 0; i < HANDLES; i++)
        write_parts(&handles[i]);
    int mine = me + 1, sum = npes * (npes + 1) / 2;
    gpu_write(numbers, &mine, sizeof mine);
    ON(int_sum_reduce_on_stream(SHMEM_TEAM_WORLD, &numbers[1], numbers, 1, gpu_stream));
    ON(barrier_all_on_stream(gpu_stream));
    gpu_drain(gpu_stream);
    gpu_expect(&numbers[1], &sum, sizeof sum, "the sum");
    shmem_barrier_all();
    for (int i = 0; i < HANDLES; i++)
        check_parts(&handles[i]);
    for (int i = 0; i < HANDLES; i += 2)
        dropped(&handles[i]);
    for (int i = 1; i < HANDLES; i += 2)
        check_parts(&handles[i]);
    for (int i = 1; i < HANDLES; i += 2)
        dropped(&handles[i]);
    shmem_free(numbers);
}

/* --- Errors ----------------------------------------------------------------------------------- */

static void refused(shmem_team_t team, uint32_t channels, uint32_t slot_bytes, const char *text) {
    weft_device_team handle;
    int rc = shmemx_device_team(team, channels, slot_bytes, &handle);
    EXPECT(rc == -EINVAL && strstr(weft_last_error(), text), "%u, %u: %d: %s", channels, slot_bytes,
           rc, weft_last_error());
}

static void wrong_arguments(void) {
    tap_case("wrong arguments are refused on all members, and say what is wrong");
    refused(SHMEM_TEAM_WORLD, 0, 16, "argument channels is 0: pass 1 to 1024");
    refused(SHMEM_TEAM_WORLD, 1025, 16, "argument channels is 1025: pass 1 to 1024");
    refused(SHMEM_TEAM_WORLD, 1, 24, "argument slot_bytes is 24: pass a multiple of 16");
    refused(SHMEM_TEAM_WORLD, 1, (1 << 20) + 16, "argument slot_bytes is 1048592: pass a mul");
    refused(SHMEM_TEAM_INVALID, 1, 16, "argument team is");
    int rc = shmemx_device_team(SHMEM_TEAM_WORLD, 1, 16, NULL);
    EXPECT(rc == -EINVAL && strstr(weft_last_error(), "argument handle is NULL"), "%d: %s", rc,
           weft_last_error());
    if (npes == 1)
        return;
    refused(SHMEM_TEAM_WORLD, me == 0 ? 0 : 1, 16,
            me == 0 ? "argument channels is 0" : "PE 0 has failed: Invalid argument");
    refused(SHMEM_TEAM_WORLD, me == 1 ? 2 : 1, 16,
            "PE 1 wants 2 channels with slots of 16 bytes and PE 0 1 with 16: pass the same");
    refused(SHMEM_TEAM_WORLD, 1, me == 1 ? 32 : 16,
            "PE 1 wants 1 channels with slots of 32 bytes and PE 0 1 with 16: pass the same");
}

static void wrong_handles(void) {
    tap_case("what is no handle is refused; NULL and one that was freed are nothing");
    weft_device_team handle = made(SHMEM_TEAM_WORLD, 1, 16), copy = handle, garbage;
    const weft_device_team *address;
    memset(&garbage, GPU_POISON, sizeof garbage);
    EXPECT(shmemx_device_team_free(&garbage) == -EINVAL &&
               strstr(weft_last_error(), "argument handle was not made by"),
           "%s", weft_last_error());
    EXPECT(shmemx_device_team_address(&garbage, &address) == -EINVAL, "there is an address");
    EXPECT(shmemx_device_team_address(NULL, &address) == -EINVAL, "there is an address");
    EXPECT(shmemx_device_team_address(&handle, NULL) == -EINVAL, "there is an address");
    dropped(&handle);
    dropped(&handle);
    ON(device_team_free(NULL));
    EXPECT(shmemx_device_team_free(&copy) == -EINVAL && strstr(weft_last_error(), "has been freed"),
           "%s", weft_last_error());
    EXPECT(shmemx_device_team_address(&copy, &address) == -EINVAL, "there is an address");
    shmem_barrier_all();
}

/* Only a pretended GPU is small. */
static void no_memory(void) {
    tap_case(gpu_is_pretended() ? "no memory on one PE is an error on all"
                                : "no memory on one PE # SKIP only a pretended GPU is small");
    if (!gpu_is_pretended())
        return;
    weft_device_team handle;
    gpu_memory_limit(3);
    int rc = shmemx_device_team(SHMEM_TEAM_WORLD, 64, 64 << 10, &handle);
    EXPECT(rc == -ENOMEM, "%d: %s", rc, weft_last_error());
    unsetenv("WEFT_FAKE_MEMORY_MB");
    handle = made(SHMEM_TEAM_WORLD, 1, 16);
    dropped(&handle);
}

/* --- Threads ---------------------------------------------------------------------------------- */

enum { THREADS = 3, THREAD_ROUNDS = 5 };

/* Two of a team at a time, one of which outlives the round. */
static void *make_in_thread(void *argument) {
    shmem_team_t team = *(shmem_team_t *)argument;
    weft_device_team last = {0};
    intptr_t wrong = 0;
    for (int round = 0; round < THREAD_ROUNDS; round++) {
        weft_device_team one, other;
        const weft_device_team *address;
        wrong += shmemx_device_team(team, 1, 16, &one) != 0;
        wrong += shmemx_device_team(team, 2, 0, &other) != 0;
        wrong += shmemx_device_team_address(&other, &address) != 0;
        wrong += other.words == one.words || other.generation <= one.generation;
        wrong += shmemx_device_team_free(&one) != 0 || shmemx_device_team_free(&last) != 0;
        last = other;
    }
    wrong += shmemx_device_team_free(&last) != 0;
    return (void *)wrong;
}

static void threads(void) {
    tap_case("made and freed by threads, each with a team of its own");
    shmem_team_t all[THREADS];
    pthread_t made_by[THREADS];
    for (int i = 0; i < THREADS; i++)
        all[i] = split(0, 1, npes);
    for (int i = 0; i < THREADS; i++)
        EXPECT(pthread_create(&made_by[i], NULL, make_in_thread, &all[i]) == 0, "no thread");
    for (int i = 0; i < THREADS; i++) {
        void *wrong;
        pthread_join(made_by[i], &wrong);
        EXPECT(!wrong, "thread %d: %zd calls, %s", i, (ssize_t)(intptr_t)wrong, weft_last_error());
        shmem_team_destroy(all[i]);
    }
}

/* --- How long they live ----------------------------------------------------------------------- */

static void remade(void) {
    tap_case("made and freed a hundred times: generations differ, and memory comes back");
    size_t before = 0, after = 0;
    uint32_t last = 0;
    for (int i = 0; i < gpu_rounds(REMAKES, npes > 2 ? REMAKES / 4 : REMAKES); i++) {
        weft_device_team handle = made(SHMEM_TEAM_WORLD, CHANNELS, SLOT);
        EXPECT(handle.generation > last, "%u behind %u", handle.generation, last);
        last = handle.generation;
        dropped(&handle);
        after = gpu_memory_left();
        before = i == 0 ? after : before;
    }
    if (gpu_is_pretended()) /* on a GPU others may have taken some */
        EXPECT(after == before, "%zu bytes are left of %zu", after, before);
}

static void generation_is_gone(void) {
    tap_case("a kernel that has a freed handle finds another generation");
    weft_device_team handle = made(SHMEM_TEAM_WORLD, CHANNELS, SLOT), copy = handle;
    uint32_t none = 0;
    gpu_expect(copy.words, &copy.generation, sizeof copy.generation, "the generation");
    shmem_barrier_all();
    dropped(&handle);
    gpu_expect(copy.words, &none, sizeof none, "the generation behind the end");
    shmem_barrier_all();
}

static void without_its_team(void) {
    tap_case("a handle outlives its team, also where another team takes its slot");
    shmem_team_t team = gpu_list_team(), next_team = SHMEM_TEAM_INVALID;
    if (team != SHMEM_TEAM_INVALID) {
        weft_device_team handle = made(team, CHANNELS, SLOT);
        shmem_team_destroy(team);
        next_team = gpu_list_team();
        weft_device_team other = made(next_team, CHANNELS, SLOT);
        write_parts(&handle);
        write_parts(&other);
        shmem_team_sync(next_team);
        check_parts(&handle);
        check_parts(&other);
        check_copy(&handle);
        dropped(&handle);
        check_parts(&other);
        dropped(&other);
        shmem_team_destroy(next_team);
    }
    shmem_barrier_all();
}

static weft_device_team captured;
static void make_in_capture(void) {
    captured = made(SHMEM_TEAM_WORLD, CHANNELS, SLOT);
}

static void in_capture(void) {
    tap_case("made while a stream is being captured");
    graph_drop(graph_capture(gpu_stream, make_in_capture));
    check_zero(&captured);
    shmem_barrier_all();
    write_parts(&captured);
    shmem_barrier_all();
    check_parts(&captured);
    dropped(&captured);
}

/* A later job has handles of its own. */
static void end_of_job(void) {
    tap_case("the end of the job frees what is left; the next job makes others");
    weft_device_team handle = made(SHMEM_TEAM_WORLD, CHANNELS, SLOT), old = handle;
    const weft_device_team *address;
    EXPECT(weft_gpu_waits, "nobody watches over kernels of the program's");
    shmem_finalize();
    dropped(&handle);
    handle = old;
    int rc = shmemx_device_team_address(&handle, &address);
    EXPECT(rc == -EPERM, "%d", rc);
    rc = shmemx_device_team(SHMEM_TEAM_WORLD, 1, 16, &handle);
    EXPECT(rc == -EPERM, "%d", rc);
    shmem_init();
    EXPECT(shmemx_device_team_free(&old) == -EINVAL, "a handle of another job");
    handle = made(SHMEM_TEAM_WORLD, CHANNELS, SLOT);
    write_parts(&handle);
    shmem_barrier_all();
    check_parts(&handle);
}

int main(void) {
    int provided;
    shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided);
    gpu_start();
    me = shmem_my_pe(), npes = shmem_n_pes();
    before_the_heap();
    teams();
    several();
    wrong_arguments();
    wrong_handles();
    no_memory();
    threads();
    remade();
    generation_is_gone();
    without_its_team();
    in_capture();
    end_of_job();
    return gpu_finish();
}
