/* SPDX-License-Identifier: BSD-3-Clause */
/* The PE's side of the launcher: attach once per process, join and leave as often as one likes.
 *
 * Three descriptors are inherited. All become close-on-exec here, so that a PE which turns into
 * another program is seen to be gone. Nothing is ever sent on the life socket: it becomes readable
 * only when the launcher's end closes, and then the kernel kills this process (fcntl(2), F_SETSIG).
 * A forked child is no PE: it gives up the descriptors, and the signal goes to the PE alone. */
#include "boot/boot.h"
#include "base/log.h"
#include "base/machine.h"
#include "boot/alive.h"
#include "boot/control.h"
#include "boot/wire.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { STATUS_ABORTED = 70 };

struct weft_boot weft_boot = {.hub = -1};

/* What the environment says; the same for every join of this process. */
static struct {
    bool attached;
    int pe, npes, hub, control_fd, life;
    struct weft_control *control; /* stays mapped: other threads may look at it after leaving */
} attachment = {.hub = -1, .control_fd = -1, .life = -1};

/* Only digits, at most `max`; -1 otherwise. */
static int parse_number(const char *text, int max) {
    char *end;
    if (!text || text[0] < '0' || text[0] > '9')
        return -1;
    errno = 0;
    long value = strtol(text, &end, 10);
    return errno || *end || value > max ? -1 : (int)value;
}

bool weft_boot_expected(void) {
    return getenv(WEFT_BOOT_ENV_HUB) &&
           parse_number(getenv(WEFT_BOOT_ENV_NPES), WEFT_WIRE_PES_MAX) > 1;
}

static int read_number(const char *name, int max, int *value) {
    const char *text = getenv(name);
    *value = parse_number(text, max);
    if (*value >= 0)
        return 0;
    weft_log("%s=%s in the environment is no number of a launcher's: start this program with oshrun",
             name, text ? text : "");
    return -EINVAL;
}

static bool launcher_named(void) {
    return getenv(WEFT_BOOT_ENV_PE) || getenv(WEFT_BOOT_ENV_NPES) || getenv(WEFT_BOOT_ENV_HUB) ||
           getenv(WEFT_BOOT_ENV_CONTROL) || getenv(WEFT_BOOT_ENV_LIFE);
}

static int read_environment(void) {
    int rc = read_number(WEFT_BOOT_ENV_NPES, WEFT_WIRE_PES_MAX, &attachment.npes);
    rc = rc ? rc : read_number(WEFT_BOOT_ENV_PE, WEFT_WIRE_PES_MAX, &attachment.pe);
    rc = rc ? rc : read_number(WEFT_BOOT_ENV_HUB, INT_MAX, &attachment.hub);
    rc = rc ? rc : read_number(WEFT_BOOT_ENV_CONTROL, INT_MAX, &attachment.control_fd);
    rc = rc ? rc : read_number(WEFT_BOOT_ENV_LIFE, INT_MAX, &attachment.life);
    if (rc == 0 && attachment.pe >= attachment.npes) {
        weft_log("%s=%d in the environment does not fit %s=%d", WEFT_BOOT_ENV_PE, attachment.pe,
                 WEFT_BOOT_ENV_NPES, attachment.npes);
        rc = -EINVAL;
    }
    return rc;
}

static bool is_launcher_socket(int fd) {
    int type = 0, domain = 0;
    socklen_t size = sizeof type;
    return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_SEQPACKET &&
           getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 && domain == AF_UNIX;
}

/* A program that closes what it inherited (Python's subprocess does, unless close_fds=False), or a
 * program started by a PE: what the environment names is then no longer there. */
static int check_sockets(void) {
    if (is_launcher_socket(attachment.hub) && is_launcher_socket(attachment.life))
        return 0;
    weft_log("descriptor %d or %d is not the launcher's socket: a wrapper has closed it, or this "
             "program was started by a PE", attachment.hub, attachment.life);
    return -ENOTSOCK;
}

static int check_page(const struct weft_control *page, size_t bytes) {
    if (page->magic != WEFT_CONTROL_MAGIC) {
        weft_log("descriptor %d (%s) is no control page", attachment.control_fd,
                 WEFT_BOOT_ENV_CONTROL);
        return -EINVAL;
    }
    if (page->layout != WEFT_CONTROL_LAYOUT) {
        weft_log("the launcher's control page has layout %u, this library needs %u: oshrun and "
                 "libweft are of different versions", page->layout, WEFT_CONTROL_LAYOUT);
        return -EPROTO;
    }
    if (page->npes != attachment.npes || bytes < weft_control_bytes(attachment.npes)) {
        weft_log("the control page is for %d PEs, %s=%d", page->npes, WEFT_BOOT_ENV_NPES,
                 attachment.npes);
        return -EINVAL;
    }
    return 0;
}

