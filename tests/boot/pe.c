/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: the PE of the launcher's tests; not a test itself. It does what its arguments say,
 * one after the other: "verb", "verb:number", and "2@verb" for PE 2 only. PEs: 1 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "boot/attachment.h"
#include "boot/boot.h"
#include "boot/control.h"
#include "boot/wire.h"

static void say(const char *what, int number) {
    char line[64];
    int length = snprintf(line, sizeof line, "%s %d\n", what, number);
    if (write(STDOUT_FILENO, line, (size_t)length) < 0)
        _exit(99);
}

static void join(int unused) {
    (void)unused;
    if (weft_boot_join())
        exit(71);
}

static void leave(int unused) {
    (void)unused;
    weft_boot_leave();
}

static void *join_body(void *unused) {
    join(0);
    return unused;
}

/* The thread that joins ends, but the PE does not. */
static void join_in_thread(int unused) {
    (void)unused;
    pthread_t thread;
    pthread_create(&thread, NULL, join_body, NULL);
    pthread_join(thread, NULL);
}

static void exchange(int times) {
    int *all = calloc((size_t)weft_boot.npes, sizeof *all);
    for (int i = 0; i < (times ? times : 1); i++) {
        struct weft_exchange exchange = {.mine = &weft_boot.pe, .bytes = sizeof *all, .all = all};
        if (weft_boot_exchange(&exchange))
            exit(71);
    }
    free(all);
}

/* An exchange among all PEs, listed from PE `host` on. */
static void among(int host) {
    int npes = weft_boot.npes, *pes = calloc((size_t)npes, sizeof *pes), all[npes];
    for (int i = 0; i < npes; i++)
        pes[i] = (host + i) % npes;
    struct weft_boot_subset subset = {.pes = pes, .count = npes};
    struct weft_exchange exchange = {.mine = &weft_boot.pe, .bytes = sizeof *all, .all = all};
    if (weft_boot_exchange_among(&subset, &exchange))
        exit(71);
    free(pes);
}

static void rejoin(int times) {
    for (int i = 0; i < times; i++) {
        join(0);
        exchange(1);
        leave(0);
    }
}

static void give_other_size(int unused) {
    (void)unused;
    char mine[16] = {0}, all[16 * 64];
    struct weft_exchange exchange = {.mine = mine, .bytes = sizeof mine, .all = all};
    weft_boot_exchange(&exchange);
}

static void hang(int unused) {
    (void)unused;
    for (;;)
        pause();
}

static void spin(int unused) {
    (void)unused;
    for (volatile unsigned turns = 0;; turns++)
        ;
}

static void raise_signal(int number) {
    raise(number);
}

static void caught(int number) {
    say("caught", number);
}

static void catch_signal(int number) {
    struct sigaction action = {.sa_handler = caught};
    sigaction(number, &action, NULL);
}

static void ignore_signal(int number) {
    signal(number, SIG_IGN);
}

/* Makes a child without exec that lives on, and prints its number. */
static void fork_sleeper(int seconds) {
    pid_t child = fork();
    if (child == 0) {
        sleep((unsigned)seconds);
        _exit(0);
    }
    say("child", child);
}

/* Does the same without the library's fork handlers, so that the child keeps all descriptors open.
 */
static void clone_sleeper(int seconds) {
    if (syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL) == 0) {
        sleep((unsigned)seconds);
        _exit(0);
    }
}

/* Makes a child without exec that tries everything which only a PE may do, and ends by exit. */
static void fork_meddler(int unused) {
    (void)unused;
    pid_t child = fork();
    if (child == 0) {
        int all[64];
        struct weft_exchange exchange = {.mine = all, .bytes = 4, .all = all};
        weft_boot_end_job(9, false);
        weft_boot_leave();
        exit(weft_boot_exchange(&exchange) ? 0 : 1);
    }
    int status;
    waitpid(child, &status, 0);
    say("meddler", status);
}

static void exec_sleep(int unused) {
    (void)unused;
    execlp("sleep", "sleep", "60", (char *)NULL);
}

static void global_exit(int status) {
    weft_boot_end_job(status, false);
    exit(status);
}

static void fail(int status) {
    fprintf(stderr, "it failed\n");
    weft_boot_end_job(status, true);
    exit(status);
}

/* Sends a message that no correct PE sends: 0 a short message, 1 an unknown kind, 2 a contribution
 * that is shorter than its header says, 3 one with too many descriptors, 4 an endless one, 5 a
 * message of no bytes. */
static void junk(int which) {
    static char endless[60000];
    int hub = weft_attachment.hub < 0 ? atoi(getenv(WEFT_BOOT_ENV_HUB)) : weft_attachment.hub;
    int fds[20];
    struct weft_wire_header header = {.kind = which == 1 ? 77 : WEFT_WIRE_GIVE, .bytes = 100};
    for (int i = 0; i < 20; i++)
        fds[i] = STDERR_FILENO;
    struct weft_wire_body many = {endless, 100, fds, 20};
    struct weft_wire_body wrong = {.payload = endless, .bytes = which == 4 ? sizeof endless : 3};
    if (which == 0)
        send(hub, "short", 5, MSG_NOSIGNAL);
    else if (which == 5)
        send(hub, "", 0, MSG_NOSIGNAL);
    else if (which == 3)
        weft_wire_send(hub, &header, &many, 0);
    else
        weft_wire_send(hub, &header, &wrong, 0);
}

