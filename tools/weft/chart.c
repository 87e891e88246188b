/* SPDX-License-Identifier: BSD-3-Clause */
/* A panel is a box of the page: title, then the plot, then the labels of its x axis. */
#include "chart.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>

enum {
    PANEL_WIDTH = 460,
    PANEL_HEIGHT = 300,
    HEAD = 60, /* the page's title and legend */
    LEFT = 64,
    RIGHT = 28,
    TOP = 34,
    BOTTOM = 52,
    BAR_STEP = 44,
};

static const char *const colours[CHART_CURVES_MAX] = {"#1b6ca8", "#d1495b", "#3c8d2f", "#8a5a9e"};

/* A logarithmic axis: value -> position. */
struct axis {
    double low, high; /* values at its ends */
    double begin, end;
};

static double at(const struct axis *axis, double value) {
    return axis->begin +
           log(value / axis->low) / log(axis->high / axis->low) * (axis->end - axis->begin);
}

static void line(FILE *svg, double x1, double y1, double x2, double y2, const char *colour) {
    fprintf(svg, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\"/>\n", x1, y1,
            x2, y2, colour);
}

static void text(FILE *svg, double x, double y, const char *anchor, const char *colour,
                 const char *words) {
    fprintf(svg, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" fill=\"%s\">", x, y, anchor,
            colour);
    for (; *words; words++)
        switch (*words) {
        case '<':
            fputs("&lt;", svg);
            break;
        case '&':
            fputs("&amp;", svg);
            break;
        default:
            fputc(*words, svg);
        }
    fputs("</text>\n", svg);
}

void chart_size_name(char *name, size_t bytes, double size) {
    static const char *const units[] = {"B", "KiB", "MiB", "GiB"};
    size_t unit = 0;
    for (; size >= 1024 && unit + 1 < sizeof units / sizeof *units; unit++)
        size /= 1024;
    snprintf(name, bytes, "%g %s", size, units[unit]);
}

/* Stores the smallest and largest of all values; returns false if there are none. */
static int ends(const struct chart_panel *panel, int of_y, double *low, double *high) {
    *low = INFINITY, *high = 0;
    for (int c = 0; c < CHART_CURVES_MAX; c++)
        for (int i = 0; i < panel->curves[c].n; i++) {
            double value = of_y ? panel->curves[c].y[i] : panel->curves[c].x[i];
            *low = fmin(*low, value);
            *high = fmax(*high, value);
        }
    return *high > 0;
}

/* Extends the axis to whole decades, and draws a line for each. */
static void draw_values(FILE *svg, struct axis *y, double left, double right) {
    y->low = pow(10, floor(log10(y->low)));
    y->high = pow(10, ceil(log10(y->high * 1.0001)));
    for (double decade = y->low; decade < y->high * 1.5; decade *= 10) {
        char label[32];
        snprintf(label, sizeof label, "%g", decade);
        line(svg, left, at(y, decade), right, at(y, decade), "#ccc");
        text(svg, left - 6, at(y, decade) + 4, "end", "#222", label);
    }
}

/* Labels every measured size, and draws a line for it if there is room. */
static void draw_sizes(FILE *svg, const struct axis *x, double top, double bottom) {
    int steps = (int)lround(log2(x->high / x->low)), every = steps > 24 ? 6 : 3;
    for (int step = 0; step <= steps; step += every) {
        char label[32];
        double size = x->low * exp2(step);
        chart_size_name(label, sizeof label, size);
        line(svg, at(x, size), top, at(x, size), bottom, "#eee");
        text(svg, at(x, size), bottom + 16, "middle", "#222", label);
    }
    text(svg, 0.5 * (x->begin + x->end), bottom + 36, "middle", "#222", "bytes (logarithmic)");
}

