/* SPDX-License-Identifier: BSD-3-Clause */
/* One exchange starts a job: every PE allocates its memory first, shows its descriptors and sizes
 * to the others, and maps the memory of its near peers. If some PE is far, a second exchange
 * brings the endpoints of messages. Later steps synchronise through the memory and by messages.
 * There is no barrier after the first exchange, because fresh memory is zero, and a peer that is
 * ahead may already set words in it. */
#include "core/init.h"
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <shmem.h>
#include "base/clock.h"
#include "base/env.h"
#include "base/machine.h"
#include "base/size.h"
#include "base/thread.h"
#include "job/static.h"
#include "core/awaited.h"
#include "core/ctx.h"
#include "core/heap.h"
#include "core/order.h"
#include "core/team.h"

#define GIB ((size_t)1 << 30)

enum { FD_HEAP, FD_SCRATCH, FD_STATICS, NFDS };

static const size_t scratch_slot_bytes = (size_t)WEFT_TEAMS_MAX * GIB;
static const size_t scratch_slot_bytes_min = (size_t)WEFT_TEAMS_MAX * (64 << 10);
static const size_t heap_slot_bytes_min = (size_t)16 << 20;

/* Counts nested calls of shmem_init. The lock is held while the job starts or ends, so other
 * threads that want either wait. */
static pthread_mutex_t changing = PTHREAD_MUTEX_INITIALIZER;
static int init_count;
static _Atomic int thread_level;
static pthread_t init_thread;
static pid_t init_process;
static _Atomic bool initialized; /* may be asked at any time by any thread */
static bool exit_waits;          /* WEFT_EXIT=wait: exit statuses do not end the job */

/* Facts that PEs show each other besides descriptors. */
struct facts {
    char version[16];
    uint64_t heap_slot_bytes, scratch_slot_bytes;
    uint64_t static_bytes, static_fingerprint;
    uint64_t checked, threads; /* modes that all PEs take if one has them */
    struct weft_slots near;
};

static int make_segment(struct weft_segment *segment, const char *name, size_t slot_bytes,
                        size_t slot_bytes_min, const struct weft_slots *near) {
    int result = weft_segment_alloc(segment, name, near, slot_bytes, slot_bytes_min);
    if (result < 0)
        weft_log("cannot reserve %u slots of %s for '%s' (memfd_create, mmap): %s%s", near->count,
                 weft_size(slot_bytes_min).text, name, strerror(-result), weft_remedy(result).text);
    return result;
}

/* Allocates this PE's memory in windows of its near PEs. A heap slot is as large as the machine's
 * memory, so that users need not choose a size. */
static int make_own_memory(struct facts *mine, int *fds) {
    size_t heap_bytes = weft_power_of_two_up(weft_machine_memory_total());
    struct weft_slots near;
    int result = weft_placement_read(weft_job.pe, weft_job.npes, &near);
    if (result < 0)
        return result;
    result = make_segment(&weft_windows.heap, "weft-heap", heap_bytes, heap_slot_bytes_min, &near);
    if (result == 0)
        result = make_segment(&weft_windows.scratch, "weft-scratch", scratch_slot_bytes,
                              scratch_slot_bytes_min, &near);
    if (result < 0)
        return result;
    const struct weft_static *statics = weft_static_data();
    *mine = (struct facts){.version = WEFT_VERSION_STRING,
                           .heap_slot_bytes = weft_windows.heap.slot_bytes,
                           .scratch_slot_bytes = weft_windows.scratch.slot_bytes,
                           .checked = weft_env.debug,
                           .threads = weft_thread_level() == SHMEM_THREAD_MULTIPLE,
                           .near = near};
    bool shows_statics = weft_descriptor_is_ours(statics->fd);
    if (shows_statics) {
        mine->static_bytes = statics->bytes;
        mine->static_fingerprint = statics->fingerprint;
    }
    fds[FD_HEAP] = weft_windows.heap.fd;
    fds[FD_SCRATCH] = weft_windows.scratch.fd;
    fds[FD_STATICS] = shows_statics ? statics->fd : fds[FD_SCRATCH]; /* never mapped in that case */
    return 0;
}

