/* SPDX-License-Identifier: BSD-3-Clause */
/* Checked mode of kernels. If WEFT_CHECK is defined when a kernel is compiled (nvcc -DWEFT_CHECK),
 * the functions of weft/device.cuh check their arguments; the first error prints one line and ends
 * the job. If a handle has another version, or a bulk copy (which has no handle) is wrong, the
 * kernel traps instead. A wait that takes WEFT_CHECK_SECONDS reports what it waits for. After the
 * same time again it ends the job, because CUDA only shows a kernel's output when the kernel has
 * ended.
 *
 * Without WEFT_CHECK the macros in this file expand to nothing. */
#ifndef WEFT_DEVICE_CHECK_CUH
#define WEFT_DEVICE_CHECK_CUH

#include "weft/device/ptx.cuh"
#include "weft/device/team.cuh"

#ifndef WEFT_CHECK

#define WEFT_CHECK_TEAM(t)                     ((void)0)
#define WEFT_CHECK_MEMBER(t, m)                ((void)0)
#define WEFT_CHECK_OBJECT(t, p, bytes, m)      ((void)0)
#define WEFT_CHECK_WORD(t, p, m)               ((void)0)
#define WEFT_CHECK_OWN_WORD(t, p)              ((void)0)
#define WEFT_CHECK_CHANNEL(t, channel)         ((void)0)
#define WEFT_CHECK_UNIT(t, unit)               ((void)0)
#define WEFT_CHECK_CONSTANT(t, c, least, most) ((void)0)
#define WEFT_CHECK_BULK(p)                     ((void)0)
#define WEFT_CHECK_BULK_BYTES(bytes)           ((void)0)
#define WEFT_CHECK_LIVES(t, found)             ((void)0)
#define WEFT_CHECK_WAIT(wait)                  ((void)0)
#define WEFT_CHECK_BOUNDED_WAIT(wait)          ((void)0)
#define WEFT_CHECK_TURN(wait, t, ...)          1

#else

#if !defined(__CUDACC__) && defined(__NVPTX__)
#error "WEFT_CHECK prints: compile with nvcc, nvrtc or clang++ -x cuda, or leave it out"
#endif

/* Seconds after which a wait is reported. */
#ifndef WEFT_CHECK_SECONDS
#define WEFT_CHECK_SECONDS 10
#endif

#ifdef __CUDACC__
#ifndef __CUDACC_RTC__
#include <stdio.h>
#endif
#define WEFT_CHECK_STATIC     static __device__
#define WEFT_CHECK_PRINT(...) printf(__VA_ARGS__)
#else
#include <stdio.h>
#define WEFT_CHECK_STATIC     static
#define WEFT_CHECK_PRINT(...) fprintf(stderr, __VA_ARGS__)
#endif

enum { WEFT_CHECK_LINES = 16, WEFT_CHECK_TURNS = 64, WEFT_CHECK_STATUS = 1 };

WEFT_CHECK_STATIC uint32_t weft_check_failed; /* threads that have found an error */
WEFT_CHECK_STATIC uint32_t weft_check_waited; /* lines that report waits */

WEFT_DEVICE void weft_abort(const weft_device_team *t, int status);

/* Stops the thread. */
WEFT_DEVICE void weft_check_stop(void) {
#ifdef __CUDACC__
    __asm__ volatile("exit;");
#else
    weft_trap();
#endif
}

/* Only returns in the first thread that finds an error. The others, which mostly found the same
 * error, stop. */
WEFT_DEVICE void weft_check_be_first(void) {
    if (weft_atom_add_sys_u32(&weft_check_failed, 1) != 0)
        weft_check_stop();
}

/* Ends the job through the host, so that the kernel's waits return and the kernel ends normally:
 * CUDA shows no output of a kernel that traps. Traps only if no host can be notified. */
WEFT_DEVICE void weft_check_end(const weft_device_team *t) {
    if (!t || !t->gave_up)
        weft_trap();
    weft_abort(t, WEFT_CHECK_STATUS);
    weft_check_stop();
}

/* Returns 1 if the grid and its blocks have one dimension. */
WEFT_DEVICE int weft_check_is_flat(void) {
    return weft_block_count_y() * weft_block_count_z() * weft_block_threads_y() *
               weft_block_threads_z() ==
           1;
}

/* One printf for each line, so that lines of different threads do not mix. */
#define WEFT_CHECK_SAY(pe, function, format, ...)                                                 \
    (weft_check_is_flat()                                                                         \
         ? WEFT_CHECK_PRINT("weft: PE %d, block %u, thread %u: %s: " format "\n", pe,             \
                            weft_block_index(), weft_block_thread(), function, __VA_ARGS__)       \
         : WEFT_CHECK_PRINT("weft: PE %d, block %u,%u,%u, thread %u,%u,%u: %s: " format "\n", pe, \
                            weft_block_index(), weft_block_index_y(), weft_block_index_z(),       \
                            weft_block_thread(), weft_block_thread_y(), weft_block_thread_z(),    \
                            function, __VA_ARGS__))