static void draw_curve(FILE *svg, const struct chart_curve *curve, const struct axis *x,
                       const struct axis *y, const char *colour) {
    fputs("<polyline points=\"", svg);
    for (int i = 0; i < curve->n; i++)
        fprintf(svg, "%.1f,%.1f ", at(x, curve->x[i]), at(y, curve->y[i]));
    fprintf(svg, "\" fill=\"none\" stroke=\"%s\" stroke-width=\"2\"/>\n", colour);
    for (int i = 0; i < curve->n; i++)
        fprintf(svg, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"%s\"/>\n", at(x, curve->x[i]),
                at(y, curve->y[i]), colour);
}

static void draw_curves(FILE *svg, const struct chart_panel *panel, double left, double top) {
    struct axis x = {.begin = left + LEFT, .end = left + PANEL_WIDTH - RIGHT};
    struct axis y = {.begin = top + PANEL_HEIGHT - BOTTOM, .end = top + TOP};
    if (!ends(panel, 0, &x.low, &x.high) || !ends(panel, 1, &y.low, &y.high))
        return;
    if (x.high < 8 * x.low)
        x.high = 8 * x.low;
    draw_sizes(svg, &x, y.end, y.begin);
    draw_values(svg, &y, x.begin, x.end);
    for (int c = 0; c < CHART_CURVES_MAX; c++)
        if (panel->curves[c].n > 0)
            draw_curve(svg, &panel->curves[c], &x, &y, colours[c]);
}

/* Draws bars from 0, with the value after each bar. */
static void draw_bars(FILE *svg, const struct chart_panel *panel, const char *const *names,
                      double left, double top) {
    double low, high, y = top + TOP + 10, room = PANEL_WIDTH - LEFT - RIGHT - 110;
    if (!ends(panel, 1, &low, &high))
        return;
    for (int c = 0; c < CHART_CURVES_MAX; c++) {
        const struct chart_curve *curve = &panel->curves[c];
        char label[48];
        if (curve->n == 0)
            continue;
        double width = curve->y[0] / high * room;
        snprintf(label, sizeof label, "%.3g %s", curve->y[0], panel->unit);
        text(svg, left + LEFT, y + 12, "start", "#222", names[c]);
        fprintf(svg, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"16\" fill=\"%s\"/>\n",
                left + LEFT, y + 17, width < 1 ? 1 : width, colours[c]);
        text(svg, left + LEFT + width + 6, y + 30, "start", "#222", label);
        y += BAR_STEP;
    }
}

static void draw_panel(FILE *svg, const struct chart *chart, int number) {
    const struct chart_panel *panel = &chart->panels[number];
    double left = number % 2 * PANEL_WIDTH, top = HEAD + number / 2 * PANEL_HEIGHT;
    char title[160];
    snprintf(title, sizeof title, "%s, %s%s", panel->title, panel->unit,
             panel->bars ? "" : " (logarithmic)");
    text(svg, left + LEFT, top + 18, "start", "#222", title);
    if (panel->bars)
        draw_bars(svg, panel, chart->names, left, top);
    else
        draw_curves(svg, panel, left, top);
}

static void draw_legend(FILE *svg, const struct chart *chart) {
    double x = LEFT;
    for (int c = 0; c < CHART_CURVES_MAX; c++)
        if (chart->names[c]) {
            fprintf(svg, "<circle cx=\"%.1f\" cy=\"42\" r=\"4\" fill=\"%s\"/>\n", x, colours[c]);
            text(svg, x + 10, 46, "start", colours[c], chart->names[c]);
            x += 210;
        }
}

int chart_write(const struct chart *chart, const char *path) {
    FILE *svg = fopen(path, "w");
    if (!svg)
        return -errno;
    int rows = (chart->npanels + 1) / 2;
    fprintf(svg,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
            "font-family=\"sans-serif\" font-size=\"12\">\n"
            "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
            2 * PANEL_WIDTH, HEAD + rows * PANEL_HEIGHT);
    text(svg, LEFT, 22, "start", "#222", chart->title);
    draw_legend(svg, chart);
    for (int number = 0; number < chart->npanels; number++)
        draw_panel(svg, chart, number);
    fputs("</svg>\n", svg);
    int error = ferror(svg);
    return fclose(svg) != 0 || error ? -EIO : 0;
}