/* Returns whether both PEs agree that they are near to each other, in the same progression, or that
 * they are not. */
static bool is_mutual(const struct facts *all, int pe) {
    const struct weft_slots *mine = &all[weft_job.pe].near, *theirs = &all[pe].near;
    return weft_slots_have(mine, pe) == weft_slots_have(theirs, weft_job.pe) &&
           (!weft_slots_have(mine, pe) ||
            (mine->first == theirs->first && mine->step == theirs->step &&
             mine->count == theirs->count));
}

/* Checks that all PEs run the same version of Weft and see the same placement. Takes the smallest
 * slot size of all PEs, and every mode that some PE has. */
static int agree(const struct facts *all, struct facts *common) {
    *common = all[0];
    common->near = all[weft_job.pe].near;
    for (int pe = 0; pe < weft_job.npes; pe++) {
        if (strncmp(all[pe].version, WEFT_VERSION_STRING, sizeof all[pe].version) != 0) {
            weft_log("PE %d%s runs Weft %.15s and this PE %s: install the same version everywhere",
                     pe, weft_boot_on(pe).text, all[pe].version, WEFT_VERSION_STRING);
            return -EPROTO;
        }
        if (!is_mutual(all, pe)) {
            weft_log("PE %d%s and this PE have different placements: set WEFT_PRETEND_HOSTS to the "
                     "same value everywhere",
                     pe, weft_boot_on(pe).text);
            return -EPROTO;
        }
        if (all[pe].heap_slot_bytes < common->heap_slot_bytes)
            common->heap_slot_bytes = all[pe].heap_slot_bytes;
        if (all[pe].scratch_slot_bytes < common->scratch_slot_bytes)
            common->scratch_slot_bytes = all[pe].scratch_slot_bytes;
        if (all[pe].static_bytes != common->static_bytes ||
            all[pe].static_fingerprint != common->static_fingerprint)
            common->static_bytes = 0; /* different programs: only the heap is symmetric */
        common->checked |= all[pe].checked;
        common->threads |= all[pe].threads;
    }
    return 0;
}

/* Maps the near PEs' memory; `which` is the column of the gathered descriptors. */
static int attach(struct weft_segment *segment, const int *all_fds, int which, size_t slot_bytes) {
    const struct weft_window *w = &segment->window;
    int fds[w->count];
    for (uint32_t slot = 0; slot < w->count; slot++)
        fds[slot] = all_fds[(w->first + slot * w->step) * NFDS + (uint32_t)which];
    int result = weft_segment_attach(segment, fds, slot_bytes);
    if (result < 0)
        weft_log("cannot map a peer's memory (mmap): %s%s", strerror(-result),
                 weft_remedy(result).text);
    return result;
}

/* Maps the near PEs' static data beside a second mapping of this PE's own. A single PE uses its
 * data in place. */
static int attach_statics(const struct facts *common, const int *all_fds) {
    const struct weft_slots *near = &common->near;
    const struct weft_static *statics = weft_static_data();
    struct weft_segment *segment = &weft_windows.statics;
    *segment = (struct weft_segment){.fd = -1};
    if (weft_job.npes == 1 && statics->begin) {
        segment->holes = statics->holes;
        segment->window = (struct weft_window){
            .local = statics->begin, .bytes = statics->bytes, .step = 1, .count = 1};
    }
    if (weft_job.npes == 1 || common->static_bytes == 0)
        return 0;
    struct weft_backing memory = {.local = statics->begin,
                                  .bytes = statics->bytes,
                                  .holes = &statics->holes,
                                  .fd = statics->fd};
    int result = weft_segment_alloc_at(segment, near, &memory);
    if (result < 0)
        weft_log("cannot map the static data of %u PEs, of %s each (mmap): %s%s", near->count,
                 weft_size(statics->bytes).text, strerror(-result), weft_remedy(result).text);
    return result < 0 ? result : attach(segment, all_fds, FD_STATICS, statics->bytes);
}

