/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory model (pitfalls 1 to 6): symmetric objects, the meaning of an address on another PE,
 * objects that one call may mix, valid local buffers, alignment, and calls with zero elements. */
#include <shmem.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "conformance/ring.h"
#include "tap.h"
#include "api/model.h"

enum { LARGE = 8 << 20 };

struct record {
    char tag;
    double real;
    long count;
    struct {
        short narrow;
        uint64_t wide;
    } inner[3];
};

int tentative;
long global_initialised = 12;
static struct record record = {.tag = 'r', .count = 5};
static volatile int volatile_static;
static char aligned_static[256] __attribute__((aligned(4096)));
static unsigned char large_static[LARGE];
static _Thread_local int of_a_thread;
static const int constants[4] = {3, 1, 4, 1};

static long *function_static(void) {
    static long count;
    return &count;
}

/* Every routine family that takes a symmetric address, on static data. */
static void statics(void) {
    static uint64_t sig;
    shmem_int_p(&tentative, me + 10, next);
    shmem_long_atomic_add(&global_initialised, me, next);
    shmem_double_p(&record.real, me + 0.5, next);
    shmem_short_p(&record.inner[2].narrow, (short)-me, next);
    shmem_uint64_atomic_set(&record.inner[1].wide, (uint64_t)me << 40, next);
    shmem_int_p((int *)&volatile_static, me + 20, next);
    shmem_char_put(aligned_static + 1, "symmetric", 10, next);
    shmem_long_atomic_inc(function_static(), next);
    shmem_uchar_p(&large_static[0], 1, next);
    shmem_uchar_p(&large_static[LARGE - 1], (unsigned char)(me + 2), next);
    shmem_fence();
    shmem_signal_add(&sig, 1, next);
    shmem_signal_wait_until(&sig, SHMEM_CMP_EQ, 1);
    EXPECT(tentative == before + 10, "%d", tentative);
    EXPECT(global_initialised == 12 + before, "%ld", global_initialised);
    EXPECT(record.real == before + 0.5 && record.inner[2].narrow == (short)-before, "%g %d",
           record.real, record.inner[2].narrow);
    EXPECT(record.inner[1].wide == (uint64_t)before << 40, "%#llx",
           (unsigned long long)record.inner[1].wide);
    EXPECT(record.tag == 'r' && record.count == 5, "the neighbours %c %ld", record.tag,
           record.count);
    EXPECT(volatile_static == before + 20, "%d", volatile_static);
    EXPECT(strcmp(aligned_static + 1, "symmetric") == 0, "%.16s", aligned_static + 1);
    EXPECT(*function_static() == 1, "%ld", *function_static());
    EXPECT(large_static[0] == 1 && large_static[LARGE - 1] == before + 2, "%d %d", large_static[0],
           large_static[LARGE - 1]);
    for (int pe = 0; pe < npes; pe++)
        EXPECT(!shmem_addr_accessible(&of_a_thread, pe), "a thread's variable");
    shmem_barrier_all();
}

/* Linked objects: an address that is stored in symmetric memory belongs to its owner, whatever it
 * is on other PEs; the offset between two objects of one segment is the same on all PEs. */
static void addresses(void) {
    static uintptr_t published[4];
    long *a = shmem_malloc(100 * sizeof *a), *b = shmem_align(4096, 64);
    published[0] = (uintptr_t)a;
    published[1] = (uintptr_t)b;
    published[2] = (uintptr_t)&published[3];
    published[3] = (uintptr_t)me;
    a[99] = 7 * me;
    shmem_barrier_all();
    for (int pe = 0; pe < npes; pe++) {
        uintptr_t theirs[4];
        shmem_getmem(theirs, published, sizeof theirs, pe);
        EXPECT(theirs[1] - theirs[0] == (uintptr_t)b - (uintptr_t)a, "other offsets on PE %d", pe);
        EXPECT(theirs[3] == (uintptr_t)pe, "PE %d published as %zu", pe, (size_t)theirs[3]);
        EXPECT(shmem_long_g(&a[99], pe) == 7 * pe, "my own address names PE %d's object", pe);
        long *there = shmem_ptr(a, pe);
        EXPECT(!there || there[99] == 7 * pe, "through the pointer of PE %d", pe);
        EXPECT(shmem_ptr(a + 99, pe) == (there ? there + 99 : NULL), "pointer arithmetic");
    }
    shmem_free(b);
    shmem_free(a);
}