static int map_page(void) {
    struct stat stat;
    if (fstat(attachment.control_fd, &stat) < 0 || !S_ISREG(stat.st_mode) ||
        stat.st_size < (off_t)sizeof(struct weft_control)) {
        weft_log("descriptor %d (%s) is no control page", attachment.control_fd,
                 WEFT_BOOT_ENV_CONTROL);
        return -EINVAL;
    }
    size_t bytes = (size_t)stat.st_size;
    void *page = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, attachment.control_fd, 0);
    if (page == MAP_FAILED) {
        int code = -errno;
        weft_log("cannot map the control page: %s", strerror(-code));
        return code;
    }
    int rc = check_page(page, bytes);
    if (rc == 0)
        attachment.control = page;
    else
        munmap(page, bytes);
    return rc;
}

/* Has the kernel kill this process when the launcher's end of the life socket closes. The launcher
 * may be gone already: nothing would fire any more, so look once after arming. */
static int arm_life(void) {
    int life = attachment.life;
    if (fcntl(life, F_SETOWN, getpid()) < 0 || fcntl(life, F_SETSIG, SIGKILL) < 0 ||
        fcntl(life, F_SETFL, fcntl(life, F_GETFL) | O_ASYNC) < 0) {
        int code = -errno;
        weft_log("cannot bind this process's life to the launcher's: %s", strerror(-code));
        return code;
    }
    struct pollfd state = {.fd = life, .events = POLLIN};
    if (poll(&state, 1, 0) == 0)
        return 0;
    weft_log("the launcher is gone");
    return -EPIPE;
}

/* In a forked child. Closing here lets the launcher see the end of the PE's sockets when the PE
 * dies, however long the child lives. */
static void forget_in_child(void) {
    if (attachment.hub >= 0) {
        close(attachment.hub);
        close(attachment.life);
    }
    attachment.hub = attachment.life = weft_boot.hub = -1;
    attachment.attached = false;
}

static void close_on_exec(int fd) {
    fcntl(fd, F_SETFD, FD_CLOEXEC);
}

static int attach_to_launcher(void) {
    int rc = read_environment();
    rc = rc ? rc : check_sockets();
    rc = rc ? rc : map_page();
    rc = rc ? rc : arm_life();
    if (rc)
        return rc;
    close_on_exec(attachment.hub);
    close_on_exec(attachment.life);
    close_on_exec(attachment.control_fd);
    weft_log_set_pe(attachment.pe);
    return -pthread_atfork(NULL, NULL, forget_in_child);
}

static int attach_alone(void) {
    attachment.npes = 1;
    attachment.hub = -1;
    int rc = weft_control_create(1, &attachment.control, NULL);
    if (rc == 0)
        attachment.control->cores = weft_machine_cores();
    else
        weft_log("no memory for the control page: %s", strerror(-rc));
    return rc;
}

static int announce(void) {
    if (attachment.hub < 0)
        return 0;
    struct weft_wire_header hello = {.kind = WEFT_WIRE_JOIN};
    int rc = weft_wire_send(attachment.hub, &hello, NULL, 0, NULL, 0, 0);
    if (rc)
        weft_log("cannot reach the launcher: %s", strerror(-rc));
    return rc;
}

static int enter(void) {
    struct weft_control_pe *me = &attachment.control->pe[attachment.pe];
    int rc = weft_alive_hold(&me->alive);
    if (rc) {
        weft_log("cannot become PE %d, which process %d is: %s", attachment.pe,
                 atomic_load(&me->pid), strerror(-rc));
        return rc;
    }
    atomic_store(&me->pid, (int32_t)getpid());
    atomic_store(&me->state, WEFT_PE_JOINED);
    return announce();
}

int weft_boot_join(void) {
    int rc = 0;
    if (!attachment.attached)
        rc = launcher_named() ? attach_to_launcher() : attach_alone();
    if (rc)
        return rc;
    attachment.attached = true;
    rc = enter();
    if (rc == 0)
        weft_boot = (struct weft_boot){attachment.pe, attachment.npes, attachment.hub,
                                       attachment.control};
    return rc;
}

void weft_boot_leave(void) {
    if (!attachment.attached)
        return; /* a forked child on its way out */
    struct weft_control_pe *me = &attachment.control->pe[attachment.pe];
    atomic_store(&me->state, WEFT_PE_LEFT); /* before the release, which the launcher judges by it */
    weft_alive_release(&me->alive);
    weft_boot.hub = -1;
}

void weft_boot_end_job(int status, bool error) {
    if (!attachment.attached || attachment.hub < 0)
        return;
    struct weft_wire_header wish = {.kind = error ? WEFT_WIRE_FAIL : WEFT_WIRE_EXIT,
                                    .status = status};
    weft_wire_send(attachment.hub, &wish, NULL, 0, NULL, 0, 0); /* fails only when it is over */
}

const char *weft_boot_abort_text(void) {
    static _Thread_local char text[160];
    struct weft_cause cause = {.kind = WEFT_ABORT_NONE};
    if (attachment.control)
        cause = weft_control_cause(attachment.control);
    weft_cause_text(&cause, text, sizeof text);
    return text;
}