#define WEFT_CHECK_FAIL(t, pe, function, format, ...)      \
    do {                                                   \
        weft_check_be_first();                             \
        WEFT_CHECK_SAY(pe, function, format, __VA_ARGS__); \
        weft_check_end(t);                                 \
    } while (0)

/* --- Arguments -------------------------------------------------------------------------------- */

WEFT_DEVICE void weft_check_team(const weft_device_team *t, const char *function) {
    if (t->version != WEFT_DEVICE_VERSION)
        WEFT_CHECK_FAIL(NULL, t->pe, function,
                        "argument t is of version %u, and this kernel knows version %u: fill it by "
                        "shmemx_device_team() of the Weft that the kernel is compiled with",
                        t->version, (unsigned)WEFT_DEVICE_VERSION);
}

WEFT_DEVICE void weft_check_member(const weft_device_team *t, const char *function, int m) {
    weft_check_team(t, function);
    if (m < 0 || m >= t->n)
        WEFT_CHECK_FAIL(t, t->pe, function,
                        "argument m is %d, but the team has %d members: pass 0 to %d", m, t->n,
                        t->n - 1);
}

WEFT_DEVICE void weft_check_object(const weft_device_team *t, const char *function,
                                   const char *argument, const void *p, size_t bytes) {
    uintptr_t offset = (uintptr_t)p - t->heap;
    if (offset >= t->heap_bytes || bytes > t->heap_bytes - offset)
        WEFT_CHECK_FAIL(t, t->pe, function,
                        "argument %s is %p, and %llu bytes from there are not in this PE's device "
                        "heap, %p to %p: pass this PE's own address of an object of shmemx_malloc"
                        "(SHMEMX_SPACE_DEVICE, ...), and copy to other memory by weft_copy",
                        argument, p, (unsigned long long)bytes, (const void *)t->heap,
                        (const void *)(t->heap + t->heap_bytes));
}

WEFT_DEVICE void weft_check_aligned(const weft_device_team *t, const char *function,
                                    const char *argument, const void *p, uint32_t alignment) {
    if ((uintptr_t)p % alignment != 0)
        WEFT_CHECK_FAIL(t, t ? t->pe : -1, function,
                        "argument %s is %p, not aligned to %u bytes: a word or a bulk copy lies at "
                        "a multiple of its alignment",
                        argument, p, alignment);
}

WEFT_DEVICE void weft_check_channel(const weft_device_team *t, const char *function,
                                    uint32_t channel) {
    weft_check_team(t, function);
    if (channel >= t->channels)
        WEFT_CHECK_FAIL(t, t->pe, function,
                        "argument channel is %u, but the handle has %u: pass a smaller one, or ask "
                        "shmemx_device_team() for more",
                        channel, t->channels);
}

WEFT_DEVICE void weft_check_lives(const weft_device_team *t, const char *function, uint32_t found) {
    if (found != t->generation)
        WEFT_CHECK_FAIL(t, t->pe, function,
                        "argument t is a handle that has been freed, number %u: free it by "
                        "shmemx_device_team_free() when the last kernel that has it is done",
                        t->generation);
}

WEFT_DEVICE void weft_check_unit(const weft_device_team *t, const char *function, uint32_t unit) {
    if (unit >= t->slot_bytes / 16)
        WEFT_CHECK_FAIL(
            t, t->pe, function,
            "argument unit is %u, but a slot of %u bytes has %u: pass a smaller one, or "
            "ask shmemx_device_team() for larger slots",
            unit, t->slot_bytes, t->slot_bytes / 16);
}

WEFT_DEVICE void weft_check_constant(const weft_device_team *t, const char *function,
                                     const char *argument, int value, int least, int most) {
    if (value < least || value > most)
        WEFT_CHECK_FAIL(t, t->pe, function,
                        "argument %s is %d: pass one of the constants of weft/device.cuh, %d to %d",
                        argument, value, least, most);
}

WEFT_DEVICE void weft_check_bulk_bytes(const char *function, uint32_t bytes) {
    if (bytes % 16 != 0)
        WEFT_CHECK_FAIL(NULL, -1, function,
                        "argument bytes is %u, not a multiple of 16: copy the rest by weft_copy",
                        bytes);
}

/* --- Waits ------------------------------------------------------------------------------------ */

/* One wait; zero at the start. */
struct weft_check_wait {
    uint32_t turns, said, over;
    uint32_t bounded; /* the wait has a time limit, so it does not end the job */
    uint64_t began;   /* ns; 0 before the first look at the clock */
};

