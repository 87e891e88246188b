/* SPDX-License-Identifier: BSD-3-Clause */
/* Every descriptor here is close-on-exec, and the child clears that on the three that its program
 * needs, moved to numbers that shell scripts do not use. PEs stay in our process group, so that the
 * terminal treats the job as the one command that it is. */
#include "launch/spawn.h"
#include "boot/hub.h"
#include "boot/wire.h"
#include "launch/bind.h"
#include "launch/catch.h"
#include "launch/output.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    FIRST_DESCRIPTOR = 200, /* scripts use 3 to 9, shells 10 and up and 255 */
    STATUS_NOT_FOUND = 127,
    STATUS_NOT_RUN = 126,
};

/* Both ends for one PE: [0] is ours, [1] the PE's. */
struct lines {
    int hub[2], life[2];
};

static int say(int code, const char *what) {
    fprintf(stderr, "oshrun: %s: %s\n", what, strerror(-code));
    return code;
}

/* Leaves the descriptor to the program under the name of an environment variable. */
static void hand_down(const char *name, int fd) {
    char number[16];
    int kept = fcntl(fd, F_DUPFD, FIRST_DESCRIPTOR);
    if (kept < 0) { /* the limit on descriptors is lower */
        kept = fd;
        fcntl(fd, F_SETFD, 0);
    }
    snprintf(number, sizeof number, "%d", kept);
    setenv(name, number, 1);
}

static void set_number(const char *name, int value) {
    char number[16];
    snprintf(number, sizeof number, "%d", value);
    setenv(name, number, 1);
}

static void leave_environment(const struct weft_run *run, int pe, const struct lines *lines) {
    set_number(WEFT_BOOT_ENV_PE, pe);
    set_number(WEFT_BOOT_ENV_NPES, run->npes);
    hand_down(WEFT_BOOT_ENV_HUB, lines->hub[1]);
    hand_down(WEFT_BOOT_ENV_CONTROL, run->control_fd);
    hand_down(WEFT_BOOT_ENV_LIFE, lines->life[1]);
}

/* Only PE 0 may read what we could: several readers would share it by chance. */
static void set_streams(const struct weft_run *run, int pe) {
    if (pe > 0) {
        int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
        dup2(nothing, STDIN_FILENO);
    }
    if (run->output)
        weft_output_redirect(run->output, pe);
}

static void restore_found(const struct weft_run *run) {
    setrlimit(RLIMIT_NOFILE, &run->descriptors);
    weft_catch_restore(run);
}

static _Noreturn void become_program(const struct weft_run *run) {
    execvp(run->options->program[0], run->options->program);
    int error = errno;
    ssize_t written = write(run->exec_failures[1], &error, sizeof error);
    (void)written;
    _exit(error == ENOENT ? STATUS_NOT_FOUND : STATUS_NOT_RUN);
}

static _Noreturn void child_main(const struct weft_run *run, int pe, const struct lines *lines,
                                 pid_t launcher, bool bind) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != launcher)
        _exit(STATUS_NOT_RUN); /* it died before the line above */
    if (bind)
        weft_bind_share(pe, run->npes);
    set_streams(run, pe);
    leave_environment(run, pe, lines);
    restore_found(run);
    become_program(run);
}

static int make_lines(struct lines *lines) {
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, lines->hub) < 0)
        return -errno;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, lines->life) < 0)
        return -errno;
    return 0;
}

static int make_all_lines(struct weft_run *run, struct lines *lines) {
    int *sockets = calloc((size_t)run->npes, sizeof *sockets);
    int rc = sockets ? 0 : -ENOMEM;
    for (int pe = 0; rc == 0 && pe < run->npes; pe++) {
        rc = make_lines(&lines[pe]);
        sockets[pe] = lines[pe].hub[0];
        run->pe[pe].life = lines[pe].life[0];
    }
    if (rc == 0)
        rc = weft_hub_open(&run->hub, sockets, run->npes);
    free(sockets);
    return rc;
}

/* The page shows the child's number until the PE, which may be another process, writes its own. */
static void enter_child(struct weft_run *run, int pe, pid_t child) {
    int32_t nobody = 0;
    run->pe[pe].child = child;
    atomic_compare_exchange_strong(&run->control->pe[pe].pid, &nobody, (int32_t)child);
}

static int fork_all(struct weft_run *run, const struct lines *lines) {
    pid_t launcher = getpid();
    bool bind = weft_bind_wanted(run->options, run->control->cores);
    for (int pe = 0; pe < run->npes; pe++) {
        pid_t child = fork();
        if (child < 0)
            return -errno;
        if (child == 0)
            child_main(run, pe, &lines[pe], launcher, bind);
        enter_child(run, pe, child);
    }
    return 0;
}

int weft_spawn_all(struct weft_run *run) {
    struct lines *lines = calloc((size_t)run->npes, sizeof *lines);
    if (!lines)
        return say(-ENOMEM, "cannot start the PEs");
    int rc = make_all_lines(run, lines);
    if (rc == 0 && pipe2(run->exec_failures, O_CLOEXEC | O_NONBLOCK) < 0)
        rc = -errno;
    if (rc == 0)
        rc = fork_all(run, lines);
    if (rc == 0)
        for (int pe = 0; pe < run->npes; pe++) {
            close(lines[pe].hub[1]);
            close(lines[pe].life[1]);
        }
    free(lines);
    return rc ? say(rc, "cannot start the PEs") : 0;
}

int weft_spawn_failure(const struct weft_run *run) {
    int error = 0;
    return read(run->exec_failures[0], &error, sizeof error) == sizeof error ? error : 0;
}
