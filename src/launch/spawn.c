/* SPDX-License-Identifier: BSD-3-Clause */
/* All descriptors are close-on-exec. The child clears that flag on the three that its program
 * needs, after moving them to numbers that shell scripts do not use. In a job on one host
 * PEs stay in the launcher's process group, so that the terminal treats the job as one command;
 * each PE of a daemon has a group of its own. */
#include "launch/spawn.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include "boot/hub.h"
#include "boot/wire.h"
#include "launch/descendants.h"
#include "launch/failure.h"
#include "launch/forward.h"
#include "launch/output.h"

enum {
    FIRST_DESCRIPTOR = 200, /* scripts use 3 to 9, shells 10 and above and 255 */
    STATUS_NOT_FOUND = 127,
    STATUS_NOT_RUN = 126,
};

/* The sockets of one PE: [0] is the launcher's end, [1] the PE's. */
struct lines {
    int hub[2], life[2];
};

/* Data for a child that is not in the run. */
struct birth {
    int pe;
    pid_t launcher;
    const struct lines *lines;
    const cpu_set_t *processors; /* NULL: all */
    int files[2];                /* output files, if the options name a folder */
};

static int memory_fail(const struct weft_run *run) {
    return weft_failure_say(-ENOMEM, "malloc, for %d PEs", run->npes);
}

static void variable_set(const char *name, int value) {
    char number[16];
    snprintf(number, sizeof number, "%d", value);
    setenv(name, number, 1);
}

/* Passes a descriptor to the program, with its number in an environment variable. */
static void descriptor_hand_down(const char *name, int fd) {
    int kept = fcntl(fd, F_DUPFD, FIRST_DESCRIPTOR);
    if (kept < 0) { /* the limit on descriptors is lower */
        kept = fd;
        fcntl(fd, F_SETFD, 0);
    }
    variable_set(name, kept);
}

/* Sets the network of the job's hosts for connections between PEs. */
static void interface_tell(const struct weft_network *network) {
    if (network)
        setenv(WEFT_BOOT_ENV_INTERFACE, network->interface, 1);
    else
        unsetenv(WEFT_BOOT_ENV_INTERFACE); /* may be inherited from a job that started this one */
}

static void environment_complete(const struct weft_run *run, int pe, const struct lines *lines) {
    variable_set(WEFT_BOOT_ENV_PE, pe);
    variable_set(WEFT_BOOT_ENV_NPES, run->npes);
    interface_tell(weft_boot_network());
    descriptor_hand_down(WEFT_BOOT_ENV_HUB, lines->hub[1]);
    descriptor_hand_down(WEFT_BOOT_ENV_CONTROL, run->control_fd);
    descriptor_hand_down(WEFT_BOOT_ENV_LIFE, lines->life[1]);
}

/* Only PE 0 reads standard input: several readers would get parts at random. */
static void child_set_streams(const struct weft_run *run, const struct birth *birth) {
    if (birth->pe > 0) {
        int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
        dup2(nothing, STDIN_FILENO);
    }
    if (run->output)
        weft_output_redirect(run->output, birth->pe);
    if (run->forward)
        weft_forward_redirect(run->forward, birth->pe);
    if (run->options->output_folder)
        weft_output_redirect_to(birth->files);
}

/* Returns whether a name that was not found in PATH is a program in the current folder. */
static bool program_is_beside(const char *name) {
    struct stat stat_of;
    return !strchr(name, '/') && stat(name, &stat_of) == 0 && S_ISREG(stat_of.st_mode) &&
           access(name, X_OK) == 0;
}

/* Reports the failure to the launcher. Parent and child still run the same program, so the parent
 * can use the child's pointers. */
static _Noreturn void child_give_up(const struct weft_run *run, const char *action,
                                    const char *object) {
    struct weft_spawn_failure failure = {.error = errno, .action = action, .object = object};
    failure.beside = failure.error == ENOENT && program_is_beside(object);
    ssize_t written = write(run->exec_failures[1], &failure, sizeof failure);
    (void)written;
    _exit(failure.error == ENOENT ? STATUS_NOT_FOUND : STATUS_NOT_RUN);
}

/* Runs the file found in PATH by oshrun, and returns if this host does not have it. argv[0] is its
 * path: Python finds its virtual environment by searching PATH for argv[0], and PATH may differ on
 * this host. */
static void found_exec(const struct weft_program *program) {
    char *name = program->argv[0];
    program->argv[0] = (char *)program->found;
    execvp(program->found, program->argv);
    program->argv[0] = name;
}

