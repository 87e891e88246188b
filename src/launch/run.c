/* SPDX-License-Identifier: BSD-3-Clause */
#include "launch/run.h"
#include <stdarg.h>
#include <stdio.h>
#include <sys/wait.h>
#include "boot/tree.h"

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
        if (weft_run_has(run, pe) ? run->pe[pe].self : weft_run_state(run, pe) != WEFT_PE_ABSENT)
            return true;
    return false;
}

int weft_run_pes_here(const struct weft_run *run, int *pes) {
    int count = 0;
    for (int pe = 0; pe < run->npes; pe++)
        if (weft_run_has(run, pe))
            pes[count++] = pe;
    return count;
}

void weft_run_say(struct weft_run *run, bool of_cause, const char *format, ...) {
    char line[WEFT_TREE_LINE_MAX - sizeof "oshrun: "]; /* room for the longest path */
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    if (run->above)
        run->above->line(run, of_cause, line);
    else
        fprintf(stderr, "oshrun: %s\n", line);
}

pid_t weft_run_pid(const struct weft_run *run, int pe) {
    if (!weft_run_has(run, pe))
        return atomic_load(&run->control->pe[pe].pid);
    return run->pe[pe].self ? run->pe[pe].self : run->pe[pe].child;
}

/* While the PE has joined, it holds its mutex, so its process number cannot have been reused. */
void weft_run_signal(const struct weft_run *run, int pe, int signal) {
    const struct weft_run_pe *it = &run->pe[pe];
    if (!weft_run_has(run, pe))
        return;
    if (weft_run_is_in(run, pe))
        kill(it->self, signal);
    else if (!it->reaped)
        kill(it->child, signal);
}

void weft_run_signal_group(const struct weft_run *run, int pe, int signal) {
    const struct weft_run_pe *it = &run->pe[pe];
    if (!weft_run_has(run, pe) || it->reaped || kill(-it->child, signal) < 0)
        weft_run_signal(run, pe, signal);
}