/* Does one turn of an unfinished wait. Returns non-zero if the wait is to be reported. Sets `over`
 * after twice that time; the job then ends. */
WEFT_DEVICE int weft_check_turn(struct weft_check_wait *wait, const weft_device_team *t) {
    const uint64_t limit = (uint64_t)(WEFT_CHECK_SECONDS * 1e9);
    if (++wait->turns % WEFT_CHECK_TURNS != 0)
        return 0;
    uint64_t now = weft_globaltimer();
    if (wait->began == 0)
        wait->began = now;
    if (now - wait->began >= 2 * limit && !wait->bounded) {
        wait->over = 1;
        weft_abort(t, WEFT_CHECK_STATUS);
    }
    if (now - wait->began < limit || wait->said)
        return 0;
    wait->said = 1;
    return weft_atom_add_sys_u32(&weft_check_waited, 1) < WEFT_CHECK_LINES;
}

WEFT_DEVICE const char *weft_check_comparison(int cmp) {
    return cmp == WEFT_CMP_EQ   ? "=="
           : cmp == WEFT_CMP_NE ? "!="
           : cmp == WEFT_CMP_GT ? ">"
           : cmp == WEFT_CMP_GE ? ">="
           : cmp == WEFT_CMP_LT ? "<"
                                : "<=";
}

/* --- Reports of the functions ----------------------------------------------------------------- */

/* Checks the handle's version. */
#define WEFT_CHECK_TEAM(t)      weft_check_team(t, __func__)
/* Checks that `m` is a member. */
#define WEFT_CHECK_MEMBER(t, m) weft_check_member(t, __func__, m)
/* Checks that [p, p + bytes) lies in this PE's slice of the device heap and that `m` is a member.
 */
#define WEFT_CHECK_OBJECT(t, p, bytes, m) \
    (weft_check_member(t, __func__, m), weft_check_object(t, __func__, #p, p, bytes))
/* Checks a word in the same way; it must also be aligned. */
#define WEFT_CHECK_WORD(t, p, m)              \
    (WEFT_CHECK_OBJECT(t, p, sizeof *(p), m), \
     weft_check_aligned(t, __func__, #p, p, (uint32_t)sizeof *(p)))
/* Checks a word of this PE, in any memory. */
#define WEFT_CHECK_OWN_WORD(t, p) \
    (weft_check_team(t, __func__), weft_check_aligned(t, __func__, #p, p, (uint32_t)sizeof *(p)))
#define WEFT_CHECK_CHANNEL(t, channel)         weft_check_channel(t, __func__, channel)
#define WEFT_CHECK_UNIT(t, unit)               weft_check_unit(t, __func__, unit)
#define WEFT_CHECK_CONSTANT(t, c, least, most) weft_check_constant(t, __func__, #c, c, least, most)
/* Check an end of a bulk copy, and its bytes. Bulk copies have no team. */
#define WEFT_CHECK_BULK(p)                     weft_check_aligned(NULL, __func__, #p, p, 16)
#define WEFT_CHECK_BULK_BYTES(bytes)           weft_check_bulk_bytes(__func__, bytes)
/* Checks that the words belong to this handle (`found` is their generation): it has not been freed.
 */
#define WEFT_CHECK_LIVES(t, found)             weft_check_lives(t, __func__, found)
/* The state of a wait, declared before its loop, and one turn of the loop, which is 0 if the wait
 * must end as if the job were over. The format and arguments, as for printf, name the awaited
 * event: "member %d on channel %u". */
#define WEFT_CHECK_WAIT(wait)                  struct weft_check_wait wait = {0, 0, 0, 0, 0}
#define WEFT_CHECK_BOUNDED_WAIT(wait)          struct weft_check_wait wait = {0, 0, 0, 1, 0}
#define WEFT_CHECK_TURN(wait, t, function, format, ...)                            \
    ((weft_check_turn(&(wait), t)                                                  \
          ? (void)WEFT_CHECK_SAY((t)->pe, function, "has waited %g s for " format, \
                                 (double)WEFT_CHECK_SECONDS, __VA_ARGS__)          \
          : (void)0),                                                              \
     !(wait).over)

/* A kernel's weft_at() checks its arguments, too; the host's does not. */
WEFT_ADDR void *weft_at_checked(const weft_device_team *t, const void *p, int m) {
#if defined(__CUDA_ARCH__) || !defined(__CUDACC__)
    weft_check_member(t, "weft_at", m);
    weft_check_object(t, "weft_at", "p", p, 1);
#endif
    return weft_at(t, p, m);
}
#define weft_at(t, p, m) weft_at_checked(t, p, m)

#endif

#endif
