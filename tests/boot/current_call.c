/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: a thread's current call nests, belongs to the thread, and is unset after an end
 * handler has left the call. PEs: 1 */
#include "base/current_call.h"
#include <pthread.h>
#include <setjmp.h>
#include <stdbool.h>
#include <string.h>
#include "boot/end.h"
#include "tap.h"

static jmp_buf way_out;
static bool leaves;

static void expect_call(const char *name) {
    EXPECT(strcmp(weft_current_call, name) == 0, "the call is '%s', not '%s'", weft_current_call,
           name);
}

static void return_early(void) {
    WEFT_IN_CALL("inner");
    expect_call("inner");
    if (leaves)
        return;
    expect_call("inner");
}

static void *look_from_thread(void *unused) {
    expect_call(WEFT_NO_CALL);
    WEFT_IN_CALL("another");
    expect_call("another");
    return unused;
}

static void nest(void) {
    WEFT_IN_CALL("outer");
    expect_call("outer");
    return_early();
    expect_call("outer");
    pthread_t thread;
    pthread_create(&thread, NULL, look_from_thread, NULL);
    pthread_join(thread, NULL);
    expect_call("outer");
}

static void handle_end(const char *line) {
    expect_call(WEFT_NO_CALL);
    EXPECT(strcmp(line, "over") == 0, "'%s'", line);
    if (leaves)
        longjmp(way_out, 1);
}

static void meet_end(void) {
    WEFT_IN_CALL("lost");
    weft_boot_tell_error("over");
    expect_call("lost");
}

int main(void) {
    tap_start(0);
    tap_case("outside of calls there is a name, too");
    expect_call(WEFT_NO_CALL);
    tap_case("calls nest, and other threads are in their own");
    nest();
    expect_call(WEFT_NO_CALL);
    weft_boot_set_end_handler(handle_end);
    tap_case("behind an end handler that returns, the call goes on");
    meet_end();
    expect_call(WEFT_NO_CALL);
    tap_case("behind one that leaves the call, the thread is in none");
    leaves = true;
    if (setjmp(way_out) == 0)
        meet_end();
    expect_call(WEFT_NO_CALL);
    nest();
    expect_call(WEFT_NO_CALL);
    return tap_finish();
}
