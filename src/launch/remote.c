/* SPDX-License-Identifier: BSD-3-Clause */
/* ssh joins its arguments to one command line for a shell on the host, so the path of oshrun is
 * quoted if it has characters that are special to a shell. */
#include "launch/remote.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/env.h"
#include "base/log.h"
#include "base/machine.h"
#include "boot/tree.h"
#include "launch/failure.h"

enum { WORDS_MAX = 64, STATUS_NOT_FOUND = 127, HINT_MS = 10000 };

const char *weft_remote_program(void) {
    static char path[PATH_MAX];
    if (!*path && readlink("/proc/self/exe", path, sizeof path - 1) < 0)
        snprintf(path, sizeof path, "oshrun");
    return path;
}

/* Quotes for a shell, as 'it'"'"'s'. */
static void quoted_print(char *to, size_t bytes, const char *text) {
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
                                "/._-+@%,:=";
    if (!text[strspn(text, plain)]) {
        snprintf(to, bytes, "%s", text);
        return;
    }
    size_t used = (size_t)snprintf(to, bytes, "'");
    for (const char *at = text; *at && used + 7 < bytes; at++) {
        const char one[] = {*at, '\0'};
        used += (size_t)snprintf(to + used, bytes - used, "%s", *at == '\'' ? "'\"'\"'" : one);
    }
    snprintf(to + used, bytes - used, "'");
}

static _Noreturn void command_run(char **words, const char *remedy) {
    execvp(words[0], words);
    fprintf(stderr, "oshrun: cannot run '%s': %s%s\n", words[0], strerror(errno),
            errno == ENOENT || errno == EACCES ? remedy : weft_remedy(-errno).text);
    _exit(STATUS_NOT_FOUND);
}

/* ssh keeps the terminal, so that it can ask for a password. */
static _Noreturn void ssh_run(const char *name) {
    static const int ignored[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGTSTP};
    char command[2 * PATH_MAX], *words[WORDS_MAX + 4], *rest = strdup(weft_env.ssh), *word;
    int count = 0;
    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++)
        signal(ignored[i], SIG_IGN);
    while (rest && count < WORDS_MAX && (word = strsep(&rest, " \t")))
        if (*word)
            words[count++] = word;
    quoted_print(command, sizeof command, weft_remote_program());
    words[count++] = strdup(name);
    words[count++] = command;
    words[count++] = strdup("--daemon");
    words[count] = NULL;
    command_run(words, "; install ssh, or set WEFT_SSH to a command like it");
}

/* The daemon runs in a session of its own, where it gets no signals from the terminal. */
static _Noreturn void daemon_run(void) {
    char *words[] = {strdup(weft_remote_program()), strdup("--daemon"), NULL};
    setsid();
    command_run(words, "; install Weft again");
}

int weft_remote_start(struct weft_remote *remote, const struct weft_signals *signals, char *text,
                      size_t bytes) {
    int input[2], says[2];
    *remote = (struct weft_remote){.name = remote->name,
                                   .here = remote->here,
                                   .text = text,
                                   .bytes = bytes,
                                   .input = -1,
                                   .says = -1};
    if (pipe2(input, O_CLOEXEC) < 0 || pipe2(says, O_CLOEXEC) < 0) /* nothing is undone */
        return weft_failure_say(-errno, "pipe2, to start host %s", remote->name);
    pid_t child = fork();
    if (child < 0)
        return weft_failure_say(-errno, "fork, to start host %s", remote->name);
    if (child == 0) {
        dup2(input[0], STDIN_FILENO);
        dup2(says[1], STDOUT_FILENO);
        dup2(says[1], STDERR_FILENO);
        weft_signals_restore(signals);
        if (remote->here)
            daemon_run();
        ssh_run(remote->name);
    }
    close(input[0]);
    close(says[1]);
    fcntl(input[1], F_SETFL, O_NONBLOCK);
    fcntl(says[0], F_SETFL, O_NONBLOCK);
    remote->process = child;
    remote->begin_ns = weft_clock_ns();
    remote->input = input[1];
    remote->says = says[0];
    return 0;
}

