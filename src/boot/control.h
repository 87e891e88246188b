/* SPDX-License-Identifier: BSD-3-Clause */
/* The control page of a job: who lives, who left, and whether the job is over.
 *
 * The launcher makes it in a memfd that every PE inherits; without a launcher of ours PE 0 does. A
 * PE writes only its own entry; the abort fields are written once, by the launcher or, without one,
 * by whichever PE knows first. Every PE can write all of it, so nobody trusts it as an index.
 *
 * Each host of a job has a page of its own, with entries for all PEs. Those of PEs on other hosts
 * are written by the launcher of this one, from what it hears of them: pid, state, departures, exit
 * status, and waits that last. Their mutexes are nobody's. */
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

/* The state of a PE, which only the PE itself writes. */
enum weft_pe_state {
    WEFT_PE_ABSENT = 0, /* has not called shmem_init yet */
    WEFT_PE_JOINED = 1,
    WEFT_PE_LEFT = 2, /* finalized in order: its end is no death */
};

/* The reason for the end of a job, with the meaning of abort_pe and abort_detail. */
enum weft_end_kind {
    WEFT_ABORT_NONE = 0,
    WEFT_ABORT_DIED = 1,        /* PE abort_pe died; abort_detail: signal, 0 when not known yet */
    WEFT_ABORT_EXITED = 2,      /* PE abort_pe exited without finalizing; abort_detail: status */
    WEFT_ABORT_GLOBAL_EXIT = 3, /* PE abort_pe called shmem_global_exit; abort_detail: status */
    WEFT_ABORT_ERROR = 4,       /* PE abort_pe gave up with a message of its own; status */
    WEFT_ABORT_LAUNCHER = 5,    /* the launcher was told to end; abort_detail: signal */
    WEFT_ABORT_EXECED = 6,      /* PE abort_pe became another program without finalizing */
    WEFT_ABORT_TIMEOUT = 7,     /* the job has had its time; abort_detail: seconds */
    WEFT_ABORT_LEFT = 8,        /* PE abort_pe called exit; abort_detail: its status */
    WEFT_ABORT_HOST = 9,        /* host abort_detail does not answer; abort_pe: -1 */
    WEFT_ABORT_FRONT = 10, /* this host has lost the oshrun that started the job; abort_pe: -1 */
    WEFT_ABORT_CUT = 11,   /* PE abort_pe cannot reach host abort_detail, though it lives */
    WEFT_ABORT_KINDS,
};

enum { WEFT_LONG_WAIT_NO_TEAM = -1, WEFT_LONG_WAIT_EXCHANGE = -2 };

/* A wait that lasts, as the PE that waits shows it (boot/long_wait.h). */
struct weft_long_wait_facts {
    int32_t pe;        /* that is waited for; -1: whichever */
    int32_t team;      /* its slot of the scratch window, or one of the two below */
    uint32_t round;    /* of the team: who is behind has a smaller one; which exchange */
    char call[64];     /* the public function */
    char where[192];   /* that calls it: "train.py:12", "ring+0x1342 (main)", or nothing */
    char awaited[192]; /* the word and the condition of a wait for one of the user's, or nothing */
};

struct weft_long_wait {
    _Atomic uint32_t state;    /* counts up; see boot/long_wait.c */
    _Atomic uint32_t reported; /* some PE has written a line about it */
    struct weft_long_wait_facts facts;
};

#define WEFT_LONG_WAITS 4 /* threads of a PE */

/* How often messages were delivered to a PE, and how many of its threads sleep until some arrive
 * (futex; job/wait.h). */
struct weft_arrivals {
    _Alignas(64) _Atomic uint32_t count;
    _Atomic uint32_t sleepers;
};

