#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Makes SVG plots of the benchmarks' JSON lines.

    bench/plot.py FOLDER build/results/*.jsonl
    bench/plot.py --published docs/performance.md docs/plots

FOLDER/peers.svg: how many times faster Weft is than each other library that was measured beside it.
FOLDER/scaling.svg: the cost of a barrier, an all-to-all and a reduction by the number of PEs.
overview.svg, for README.md, and peers.svg of the documents are drawn from the published tables, so that both show the
same figures."""
import itertools
import math
import pathlib
import sys

import results

COLOURS = ["#1b6ca8", "#d1495b", "#3c8d2f", "#8a5a9e"]
FONT = 'font-family="sans-serif" font-size="12"'
LINE = 15  # from one line of text to the next


class Drawing:
    def __init__(self, width, height):
        self.size, self.parts = (width, height), []

    def line(self, x1, y1, x2, y2, colour="#ccc"):
        self.parts.append(f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"/>')

    def text(self, x, y, text, anchor="start", colour="#222"):
        text = text.replace("&", "&amp;").replace("<", "&lt;")
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}">{text}</text>')

    def bar(self, x, y, width, height, colour):
        self.parts.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{colour}"/>')

    def curve(self, points, colour):
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self.parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        self.parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in points]

    def write(self, path):
        width, height = self.size
        path.write_text(f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" {FONT}>\n'
                        f'<rect width="100%" height="100%" fill="white"/>\n' + "\n".join(self.parts) + "\n</svg>\n")


def logarithmic(low, high, begin, end):
    """Returns a scale from low ... high, widened to whole decades, to begin ... end; and the decades."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    last = max(last, first + 1)
    scale = lambda value: begin + (math.log10(value) - first) / (last - first) * (end - begin)
    return scale, [10.0 ** k for k in range(first, last + 1)]


def graduated(low, high, begin, end):
    """Returns a logarithmic scale from low ... high to begin ... end; and the numbers 1, 2 and 5 times powers of ten in
    it."""
    scale = lambda value: begin + math.log(value / low) / math.log(high / low) * (end - begin)
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    return scale, [mark for k in decades for mark in (10.0 ** k, 2 * 10.0 ** k, 5 * 10.0 ** k) if low <= mark <= high]


def apart(heights, least):
    """Returns the heights, moved as little as possible so that any two are at least that far apart."""
    order = sorted(range(len(heights)), key=heights.__getitem__)
    moved = list(heights)
    for before, this in zip(order, order[1:]):
        moved[this] = max(moved[this], moved[before] + least)
    back = (sum(moved) - sum(heights)) / len(heights)
    return [height - back for height in moved]


def measured_factors(rows):
    """Returns (name, library, how many times faster Weft is) of each row that another library has, too."""
    factors = []
    for (name, pes, library), lines in rows.items():
        ours = rows.get((name, pes, results.WEFT))
        if ours and library != results.WEFT:
            factor = results.times_better(lines[0]["unit"], results.median(lines, "value"), results.median(ours, "value"))
            factors.append((f"{name}, {pes} PEs", library, factor))
    return factors


def plot_peers(factors, path):
    """Draws bars from 1: to the right Weft is faster. The scale begins at 1, or at the smallest factor."""
    if not factors:
        return
    libraries = list(dict.fromkeys(library for _, library, _ in factors))
    values = [factor for _, _, factor in factors]
    row, left, right = 20, 260, 730
    drawing = Drawing(780, 70 + row * len(factors))
    scale, marks = graduated(min(1, *values), max(2, *values), left, right)
    for mark in marks:
        drawing.line(scale(mark), 40, scale(mark), 46 + row * len(factors))
        drawing.text(scale(mark), 60 + row * len(factors), f"{mark:g}x", "middle")
    drawing.text(10, 20, "How many times faster Weft is than " + ", ".join(libraries) + " (logarithmic)")
    for number, (name, library, factor) in enumerate(factors):
        y, x = 44 + row * number, scale(factor)
        drawing.text(left - 8, y + 12, name, "end")
        drawing.bar(min(x, scale(1)), y, abs(x - scale(1)) or 1, row - 6, COLOURS[libraries.index(library) % len(COLOURS)])
        drawing.text(max(x, scale(1)) + 4, y + 12, f"{factor:.1f}")
    drawing.write(path)


def plot_scaling(rows, path):
    """Draws the cost over the number of PEs, both logarithmic."""
    curves = {}
    for (name, pes, library), lines in sorted(rows.items(), key=lambda item: item[0][1]):
        if name.endswith(" by PEs") and library == results.WEFT:
            curves.setdefault(name.removesuffix(" by PEs"), []).append((pes, results.median(lines, "value")))
    points = [point for curve in curves.values() for point in curve]
    if not points:
        return
    drawing = Drawing(640, 400)
    across = lambda pes: 60 + math.log2(pes) / math.log2(max(p for p, _ in points)) * 420
    up, decades = logarithmic(min(v for _, v in points), max(v for _, v in points), 350, 40)
    for decade in decades:
        drawing.line(60, up(decade), 480, up(decade))
        drawing.text(54, up(decade) + 4, f"{decade:g}", "end")
    for pes in sorted({pes for pes, _ in points}):
        drawing.text(across(pes), 368, str(pes), "middle")
    drawing.text(10, 20, "Microseconds of one call over the number of PEs (both logarithmic)")
    names = apart([up(curve[-1][1]) for curve in curves.values()], LINE)
    for (name, curve), height, colour in zip(curves.items(), names, COLOURS):
        drawing.curve([(across(pes), up(value)) for pes, value in curve], colour)
        drawing.text(across(curve[-1][0]) + 8, height + 4, name, colour=colour)
    drawing.write(path)


OVERVIEW = (
    ("One host, 2 PEs: times as fast as Open MPI's OpenSHMEM", "OpenSHMEM, two PEs",
     ["put 8 B + quiet", "fetch_add", "barrier_all", "broadcast 64 KiB", "sum_reduce 64 KiB", "alltoall 4 MiB", "put 1 MiB"]),
    ("2 GPUs: times as fast as the best of NCCL, NVSHMEM, PyTorch", "Collectives on streams",
     ["all-reduce 1 KiB", "all-reduce 1 MiB", "all-reduce 64 MiB", "all-gather 1 MiB", "all-gather 256 MiB",
      "all-to-all 4 KiB", "all-to-all 64 MiB"]))


def table_below(text, heading):
    """Returns the cells of each line of the first table below a heading, without the table's heading."""
    lines = text[text.index(heading):].splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith("|"))
    table = list(itertools.takewhile(lambda line: line.startswith("|"), lines[first:]))
    return [[cell.strip() for cell in line[1:-1].split("|")] for line in table[2:]]


def factor_of(cells):
    """Returns a line's factor: `5.9x`, or `0.62 [...]` of the best peer's time."""
    if cells[-1].endswith("x"):
        return float(cells[-1][:-1])
    return 1 / float(next(cell for cell in cells if "[" in cell).split()[0])


def published_factors(text):
    """As measured_factors, for the lines with a factor in the table of two PEs."""
    return [(f"{cells[0]}, {cells[1]} PEs", "Open MPI", factor_of(cells))
            for cells in table_below(text, OVERVIEW[0][1]) if cells[-1].endswith("x")]


def plot_overview(text, path):
    """Draws two panels of bars; the line at 1 means equal speed."""
    row = 20
    drawing = Drawing(860, 60 + row * max(len(rows) for _, _, rows in OVERVIEW))
    for number, (title, heading, rows) in enumerate(OVERVIEW):
        table = table_below(text, heading)
        factors = [factor_of(next(cells for cells in table if cells[0] == name)) for name in rows]
        left, right = 430 * number + 140, 430 * number + 380
        unit = (right - left) / max(factors)
        drawing.text(left - 130, 20, title)
        for place, (name, factor) in enumerate(zip(rows, factors)):
            y = 36 + row * place
            drawing.text(left - 8, y + 12, name, "end")
            drawing.bar(left, y, factor * unit, row - 6, COLOURS[number])
            drawing.text(left + factor * unit + 4, y + 12, f"{factor:.1f}")
        drawing.line(left + unit, 32, left + unit, 36 + row * len(rows), "#222")
        drawing.text(left + unit, 50 + row * len(rows), "1: as fast", "middle")
    drawing.write(path)


def main(arguments):
    if len(arguments) < 2 or (arguments[0] == "--published" and len(arguments) != 3):
        sys.exit(__doc__)
    if arguments[0] == "--published":
        text, folder = pathlib.Path(arguments[1]).read_text(), pathlib.Path(arguments[2])
        plot_overview(text, folder / "overview.svg")
        plot_peers(published_factors(text), folder / "peers.svg")
        return
    folder = pathlib.Path(arguments[0])
    folder.mkdir(parents=True, exist_ok=True)
    rows, _ = results.read(arguments[1:])
    plot_peers(measured_factors(rows), folder / "peers.svg")
    plot_scaling(rows, folder / "scaling.svg")


if __name__ == "__main__":
    main(sys.argv[1:])
