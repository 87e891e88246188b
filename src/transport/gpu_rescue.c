/* SPDX-License-Identifier: BSD-3-Clause */
/* There are three threads, two of which run only after the end of the job. Any call of the driver
 * may block while the program's own threads use it. So the watcher makes no CUDA calls and keeps
 * the time, the releaser writes words, and the drainer waits for the GPU. */
#include "transport/gpu_rescue.h"
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include "base/futex.h"
#include "base/size.h"
#include "base/thread.h"
#include "boot/boot.h"
#include "boot/control.h"
#include "transport/gpu_kernel.h"

enum {
    LOOK_MS = 50, /* in case a process has set the word and died before waking the sleepers */
    DRAIN_MS = 100,
    LEAVE_MS =
        400, /* before the launcher and the guards end the process, without naming the cause */
    BATCH_WORDS = 128 /* the driver accepts fewer than 256 */
};

struct words {
    uint32_t *first;
    size_t count;
};

static struct {
    pid_t
        process; /* the process that called open: a forked child has neither threads nor a driver */
    const struct weft_gpu *gpu;
    bool registered; /* the pages of the abort word and of gave_up */
    bool watching;
    _Atomic uint32_t *abort;
    _Atomic bool stopping, drained, over;
    _Atomic bool told; /* a kernel's report has been handled */
    pthread_t watcher, releaser, drainer;
    pthread_mutex_t changing; /* protects the list */
    struct words *list;
    size_t nlist;
} rescue = {.changing = PTHREAD_MUTEX_INITIALIZER};

/* Returns whether a kernel has trapped, or will at this PE's turn: then the context is dead, each
 * call in it fails, and none of its work runs. */
static bool kernel_has_trapped(void) {
    return weft_gpu_abort.gave_up &&
           atomic_load((_Atomic uint32_t *)&weft_gpu_abort.gave_up[WEFT_GPU_TIMED_OUT]) != 0;
}

/* --- After the end of the job ----------------------------------------------------------------- */

static int words_release(const struct words *words) {
    union weft_cu_word_op ops[BATCH_WORDS];
    for (size_t at = 0; at < words->count;) {
        unsigned n = 0;
        for (; n < BATCH_WORDS && at < words->count; n++, at++)
            ops[n] = (union weft_cu_word_op){.operation = WEFT_CU_OP_WRITE_32,
                                             .address = (uintptr_t)(words->first + at),
                                             .value = 1};
        int error = weft_cuda.cuStreamBatchMemOp(rescue.gpu->rescue, n, ops, 0);
        if (error)
            return error;
    }
    return 0;
}

/* Releases the words again and again, because streams reset words after their waits, and graphs
 * wait again. */
static void *rescue_release_main(void *unused) {
    weft_gpu_enter(rescue.gpu);
    while (!rescue.over) {
        pthread_mutex_lock(&rescue.changing);
        int error = 0;
        for (size_t i = 0; i < rescue.nlist && error == 0; i++)
            error = words_release(&rescue.list[i]);
        pthread_mutex_unlock(&rescue.changing);
        weft_clock_sleep_ms(1);
    }
    return unused;
}

/* Waits for the GPU. The driver refuses to wait while a stream is being captured. */
static void *rescue_drain_main(void *unused) {
    weft_gpu_enter(rescue.gpu);
    while (!rescue.over && weft_cuda.cuCtxSynchronize() != WEFT_CU_SUCCESS && !kernel_has_trapped())
        weft_clock_sleep_ms(1);
    rescue.drained = true;
    return unused;
}

static bool time_has_passed(uint64_t since_ns, uint64_t milliseconds) {
    return weft_clock_ns() - since_ns >= milliseconds * 1000000;
}

static void context_drain(uint64_t since_ns) {
    if (weft_thread_start(&rescue.releaser, rescue_release_main, NULL) != 0 ||
        weft_thread_start(&rescue.drainer, rescue_drain_main, NULL) != 0)
        weft_boot_end_self(", with no thread to stop the GPU");
    while (!rescue.drained && !kernel_has_trapped() && !time_has_passed(since_ns, DRAIN_MS))
        weft_clock_sleep_ms(1);
    if (!rescue.drained &&
        !kernel_has_trapped()) /* after a trap the driver needs longer to clean up */
        weft_boot_end_self("; the GPU has not stopped within 100 ms");
}

static bool work_may_wait(void) {
    return __atomic_load_n(&weft_gpu_waits, __ATOMIC_RELAXED);
}