struct weft_control_pe {
    /* Robust and process-shared, held by the PE from join to leave. The kernel marks it when the
     * holder dies, before it takes the memory down: the earliest notice of a death there is. */
    _Alignas(128) pthread_mutex_t alive;
    _Atomic int32_t pid; /* the PE's own, which need not be a child of the launcher */
    _Atomic uint32_t state;
    _Atomic uint32_t departures; /* how often it has entered the closing of shmem_finalize */
    _Atomic int32_t exit_status; /* of exit, which finalizes: written before the departure */
    int32_t host;                /* where it runs */
    struct weft_arrivals arrivals;
    struct weft_long_wait wait[WEFT_LONG_WAITS];
};

struct weft_control {
    uint64_t magic;
    uint32_t layout;
    int32_t npes;
    int32_t cores; /* processors that the PEs of this host may use: affinity and cgroup quota */
    int32_t nhosts, host; /* of the job; this one */
    struct weft_network network;
    /* enum weft_end_kind; written after the two below, and then woken: it may be slept on (futex).
     */
    _Alignas(64) _Atomic uint32_t abort;
    _Atomic uint32_t abort_claimed; /* somebody writes the three others */
    _Atomic int32_t abort_pe;
    _Atomic int32_t abort_detail;
    _Atomic uint32_t telling; /* 1 + the PE that looks at all waits just now; 0: nobody */
    _Alignas(128) struct weft_control_pe pe[]; /* npes, and behind them a struct weft_host each */
};

static inline size_t weft_control_bytes(int npes, int nhosts) {
    return sizeof(struct weft_control) + (size_t)npes * sizeof(struct weft_control_pe) +
           (size_t)nhosts * sizeof(struct weft_host);
}

static inline struct weft_host *weft_control_hosts(struct weft_control *control, int npes) {
    return (struct weft_host *)&control->pe[npes];
}

/* Makes the page: in a sealed memfd whose descriptor goes to *memfd, or, with memfd NULL, in
 * private memory of a PE that is alone. 0 or -errno, not logged. */
int weft_control_create(int npes, int nhosts, struct weft_control **control, int *memfd);

/* Maps a page that somebody else has made, after checking it. 0 or -errno, logged. */
int weft_control_map(int fd, int npes, struct weft_control **control);

/* Writes the hosts of the job to the page, which was made for as many, and reads them from it for
 * boot/hosts.h. 0 or -errno, logged. */
void weft_control_write_hosts(struct weft_control *control, const struct weft_hosts_given *given);
int weft_control_read_hosts(struct weft_control *control, int npes);

/* Returns the first of these members that has not given to their exchange and has finalized or is
 * on its way, in shmem_finalize, where it waits for all; -1: there is none. Those that wait have
 * not. */
struct weft_wire_members;
int weft_control_find_gone(const struct weft_control *control, int npes,
                           const struct weft_wire_members *members,
                           const struct weft_wire_members *gave);

/* The cause of the job's end, read from the page or known better by the launcher. Which host `pe`
 * is on, boot/hosts.h knows. */
struct weft_cause {
    enum weft_end_kind kind;
    int pe, pid, detail;
    enum weft_pe_state state; /* of that PE */
};

/* True if the job is over. This is one load of a cache line that is shared and rarely written. */
static inline bool weft_control_aborted(const struct weft_control *control) {
    return atomic_load_explicit(&control->abort, memory_order_acquire) != WEFT_ABORT_NONE;
}

/* The exit status of a PE that ends because of another, and of one that gave up by itself. */
#define WEFT_STATUS_ABORTED 70
#define WEFT_STATUS_ERROR   71

/* Writes the abort word, unless it is written already, and wakes who sleeps on it. */
void weft_control_abort(struct weft_control *control, const struct weft_cause *cause);

/* Reads the cause. `npes` is the caller's own knowledge, because no number in the page may be
 * trusted as an index. */
struct weft_cause weft_control_cause(const struct weft_control *control, int npes);

/* "PE 3 (pid 4711 on b) was killed by signal 9 (Killed)" and so on, the host's name only where
 * there are several; "" when nothing happened. */
enum { WEFT_CAUSE_TEXT_BYTES = 320 };
void weft_cause_text(const struct weft_cause *cause, char *text, size_t bytes);

#endif
