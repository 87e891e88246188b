/* SPDX-License-Identifier: BSD-3-Clause */
/* Questions to the record. */
#include "launch/run.h"
#include <sys/wait.h>
#include "base/clock.h"

int weft_run_status(int wait) {
    return WIFSIGNALED(wait) ? 128 + WTERMSIG(wait) : WEXITSTATUS(wait);
}

enum weft_pe_state weft_run_state(const struct weft_run *run, int pe) {
    return (enum weft_pe_state)atomic_load(&run->control->pe[pe].state);
}

bool weft_run_is_in(const struct weft_run *run, int pe) {
    return run->pe[pe].self && weft_run_state(run, pe) != WEFT_PE_LEFT;
}

bool weft_run_anyone_joined(const struct weft_run *run) {
    for (int pe = 0; pe < run->npes; pe++)
        if (run->pe[pe].self)
            return true;
    return false;
}

pid_t weft_run_pid(const struct weft_run *run, int pe) {
    return run->pe[pe].self ? run->pe[pe].self : run->pe[pe].child;
}

/* While it is in it holds its mutex, so its number has not gone to someone else. */
void weft_run_signal(const struct weft_run *run, int pe, int signal) {
    const struct weft_run_pe *it = &run->pe[pe];
    if (weft_run_is_in(run, pe))
        kill(it->self, signal);
    else if (!it->reaped)
        kill(it->child, signal);
}

int64_t weft_run_now_ms(void) {
    return (int64_t)(weft_clock_ns() / 1000000);
}
