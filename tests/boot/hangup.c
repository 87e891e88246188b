/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: the first PE of a host sends its connections to other hosts to another PE of the
 * host, more of them than one message can carry, and that PE ends all of them. PEs: 1 */
#include "boot/hangup.h"
#include <errno.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "boot/wire.h"
#include "tap.h"

enum { MANY = 2 * WEFT_WIRE_FDS_MAX + 100 };

/* Returns how many of these connections have ended. */
static int ended(const int *ends, int count) {
    int over = 0;
    for (int i = 0; i < count; i++) {
        struct pollfd end = {.fd = ends[i], .events = POLLIN};
        over += poll(&end, 1, 0) == 1;
    }
    return over;
}

/* The other PE is a child, which has only the connections that it receives. */
static int other_pe(int root, int count, const int *mine, const int *theirs) {
    for (int i = 0; i < count; i++) {
        close(mine[i]);
        close(theirs[i]);
    }
    int error = weft_hangup_receive(root, count);
    char go;
    if (write(root, &error, sizeof error) != sizeof error || read(root, &go, 1) != 1)
        return 2;
    weft_hangup();
    return 0;
}

static void hand_over(int count) {
    static int mine[MANY], theirs[MANY];
    int pair[2], line[2], error = -1, wait = -1;
    for (int i = 0; i < count; i++) {
        EXPECT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0, "%d", errno);
        mine[i] = pair[0];
        theirs[i] = pair[1];
    }
    EXPECT(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, line) == 0, "%d", errno);
    pid_t child = fork();
    if (child == 0)
        _exit(other_pe(line[1], count, mine, theirs));
    close(line[1]);
    EXPECT(weft_hangup_send(line[0], mine, count) == 0, "%d connections", count);
    EXPECT(read(line[0], &error, sizeof error) == sizeof error && error == 0, "%d", error);
    EXPECT(ended(theirs, count) == 0, "none has ended yet");
    EXPECT(write(line[0], "", 1) == 1, "%d", errno);
    EXPECT(waitpid(child, &wait, 0) == child && wait == 0, "%d", wait);
    int over = ended(theirs, count);
    EXPECT(over == count, "%d of %d have ended", over, count);
    close(line[0]);
    for (int i = 0; i < count; i++) {
        close(mine[i]);
        close(theirs[i]);
    }
}

int main(void) {
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    tap_start(0);
    tap_case("none, one, as many as a message has room for, one more, and many");
    hand_over(0);
    hand_over(1);
    hand_over(WEFT_WIRE_FDS_MAX);
    hand_over(WEFT_WIRE_FDS_MAX + 1);
    hand_over(MANY);
    return tap_finish();
}
