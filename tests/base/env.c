/* SPDX-License-Identifier: BSD-3-Clause */
/* Sizes of SHMEM_SYMMETRIC_SIZE: every spelling that the specification allows, against whole
 * numbers worked out by hand. Invalid sizes are refused and leave the result unchanged. PEs: 1 */
#include "base/env.h"
#include <stdint.h>
#include <string.h>
#include "tap.h"

#define KIB UINT64_C(1024)
#define MIB (KIB * KIB)
#define GIB (MIB * KIB)
#define TIB (GIB * KIB)

static const struct {
    const char *text;
    uint64_t bytes;
} sizes[] = {
    {"0", 0},
    {"0.0", 0},
    {"0k", 0},
    {"1", 1},
    {"512", 512},
    {"+512", 512},
    {" 512", 512},
    {"0512", 512},
    {"20k", 20 * KIB},
    {"20K", 20 * KIB},
    {"20m", 20971520},
    {"20M", 20971520},
    {"3.1m", 3250586}, /* the specification's example: 3250585.6 rounded up */
    {"3.1M", 3250586},
    {"1g", GIB},
    {"1.5G", GIB + GIB / 2},
    {"2t", 2 * TIB},
    {"0.25T", TIB / 4},
    {".5m", MIB / 2},
    {"0.5m", MIB / 2},
    {"1.m", MIB},
    {"1.", 1},
    {"20kk", 20 * KIB}, /* text after the multiplier is ignored */
    {"20kB", 20 * KIB},
    {"64MiB", 64 * MIB},
    {"1e3", 1000},
    {"1E3", 1000},
    {"1e+3", 1000},
    {"2.5e3", 2500},
    {"1e3k", 1000 * KIB},
    {"1e-3g", 1073742}, /* 1073741.824 */
    {"5e-1", 1},
    {"0.1", 1},
    {"1.0000001", 2},
    {"0x10", 16},
    {"0x1p20", MIB},
    {"0x1.8p1k", 3 * KIB},
    {"9007199254740993", UINT64_C(9007199254740993)}, /* 2^53 + 1: more than a double holds */
    {"9223372036854775807", UINT64_C(9223372036854775807)},
    {"8388608t", UINT64_C(1) << 63},
};

static const char *const refused[] = {
    "",
    " ",
    "-1",
    "-0.5m",
    "-0",
    "k",
    ".",
    ".k",
    "m5",
    "five",
    "5x",
    "5 k",
    "5b",
    "1e",
    "1ek",
    "+",
    "++5",
    "+-5",
    "inf",
    "nan",
    "INF",
    "infinity",
    "1,5m",
    "0x",
    "0xk",
    "5%",
    "5p",
    "1e30",
    "1e5000",
    "16777216t",
    "99999999999999999999",
};

static void accepted(void) {
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        size_t bytes = SIZE_MAX;
        int result = weft_env_parse_size(sizes[i].text, &bytes);
        EXPECT(result == 0 && bytes == sizes[i].bytes, "'%s' gives %d, %zu", sizes[i].text, result,
               bytes);
    }
}

static void no_sizes(void) {
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        size_t bytes = 77;
        int result = weft_env_parse_size(refused[i], &bytes);
        EXPECT(result < 0 && bytes == 77, "'%s' gives %d, %zu", refused[i], result, bytes);
    }
}

int main(void) {
    tap_start(0);
    tap_case("sizes");
    accepted();
    tap_case("no sizes");
    no_sizes();
    return tap_finish();
}