/* dest in the heap and the signal static, and the reverse; source in one, dest in the other. */
static void segments(void) {
    static uint64_t static_sig;
    static int static_data[8];
    uint64_t *heap_sig = shmem_calloc(1, sizeof *heap_sig);
    int *heap_data = shmem_calloc(8, sizeof *heap_data), payload[8];
    for (int i = 0; i < 8; i++)
        payload[i] = 100 * me + i;
    shmem_int_put_signal(heap_data, payload, 8, &static_sig, 1, SHMEM_SIGNAL_SET, next);
    shmem_int_put_signal_nbi(static_data, payload, 8, heap_sig, 1, SHMEM_SIGNAL_ADD, next);
    shmem_signal_wait_until(&static_sig, SHMEM_CMP_EQ, 1);
    shmem_signal_wait_until(heap_sig, SHMEM_CMP_EQ, 1);
    for (int i = 0; i < 8; i++)
        EXPECT(heap_data[i] == 100 * before + i && static_data[i] == 100 * before + i,
               "element %d: %d %d", i, heap_data[i], static_data[i]);
    shmem_barrier_all();
    shmem_int_put(static_data, heap_data + 4, 4, next); /* from the heap into static data */
    shmem_int_get(heap_data, static_data + 4, 4, me); /* from this PE's static data into the heap */
    shmem_barrier_all();
    int two_before = (before + npes - 1) % npes;
    EXPECT(static_data[0] == 100 * two_before + 4, "%d", static_data[0]);
    EXPECT(heap_data[0] == 100 * before + 4, "%d", heap_data[0]);
    shmem_free(heap_data);
    shmem_free(heap_sig);
}

/* The local side: stack, malloc, constants, a file mapped read-only, a thread's variable, symmetric
 * memory of the caller. */
static void local_buffers(void) {
    static int inbox[6][4];
    int on_stack[4] = {me, me + 1, me + 2, me + 3}, *private = malloc(sizeof on_stack);
    int *mapped = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(private, on_stack, sizeof on_stack);
    memcpy(mapped, on_stack, sizeof on_stack);
    mprotect(mapped, 4096, PROT_READ);
    of_a_thread = me * 3;
    shmem_int_put(inbox[0], on_stack, 4, next);
    shmem_int_put_nbi(inbox[1], private, 4, next);
    shmem_int_put(inbox[2], constants, 4, next);
    shmem_int_put_nbi(inbox[3], mapped, 4, next);
    shmem_int_put(inbox[4], &of_a_thread, 1, next);
    shmem_int_put(inbox[5], inbox[2], 4, me); /* to this PE, from another symmetric object */
    shmem_barrier_all();
    for (int i = 0; i < 4; i++)
        EXPECT(inbox[0][i] == before + i && inbox[1][i] == before + i &&
                   inbox[2][i] == constants[i] && inbox[3][i] == before + i,
               "element %d", i);
    EXPECT(inbox[4][0] == before * 3, "%d", inbox[4][0]);
    shmem_int_get(&of_a_thread, inbox[4], 1, next);
    EXPECT(of_a_thread == me * 3, "get into a thread's variable: %d", of_a_thread);
    shmem_int_get(private, inbox[0] + 2, 2, next);
    EXPECT(private[0] == me + 2 && private[1] == me + 3, "%d %d", private[0], private[1]);
    munmap(mapped, 4096);
    free(private);
    shmem_barrier_all();
}

/* Within one object of this PE: neighbouring halves do not overlap. */
static void within_one_object(void) {
    static int both[64];
    int *heap = shmem_malloc(sizeof both);
    for (int i = 0; i < 32; i++)
        both[i] = heap[i] = me * 1000 + i;
    shmem_int_put(both + 32, both, 32, me);
    shmem_int_get(heap + 32, heap, 32, me);
    shmem_quiet();
    for (int i = 0; i < 32; i++)
        EXPECT(both[32 + i] == me * 1000 + i && heap[32 + i] == me * 1000 + i, "element %d", i);
    shmem_int_iput(both + 1, both, 2, 2, 32, me); /* odd elements from the even ones */
    shmem_int_iget(heap, heap + 63, 2, -2, 32, me);
    shmem_quiet();
    for (int i = 0; i < 64; i += 2)
        EXPECT(both[i + 1] == both[i], "element %d: %d", i, both[i]);
    for (int i = 0; i < 64; i += 2)
        EXPECT(heap[i] == me * 1000 + (63 - i) % 32, "element %d: %d", i, heap[i]);
    shmem_barrier_all();
    shmem_free(heap);
}

