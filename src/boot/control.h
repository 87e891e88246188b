/* SPDX-License-Identifier: BSD-3-Clause */
/* The control page of a job: the state of each PE, and whether the job has ended.
 *
 * oshrun makes it in a memfd that every PE inherits; without oshrun the first PE of each host makes
 * it. A PE writes its state to its own entry; the process that applies messages for the PE
 * increments `arrivals` there. The abort fields are written once, by oshrun or by the first PE that
 * detects the end. Every PE can write to the whole page, so no value of it may be used as an index
 * without a check.
 *
 * Each host of a job has its own page, with entries for all PEs. The entries of PEs on other hosts
 * are written by the launcher of this host or, without oshrun, by the agent of its first PE
 * (boot/agent.h) when it receives changes: pid, state, departures, exit status, and long waits. The
 * mutexes of these entries are unused. */
#ifndef WEFT_BOOT_CONTROL_H
#define WEFT_BOOT_CONTROL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "boot/hosts.h"

#define WEFT_CONTROL_MAGIC  UINT64_C(0x3174666577) /* "weft1" */
#define WEFT_CONTROL_LAYOUT 8u

/* The state of a PE. The PE itself writes it on its host's page; the launcher or agent of every
 * other host copies it to that host's page (boot/pe_status.h). */
enum weft_pe_state {
    WEFT_PE_ABSENT = 0, /* has not called shmem_init */
    WEFT_PE_JOINED = 1,
    WEFT_PE_LEFT = 2, /* finalized: its end is not a death */
};

/* The reason for the end of a job, with the meaning of abort_pe and abort_detail. */
enum weft_end_kind {
    WEFT_ABORT_NONE = 0,
    WEFT_ABORT_DIED = 1,        /* PE abort_pe died; abort_detail: signal, 0: unknown */
    WEFT_ABORT_EXITED = 2,      /* PE abort_pe exited without finalizing; abort_detail: status */
    WEFT_ABORT_GLOBAL_EXIT = 3, /* PE abort_pe called shmem_global_exit; abort_detail: status */
    WEFT_ABORT_ERROR = 4,       /* PE abort_pe has logged an error; abort_detail: status */
    WEFT_ABORT_LAUNCHER = 5,    /* the launcher was told to end; abort_detail: signal */
    WEFT_ABORT_EXECED = 6,      /* PE abort_pe became another program without finalizing */
    WEFT_ABORT_TIMEOUT = 7,     /* --timeout; abort_detail: seconds */
    WEFT_ABORT_LEFT = 8,        /* PE abort_pe called exit; abort_detail: its status */
    WEFT_ABORT_HOST = 9,        /* host abort_detail does not answer; abort_pe: -1 */
    WEFT_ABORT_FRONT = 10, /* this host has lost the oshrun that started the job; abort_pe: -1 */
    WEFT_ABORT_CUT = 11,   /* PE abort_pe cannot reach host abort_detail, which is alive */
    WEFT_ABORT_KINDS,
};

enum { WEFT_LONG_WAIT_NO_TEAM = -1, WEFT_LONG_WAIT_EXCHANGE = -2 };

/* A long wait, as the waiting PE publishes it (boot/long_wait.h). */
struct weft_long_wait_facts {
    int32_t pe;     /* PE waited for; -1: any */
    int32_t team;   /* its slot of the scratch window, or WEFT_LONG_WAIT_NO_TEAM or _EXCHANGE */
    uint32_t round; /* number of the team's operation (smaller on PEs that are late), or hash of the
                       exchange */
    char call[64];  /* the public function */
    char where[192];   /* its caller: "train.py:12", "ring+0x1342 (main)", or "" */
    char awaited[192]; /* the word and the condition of a wait on a user's word, or "" */
};

struct weft_long_wait {
    _Atomic uint32_t state;    /* increases; see boot/long_wait.c */
    _Atomic uint32_t reported; /* a PE has logged this wait */
    struct weft_long_wait_facts facts;
};

#define WEFT_LONG_WAITS 4 /* threads of a PE */

/* The number of messages delivered to a PE, and the number of its threads that sleep until a
 * message arrives (on a futex; job/wait.h). */
struct weft_arrivals {
    _Alignas(64) _Atomic uint32_t count;
    _Atomic uint32_t sleepers;
};

