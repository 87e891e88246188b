#!/bin/sh
# shmem_global_exit: the job's status is the caller's, whatever the others are doing; what was printed
# is not lost; the caller's own atexit handlers run. And the ends of main without shmem_finalize, also
# with handlers from before shmem_init that still use the library. Far: also.
build=${WEFT_BUILD:-build}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
number=0
failed=0

cat >"$work/exit.c" <<'C'
#include <shmem.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static void goodbye(void) { printf(" goodbye\n"); }
static void use(void) {
    static long word;
    shmem_long_p(&word, 1, (shmem_my_pe() + 1) % shmem_n_pes());
    shmem_barrier_all();
    printf("handler sees %ld", word);
}
int main(int argc, char **argv) {
    const char *how = argv[argc - 1];
    atexit(goodbye);
    if (strcmp(how, "finalize") == 0)
        atexit(shmem_finalize);
    if (strcmp(how, "handler") == 0 || strcmp(how, "finalize") == 0)
        atexit(use);
    shmem_init();
    int me = shmem_my_pe();
    if (strcmp(how, "return") == 0 || strcmp(how, "handler") == 0 || strcmp(how, "finalize") == 0)
        return 0;
    if (strcmp(how, "exit") == 0)
        exit(0);
    if (strcmp(how, "fails") == 0) {
        if (me == 0)
            raise(SIGKILL);
        usleep(200000); /* the job has ended by then, and oshrun ends no PE yet */
        exit(5);
    }
    if (strcmp(how, "all") == 0 || me == shmem_n_pes() - 1) {
        printf("bye from %d", me);
        shmem_global_exit(strcmp(how, "zero") == 0 ? 0 : 42);
    }
    if (strcmp(how, "barrier") == 0 || strcmp(how, "zero") == 0)
        shmem_barrier_all();
    static long never;
    if (strcmp(how, "wait") == 0)
        shmem_long_wait_until(&never, SHMEM_CMP_EQ, 1);
    for (volatile int spin = 0;; spin++)
        ;
}
C
OSHCC=${OSHCC:-gcc} "$build/bin/oshcc" -std=gnu11 -o "$work/exit" "$work/exit.c" || exit 1

# try NAME HOW NPES STATUS TEXT
try() {
    number=$((number + 1))
    timeout 20 "$build/bin/oshrun" -n "$3" "$work/exit" "$2" >"$work/out" 2>"$work/err"
    status=$?
    if [ $status -eq "$4" ] && grep -q "$5" "$work/out"; then
        echo "ok $number - $1"
    else
        echo "# status $status, not $4" >&2
        sed 's/^/# /' "$work/out" "$work/err" >&2
        echo "not ok $number - $1"
        failed=1
    fi
}

try 'one PE alone' alone 1 42 'bye from 0 goodbye'
try 'the others compute' compute 3 42 'bye from 2 goodbye'
try 'the others are in a barrier' barrier 3 42 'bye from 2 goodbye'
try 'the others wait for a word' wait 4 42 'bye from 3 goodbye'
try 'all call it' all 4 42 'bye from [0-3]'
try 'with status 0' zero 3 0 'bye from 2 goodbye'
try 'return from main' return 3 0 'goodbye'
try 'exit' exit 3 0 'goodbye'
try 'a handler from before shmem_init uses the library' handler 3 0 'handler sees 1 goodbye'
try 'another one finalizes' finalize 3 0 'handler sees 1 goodbye'
try 'a PE that fails after the end of the job exits as it would have' fails 2 137 'goodbye'
number=$((number + 1))
if grep -q 'in shmem_finalize' "$work/err"; then
    sed 's/^/# /' "$work/err" >&2
    printf 'not '
    failed=1
fi
echo "ok $number - and writes no line about shmem_finalize"
echo "1..$number"
exit $failed
