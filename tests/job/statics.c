/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: globals, statics and function statics of the executable are symmetric, keep their
 * values when they are moved, and a child process writes to a copy of its own. */
#include <shmem.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tap.h"

#ifndef HUGE_BYTES
#define HUGE_BYTES (64 << 20)
#endif

#ifndef __has_feature
#define __has_feature(name) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || \
    __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
enum { SANITIZED = 1 };
#else
enum { SANITIZED = 0 };
#endif

long initialised[4] = {11, 22, 33, 44};
static long zeros[4];
static char huge[HUGE_BYTES];
static int constructed;
static long table[100000] = {5};                              /* .ldata with the medium model */
static const long constants[100000] = {[0] = 6, [99999] = 7}; /* .lrodata with the medium model */
static const char *const text = "kept";
static long (*function)(long) = labs;

__attribute__((constructor)) static void before_main(void) {
    constructed = 77;
}

static long *function_static(void) {
    static long inside = 5;
    return &inside;
}

static void values_survive(int me) {
    tap_case("values survive the move before main");
    EXPECT(initialised[0] == 11 && initialised[3] == 44, "%ld %ld", initialised[0], initialised[3]);
    EXPECT(zeros[1] == 0 && huge[HUGE_BYTES - 1] == 0, "bss is not zero");
    EXPECT(constructed == 77, "a constructor's store is lost: %d", constructed);
    EXPECT(strcmp(text, "kept") == 0 && function(-3) == 3, "pointers in .data are damaged");
    EXPECT(shmem_ptr(zeros, me) == zeros, "shmem_ptr of the own PE is another address");
    EXPECT(shmem_addr_accessible(zeros, me), "a static is not accessible");
    EXPECT(shmem_addr_accessible(&table[99999], me), "a large array is not accessible");
    EXPECT(table[0] == 5 && table[99999] == 0, "%ld %ld", table[0], table[99999]);
    EXPECT(constants[0] == 6 && constants[99999] == 7, "%ld %ld", constants[0], constants[99999]);
    EXPECT(!shmem_addr_accessible(&constants[50000], me) && !shmem_ptr(&constants[50000], me),
           "a constant is accessible");
    int local;
    EXPECT(!shmem_addr_accessible(&local, me), "the stack is accessible");
}

static void neighbours_write(int me, int npes) {
    int next = (me + 1) % npes, previous = (me + npes - 1) % npes;
    tap_case("a neighbour's put reaches data, bss, function statics and the end of a huge array");
    shmem_barrier_all();
    shmem_long_p(&initialised[1], 1000 + me, next);
    shmem_long_p(&zeros[2], 2000 + me, next);
    shmem_long_p(&table[7], 4000 + me, next);
    shmem_long_p(function_static(), 3000 + me, next);
    shmem_char_p(&huge[HUGE_BYTES - 1], (char)(me + 1), next);
    shmem_barrier_all();
    EXPECT(initialised[1] == 1000 + previous, "%ld", initialised[1]);
    EXPECT(zeros[2] == 2000 + previous, "%ld", zeros[2]);
    EXPECT(table[7] == 4000 + previous, "%ld", table[7]);
    EXPECT(*function_static() == 3000 + previous, "%ld", *function_static());
    EXPECT(huge[HUGE_BYTES - 1] == (char)(previous + 1), "%d", huge[HUGE_BYTES - 1]);
    EXPECT(shmem_long_g(&zeros[2], previous) == 2000 + (previous + npes - 1) % npes, "get");
    shmem_barrier_all();
}

/* The child changes its data and exits with the number of its own values that were wrong. */
static int child(void) {
    int wrong = zeros[3] != 42 || initialised[0] != 11;
    zeros[3] = 1;
    initialised[0] = -1;
    huge[0] = 9;
    table[0] = 1;
    *function_static() = -1;
    return wrong + (zeros[3] != 1) + (initialised[0] != -1);
}

static void children_are_private(void) {
    tap_case("a forked child has its own copy, which never reaches the parent");
    long before = *function_static();
    zeros[3] = 42;
    pid_t pid = fork();
    if (pid == 0)
        _exit(child());
    zeros[3] = 43; /* right after the fork: the child must see 42 */
    int status = -1;
    waitpid(pid, &status, 0);
    EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0, "child's status %x", status);
    EXPECT(zeros[3] == 43 && initialised[0] == 11 && huge[0] == 0 && table[0] == 5,
           "the child wrote to the parent");
    EXPECT(*function_static() == before, "the child wrote to the parent's function static");
    shmem_barrier_all();
}

static pid_t clone_bare(void) {
    return (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
}

/* The first access of such a child to its data may find the values that the parent has by then. */
static void unseen_child(pid_t (*make)(void), const char *how) {
    fflush(NULL);
    pid_t pid = make();
    if (pid == 0)
        exit(child());
    int status = -1;
    waitpid(pid, &status, 0);
    EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%s: child's status %x", how, status);
    EXPECT(zeros[3] == 42 && initialised[0] == 11 && huge[0] == 0 && table[0] == 5,
           "%s: the child wrote to the parent", how);
}

/* A sanitizer handles SIGSEGV itself: then such a child ends at its first access. */
static void unseen_children_are_private(void) {
    tap_case("so does a child of clone(2) or _Fork, whose exit is not the end of the PE");
    zeros[3] = 42;
    if (!SANITIZED) {
        unseen_child(clone_bare, "clone");
        unseen_child(fork, "fork after clone");
#if __GLIBC_PREREQ(2, 34)
        unseen_child(_Fork, "_Fork");
#endif
    }
    shmem_barrier_all();
    EXPECT(shmem_long_g(&zeros[3], (shmem_my_pe() + 1) % shmem_n_pes()) == 42, "a peer's value");
    shmem_barrier_all();
}

int main(void) {
    shmem_init();
    int me = shmem_my_pe(), npes = shmem_n_pes();
    tap_start(me);
    values_survive(me);
    neighbours_write(me, npes);
    children_are_private();
    unseen_children_are_private();
    int result = tap_finish();
    shmem_finalize();
    return result;
}
