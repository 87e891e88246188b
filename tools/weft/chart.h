/* SPDX-License-Identifier: BSD-3-Clause */
/* Charts as SVG: two panels side by side, each with curves over bytes on logarithmic axes, or with
 * bars. */
#ifndef WEFT_TOOLS_CHART_H
#define WEFT_TOOLS_CHART_H

#include <stddef.h>

enum { CHART_POINTS_MAX = 16, CHART_CURVES_MAX = 4, CHART_PANELS_MAX = 22 };

struct chart_curve {
    int n;
    double x[CHART_POINTS_MAX], y[CHART_POINTS_MAX]; /* bytes; in the panel's unit */
};

struct chart_panel {
    const char *title, *unit;
    int bars; /* curves have one value each, y[0], drawn as bars */
    struct chart_curve curves[CHART_CURVES_MAX];
};

struct chart {
    char title[128];
    const char *names[CHART_CURVES_MAX]; /* names of the curves of all panels; NULL: a gap */
    int npanels;
    struct chart_panel panels[CHART_PANELS_MAX];
};

/* Formats a power of two: "8 B", "4 KiB". */
void chart_size_name(char *text, size_t bytes, double size);

/* Writes the file. Returns 0, or -errno. */
int chart_write(const struct chart *chart, const char *path);

#endif