static void process_save(void) {
    uint64_t now_ns = weft_clock_ns(), since_ns = now_ns;
    while (!work_may_wait() && !rescue.stopping && !time_has_passed(since_ns, LEAVE_MS))
        weft_clock_sleep_ms(1);
    if (!work_may_wait())
        return;
    context_drain(weft_clock_ns());
    if (kernel_has_trapped())
        weft_boot_go_alone();
    while (!rescue.stopping && !weft_boot_is_alone() && !time_has_passed(since_ns, LEAVE_MS))
        weft_clock_sleep_ms(1);
    if (!rescue.stopping && !weft_boot_is_alone())
        weft_boot_end_self(", in the middle of GPU work");
    rescue.over = true;
    pthread_join(rescue.releaser, NULL);
    pthread_join(rescue.drainer, NULL);
}

/* --- The watcher ------------------------------------------------------------------------------ */

/* Ends the job because a kernel has detected that it must not run. */
_Noreturn static void job_fail(enum weft_gpu_fault fault, uint32_t detail) {
    if (fault == WEFT_GPU_STALE)
        weft_log("a graph has launched a call of a team that was destroyed: destroy graphs before "
                 "the teams whose calls they contain (team slot %u)",
                 detail);
    else if (fault == WEFT_GPU_STALE_HANDLE)
        weft_log("a kernel uses a handle of shmemx_device_team that has been freed: free it after "
                 "the last kernel that uses it (generation %u)",
                 detail);
    else if (fault == WEFT_GPU_ROWS)
        weft_log(
            "weft_moe_dispatch on a stream: this PE would receive more rows than rows_max: expert "
            "%u has no room for all of its rows; pass a larger rows_max, or 0",
            detail);
    else if (fault == WEFT_GPU_KV_PAIR)
        weft_log(
            "weft_kv_shuffle on a stream: peer_and_role of this PE has the peer %d: pass another "
            "member of the team and WEFT_KV_SENDS or WEFT_KV_RECEIVES, or the peer -1",
            (int)detail);
    else if (fault == WEFT_GPU_KV_BLOCK)
        weft_log(
            "weft_kv_shuffle on a stream: entry %u of from_blocks or to_blocks is not the number "
            "of a block of the caches",
            detail);
    else if (fault == WEFT_GPU_EXCHANGE_DEST)
        weft_log("weft_all_to_allv_on_device on a stream: member %u of the team receives more rows "
                 "than its dest has: pass a larger dest",
                 detail);
    else if (fault == WEFT_GPU_EXCHANGE_SOURCE)
        weft_log(
            "weft_all_to_allv_on_device on a stream: the rows of entry %u of source_splits and "
            "source_offsets are not in source",
            detail);
    else
        weft_log("two calls of one team were under way at once on the GPU of this PE: put calls in "
                 "a capture, and launches of graphs, one after the other (team slot %u)",
                 detail);
    weft_boot_end_job(WEFT_STATUS_ERROR, true);
    weft_boot_exit(WEFT_STATUS_ERROR);
}

/* Ends the job like shmem_global_exit. This process ends in its next call; if its GPU has work that
 * may wait for a peer, process_save ends it after a while. */
static void job_abort(int status) {
    struct weft_cause cause = {
        .kind = WEFT_ABORT_GLOBAL_EXIT, .pe = weft_boot.pe, .detail = status};
    weft_log("a kernel has ended the job by weft_abort, with status %d", status);
    weft_boot_end_job(status, false);
    if (weft_boot.npes == 1) /* nobody else sets the word for kernels that wait */
        weft_control_abort(weft_boot.control, &cause);
}

bool weft_gpu_rescue_heard(void) {
    uint32_t *words = weft_gpu_abort.gave_up;
    uint32_t fault = words ? __atomic_load_n(&words[WEFT_GPU_FAULT], __ATOMIC_ACQUIRE) : 0;
    if (fault == WEFT_GPU_NO_FAULT)
        return false;
    uint32_t detail = words[WEFT_GPU_FAULT_DETAIL];
    if (atomic_exchange(&rescue.told, true))
        return true;
    if (fault != WEFT_GPU_ABORT)
        job_fail(fault, detail);
    job_abort((int)detail);
    return true;
}