struct weft_control_pe {
    /* Robust and process-shared, held by the PE while it has joined. The kernel marks it when the
     * holder dies, before it frees the process's memory: the earliest notice of a death. */
    _Alignas(128) pthread_mutex_t alive;
    _Atomic int32_t pid; /* the PE's own process, not necessarily a child of the launcher */
    _Atomic uint32_t state;
    _Atomic uint32_t departures; /* times that shmem_finalize has begun to close the PE */
    _Atomic int32_t exit_status; /* status of an exit that finalizes; written before departures */
    int32_t host;                /* host of the PE */
    struct weft_arrivals arrivals;
    struct weft_long_wait wait[WEFT_LONG_WAITS];
};

struct weft_control {
    uint64_t magic;
    uint32_t layout;
    int32_t npes;
    int32_t cores; /* processors that the PEs of this host may use: affinity and cgroup quota */
    int32_t nhosts, host; /* number of hosts; this host */
    struct weft_network network;
    /* enum weft_end_kind; written after the two fields below. Threads may sleep on it (futex) and
     * are then woken. */
    _Alignas(64) _Atomic uint32_t abort;
    _Atomic uint32_t abort_claimed; /* a PE or the launcher writes the other three fields */
    _Atomic int32_t abort_pe;
    _Atomic int32_t abort_detail;
    _Atomic uint32_t telling; /* 1 + the PE that examines all waits at present; 0: none */
    _Alignas(128) struct weft_control_pe pe[]; /* npes; a struct weft_host per host follows */
};

static inline size_t weft_control_bytes(int npes, int nhosts) {
    return sizeof(struct weft_control) + (size_t)npes * sizeof(struct weft_control_pe) +
           (size_t)nhosts * sizeof(struct weft_host);
}

static inline struct weft_host *weft_control_hosts(struct weft_control *control, int npes) {
    return (struct weft_host *)&control->pe[npes];
}

/* Makes the page in a sealed memfd and stores its descriptor in *memfd; if memfd is NULL, in
 * private memory, for a job of one PE. Returns 0 or -errno, without logging. */
int weft_control_create(int npes, int nhosts, struct weft_control **control, int *memfd);

/* Checks and maps a page that another process has made. Returns 0, or -errno after logging the
 * reason. */
int weft_control_map(int fd, int npes, struct weft_control **control);

/* weft_control_write_hosts writes the hosts of the job to the page, which has room for them.
 * weft_control_read_hosts passes them from the page to boot/hosts.h, and returns 0, or -errno after
 * logging the reason. */
void weft_control_write_hosts(struct weft_control *control, const struct weft_hosts_given *given);
int weft_control_read_hosts(struct weft_control *control, int npes);

/* Returns the first member that will not contribute to the exchange because it has finalized or
 * waits in shmem_finalize; -1: none. Members in `gave` have contributed. */
struct weft_wire_members;
int weft_control_find_gone(const struct weft_control *control, int npes,
                           const struct weft_wire_members *members,
                           const struct weft_wire_members *gave);

/* The cause of the job's end, from the page, or more precise from the launcher. The host of `pe` is
 * in boot/hosts.h. */
struct weft_cause {
    enum weft_end_kind kind;
    int pe, pid, detail;
    enum weft_pe_state state; /* of `pe` */
};

/* Returns whether the job has ended. This is one load from a shared cache line that is rarely
 * written. */
static inline bool weft_control_aborted(const struct weft_control *control) {
    return atomic_load_explicit(&control->abort, memory_order_acquire) != WEFT_ABORT_NONE;
}

/* The exit status of a PE that ends because of another PE, and of one that has logged an error. */
#define WEFT_STATUS_ABORTED 70
#define WEFT_STATUS_ERROR   71

/* Writes the abort word, unless it is written already, and wakes the threads that sleep on it. */
void weft_control_abort(struct weft_control *control, const struct weft_cause *cause);

/* Reads the cause. `npes` comes from the caller, because no number in the page may be trusted as an
 * index. */
struct weft_cause weft_control_cause(const struct weft_control *control, int npes);

/* Writes, for instance, "PE 3 (pid 4711 on b) was killed by signal 9 (Killed)"; the host only if
 * there are several. Writes "" if there is no cause. */
enum { WEFT_CAUSE_TEXT_BYTES = 320 };
void weft_cause_text(const struct weft_cause *cause, char *text, size_t bytes);

#endif