static _Noreturn void child_exec(const struct weft_run *run, int pe) {
    const struct weft_program *program = run->pe[pe].program;
    if (program->folder && chdir(program->folder) < 0)
        child_give_up(run, "start in", program->folder);
    if (program->found)
        found_exec(program);
    execvp(program->argv[0], program->argv);
    child_give_up(run, "run", program->argv[0]);
}

static _Noreturn void child_main(const struct weft_run *run, const struct birth *birth) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != birth->launcher)
        _exit(STATUS_NOT_RUN); /* the launcher died before prctl */
    if (run->above)
        setpgid(0, 0); /* the group has its parent outside, so that Ctrl-Z can stop it */
    if (birth->processors)
        sched_setaffinity(0, sizeof *birth->processors, birth->processors);
    child_set_streams(run, birth);
    weft_environment_apply(&run->options->environment);
    weft_environment_apply(&run->pe[birth->pe].program->environment);
    environment_complete(run, birth->pe, birth->lines);
    setrlimit(RLIMIT_NOFILE, &run->descriptors);
    weft_signals_restore(&run->signals);
    child_exec(run, birth->pe);
}

static int lines_make(struct lines *lines, int pe) {
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, lines->hub) < 0 ||
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, lines->life) < 0)
        return weft_failure_say(-errno, "socketpair, for PE %d", pe);
    return 0;
}

static int lines_make_all(struct weft_run *run, struct lines *lines) {
    int *sockets = calloc((size_t)run->npes, sizeof *sockets);
    int error = sockets ? 0 : memory_fail(run);
    for (int pe = 0; error == 0 && pe < run->npes; pe++) {
        sockets[pe] = -1;
        if (!weft_run_has(run, pe))
            continue;
        error = lines_make(&lines[pe], pe);
        sockets[pe] = lines[pe].hub[0];
        run->pe[pe].life = lines[pe].life[0];
    }
    if (error == 0 && weft_hub_open(&run->hub, sockets, run->npes) != 0)
        error = memory_fail(run);
    free(sockets);
    return error;
}

/* Writes the child's number to the control page, until the PE, which may be another process, writes
 * its own. */
static void child_enter(struct weft_run *run, int pe, pid_t child) {
    int32_t nobody = 0;
    run->pe[pe].child = child;
    atomic_compare_exchange_strong(&run->control->pe[pe].pid, &nobody, (int32_t)child);
}

static int child_fork(struct weft_run *run, struct birth *birth) {
    const char *folder = run->options->output_folder;
    int error = folder ? weft_output_open_files(folder, birth->pe, birth->files) : 0;
    if (error)
        return error;
    pid_t child = fork();
    if (child < 0)
        return weft_failure_say(-errno, "fork, for PE %d", birth->pe);
    if (child == 0)
        child_main(run, birth);
    for (int i = 0; folder && i < 2; i++)
        close(birth->files[i]);
    child_enter(run, birth->pe, child);
    return 0;
}

static int children_fork(struct weft_run *run, const struct lines *lines) {
    int pes[run->npes], npes = weft_run_pes_here(run, pes), error = 0;
    cpu_set_t *sets = calloc((size_t)run->npes, sizeof *sets);
    if (!sets)
        return memory_fail(run);
    bool bind = weft_bind_plan(&run->options->binding, pes, npes, run->control->cores, sets);
    struct birth birth = {.launcher = getpid()};
    for (int i = 0; error == 0 && i < npes; i++) {
        birth.pe = pes[i];
        birth.lines = &lines[pes[i]];
        birth.processors = bind ? &sets[i] : NULL;
        error = child_fork(run, &birth);
    }
    free(sets);
    return error;
}

int weft_spawn_all(struct weft_run *run) {
    struct lines *lines = calloc((size_t)run->npes, sizeof *lines);
    if (!lines)
        return memory_fail(run);
    int error = lines_make_all(run, lines);
    if (error == 0 && pipe2(run->exec_failures, O_CLOEXEC | O_NONBLOCK) < 0)
        error = weft_failure_say(-errno, "pipe2, for programs that cannot be run");
    if (error == 0)
        error = children_fork(run, lines);
    if (error == 0)
        for (int pe = 0; pe < run->npes; pe++)
            if (weft_run_has(run, pe)) {
                close(lines[pe].hub[1]);
                close(lines[pe].life[1]);
            }
    free(lines);
    if (error)
        weft_descendants_signal(SIGKILL);
    return error;
}

bool weft_spawn_failure(const struct weft_run *run, struct weft_spawn_failure *failure) {
    return read(run->exec_failures[0], failure, sizeof *failure) == sizeof *failure;
}