/* putmem and getmem at every distance from 16 on both sides; the bytes around them do not
 * change. */
static void alignment(void) {
    enum { ROOM = 96 };
    static unsigned char in_statics[ROOM];
    unsigned char *in_heap = shmem_align(16, ROOM), local[ROOM], expected[ROOM];
    struct random random = random_of(5, 0);
    for (int turn = 0; turn < 600; turn++) {
        unsigned char *symmetric = turn % 2 ? in_heap : in_statics;
        size_t to = random_below(&random, 17), from = random_below(&random, 17);
        size_t bytes = random_below(&random, 60);
        for (int i = 0; i < ROOM; i++)
            local[i] = (unsigned char)(turn + i + before);
        memset(expected, 0xEE, ROOM);
        memcpy(expected + to, local + from, bytes);
        memset(symmetric, 0xEE, ROOM);
        for (int i = 0; i < ROOM; i++)
            local[i] = (unsigned char)(turn + i + me);
        shmem_barrier_all();
        shmem_putmem(symmetric + to, local + from, bytes, next);
        shmem_barrier_all();
        EXPECT(memcmp(symmetric, expected, ROOM) == 0, "turn %d: putmem", turn);
        shmem_getmem(local + from, symmetric + to, bytes, next);
        for (size_t i = 0; i < bytes; i++)
            EXPECT(local[from + i] == (unsigned char)(turn + from + i + (size_t)me),
                   "turn %d: getmem", turn);
        shmem_barrier_all();
    }
    shmem_free(in_heap);
}

/* Zero elements: the pointers do not matter, not even to an inaccessible page. */
static void nothing(void) {
    static uint64_t sig;
    char *page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    void *wild[] = {NULL, page, (void *)(uintptr_t)8, large_static, &page};
    for (size_t i = 0; i < sizeof wild / sizeof *wild; i++) {
        void *p = wild[i];
#define NOTHING(N, T, _)                       \
    shmem_##N##_put(p, p, 0, next);            \
    shmem_##N##_get(p, p, 0, next);            \
    shmem_##N##_put_nbi(p, p, 0, next);        \
    shmem_##N##_get_nbi(p, p, 0, next);        \
    shmem_##N##_iput(p, p, 1, 1, 0, next);     \
    shmem_##N##_iget(p, p, 1, 1, 0, next);     \
    shmem_##N##_ibput(p, p, 1, 1, 1, 0, next); \
    shmem_##N##_ibget(p, p, 1, 1, 1, 0, next); \
    shmem_##N##_put_signal(p, p, 0, &sig, 1, SHMEM_SIGNAL_ADD, next);
        SHMEM_RMA_TYPES(NOTHING, _)
        shmem_putmem(p, p, 0, next);
        shmem_put128_nbi(p, p, 0, next);
        shmem_iget32(p, p, 3, 3, 0, next);
    }
    uint64_t all = 24 * sizeof wild / sizeof *wild;
    EXPECT(shmem_signal_wait_until(&sig, SHMEM_CMP_GE, all) == all, "an empty put signals");
    EXPECT(large_static[1] == 0, "and stores nothing");
    munmap(page, 4096);
    shmem_barrier_all();
}

int main(void) {
    shmem_init();
    ring_start();
    tap_case("1: static data of every kind is symmetric");
    statics();
    tap_case("2: an address is the caller's own and names the object everywhere");
    addresses();
    tap_case("3: one call, two segments");
    segments();
    tap_case("4: any memory is a local buffer");
    local_buffers();
    tap_case("4: parts of one object");
    within_one_object();
    tap_case("5: no alignment is needed for bytes");
    alignment();
    tap_case("6: no element, any pointer");
    nothing();
    int result = tap_finish();
    shmem_finalize();
    return result;
}
