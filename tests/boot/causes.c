/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: the log line about the end of a job for every cause, also for causes that a PE has
 * only written to the control page; in a job of one host and in one of several. PEs: 1 */
#include <string.h>
#include "boot/control.h"
#include "tap.h"

static const char *text_of(enum weft_end_kind kind, int pe, int detail) {
    static char text[WEFT_CAUSE_TEXT_BYTES];
    struct weft_cause cause = {.kind = kind, .pe = pe, .pid = 7, .detail = detail};
    weft_cause_text(&cause, text, sizeof text);
    return text;
}

static void expect_text(enum weft_end_kind kind, int pe, int detail, const char *wanted) {
    const char *text = text_of(kind, pe, detail);
    EXPECT(strcmp(text, wanted) == 0, "'%s', not '%s'", text, wanted);
}

/* A cause whose numbers do not exist in the job is described as well as possible. */
static void all_kinds(void) {
    for (int kind = 0; kind <= WEFT_ABORT_KINDS; kind++)
        for (int detail = -2; detail <= 5; detail++) {
            const char *text = text_of((enum weft_end_kind)kind, -1, detail);
            EXPECT(!text[0] == (kind == WEFT_ABORT_NONE), "kind %d: '%s'", kind, text);
        }
}

int main(void) {
    tap_start(0);
    tap_case("of a job of one host");
    weft_hosts_set_one(3);
    all_kinds();
    expect_text(WEFT_ABORT_DIED, 2, 9, "PE 2 (pid 7) was killed by signal 9 (Killed)");
    tap_case("of one of several");
    const struct weft_host host[] = {{"a"}, {"b"}};
    const int32_t host_of[] = {0, 1, 1, 0, 0, 0, 0};
    const struct weft_network network = {.interface = "eth0"};
    struct weft_hosts_given given = {
        .npes = 7, .nhosts = 2, .host_of = host_of, .host = host, .network = &network};
    EXPECT(weft_hosts_set(&given) == 0, "the hosts are refused");
    all_kinds();
    expect_text(WEFT_ABORT_DIED, 2, 9, "PE 2 (pid 7 on b) was killed by signal 9 (Killed)");
    expect_text(WEFT_ABORT_HOST, -1, 1, "host b (PEs 1, 2) does not answer");
    expect_text(WEFT_ABORT_HOST, -1, 0, "host a (PEs 0, 3, 4, 5 and 1 more) does not answer");
    expect_text(WEFT_ABORT_CUT, 3, 1,
                "PE 3 (pid 7 on a) cannot reach host b (PEs 1, 2), although it is alive");
    return tap_finish();
}