/* Closes descriptors; those of PEs on other hosts are negative. */
static void close_all(const int *fds, size_t n) {
    for (size_t i = 0; i < n; i++)
        weft_descriptor_close(fds[i]);
}

/* Maps the near PEs' memory; closes all descriptors, which are not needed afterwards. */
static int attach_all(const struct facts *all, const int *all_fds) {
    struct facts common;
    int result = agree(all, &common);
    weft_job_set_mode(WEFT_JOB_CHECKED, result == 0 && common.checked);
    weft_job_set_mode(WEFT_JOB_THREADS, result == 0 && common.threads);
    weft_job_set_mode(WEFT_JOB_FAR, common.near.count < (uint32_t)weft_job.npes);
    if (result == 0)
        result = attach(&weft_windows.heap, all_fds, FD_HEAP, common.heap_slot_bytes);
    if (result == 0)
        result = attach(&weft_windows.scratch, all_fds, FD_SCRATCH, common.scratch_slot_bytes);
    if (result == 0)
        result = attach_statics(&common, all_fds);
    close_all(all_fds, (size_t)weft_job.npes * NFDS);
    return result;
}

static int share_memory(void) {
    size_t npes = (size_t)weft_job.npes;
    struct facts mine, *all = calloc(npes, sizeof *all);
    int *all_fds = calloc(npes * NFDS, sizeof *all_fds), fds[NFDS];
    struct weft_exchange exchange = {.mine = &mine,
                                     .bytes = sizeof mine,
                                     .all = all,
                                     .fds = fds,
                                     .nfds = NFDS,
                                     .all_fds = all_fds};
    int result = all && all_fds ? 0 : -ENOMEM;
    if (result < 0)
        weft_log("no memory for the facts of %zu PEs", npes);
    if (result == 0)
        result = make_own_memory(&mine, fds);
    if (result == 0)
        result = weft_boot_exchange(&exchange);
    if (result == 0)
        result = attach_all(all, all_fds);
    free(all);
    free(all_fds);
    return result;
}

/* Exchanges endpoints, and this PE's file for the endpoints of all, and starts messages. */
static int exchange_endpoints(const unsigned char *mine, int file) {
    size_t npes = (size_t)weft_job.npes;
    unsigned char *all = malloc(npes * WEFT_FAR_ENDPOINT_BYTES);
    int *all_files = calloc(npes, sizeof *all_files), result = all && all_files ? 0 : -ENOMEM;
    struct weft_exchange exchange = {.mine = mine,
                                     .bytes = WEFT_FAR_ENDPOINT_BYTES,
                                     .all = all,
                                     .fds = &file,
                                     .nfds = 1,
                                     .all_fds = all_files};
    if (result < 0)
        weft_log("no memory for the endpoints of %zu PEs", npes);
    else
        result = weft_boot_exchange(&exchange);
    if (result == 0) {
        result = weft_far_start(all, all_files);
        close_all(all_files, npes);
    }
    free(all);
    free(all_files);
    return result;
}

/* Opens messages to far PEs, once near memory is mapped. */
static int open_far(void) {
    unsigned char endpoint[WEFT_FAR_ENDPOINT_BYTES];
    int file = -1, result = weft_far_open(endpoint, &file);
    if (result == 0)
        result = exchange_endpoints(endpoint, file);
    weft_descriptor_close(file);
    return result;
}

static void unshare_memory(void) {
    weft_segment_free(&weft_windows.statics);
    weft_segment_free(&weft_windows.scratch);
    weft_segment_free(&weft_windows.heap);
}

