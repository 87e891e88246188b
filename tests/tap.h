/* SPDX-License-Identifier: BSD-3-Clause */
/* The test harness: PE 0 prints one TAP line per case, every PE reports its own failures on stderr
 * and by its exit status. It uses nothing of Weft, so that it can't fail with it.
 *
 *   int main(void) {
 *       shmem_init();
 *       tap_start(shmem_my_pe());
 *       tap_case("a put arrives");
 *       EXPECT(x == 3, "x is %d", x);
 *       return tap_finish();
 *   } */
#ifndef TESTS_TAP_H
#define TESTS_TAP_H

#include <stdio.h>

static int tap_pe, tap_cases, tap_failures, tap_case_failures;
static const char *tap_name;

static inline void tap_start(int pe) {
    tap_pe = pe;
    setvbuf(stdout, NULL, _IOLBF, 0);
}

static inline void tap_close_case(void) {
    if (!tap_name)
        return;
    tap_cases++;
    if (tap_pe == 0)
        printf("%sok %d - %s\n", tap_case_failures ? "not " : "", tap_cases, tap_name);
    tap_failures += tap_case_failures;
    tap_case_failures = 0;
    tap_name = NULL;
}

static inline void tap_case(const char *name) {
    tap_close_case();
    tap_name = name;
}

/* Ends the program's TAP; the result is main's. Prints at most 20 failures of a case. */
static inline int tap_finish(void) {
    tap_close_case();
    if (tap_pe == 0)
        printf("1..%d\n", tap_cases);
    return tap_failures != 0;
}

#define EXPECT(condition, ...)                                                               \
    do {                                                                                     \
        if (!(condition) && ++tap_case_failures <= 20) {                                     \
            fprintf(stderr, "# PE %d: %s:%d: %s: expected %s: ", tap_pe, __FILE__, __LINE__, \
                    tap_name ? tap_name : "", #condition);                                   \
            fprintf(stderr, __VA_ARGS__);                                                    \
            fputc('\n', stderr);                                                             \
        }                                                                                    \
    } while (0)

#endif
