/* SPDX-License-Identifier: BSD-3-Clause */
/* The peer's part: look for PE 0's listening socket until it is there, go in, and wait for the
 * page. */
#include "boot/meet.h"
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <weft/version.h>
#include "base/clock.h"
#include "base/machine.h"
#include "boot/attachment.h"
#include "boot/rendezvous.h"

enum { LOOK_AGAIN_MS_MAX = 20 };

static int hello_send(int root, const struct weft_identity *self) {
    struct weft_wire_header header = {.kind = WEFT_WIRE_HELLO};
    struct weft_hello hello = {.magic = WEFT_HELLO_MAGIC,
                               .version = WEFT_VERSION_STRING,
                               .pe = self->pe,
                               .npes = self->npes};
    memcpy(hello.key, self->job_key.secret, sizeof hello.key);
    weft_machine_processors(&hello.processors);
    struct weft_wire_body body = {.payload = &hello, .bytes = sizeof hello};
    return weft_wire_send(root, &header, &body, 0);
}

/* -EAGAIN: another job's listening socket. */
static int answer_refused(const char *why, size_t bytes) {
    if (bytes == 0)
        return -EAGAIN;
    weft_log("%.*s", (int)bytes, why);
    return -EPROTO;
}

static int answer_welcomed(const struct weft_identity *self,
                           const struct weft_wire_message *message,
                           struct weft_attachment *attachment) {
    if (message->nfds == 1)
        return weft_control_map(message->fd[0], self->npes, &attachment->control);
    weft_log("PE 0 has sent %d descriptors in place of the control page", message->nfds);
    return -EPROTO;
}

static int answer_hear(int root, const struct weft_identity *self,
                       struct weft_attachment *attachment) {
    struct weft_wire_message message = {0};
    char why[WEFT_REFUSAL_BYTES];
    ssize_t bytes = weft_wire_receive(root, &message, why, sizeof why, 0);
    if (bytes < 0) {
        weft_log("PE 0 is gone before all PEs had come: %s", strerror((int)-bytes));
        return (int)bytes;
    }
    int error = -EPROTO;
    if (message.header.kind == WEFT_WIRE_WELCOME)
        error = answer_welcomed(self, &message, attachment);
    else if (message.header.kind == WEFT_WIRE_REFUSAL)
        error = answer_refused(why, (size_t)bytes);
    else
        weft_log("PE 0 answers with a message of no known kind (%u)", message.header.kind);
    weft_wire_close(&message);
    return error;
}

static int hello_exchange(int root, const struct weft_identity *self,
                          struct weft_attachment *attachment) {
    struct timeval patience = {.tv_sec = WEFT_MEET_LIMIT_MS / 1000};
    fcntl(root, F_SETFL, 0); /* from here on it may block */
    setsockopt(root, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    int error = hello_send(root, self);
    error = error ? -EAGAIN : answer_hear(root, self, attachment);
    if (error) {
        close(root);
        return error;
    }
    setsockopt(root, SOL_SOCKET, SO_RCVTIMEO, &(struct timeval){0}, sizeof patience);
    attachment->hub = root;
    return 0;
}

/* Through all listening sockets that there are now. -EAGAIN: none of them was the right one. */
static int listeners_try(const struct weft_identity *self, struct weft_attachment *attachment) {
    FILE *listing = fopen("/proc/net/unix", "re");
    if (!listing) {
        int code = -errno;
        weft_log("cannot look for PE 0 in /proc/net/unix: %s", strerror(-code));
        return code;
    }
    int error = -EAGAIN, root;
    while (error == -EAGAIN && (root = weft_rendezvous_connect(listing, self->job_key.secret)) >= 0)
        error = hello_exchange(root, self, attachment);
    fclose(listing);
    if (error == -EAGAIN && root != -ENOENT) {
        weft_log("cannot go to PE 0: %s", strerror(-root));
        return root;
    }
    return error;
}

static int root_find(const struct weft_identity *self, struct weft_attachment *attachment) {
    uint64_t begin_ns = weft_clock_ns();
    bool hinted = false;
    for (long pause_ms = 1;;
         pause_ms = pause_ms * 2 < LOOK_AGAIN_MS_MAX ? pause_ms * 2 : LOOK_AGAIN_MS_MAX) {
        int error = listeners_try(self, attachment);
        uint64_t waited_ms = (weft_clock_ns() - begin_ns) / 1000000;
        if (error != -EAGAIN)
            return error;
        if (waited_ms >= WEFT_MEET_LIMIT_MS)
            break;
        if (waited_ms >= WEFT_MEET_HINT_MS && !hinted) {
            weft_source_hint(self, "0");
            hinted = true;
        }
        weft_clock_sleep_ms(pause_ms);
    }
    weft_log("PE 0 of %d has not called shmem_init on this host within %d s", self->npes,
             WEFT_MEET_LIMIT_MS / 1000);
    return -ETIMEDOUT;
}

int weft_meet(const struct weft_identity *self, struct weft_attachment *attachment) {
    attachment->pe = self->pe;
    attachment->npes = self->npes;
    attachment->hub = -1; /* an attempt before this one may have left its own */
    attachment->served = NULL;
    return self->pe == 0 ? weft_meet_receive(self, attachment) : root_find(self, attachment);
}
