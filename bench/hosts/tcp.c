/* SPDX-License-Identifier: BSD-3-Clause */
/* The times of the network itself for the rows of bench/far.c: messages over one TCP connection,
 * which both sides poll without sleeping. tcp HOST 0|1; HOST is that of side 0. */
#include "meet.h"

static unsigned char data[LARGEST];

static void ping_pong(long n) {
    for (long i = 0; i < n; i++) {
        if (me == 0)
            send_all(data, bytes);
        receive_all(data, bytes);
        if (me != 0)
            send_all(data, bytes);
    }
}

static void both_ways(long n) {
    for (long i = 0; i < n; i++)
        exchange(data, data, bytes);
}

/* Side 0 sends, and waits for one byte at the end. */
static void stream(long n) {
    for (long i = 0; i < n; i++)
        if (me == 0)
            send_all(data, bytes);
        else
            receive_all(data, bytes);
    if (me == 0)
        receive_all(data, 1);
    else
        send_all(data, 1);
}

static void fetch(long n) {
    for (long i = 0; i < n; i++)
        if (me == 0) {
            send_all(data, 8);
            receive_all(data, bytes);
        } else {
            receive_all(data, 8);
            send_all(data, bytes);
        }
}

static void meet_again(void) {
    char mine = 0, theirs;
    exchange(&mine, &theirs, 1);
}

int main(int argc, char **argv) {
    loop *const loops[ROWS] = {[PUT_QUIET] = ping_pong,
                               [GET] = ping_pong,
                               [FETCH_ADD] = ping_pong,
                               [PUT_SIGNAL] = ping_pong,
                               [PUT_SIGNAL_BLOCK] = ping_pong,
                               [BARRIER] = both_ways,
                               [PUT_MANY] = stream,
                               [PUT_LARGE] = stream,
                               [GET_LARGE] = fetch};
    if (argc != 3)
        return 2;
    library = "bare TCP";
    meet(argv);
    far_rows_measure(loops, 500, meet_again, report);
    return 0;
}
