/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers of bytes as text for a person: whole multiples of a unit, and fractions. PEs: 1 */
#include "base/size.h"
#include <stdint.h>
#include <string.h>
#include "tap.h"

static const struct {
    size_t bytes;
    const char *text;
} sizes[] = {
    {0, "0 bytes"},
    {1, "1 byte"},
    {1023, "1023 bytes"},
    {1024, "1 KiB"},
    {1025, "1.00 KiB"},
    {1536, "1.50 KiB"},
    {10 << 10, "10 KiB"},
    {(10 << 10) + 512, "10.5 KiB"},
    {1048575, "1024 KiB"},
    {1 << 20, "1 MiB"},
    {(size_t)1000 << 20, "1000 MiB"},
    {(size_t)32 << 30, "32 GiB"},
    {((size_t)32 << 30) + 1, "32.0 GiB"},
    {(size_t)1 << 55, "32 PiB"},
    {SIZE_MAX, "16.0 EiB"},
};

int main(void) {
    tap_start(0);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        tap_case(sizes[i].text);
        EXPECT(strcmp(weft_size(sizes[i].bytes).text, sizes[i].text) == 0, "%zu is %s",
               sizes[i].bytes, weft_size(sizes[i].bytes).text);
    }
    return tap_finish();
}