/* The launcher has closed the socket: the job is over, or the launcher is. */
static _Noreturn void leave_for_good(void) {
    switch (weft_control_cause(weft_boot.control).kind) {
    case WEFT_ABORT_NONE:
        weft_log("the launcher is gone");
        break;
    case WEFT_ABORT_GLOBAL_EXIT:
        break; /* in order; there is nothing to complain of */
    default:
        weft_log("%s", weft_boot_abort_text());
    }
    _exit(STATUS_ABORTED);
}

/* Every PE receives all descriptors, and the kernel counts those under way against the limit. */
static void raise_descriptor_limit(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

/* One exchange as this PE sees it: contributions arrive in the order of PEs, some at a time. */
struct exchange {
    size_t bytes;
    int nfds, arrived;
    unsigned char *all;
    int *all_fds;
};

static int exchange_give(const struct exchange *exchange, const void *mine, const int *fds) {
    struct weft_wire_header header = {.kind = WEFT_WIRE_GIVE,
                                      .bytes = (uint32_t)exchange->bytes,
                                      .nfds = (uint32_t)exchange->nfds};
    for (;;) {
        int rc = weft_wire_send(weft_boot.hub, &header, mine, exchange->bytes, fds, exchange->nfds,
                                0);
        if (rc == -EPIPE)
            leave_for_good();
        if (rc != -ETOOMANYREFS)
            return rc;
        raise_descriptor_limit(); /* too many descriptors under way: others will take theirs */
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
}

static bool share_fits(const struct exchange *exchange, const struct weft_wire_header *header,
                       ssize_t payload, int nfds) {
    uint32_t missing = (uint32_t)(weft_boot.npes - exchange->arrived);
    return header->kind == WEFT_WIRE_SHARE && header->bytes == exchange->bytes &&
           header->nfds == (uint32_t)exchange->nfds &&
           header->first == (uint32_t)exchange->arrived && header->count >= 1 &&
           header->count <= missing && (size_t)payload == header->count * exchange->bytes &&
           (size_t)nfds == (size_t)header->count * header->nfds;
}

static int exchange_take(struct exchange *exchange) {
    struct weft_wire_header header = {0};
    struct weft_wire_extra extra;
    size_t at = (size_t)exchange->arrived;
    ssize_t payload = weft_wire_receive(weft_boot.hub, &header,
                                        exchange->all + at * exchange->bytes,
                                        ((size_t)weft_boot.npes - at) * exchange->bytes, &extra, 0);
    if (payload == -EPIPE)
        leave_for_good();
    if (payload < 0)
        return (int)payload;
    if (!share_fits(exchange, &header, payload, extra.nfds)) {
        weft_wire_close(&extra);
        return -EPROTO;
    }
    if (extra.nfds)
        memcpy(exchange->all_fds + at * header.nfds, extra.fd, (size_t)extra.nfds * sizeof(int));
    exchange->arrived += (int)header.count;
    return 0;
}

static int exchange_alone(const struct exchange *exchange, const void *mine, const int *fds) {
    if (exchange->bytes)
        memcpy(exchange->all, mine, exchange->bytes);
    for (int i = 0; i < exchange->nfds; i++) {
        exchange->all_fds[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, 0);
        if (exchange->all_fds[i] >= 0)
            continue;
        int code = -errno;
        while (i-- > 0)
            close(exchange->all_fds[i]);
        return code;
    }
    return 0;
}

static int exchange_all(struct exchange *exchange, const void *mine, const int *fds) {
    int rc = exchange_give(exchange, mine, fds);
    while (rc == 0 && exchange->arrived < weft_boot.npes)
        rc = exchange_take(exchange);
    for (int i = 0; rc && i < exchange->arrived * exchange->nfds; i++)
        close(exchange->all_fds[i]);
    return rc;
}

int weft_boot_exchange(const void *mine, size_t bytes, void *all, const int *fds, int nfds,
                       int *all_fds) {
    struct exchange exchange = {.bytes = bytes, .nfds = nfds, .all = all, .all_fds = all_fds};
    int rc = 0;
    if (bytes > WEFT_BOOT_BLOB_MAX || nfds < 0 || nfds > WEFT_BOOT_FDS_MAX)
        rc = -EINVAL;
    else if (weft_boot.npes > 1 && weft_boot.hub < 0)
        rc = -ENOTCONN; /* a forked child, or outside join and leave */
    else if (weft_boot.npes == 1)
        rc = exchange_alone(&exchange, mine, fds);
    else {
        if (weft_boot.npes * nfds > 256)
            raise_descriptor_limit();
        rc = exchange_all(&exchange, mine, fds);
    }
    if (rc)
        weft_log("exchange of %zu bytes and %d descriptors with %d PEs: %s", bytes, nfds,
                 weft_boot.npes, strerror(-rc));
    return rc;
}
