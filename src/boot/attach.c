/* SPDX-License-Identifier: BSD-3-Clause */
/* Nothing of the environment is believed: numbers, kinds of descriptors, and the page are checked,
 * and what is wrong gets one line. */
#include "boot/attach.h"
#include "base/log.h"
#include "base/machine.h"
#include "boot/control.h"
#include "boot/wire.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

struct weft_attachment weft_attachment = {.hub = -1, .control_fd = -1, .life = -1};

/* Only digits, at most `max`; -1 otherwise. */
static int parse_number(const char *text, int max) {
    char *end;
    if (!text || text[0] < '0' || text[0] > '9')
        return -1;
    errno = 0;
    long value = strtol(text, &end, 10);
    return errno || *end || value > max ? -1 : (int)value;
}

bool weft_attach_expected(void) {
    return getenv(WEFT_BOOT_ENV_HUB) &&
           parse_number(getenv(WEFT_BOOT_ENV_NPES), WEFT_WIRE_PES_MAX) > 1;
}

static int read_number(const char *name, int max, int *value) {
    const char *text = getenv(name);
    *value = parse_number(text, max);
    if (*value >= 0)
        return 0;
    weft_log(
        "%s=%s in the environment is no number of a launcher's: start this program with oshrun",
        name, text ? text : "");
    return -EINVAL;
}

static bool launcher_named(void) {
    return getenv(WEFT_BOOT_ENV_PE) || getenv(WEFT_BOOT_ENV_NPES) || getenv(WEFT_BOOT_ENV_HUB) ||
           getenv(WEFT_BOOT_ENV_CONTROL) || getenv(WEFT_BOOT_ENV_LIFE);
}

static int read_environment(void) {
    int rc = read_number(WEFT_BOOT_ENV_NPES, WEFT_WIRE_PES_MAX, &weft_attachment.npes);
    rc = rc ? rc : read_number(WEFT_BOOT_ENV_PE, WEFT_WIRE_PES_MAX, &weft_attachment.pe);
    rc = rc ? rc : read_number(WEFT_BOOT_ENV_HUB, INT_MAX, &weft_attachment.hub);
    rc = rc ? rc : read_number(WEFT_BOOT_ENV_CONTROL, INT_MAX, &weft_attachment.control_fd);
    rc = rc ? rc : read_number(WEFT_BOOT_ENV_LIFE, INT_MAX, &weft_attachment.life);
    if (rc == 0 && weft_attachment.pe >= weft_attachment.npes) {
        weft_log("%s=%d in the environment does not fit %s=%d", WEFT_BOOT_ENV_PE,
                 weft_attachment.pe, WEFT_BOOT_ENV_NPES, weft_attachment.npes);
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
    if (is_launcher_socket(weft_attachment.hub) && is_launcher_socket(weft_attachment.life))
        return 0;
    weft_log("descriptor %d or %d is not the launcher's socket: a wrapper has closed it, or this "
             "program was started by a PE",
             weft_attachment.hub, weft_attachment.life);
    return -ENOTSOCK;
}

static int check_page(const struct weft_control *page, size_t bytes) {
    if (page->magic != WEFT_CONTROL_MAGIC) {
        weft_log("descriptor %d (%s) is no control page", weft_attachment.control_fd,
                 WEFT_BOOT_ENV_CONTROL);
        return -EINVAL;
    }
    if (page->layout != WEFT_CONTROL_LAYOUT) {
        weft_log("the launcher's control page has layout %u, this library needs %u: oshrun and "
                 "libweft are of different versions",
                 page->layout, WEFT_CONTROL_LAYOUT);
        return -EPROTO;
    }
    if (page->npes != weft_attachment.npes || bytes < weft_control_bytes(weft_attachment.npes)) {
        weft_log("the control page is for %d PEs, %s=%d", page->npes, WEFT_BOOT_ENV_NPES,
                 weft_attachment.npes);
        return -EINVAL;
    }
    return 0;
}

static int map_page(void) {
    struct stat stat;
    if (fstat(weft_attachment.control_fd, &stat) < 0 || !S_ISREG(stat.st_mode) ||
        stat.st_size < (off_t)sizeof(struct weft_control)) {
        weft_log("descriptor %d (%s) is no control page", weft_attachment.control_fd,
                 WEFT_BOOT_ENV_CONTROL);
        return -EINVAL;
    }
    size_t bytes = (size_t)stat.st_size;
    void *page =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, weft_attachment.control_fd, 0);
    if (page == MAP_FAILED) {
        int code = -errno;
        weft_log("cannot map the control page: %s", strerror(-code));
        return code;
    }
    int rc = check_page(page, bytes);
    if (rc == 0)
        weft_attachment.control = page;
    else
        munmap(page, bytes);
    return rc;
}

/* Has the kernel kill this process when the launcher's end of the life socket closes. The launcher
 * may be gone already: nothing would fire any more, so look once after arming. */
static int arm_life(void) {
    int life = weft_attachment.life;
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

/* In a forked child, which is no PE. Closing here lets the launcher see the end of the PE's sockets
 * when the PE dies, however long the child lives. */
static void forget_in_child(void) {
    if (!weft_attachment.valid || weft_attachment.hub < 0)
        return;
    close(weft_attachment.hub);
    close(weft_attachment.life);
    weft_attachment.hub = weft_attachment.life = -1;
    weft_attachment.valid = false;
}

static void close_on_exec(int fd) {
    fcntl(fd, F_SETFD, FD_CLOEXEC);
}

static int attach_to_launcher(void) {
    int rc = read_environment();
    if (rc == 0 && weft_attachment.npes > 1)
        weft_log_set_pe(weft_attachment.pe);
    rc = rc ? rc : check_sockets();
    rc = rc ? rc : map_page();
    rc = rc ? rc : arm_life();
    if (rc)
        return rc;
    close_on_exec(weft_attachment.hub);
    close_on_exec(weft_attachment.life);
    close_on_exec(weft_attachment.control_fd);
    return -pthread_atfork(NULL, NULL, forget_in_child);
}

static int attach_alone(void) {
    weft_attachment.npes = 1;
    weft_attachment.hub = -1;
    int rc = weft_control_create(1, &weft_attachment.control, NULL);
    if (rc == 0)
        weft_attachment.control->cores = weft_machine_cores();
    else
        weft_log("no memory for the control page: %s", strerror(-rc));
    return rc;
}

void weft_attach_lost(void) {
    enum { STATUS_ABORTED = 70 };
    char text[160];
    struct weft_cause cause = weft_control_cause(weft_attachment.control);
    if (cause.kind == WEFT_ABORT_GLOBAL_EXIT)
        _exit(cause.detail & 0xff); /* in order: there is nothing to complain of */
    weft_cause_text(&cause, text, sizeof text);
    if (cause.kind == WEFT_ABORT_NONE)
        weft_log("the launcher is gone");
    else
        weft_log("%s; leaving", text);
    _exit(STATUS_ABORTED);
}

int weft_attach(void) {
    if (weft_attachment.valid)
        return 0;
    int rc = launcher_named() ? attach_to_launcher() : attach_alone();
    weft_attachment.valid = rc == 0;
    return rc;
}
