/* SPDX-License-Identifier: BSD-3-Clause */
/* Three ways: inherited from oshrun, met with the others, or alone. */
#include "boot/attach.h"
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/machine.h"
#include "base/privilege.h"
#include "boot/attachment.h"
#include "boot/end.h"
#include "boot/guard.h"
#include "boot/hub.h"
#include "boot/inherit.h"
#include "boot/meet.h"

static bool forked; /* this is a child of an attached process */

bool weft_attach_expected(void) {
    const struct weft_source *source;
    if (weft_source_find(&source) != 0 || !source)
        return false;
    return source->promises() > 1 || source == &weft_source_given;
}

static void close_unless_none(int fd) {
    if (fd >= 0)
        close(fd);
}

/* Runs in a forked child, which is no PE. Closing here lets others see the end of the PE's sockets
 * when the PE dies, however long the child lives. */
static void attachment_forget(void) {
    if (!weft_attachment.valid)
        return;
    forked = true;
    weft_attachment.source = NULL;
    for (int pe = 0; weft_attachment.served && pe < weft_attachment.npes; pe++)
        close_unless_none(weft_hub_socket(weft_attachment.served, pe));
    close_unless_none(weft_attachment.hub);
    close_unless_none(weft_attachment.life);
    weft_attachment.hub = weft_attachment.life = -1;
    weft_attachment.valid = false;
}

static int attach_alone(void) {
    weft_attachment.pe = 0;
    weft_attachment.npes = 1;
    weft_attachment.hub = -1;
    int error = weft_control_create(1, &weft_attachment.control, NULL);
    if (error == 0)
        weft_attachment.control->cores = weft_machine_cores();
    else
        weft_log("no memory for the control page: %s", strerror(-error));
    return error;
}

static int attach_by_meeting(const struct weft_source *source) {
    struct weft_identity self;
    struct weft_met met;
    int error = weft_source_identify(source, &self);
    if (error)
        return error;
    weft_attachment.source = source;
    atexit(weft_boot_close_source);
    if (self.npes == 1)
        return attach_alone();
    error = weft_meet(&self, &met);
    if (error)
        return error;
    weft_attachment.pe = self.pe;
    weft_attachment.npes = self.npes;
    weft_attachment.hub = met.hub;
    weft_attachment.served = met.served;
    weft_attachment.control = met.control;
    return weft_guard_start();
}

static int source_choose(const struct weft_source **source) {
    int error = weft_source_find(source);
    if (error)
        weft_log("WEFT_LAUNCHER=%s names no way to be started: set it to auto, oshrun, pmix, pmi, "
                 "pmi2, torchrun, slurm, init_attr or none",
                 getenv("WEFT_LAUNCHER"));
    return error;
}

/* A privileged program joins no job, because that would give the memory of its process to all PEs
 * to write to. If the program itself has asked for a job, it must not go on alone. */
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

int weft_attach(void) {
    const struct weft_source *source;
    if (weft_attachment.valid)
        return 0;
    if (forked) {
        weft_log("a forked child of a PE is no PE: start programs with exec");
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
    weft_attachment.valid = error == 0;
    return error;
}
