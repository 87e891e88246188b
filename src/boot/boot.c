/* SPDX-License-Identifier: BSD-3-Clause */
/* Attaches to the job once, by oshrun's descriptors, by meeting the other PEs, or as a job of one
 * PE. Then joins and leaves, as often as the process likes. */
#include "boot/boot.h"
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/descriptor.h"
#include "base/machine.h"
#include "base/privilege.h"
#include "boot/agent.h"
#include "boot/alive.h"
#include "boot/attachment.h"
#include "boot/guard.h"
#include "boot/hangup.h"
#include "boot/meet.h"

struct weft_boot weft_boot;

/* --- Attaching ------------------------------------------------------------------------------- */

static bool forked; /* this process is a forked child of an attached process */

bool weft_boot_expected(void) {
    const struct weft_source *source;
    if (weft_source_find(&source) != 0 || !source)
        return false;
    return source->promises() > 1 || source == &weft_source_given;
}

/* Runs in a forked child, which is not a PE. It closes the sockets, so that other PEs see them
 * close when the PE dies, even if the child lives on. */
static void attachment_forget(void) {
    if (!weft_attachment.valid)
        return;
    forked = true;
    weft_attachment.source = NULL;
    weft_agent_forget();
    weft_hangup_forget();
    weft_descriptor_close(weft_attachment.hub);
    weft_descriptor_close(weft_attachment.life);
    weft_attachment.hub = weft_attachment.life = -1;
    weft_attachment.valid = false;
}

static int attach_alone(void) {
    weft_attachment.pe = 0;
    weft_attachment.npes = 1;
    weft_attachment.hub = -1;
    int error = weft_control_create(1, 1, &weft_attachment.control, NULL);
    if (error == 0)
        weft_attachment.control->cores = weft_machine_cores();
    else
        weft_log("cannot make the control page (mmap): %s%s", strerror(-error),
                 weft_remedy(error).text);
    return error;
}

static pid_t meeting_process;

/* A forked child does not close the launcher's connection, which belongs to its parent. */
static void close_source_at_exit(void) {
    if (getpid() == meeting_process)
        weft_boot_close_source();
}

static int attach_by_meeting(const struct weft_source *source) {
    struct weft_identity self;
    int error = weft_source_identify(source, &self);
    if (error)
        return error;
    weft_attachment.source = source;
    meeting_process = getpid();
    atexit(close_source_at_exit);
    if (self.npes == 1)
        return attach_alone();
    error = weft_meet(&self, &weft_attachment);
    weft_log_set_host(weft_boot_host_name(weft_boot_host(weft_attachment.pe)));
    return error ? error : weft_guard_start();
}

static int source_choose(const struct weft_source **source) {
    int error = weft_source_find(source);
    if (error)
        weft_log("WEFT_LAUNCHER=%s is unknown: set it to auto, oshrun, pmix, pmi, "
                 "pmi2, torchrun, slurm, init_attr or none",
                 getenv("WEFT_LAUNCHER"));
    return error;
}

/* A privileged program joins no job, because all PEs could then write to the memory of its process.
 * If the program itself has asked for a job, it must not continue alone. */
static int job_refuse(void) {
    const struct weft_source *announced = weft_privileged() ? weft_source_announced() : NULL;
    const char *launcher = getenv("WEFT_LAUNCHER");
    bool asked = announced == &weft_source_given;
    if (!announced || (!asked && launcher && strcmp(launcher, "none") == 0))
        return 0;
    weft_log("%s: this program has privileges that its caller lacks (set-user-ID, set-group-ID or "
             "capabilities of its file), and so joins no job with others: %s",
             announced->name, asked ? "start it as a user who needs none" : "it runs alone");
    return asked ? -EPERM : 0;
}

static int attach_once(void) {
    const struct weft_source *source;
    if (weft_attachment.valid)
        return 0;
    if (forked) {
        weft_log("a forked child of a PE is not a PE: start programs with exec");
        return -EPERM;
    }
    int error = job_refuse();
    error = error ? error : source_choose(&source);
    if (error)
        return error;
    if (!source)
        error = attach_alone();
    else
        error = source == &weft_source_oshrun ? weft_inherit() : attach_by_meeting(source);
    if (error == 0)
        error = -pthread_atfork(NULL, NULL, attachment_forget);
    if (error == 0 && weft_boot_nhosts() == 1)
        weft_hosts_set_one(weft_attachment.npes);
    weft_attachment.valid = error == 0;
    return error;
}

/* --- Joining and leaving ---------------------------------------------------------------------- */

bool weft_boot_attached(int *pe, int *npes) {
    *pe = weft_attachment.pe;
    *npes = weft_attachment.npes;
    return weft_attachment.valid;
}

static int launcher_greet(void) {
    if (!weft_attachment.by_oshrun)
        return 0;
    struct weft_wire_header hello = {.kind = WEFT_WIRE_JOIN};
    int error = !weft_descriptor_is_ours(weft_attachment.hub)
                    ? -EBADF
                    : weft_wire_send(weft_attachment.hub, &hello, NULL, 0);
    if (error == -EPIPE)
        weft_boot_lost();
    if (error)
        weft_log("cannot reach the launcher through its socket (WEFT_HUB_FD, descriptor %d): %s%s",
                 weft_attachment.hub, strerror(-error),
                 error == -EBADF ? "; the program has closed it: close only descriptors that the "
                                   "program has opened"
                                 : weft_remedy(error).text);
    return error;
}

static int job_enter(void) {
    struct weft_control_pe *me = &weft_attachment.control->pe[weft_attachment.pe];
    int error = weft_alive_hold(&me->alive);
    if (error) {
        weft_log("cannot become PE %d, which process %d is: %s%s", weft_attachment.pe,
                 atomic_load(&me->pid), strerror(-error),
                 error == -ETIMEDOUT ? "; start this program itself with oshrun, or set "
                                       "WEFT_LAUNCHER=none to have it run alone"
                                     : weft_remedy(error).text);
        return error;
    }
    atomic_store(&me->pid, (int32_t)getpid());
    atomic_store(&me->state, WEFT_PE_JOINED);
    return launcher_greet();
}

int weft_boot_join(void) {
    int error = attach_once();
    if (error == 0)
        error = job_enter();
    if (error == 0)
        weft_boot =
            (struct weft_boot){weft_attachment.pe, weft_attachment.npes, weft_attachment.control};
    return error;
}

/* The state is written before the mutex is released, because the launcher then reads it. */
void weft_boot_leave(void) {
    if (!weft_attachment.valid)
        return; /* a forked child that ends */
    struct weft_control_pe *me = &weft_attachment.control->pe[weft_attachment.pe];
    atomic_store(&me->state, WEFT_PE_LEFT);
    weft_alive_release(&me->alive);
    weft_agent_tell();
}
