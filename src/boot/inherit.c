/* SPDX-License-Identifier: BSD-3-Clause */
/* oshrun as a source. A process inherits three descriptors, which the environment names: the hub's
 * socket, the control page and the life socket. The sockets get high numbers and become
 * close-on-exec, so that oshrun notices a PE that executes another program. Nothing is ever sent on
 * the life socket: it becomes readable only when oshrun's end closes, and then the kernel kills
 * this process (fcntl(2), F_SETSIG). The environment is not trusted: numbers and kinds of
 * descriptors are checked, and each error is one line. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/descriptor.h"
#include "base/machine.h"
#include "boot/attachment.h"
#include "boot/source.h"

static int variable_read(const char *name, int max, int *value) {
    const char *text = getenv(name);
    *value = weft_source_number(text, max);
    if (*value >= 0)
        return 0;
    weft_log(
        "%s=%s in the environment is not a number that oshrun has set: start this program with "
        "oshrun",
        name, text ? text : "");
    return -EINVAL;
}

static int oshrun_promises(void) {
    bool named = getenv(WEFT_BOOT_ENV_PE) || getenv(WEFT_BOOT_ENV_NPES) ||
                 getenv(WEFT_BOOT_ENV_HUB) || getenv(WEFT_BOOT_ENV_CONTROL) ||
                 getenv(WEFT_BOOT_ENV_LIFE);
    int npes = weft_source_number(getenv(WEFT_BOOT_ENV_NPES), WEFT_WIRE_PES_MAX);
    return !named ? 0 : npes > 1 && getenv(WEFT_BOOT_ENV_HUB) ? npes : 1;
}

const struct weft_source weft_source_oshrun = {.name = "oshrun", .promises = oshrun_promises};

static int environment_read(int *control_fd) {
    int error = variable_read(WEFT_BOOT_ENV_NPES, WEFT_WIRE_PES_MAX, &weft_attachment.npes);
    error = error ? error : variable_read(WEFT_BOOT_ENV_PE, WEFT_WIRE_PES_MAX, &weft_attachment.pe);
    error = error ? error : variable_read(WEFT_BOOT_ENV_HUB, INT_MAX, &weft_attachment.hub);
    error = error ? error : variable_read(WEFT_BOOT_ENV_CONTROL, INT_MAX, control_fd);
    error = error ? error : variable_read(WEFT_BOOT_ENV_LIFE, INT_MAX, &weft_attachment.life);
    if (error == 0 && weft_attachment.pe >= weft_attachment.npes) {
        weft_log("%s=%d in the environment does not fit %s=%d", WEFT_BOOT_ENV_PE,
                 weft_attachment.pe, WEFT_BOOT_ENV_NPES, weft_attachment.npes);
        error = -EINVAL;
    }
    return error;
}

static bool is_launcher_socket(int fd) {
    int type = 0, domain = 0;
    socklen_t size = sizeof type;
    return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_SEQPACKET &&
           getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 && domain == AF_UNIX;
}

/* The descriptors that the environment names may be closed: a wrapper may close what it inherits
 * (Python's subprocess does, unless close_fds=False), or a PE may have started this program. */
static int sockets_check(void) {
    if (is_launcher_socket(weft_attachment.hub) && is_launcher_socket(weft_attachment.life))
        return 0;
    weft_log(
        "descriptor %d or %d is not oshrun's socket any more: this process was started by a PE, "
        "or by a wrapper that closes descriptors, and is not a PE: start the program itself with "
        "oshrun, give it a unique id (shmemx_init_attr), or set WEFT_LAUNCHER=none to have it "
        "run alone",
        weft_attachment.hub, weft_attachment.life);
    return -ENOTSOCK;
}

/* Has the kernel kill this process when oshrun's end of the life socket closes. If oshrun is gone
 * already no signal would come, so the socket is checked once after that. */
static int life_arm(void) {
    int life = weft_attachment.life;
    if (fcntl(life, F_SETOWN, getpid()) < 0 || fcntl(life, F_SETSIG, SIGKILL) < 0 ||
        fcntl(life, F_SETFL, fcntl(life, F_GETFL) | O_ASYNC) < 0) {
        int code = -errno;
        weft_log("cannot have the kernel end this process with oshrun (fcntl): %s%s",
                 strerror(-code), weft_remedy(code).text);
        return code;
    }
    struct pollfd state = {.fd = life, .events = POLLIN};
    if (poll(&state, 1, 0) == 0)
        return 0;
    weft_log("the launcher is gone");
    return -EPIPE;
}

int weft_inherit(void) {
    int control_fd = -1, error = environment_read(&control_fd);
    if (error == 0 && weft_attachment.npes > 1)
        weft_log_set_pe(weft_attachment.pe);
    error = error ? error : sockets_check();
    error = error ? error
                  : weft_control_map(control_fd, weft_attachment.npes, &weft_attachment.control);
    error = error ? error : weft_control_read_hosts(weft_attachment.control, weft_attachment.npes);
    weft_log_set_host(weft_boot_host_name(weft_boot_host(weft_attachment.pe)));
    error = error ? error : life_arm();
    if (error)
        return error;
    weft_attachment.by_oshrun = true;
    weft_attachment.hub = weft_descriptor_keep(weft_attachment.hub);
    weft_attachment.life = weft_descriptor_keep(weft_attachment.life);
    close(control_fd);
    return 0;
}