static void corrupt_page(int unused) {
    (void)unused;
    memset(weft_boot.control->pe, 0xa5, sizeof weft_boot.control->pe[0] * (size_t)weft_boot.npes);
    atomic_store(&weft_boot.control->abort_pe, 12345);
}

/* Allocates and touches that many MiB. */
static void fill(int megabytes) {
    size_t bytes = (size_t)megabytes << 20;
    char *memory = malloc(bytes);
    for (size_t i = 0; memory && i < bytes; i += 4096)
        *(volatile char *)(memory + i) = 1;
}

/* Overwrites this PE's state word, as a stray store might. */
static void overwrite_state(int value) {
    atomic_store(&weft_boot.control->pe[weft_boot.pe].state, (uint32_t)value);
}

static void echo_input(int unused) {
    (void)unused;
    char text[256];
    ssize_t length = read(STDIN_FILENO, text, sizeof text);
    say("input", (int)length);
}

static void count_descriptors(int unused) {
    (void)unused;
    int open = 0;
    for (int fd = 3; fd < 1024; fd++)
        open += fcntl(fd, F_GETFD) >= 0 && !(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    say("inheritable", open);
}

/* After half a second, occupies all descriptors for that many milliseconds. */
static void *starve_body(void *milliseconds) {
    static int taken[128];
    int ntaken = 0;
    usleep(500 * 1000);
    while (ntaken < 128 && (taken[ntaken] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0)
        ntaken++;
    usleep((useconds_t)(intptr_t)milliseconds * 1000);
    while (ntaken > 0)
        close(taken[--ntaken]);
    return NULL;
}

static void starve(int milliseconds) {
    pthread_t thread;
    setrlimit(RLIMIT_NOFILE, &(struct rlimit){64, 64});
    pthread_create(&thread, NULL, starve_body, (void *)(intptr_t)milliseconds);
    pthread_detach(thread);
}

static void sleep_ms(int milliseconds) {
    usleep((useconds_t)milliseconds * 1000);
}

static void print(int number) {
    say("PE", number ? number : weft_boot.pe);
}

static void print_npes(int unused) {
    (void)unused;
    say("npes", weft_boot.npes);
}

static void print_pid(int unused) {
    (void)unused;
    say("pid", getpid());
}

static void *perform_rest(void *unused);

/* The first thread ends; another thread performs the remaining arguments. */
static void go_on_in_thread(int unused) {
    (void)unused;
    pthread_t thread;
    pthread_create(&thread, NULL, perform_rest, NULL);
    pthread_exit(NULL);
}

static const struct verb {
    const char *name;
    void (*act)(int number);
} verbs[] = {
    {"join", join},
    {"join_in_thread", join_in_thread},
    {"go_on_in_thread", go_on_in_thread},
    {"leave", leave},
    {"rejoin", rejoin},
    {"exchange", exchange},
    {"among", among},
    {"give_other_size", give_other_size},
    {"hang", hang},
    {"spin", spin},
    {"raise", raise_signal},
    {"catch", catch_signal},
    {"ignore", ignore_signal},
    {"fork_sleeper", fork_sleeper},
    {"clone_sleeper", clone_sleeper},
    {"fork_meddler", fork_meddler},
    {"exec", exec_sleep},
    {"exit", exit},
    {"_exit", _exit},
    {"global_exit", global_exit},
    {"fail", fail},
    {"junk", junk},
    {"corrupt_page", corrupt_page},
    {"fill", fill},
    {"state", overwrite_state},
    {"input", echo_input},
    {"descriptors", count_descriptors},
    {"starve", starve},
    {"sleep_ms", sleep_ms},
    {"print", print},
    {"npes", print_npes},
    {"pid", print_pid},
};

static void perform(const char *word, int pe) {
    const char *at = strchr(word, '@'), *name = at ? at + 1 : word, *colon = strchr(name, ':');
    size_t length = strcspn(name, ":");
    if (at && atoi(word) != pe)
        return;
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
        if (strlen(verbs[i].name) == length && strncmp(verbs[i].name, name, length) == 0) {
            verbs[i].act(colon ? atoi(colon + 1) : 0);
            return;
        }
    fprintf(stderr, "pe: no verb %s\n", word);
    _exit(99);
}

/* Returns the number that the launcher has assigned, before this process has joined. */
static int which_pe(void) {
    static const char *const names[] = {WEFT_BOOT_ENV_PE, "RANK", "PMI_RANK", "PMIX_RANK"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (getenv(names[i]))
            return atoi(getenv(names[i]));
    return 0;
}

static char **words; /* remaining arguments */

static void *perform_rest(void *unused) {
    while (*words)
        perform(*words++, which_pe());
    return unused;
}

int main(int argc, char **argv) {
    if (argc == 1)
        puts("1..0 # SKIP the PE of tests/launch");
    words = argv + 1;
    perform_rest(NULL);
    return 0;
}