static void *rescue_watch_main(void *unused) {
    while (!rescue.stopping && *rescue.abort == 0) {
        weft_futex_sleep(rescue.abort, 0, WEFT_FUTEX_ALL, LOOK_MS);
        weft_gpu_rescue_heard();
    }
    if (*rescue.abort != 0)
        process_save();
    else
        weft_gpu_rescue_heard();
    return unused;
}

/* Also wakes the peers' watchers, which find nothing and sleep again. */
static void watch_end(void) {
    if (!rescue.watching || rescue.process != getpid())
        return;
    rescue.stopping = true;
    weft_futex_wake(rescue.abort, WEFT_FUTEX_ALL);
    pthread_join(rescue.watcher, NULL);
    rescue.watching = false;
}

/* --- Opening and closing ---------------------------------------------------------------------- */

/* Registers the words. Without that, kernels cannot see the abort word and never give up, so the
 * process has to be killed. gave_up has a page that a fork does not copy. */
static void words_register(_Atomic uint32_t *abort) {
    void *page = (void *)weft_page_down((uintptr_t)abort);
    void *own =
        mmap(NULL, weft_page_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (own == MAP_FAILED)
        return;
    if (weft_gpu_register(page, weft_page_bytes()) != 0) {
        munmap(own, weft_page_bytes());
    } else if (weft_gpu_register(own, weft_page_bytes()) != 0) {
        weft_gpu_unregister(page);
        munmap(own, weft_page_bytes());
    } else {
        weft_gpu_abort = (struct weft_gpu_abort){.word = (const uint32_t *)abort, .gave_up = own};
        rescue.registered = true;
    }
}

static void words_unregister(void) {
    if (!rescue.registered)
        return;
    weft_gpu_unregister((void *)weft_page_down((uintptr_t)rescue.abort));
    weft_gpu_unregister(weft_gpu_abort.gave_up);
    munmap(weft_gpu_abort.gave_up, weft_page_bytes());
    weft_gpu_abort = (struct weft_gpu_abort){.word = NULL};
    rescue.registered = false;
}

/* Registers the exit handler, after the driver's own, so that it is called before those. */
static void exit_watch(void) {
    static bool watching;
    if (!watching)
        atexit(watch_end);
    watching = true;
}

int weft_gpu_rescue_open(const struct weft_gpu *gpu, _Atomic uint32_t *abort) {
    rescue.gpu = gpu;
    rescue.abort = abort;
    rescue.process = getpid();
    rescue.stopping = rescue.drained = rescue.over = rescue.told = false;
    __atomic_store_n(&weft_gpu_waits, false, __ATOMIC_RELAXED);
    words_register(abort);
    int error = weft_thread_start(&rescue.watcher, rescue_watch_main, NULL);
    if (error) {
        words_unregister();
        return weft_fail_bare(error, "cannot start the thread that watches the GPU");
    }
    rescue.watching = true;
    exit_watch();
    return 0;
}

void weft_gpu_rescue_close(void) {
    if (rescue.process != getpid())
        return;
    watch_end();
    words_unregister();
    free(rescue.list);
    rescue.list = NULL;
    rescue.nlist = 0;
    rescue.process = 0;
}

void weft_gpu_rescue_take_turns(int turn, int turns) {
    if (!weft_gpu_abort.gave_up)
        return;
    weft_gpu_abort.gave_up[WEFT_GPU_TRAP_TURN] = (uint32_t)turn;
    weft_gpu_abort.gave_up[WEFT_GPU_TRAP_TURNS] = (uint32_t)turns;
}

/* --- Words to release ------------------------------------------------------------------------- */

static struct words *words_entry(uint32_t *first) {
    for (size_t i = 0; i < rescue.nlist; i++)
        if (rescue.list[i].first == first)
            return &rescue.list[i];
    struct words *longer = realloc(rescue.list, (rescue.nlist + 1) * sizeof *longer);
    if (!longer)
        return NULL;
    rescue.list = longer;
    longer[rescue.nlist] = (struct words){.first = first};
    return &longer[rescue.nlist++];
}

int weft_gpu_rescue_add(uint32_t *first, size_t count) {
    pthread_mutex_lock(&rescue.changing);
    struct words *entry = words_entry(first);
    if (entry && entry->count < count)
        entry->count = count;
    pthread_mutex_unlock(&rescue.changing);
    return entry ? 0 : weft_fail_bare(-ENOMEM, "no memory for the words that the GPU waits for");
}

void weft_gpu_rescue_note(void) {
    __atomic_store_n(&weft_gpu_waits, true, __ATOMIC_RELAXED);
}
