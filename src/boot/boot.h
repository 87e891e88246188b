/* SPDX-License-Identifier: BSD-3-Clause */
/* How a process becomes a PE: who am I, and what do the others have to show.
 *
 * Our launcher leaves a socket and the control page to each PE in two inherited descriptors, named
 * by the environment. The launcher's hub gathers what the PEs give and hands it to all. Without a
 * launcher a process is a job of one PE and every call here is trivial. */
#ifndef WEFT_BOOT_BOOT_H
#define WEFT_BOOT_BOOT_H

#include <stdbool.h>
#include <stddef.h>

struct weft_control;

struct weft_boot {
    int pe, npes;
    struct weft_control *control; /* never NULL between join and leave */
};

/* Valid between weft_boot_join and weft_boot_leave. */
extern struct weft_boot weft_boot;

/* Whether the environment says that a launcher started this process with more than one PE.
 * Cheap and without side effects, so that it can be asked before main. */
bool weft_boot_expected(void);

/* Becomes a PE: maps the control page, takes the own `alive` mutex, writes pid and state, tells the
 * launcher, and arms the socket so that the kernel kills this process when the launcher is gone.
 * Local: waits for nobody. May be called again after weft_boot_leave. 0 or -errno, logged. */
int weft_boot_join(void);

/* Every PE gives `bytes` (<= WEFT_BOOT_BLOB_MAX) and nfds (<= WEFT_BOOT_FDS_MAX) descriptors, the
 * same numbers on all PEs; all[i * bytes ...] and all_fds[i * nfds ...] are what PE i gave. Every
 * received descriptor is new and close-on-exec, also the own ones. Collective over the job.
 * 0 or -errno, logged; does not return when the job is aborted meanwhile. */
#define WEFT_BOOT_BLOB_MAX 4096
#define WEFT_BOOT_FDS_MAX  8
int weft_boot_exchange(const void *mine, size_t bytes, void *all, const int *fds, int nfds,
                       int *all_fds);

/* Stops being a PE in order: state LEFT, `alive` released, launcher told. Local. */
void weft_boot_leave(void);

/* Asks the launcher to end the whole job; `error` says that it is a failure of which this PE has
 * written a line already (WEFT_ABORT_ERROR), otherwise it is shmem_global_exit. Returns once the
 * request is on its way; the caller then exits by itself with `status`. Nothing when alone. */
void weft_boot_end_job(int status, bool error);

/* Why the job is over, for a person: "PE 3 (pid 4711) was killed by signal 9 (Killed)" and so on.
 * Lives until the next call. */
const char *weft_boot_abort_text(void);

#endif
