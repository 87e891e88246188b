/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/size.h"
#include <stdio.h>

/* Uses whole numbers only, because the program's locale may have another decimal point. */
struct weft_size_text weft_size(size_t bytes) {
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    struct weft_size_text size;
    if (bytes < 1024) {
        snprintf(size.text, sizeof size.text, "%zu byte%s", bytes, bytes == 1 ? "" : "s");
        return size;
    }
    size_t unit = 1024;
    int name = 0;
    for (; bytes / unit >= 1024; unit *= 1024)
        name++;
    size_t parts = bytes / (unit / 1024); /* in 1024ths of the unit */
    size_t hundredths = (parts * 100 + 512) / 1024, tenths = (parts * 10 + 512) / 1024;
    if (bytes % unit == 0)
        snprintf(size.text, sizeof size.text, "%zu %s", bytes / unit, units[name]);
    else if (hundredths < 1000)
        snprintf(size.text, sizeof size.text, "%zu.%02zu %s", hundredths / 100, hundredths % 100,
                 units[name]);
    else if (tenths < 1000)
        snprintf(size.text, sizeof size.text, "%zu.%zu %s", tenths / 10, tenths % 10, units[name]);
    else
        snprintf(size.text, sizeof size.text, "%zu %s", (parts + 512) / 1024, units[name]);
    return size;
}