static void greet(void) {
    if (weft_job.pe != 0)
        return;
    if (weft_env.version || weft_env.info)
        printf("Weft %s, OpenSHMEM %d.%d\n", WEFT_VERSION_STRING, SHMEM_MAJOR_VERSION,
               SHMEM_MINOR_VERSION);
    if (weft_env.info)
        weft_env_print();
    if (weft_env.debug)
        weft_note("%d PE%s, %u of them near, heap slots of %s, statics %s", weft_job.npes,
                  weft_job.npes > 1 ? "s" : "", weft_windows.heap.window.count,
                  weft_size(weft_windows.heap.slot_bytes).text,
                  weft_windows.statics.window.bytes ? "symmetric" : "not symmetric");
    fflush(stdout);
}

/* A forked child has no access to the peers' memory. The kernel has not given it the mappings;
 * unmapping them here informs tools such as Valgrind, and lets the memory be freed when the PE
 * ends. */
static void forked(void) {
    if (weft_job.phase != WEFT_JOB_RUNNING)
        return;
    weft_job_leave_forked();
    unshare_memory();
}

/* Children of _Fork() and clone(2) have not run the handlers of fork, so they still look like
 * PEs. */
void weft_init_notice_fork(void) {
    if (weft_job.phase == WEFT_JOB_RUNNING && init_count > 0 && getpid() != init_process)
        forked();
}

static void close_devices(void) {
    if (weft_space_device)
        weft_space_device->close();
}

/* Undoes everything that bring_up did, as far as it got. */
static void take_down(void) {
    weft_far_abandon(); /* first: messages and devices use the memory that is unmapped below */
    if (weft_job.far)
        weft_job_set_mode(WEFT_JOB_FAR, false);
    close_devices();
    weft_heap_close();
    weft_ctx_destroy_all(SHMEM_TEAM_INVALID);
    weft_teams_close();
    unshare_memory();
    weft_job_leave();
}

/* Waits for the lock with an eye on the job's end: an end handler may have left a call that held
 * the lock. */
static void lock_changing(void) {
    while (pthread_mutex_trylock(&changing) != 0) {
        if (weft_job.control && weft_job_aborted())
            weft_job_die_aborted();
        weft_clock_sleep_ms(1);
    }
}

/* Meets all other PEs and parts from them. A PE that sees this one departed has received everything
 * it sent. */
static void part(void) {
    atomic_store(&initialized, false);
    weft_order_complete();
    if (weft_space_device)
        weft_space_device->finish();
    if (weft_job.far)
        weft_far_settle();
    weft_job_depart();
    weft_sync_close(weft_team_find(SHMEM_TEAM_WORLD));
    if (weft_job.far)
        weft_far_finish();
}

/* Other threads continue while exit() runs and may be in the middle of a call, so the memory stays
 * until the process ends. */
static void finish_at_exit(void) {
    part();
    if (weft_thread_others_ended()) {
        take_down();
        return;
    }
    close_devices();
    weft_job_leave_at_exit();
}

/* Returns whether this exit is a failure, which ends the job unless WEFT_EXIT=wait: the other PEs
 * may compute or run kernels forever without a wait in which they would notice the failure. */
static bool exit_is_failure(int status) {
    return status != 0 && !exit_waits && weft_job.npes > 1;
}

/* Returning from main and calling exit with status 0 finalize ("Implicit finalization" of the
 * standard); another status ends the job. If another PE has ended it before, this one exits as it
 * would have. Another thread may be finalizing already. */
static void finalize_at_exit(int status) {
    WEFT_IN_CALL("shmem_finalize");
    if (weft_job.phase != WEFT_JOB_RUNNING || weft_job_ending() || weft_boot_is_alone())
        return; /* alone: there is no peer to meet, and the memory is freed with the process */
    weft_boot_set_end_handler(NULL); /* an end handler could not return from here */
    lock_changing();
    bool running = init_count > 0;
    init_count = 0;
    if (running && exit_is_failure(status & 0xff)) {
        if (!weft_job_ended_before())
            weft_job_end_by_exit(status & 0xff);
    } else if (running) {
        atomic_store(&weft_job.control->pe[weft_job.pe].exit_status, status & 0xff);
        finish_at_exit();
    }
    pthread_mutex_unlock(&changing);
}

