/* SPDX-License-Identifier: BSD-3-Clause */
/* Only one thread reports, and only once. The report itself may fail: the C library loads its
 * unwinder at the first use (0.2 ms, too much for every start) and takes locks that the crash may
 * have left locked. So the line with the signal is written first, a second crash is final, and an
 * alarm ends a report that hangs. */
#include "base/crash.h"
#include <execinfo.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>
#include "base/child.h"
#include "base/log.h"
#include "base/place.h"

enum {
    FRAMES_MAX = 32,
    FRAMES_OWN = 2, /* the handler, and the kernel's signal frame */
    STACK_BYTES = 64 * 1024,
    HANG_SECONDS = 1,
};

static const struct {
    int signal;
    const char *name;
} crashes[] = {
    {SIGSEGV, "Segmentation fault"},      {SIGBUS, "Bus error"}, {SIGILL, "Illegal instruction"},
    {SIGFPE, "Floating point exception"}, {SIGABRT, "Aborted"},
};
enum { CRASHES = sizeof crashes / sizeof *crashes };

static pid_t owner;            /* the process whose crashes are reported */
static _Atomic pid_t reporter; /* the thread that crashed first */
static volatile int crash_of;  /* its signal */

extern void __asan_init(void) __attribute__((weak));
extern void __tsan_init(void) __attribute__((weak));

static const char *signal_name(int signal) {
    for (int i = 0; i < CRASHES; i++)
        if (crashes[i].signal == signal)
            return crashes[i].name;
    return "unknown";
}

static void signal_reset(int number) {
    struct sigaction standard = {.sa_handler = SIG_DFL};
    sigaction(number, &standard, NULL);
}

/* The handler of SIGALRM: ends the process if the report waits for a lock that the crash left
 * locked. */
static void alarm_handle(int alarm) {
    (void)alarm;
    sigset_t its;
    sigemptyset(&its);
    sigaddset(&its, crash_of);
    signal_reset(crash_of);
    raise(crash_of);
    sigprocmask(SIG_UNBLOCK, &its, NULL);
}

static void alarm_set(void) {
    struct sigaction action = {.sa_handler = alarm_handle};
    sigset_t its;
    sigemptyset(&its);
    sigaddset(&its, SIGALRM);
    sigaction(SIGALRM, &action, NULL);
    sigprocmask(SIG_UNBLOCK, &its, NULL);
    alarm(HANG_SECONDS);
}

static void crash_report_signal(int signal, const siginfo_t *info) {
    if (info->si_code > 0)
        weft_note("crashed by signal %d (%s) at address %p; it was in", signal, signal_name(signal),
                  info->si_addr);
    else if (info->si_pid != getpid())
        weft_note("crashed by signal %d (%s) from process %d; it was in", signal,
                  signal_name(signal), (int)info->si_pid);
    else
        weft_note("crashed by signal %d (%s); it was in", signal, signal_name(signal));
}

/* Returns the address of the instruction that failed, or that the signal interrupted. */
static const void *instruction_of(const ucontext_t *context) {
#if defined(__x86_64__)
    return (const void *)context->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
    return (const void *)context->uc_mcontext.pc;
#else
    return NULL;
#endif
}

/* Skips the frames of the handler and of the kernel, which come first. */
static void crash_report_frames(const void *instruction) {
    static void *frames[FRAMES_MAX];
    static char text[WEFT_PLACE_BYTES];
    int count = backtrace(frames, FRAMES_MAX), first = 0;
    while (first < count && frames[first] != instruction)
        first++;
    if (first == count)
        first = FRAMES_OWN;
    for (int i = first; i < count; i++) {
        if (frames[i] == instruction)
            weft_place_write(instruction, text, sizeof text);
        else
            weft_place_write_call(frames[i], text, sizeof text);
        weft_note("    %s", text);
    }
}

/* Returns true if no instruction of this thread has failed, so that returning does not repeat the
 * signal: another process sent it, or the machine has lost a page that the process may never access
 * again ("action optional"). */
static bool signal_needs_raise(int signal, const siginfo_t *info) {
    return info->si_code <= 0 || (signal == SIGBUS && info->si_code == BUS_MCEERR_AO);
}

/* After the return the instruction faults again, or the signal that was sent from elsewhere is
 * pending again, and the process dies at the same place. */
static void crash_handle(int signal, siginfo_t *info, void *context) {
    if (signal == SIGSEGV &&
        weft_child_repair(info)) /* must be first: a child may lack the variables used below */
        return;
    pid_t self = (pid_t)syscall(SYS_gettid), nobody = 0;
    if (getpid() == owner) {
        bool first = atomic_compare_exchange_strong(&reporter, &nobody, self);
        while (!first && nobody != self)
            pause(); /* the reporting thread will end this one, too */
        if (first) {
            crash_of = signal;
            alarm_set();
            crash_report_signal(signal, info);
            crash_report_frames(instruction_of(context));
            alarm(0);
        }
    } else if (owner != 0 && info->si_code == SEGV_MAPERR && weft_child_lacks(info->si_addr)) {
        weft_log_set_pid(owner);
        weft_note("process %d, a child of this PE, crashed at address %p: that is symmetric "
                  "memory, which no child process has; copy what the child needs before the fork",
                  (int)getpid(), info->si_addr);
    }
    signal_reset(signal);
    if (signal_needs_raise(signal, info))
        raise(signal);
}

/* Gives the handler a stack of its own, because the thread's stack may have overflowed. Applies to
 * the calling thread only. */
static void stack_set(void) {
    stack_t found, stack = {.ss_size = STACK_BYTES};
    if (sigaltstack(NULL, &found) < 0 || !(found.ss_flags & SS_DISABLE))
        return;
    stack.ss_sp =
        mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (stack.ss_sp != MAP_FAILED)
        sigaltstack(&stack, NULL);
}

static void signal_watch(int signal) {
    struct sigaction found,
        action = {.sa_sigaction = crash_handle, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    if (sigaction(signal, NULL, &found) == 0 && found.sa_handler == SIG_DFL)
        sigaction(signal, &action, NULL);
}

void weft_crash_repair_children(void) {
    if (!__asan_init && !__tsan_init)
        signal_watch(SIGSEGV);
}

void weft_crash_watch(void) {
    bool sanitized = __asan_init || __tsan_init;
    if (owner == getpid() || sanitized || !weft_place_wanted())
        return;
    owner = getpid();
    stack_set();
    for (int i = 0; i < CRASHES; i++)
        signal_watch(crashes[i].signal);
}
