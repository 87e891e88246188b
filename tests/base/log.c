/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: text from others is made safe to print in a line. PEs: 1 */
#include "base/log.h"
#include <string.h>
#include "tap.h"

static void expect(const char *given, const char *wanted) {
    char text[16];
    memset(text, 'x', sizeof text);
    memcpy(text, given, strlen(given) + 1);
    weft_log_make_printable(text, sizeof text);
    EXPECT(strcmp(text, wanted) == 0, "'%s' instead of '%s'", text, wanted);
}

int main(void) {
    tap_start(0);
    tap_case("messages of all alphabets stay");
    expect("train.py:12 ~", "train.py:12 ~");
    expect("\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80");
    tap_case("controls do not, of one byte or of two");
    expect("a\nb\x1b[0m\x7f", "a?b?[0m?");
    expect("\xc2\x9b"
           "31m\xc2\xa0",
           "??31m\xc2\xa0");
    tap_case("nor does what is no UTF-8: alone, overlong, a surrogate, too large, cut off");
    expect("\x80\xff\xfe", "???");
    expect("\xc0\xaf\xe0\x80\xaf", "?????");
    expect("\xed\xa0\x80\xf4\x90\x80\x80", "???????");
    expect("ab\xe2\x82", "ab??");
    tap_case("text without an end gets one");
    char text[4] = {'a', 'b', 'c', 'd'};
    weft_log_make_printable(text, sizeof text);
    EXPECT(strcmp(text, "abc") == 0, "'%.4s'", text);
    return tap_finish();
}