static void end_at_exit(int status, void *unused) {
    (void)unused;
    if (init_process != 0 && init_process != getpid())
        return; /* a forked child is not a PE */
    finalize_at_exit(status);
    weft_boot_part();
}

/* Registered before main, so that it runs after all exit handlers and destructors of the program:
 * these may still use the library and finalize it. */
__attribute__((constructor(101))) static void watch_exit(void) {
    on_exit(end_at_exit, NULL);
}

static void watch_forks(void) {
    static bool watching;
    if (!watching)
        pthread_atfork(NULL, NULL, forked);
    watching = true;
}

static int read_settings(void) {
    int result = weft_env_read();
    exit_waits = strcmp(weft_env.exit, "wait") == 0;
    if (result == 0 && !exit_waits && strcmp(weft_env.exit, "end") != 0) {
        weft_log("WEFT_EXIT is '%s': set it to end or wait", weft_env.exit);
        return -EINVAL;
    }
    return result;
}

static int bring_up(void) {
    int result = read_settings();
    weft_static_move_late();
    if (result == 0)
        result = weft_job_join();
    if (result < 0)
        return result;
    watch_forks();
    result = share_memory();
    if (result == 0 && weft_job.far)
        result = open_far();
    if (result == 0)
        result = weft_teams_open();
    if (result == 0)
        weft_hang_watch();
    if (result == 0)
        result = weft_heap_open();
    if (result < 0) {
        weft_job_depart(); /* peers that got further wait for this PE */
        take_down();
        weft_job.phase = WEFT_JOB_BEFORE;
    }
    return result;
}

/* The first call starts the job; a later one can raise the thread level, which all code supports
 * anyway. */
static int begin(int requested) {
    if (init_count == 0 || requested > weft_thread_level())
        atomic_store(&thread_level, requested);
    int result = init_count == 0 ? bring_up() : 0;
    if (result < 0)
        return result;
    if (init_count++ == 0) {
        init_thread = pthread_self();
        init_process = getpid();
        greet();
    }
    if (weft_thread_level() == SHMEM_THREAD_MULTIPLE && !weft_job.threads)
        weft_job_set_mode(WEFT_JOB_THREADS, true);
    atomic_store(&initialized, true);
    return 0;
}

int weft_init(int requested, int *provided) {
    WEFT_IN_CALL("shmem_init");
    weft_init_notice_fork();
    if (weft_job.phase == WEFT_JOB_FORKED) {
        weft_log("shmem_init in a forked child of a PE: a child is not a PE; start programs with "
                 "exec, or fork before shmem_init");
        return -EPERM;
    }
    lock_changing();
    int result = begin(requested);
    pthread_mutex_unlock(&changing);
    if (result == 0 && provided)
        *provided = weft_thread_level();
    return result;
}

void weft_finalize(void) {
    WEFT_IN_CALL("shmem_finalize");
    if (weft_job_ending())
        return;
    lock_changing();
    bool last = init_count == 1;
    init_count -= init_count > 0;
    if (last) {
        part();
        take_down();
    }
    pthread_mutex_unlock(&changing);
    if (!last && weft_job.phase == WEFT_JOB_RUNNING) {
        weft_order_complete();
        weft_sync_barrier(weft_team_find(SHMEM_TEAM_WORLD));
    }
}

bool weft_initialized(void) {
    return atomic_load(&initialized) && weft_job.phase == WEFT_JOB_RUNNING;
}

int weft_thread_level(void) {
    return atomic_load(&thread_level);
}

bool weft_thread_allowed(void) {
    return weft_thread_level() >= SHMEM_THREAD_SERIALIZED ||
           pthread_equal(init_thread, pthread_self());
}
