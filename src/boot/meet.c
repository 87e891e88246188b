/* SPDX-License-Identifier: BSD-3-Clause */
/* The peer's side: searches for the root's listening socket until it exists, connects, and waits
 * for the page. */
#include "boot/meet.h"
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <weft/version.h>
#include "base/clock.h"
#include "base/descriptor.h"
#include "base/machine.h"
#include "boot/attachment.h"
#include "boot/callers.h"
#include "boot/hangup.h"
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

/* Returns -EAGAIN if the listening socket belongs to another job. */
static int answer_refused(const char *why, size_t bytes) {
    if (bytes == 0)
        return -EAGAIN;
    weft_log("%.*s", (int)bytes, why);
    return -EPROTO;
}

static int answer_welcomed(const struct weft_identity *self, int root,
                           const struct weft_wire_message *message,
                           struct weft_attachment *attachment) {
    if (message->nfds != 1 || message->header.count > WEFT_WIRE_PES_MAX) {
        weft_log("PE %d has sent %d descriptors in place of the control page", attachment->root,
                 message->nfds);
        return -EPROTO;
    }
    int error = weft_hangup_receive(root, (int)message->header.count);
    if (error) {
        weft_log("PE %d has not sent its connections to other hosts: %s%s", attachment->root,
                 strerror(-error), weft_remedy(error).text);
        return error;
    }
    error = weft_control_map(message->fd[0], self->npes, &attachment->control);
    return error ? error : weft_control_read_hosts(attachment->control, self->npes);
}

static int answer_hear(int root, const struct weft_identity *self,
                       struct weft_attachment *attachment) {
    struct weft_wire_message message = {0};
    char why[WEFT_REFUSAL_BYTES];
    ssize_t bytes = weft_wire_receive(root, &message, why, sizeof why, 0);
    if (bytes < 0) {
        weft_log("PE %d is gone before all PEs had arrived: %s", attachment->root,
                 strerror((int)-bytes));
        return (int)bytes;
    }
    int error = -EPROTO;
    if (message.header.kind == WEFT_WIRE_WELCOME)
        error = answer_welcomed(self, root, &message, attachment);
    else if (message.header.kind == WEFT_WIRE_REFUSAL)
        error = answer_refused(why, (size_t)bytes);
    else
        weft_log("PE %d answers with a message of an unknown kind (%u)", attachment->root,
                 message.header.kind);
    weft_wire_close(&message);
    return error;
}

static int hello_exchange(int root, const struct weft_identity *self,
                          struct weft_attachment *attachment) {
    struct timeval patience = {.tv_sec = WEFT_MEET_LIMIT_MS / 1000};
    fcntl(root, F_SETFL, 0); /* blocking from here on */
    setsockopt(root, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    int error = hello_send(root, self);
    error = error ? -EAGAIN : answer_hear(root, self, attachment);
    if (error) {
        close(root);
        return error;
    }
    setsockopt(root, SOL_SOCKET, SO_RCVTIMEO, &(struct timeval){0}, sizeof patience);
    attachment->hub = weft_descriptor_keep(root);
    return 0;
}

/* Tries all listening sockets that exist now. Returns -EAGAIN if none belongs to this job. */
static int listeners_try(const struct weft_identity *self, struct weft_attachment *attachment) {
    FILE *listing = fopen("/proc/net/unix", "re");
    if (!listing) {
        int code = -errno;
        weft_log("cannot look for PE %d in /proc/net/unix (fopen): %s%s", attachment->root,
                 strerror(-code), code == -ENOENT ? "; mount /proc" : weft_remedy(code).text);
        return code;
    }
    int error = -EAGAIN, root;
    while (error == -EAGAIN && (root = weft_rendezvous_connect(listing, self->job_key.secret)) >= 0)
        error = hello_exchange(root, self, attachment);
    fclose(listing);
    if (error == -EAGAIN && root != -ENOENT) {
        weft_log("cannot connect to PE %d (socket): %s%s", attachment->root, strerror(-root),
                 weft_remedy(root).text);
        return root;
    }
    return error;
}

/* `link` is the connection to PE 0 on another host, over which PE 0 may refuse the job, or NULL. */
static int root_find(const struct weft_identity *self, struct weft_attachment *attachment,
                     struct weft_host_link *link) {
    uint64_t begin_ns = weft_clock_ns();
    char why[WEFT_REFUSAL_BYTES];
    bool hinted = false;
    for (long pause_ms = 1;;
         pause_ms = pause_ms * 2 < LOOK_AGAIN_MS_MAX ? pause_ms * 2 : LOOK_AGAIN_MS_MAX) {
        int error = listeners_try(self, attachment);
        uint64_t waited_ms = (weft_clock_ns() - begin_ns) / WEFT_NS_PER_MS;
        if (error == -EAGAIN && link && weft_arrive_refused(link, why)) {
            weft_log("%s", why);
            error = -EPROTO;
        }
        if (error != -EAGAIN)
            return error;
        if (waited_ms >= WEFT_MEET_LIMIT_MS)
            break;
        if (waited_ms >= WEFT_MEET_HINT_MS && !hinted) {
            char missing[16];
            snprintf(missing, sizeof missing, "%d", attachment->root);
            weft_source_hint(self, missing);
            hinted = true;
        }
        weft_clock_sleep_ms(pause_ms);
    }
    weft_log("PE %d of %d has not called shmem_init on this host within %d s", attachment->root,
             self->npes, WEFT_MEET_LIMIT_MS / 1000);
    return -ETIMEDOUT;
}

/* Meets if PE 0 is on another host. */
static int meet_from_afar(const struct weft_identity *self, struct weft_attachment *attachment) {
    struct weft_places places;
    struct weft_host_link link = {.frames = NULL};
    int error = weft_arrive(self, &places, &link);
    if (error == 0) {
        attachment->root = weft_places_first(&places, places.here);
        if (attachment->root == self->pe) {
            error = weft_meet_as_root(self, attachment, &places, &link);
        } else {
            error = root_find(self, attachment, &link);
            weft_arrive_say(&link, WEFT_ARRIVAL_BYE);
            weft_host_link_close(&link);
        }
    }
    weft_places_free(&places);
    return error;
}

int weft_meet(const struct weft_identity *self, struct weft_attachment *attachment) {
    attachment->pe = self->pe;
    attachment->npes = self->npes;
    attachment->root = 0;
    attachment->hub = -1; /* an earlier attempt may have set it */
    if (weft_source_is_elsewhere(self))
        return meet_from_afar(self, attachment);
    if (self->pe == 0)
        return weft_meet_as_root(self, attachment, NULL, NULL);
    return root_find(self, attachment, NULL);
}
