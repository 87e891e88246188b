/* SPDX-License-Identifier: BSD-3-Clause */
/* oshrun: starts the PEs of a job on this host, and makes them end together. The main loop is in
 * launch/serve.h. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "launch/daemon.h"
#include "launch/descendants.h"
#include "launch/end.h"
#include "launch/front.h"
#include "launch/output.h"
#include "launch/serve.h"
#include "launch/spawn.h"

enum { STATUS_SYSTEM = 71, OUTPUT_PATIENCE_MS = 1000 };

/* Opens /dev/null for each closed standard stream, as otherwise the next socket would get its
 * number. */
static void streams_fill(void) {
    int nothing;
    do {
        nothing = open("/dev/null", O_RDWR);
    } while (nothing >= 0 && nothing <= STDERR_FILENO);
    close(nothing);
}

static int run_execute(struct weft_run *run) {
    int error = weft_spawn_all(run);
    if (error == 0 && run->output)
        error = weft_output_start(run->output);
    if (error) {
        weft_descendants_signal(SIGKILL);
        return STATUS_SYSTEM;
    }
    weft_oom_note(&run->before);
    while (!weft_serve_is_over(run))
        weft_serve_turn(run, NULL, 0, -1);
    error = 0;
    if (run->output)
        error = weft_output_finish(run->output, run->phase == WEFT_OVER ? OUTPUT_PATIENCE_MS : -1);
    weft_end_tell_status(run);
    weft_end_tell_other_library(run);
    int status = weft_end_status(run);
    return error && status == 0 ? WEFT_STATUS_OUTPUT : status;
}

/* Dies by SIGINT after a Ctrl-C: a shell stops its script only if the command dies by the signal.
 */
static void signal_die(const struct weft_run *run) {
    if (run->cause.kind != WEFT_ABORT_LAUNCHER || !run->end_by_terminal ||
        run->cause.detail != SIGINT)
        return;
    weft_signals_restore(&run->signals);
    raise(SIGINT);
}

int main(int argc, char **argv) {
    static struct weft_run run; /* static: watchers may still use it while the process ends */
    static struct weft_options options;
    streams_fill();
    if (argc == 2 && strcmp(argv[1], "--daemon") == 0)
        return weft_daemon_main();
    int status = weft_parse_options(argc, argv, &options);
    if (status >= 0)
        return status;
    if (options.hosts.of)
        return weft_front_main(&options);
    if (weft_serve_open(&run, &options, NULL) != 0)
        return STATUS_SYSTEM; /* logged */
    status = run_execute(&run);
    signal_die(&run);
    return status;
}