static void text_forget(struct weft_remote *remote) {
    if (remote->text)
        explicit_bzero(remote->text, remote->bytes);
    free(remote->text);
    remote->text = NULL;
    remote->fed = remote->bytes = 0;
}

void weft_remote_feed(struct weft_remote *remote) {
    while (remote->input >= 0 && remote->fed < remote->bytes) {
        ssize_t written =
            write(remote->input, remote->text + remote->fed, remote->bytes - remote->fed);
        if (written < 0 && errno == EAGAIN)
            return;
        if (written < 0 && errno != EINTR)
            break; /* it has ended; its status gives the reason */
        remote->fed += written > 0 ? (size_t)written : 0;
    }
    text_forget(remote);
}

void weft_remote_hint(struct weft_remote *remote, int64_t patience_ms) {
    int64_t hint_ms = patience_ms / 2 < HINT_MS ? patience_ms / 2 : HINT_MS;
    uint64_t passed_ns = weft_clock_ns() - remote->begin_ns;
    if (remote->process <= 0 || remote->here || remote->through || remote->hinted ||
        passed_ns < (uint64_t)hint_ms * WEFT_NS_PER_MS)
        return;
    remote->hinted = true;
    fprintf(stderr,
            "oshrun: ssh has not reached %s yet: try `%s %s true`, which must ask nothing and "
            "print nothing\n",
            remote->name, weft_env.ssh, remote->name);
}

/* Removes the daemon's first words from the end of the line, and returns whether they were there. A
 * login shell may have written the beginning of the line. */
static bool line_is_through(struct weft_remote *remote) {
    size_t length = strlen(remote->line), words = sizeof WEFT_TREE_STARTED - 1;
    if (remote->through || length < words ||
        strcmp(remote->line + length - words, WEFT_TREE_STARTED) != 0)
        return false;
    remote->line[length - words] = '\0';
    return true;
}

/* Prints the line. Lines of Weft name their host already; others are printed after the host's name.
 */
static void line_pass(struct weft_remote *remote) {
    bool ours =
        strncmp(remote->line, "oshrun: ", 8) == 0 || strncmp(remote->line, "weft: ", 6) == 0;
    remote->line[remote->used] = '\0';
    remote->line[strcspn(remote->line, "\r")] = '\0';
    remote->through = remote->through || line_is_through(remote);
    weft_log_make_printable(remote->line, sizeof remote->line);
    if (*remote->line)
        fprintf(stderr, "%s%s%s%s\n", ours ? "" : "oshrun: ", ours ? "" : remote->name,
                ours ? "" : ": ", remote->line);
    remote->used = 0;
}

static void bytes_hear(struct weft_remote *remote, const char *bytes, ssize_t count) {
    for (ssize_t i = 0; i < count; i++) {
        if (bytes[i] != '\n')
            remote->line[remote->used++] = bytes[i];
        if (bytes[i] == '\n' || remote->used == sizeof remote->line - 1)
            line_pass(remote);
    }
}

void weft_remote_hear(struct weft_remote *remote) {
    char bytes[4096];
    ssize_t count = -1;
    if (remote->says < 0)
        return;
    while ((count = read(remote->says, bytes, sizeof bytes)) > 0)
        bytes_hear(remote, bytes, count);
    if (count < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    line_pass(remote);
    close(remote->says);
    remote->says = -1;
}

void weft_remote_leave(struct weft_remote *remote) {
    text_forget(remote);
    if (remote->input >= 0)
        close(remote->input);
    remote->input = -1;
}

bool weft_remote_reap(struct weft_remote *remote) {
    if (remote->process > 0 && waitpid(remote->process, &remote->wait, WNOHANG) == remote->process)
        remote->process = 0;
    return remote->process == 0;
}

void weft_remote_kill(struct weft_remote *remote) {
    if (remote->process <= 0)
        return;
    kill(remote->process, SIGKILL);
    waitpid(remote->process, &remote->wait, 0);
    remote->process = 0;
}
