/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: programs for strangers.t, not a test itself.
 *   "knock UID PROCESSES": as that user, connects to every listening socket of Weft in this network
 *    namespace and closes the connection, as fast as possible.
 *   "hold N": keeps N silent connections to these sockets, and replaces those that are closed.
 * Both run until they are killed. They print "ready" first. PEs: none */
#include <grp.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <signal.h>
#include <unistd.h>

enum { KNOCKS = 50 };

static int connect_to(const char *name, int flags) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t length = strlen(name);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | flags, 0);
    memcpy(address.sun_path + 1, name, length);
    socklen_t bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length);
    if (connect(fd, (struct sockaddr *)&address, bytes) == 0)
        return fd;
    close(fd);
    return -1;
}

/* Calls `act` for each listening socket of Weft; stops if it returns 0. */
static void at_each_listener(int (*act)(const char *name)) {
    char line[512];
    FILE *listing = fopen("/proc/net/unix", "r");
    while (listing && fgets(line, sizeof line, listing)) {
        char *name = strstr(line, "@weft-");
        bool listens = strstr(line, " 00010000 ") != NULL; /* __SO_ACCEPTCON */
        line[strcspn(line, "\n")] = '\0';
        if (name && listens && strlen(name) < 100 && !act(name + 1))
            break;
    }
    if (listing)
        fclose(listing);
}

static int knock(const char *name) {
    for (int i = 0; i < KNOCKS; i++) {
        int fd = connect_to(name, SOCK_NONBLOCK);
        if (fd < 0)
            break;
        close(fd);
    }
    return 1;
}

static struct pollfd held[1024];
static int nheld, wanted;

static int hold(const char *name) {
    int fd = nheld < wanted ? connect_to(name, SOCK_NONBLOCK) : -1;
    if (fd >= 0)
        held[nheld++] = (struct pollfd){.fd = fd, .events = POLLIN};
    return nheld < wanted;
}

static void drop_dead(void) {
    int kept = 0;
    if (poll(held, (nfds_t)nheld, 1) <= 0)
        return;
    for (int i = 0; i < nheld; i++)
        if (held[i].revents)
            close(held[i].fd);
        else
            held[kept++] = held[i];
    nheld = kept;
}

static void become(uid_t user) {
    if (user && (setgroups(0, NULL) || setgid(user) || setuid(user)))
        _exit(98);
}

int main(int argc, char **argv) {
    if (argc < 3)
        return 2;
    bool knocks = strcmp(argv[1], "knock") == 0;
    puts("ready");
    fflush(stdout);
    if (knocks)
        become((uid_t)atoi(argv[2]));
    wanted = atoi(argv[2]);
    for (int more = knocks ? atoi(argv[3]) - 1 : 0; more > 0; more--)
        if (fork() == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            break;
        }
    for (;;) {
        at_each_listener(knocks ? knock : hold);
        if (!knocks)
            drop_dead();
    }
}
