#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""In the drawings of the documents, and in one that bench/plot.py makes of curves that end side by side,
no text lies over another."""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
import tap  # noqa: E402

TEXT = re.compile(r'<text x="([\d.]+)" y="([\d.]+)" text-anchor="(\w+)"[^>]*>([^<]*)')
HEIGHT, WIDTH = 11, 5.5  # of a letter, at least, in a font of 12
SHIFT = {"start": 0, "middle": 0.5, "end": 1}


def boxes(drawing):
    for x, y, anchor, text in TEXT.findall(drawing):
        width = WIDTH * len(text)
        left = float(x) - SHIFT[anchor] * width
        yield text, left, left + width, float(y)


def overlaps(drawing):
    texts = list(boxes(drawing))
    for i, (a, left, right, y) in enumerate(texts):
        for b, other_left, other_right, other_y in texts[:i]:
            if abs(y - other_y) < HEIGHT and left < other_right and other_left < right:
                yield f"'{a}' and '{b}'"


def drawings(problems):
    for path in sorted((ROOT / "docs/plots").glob("*.svg")):
        problems += [f"{path.name}: {pair} overlap" for pair in overlaps(path.read_text())]


def new_drawing(problems):
    line = {"unit": "us", "min": 1, "max": 1, "library": "Weft 0"}
    with tempfile.TemporaryDirectory() as folder:
        results = pathlib.Path(folder) / "results.jsonl"
        results.write_text("".join(
            json.dumps({**line, "row": f"{name} by PEs", "pes": pes, "value": value * pes}) + "\n"
            for name, value in [("one", 1), ("two", 1.01), ("three", 0.99)] for pes in (1, 2, 64)))
        subprocess.run([sys.executable, ROOT / "bench/plot.py", folder, results], check=True)
        drawing = (pathlib.Path(folder) / "scaling.svg").read_text()
    problems += [f"{pair} overlap" for pair in overlaps(drawing)]
    problems += [f"no '{name}'" for name in ("one", "two", "three") if f">{name}<" not in drawing]


def overview(problems):
    """The picture of README.md shows the figures that docs/performance.md publishes."""
    with tempfile.TemporaryDirectory() as folder:
        new = pathlib.Path(folder) / "overview.svg"
        subprocess.run([sys.executable, ROOT / "bench/plot.py", "--overview", ROOT / "docs/performance.md", new], check=True)
        if new.read_text() != (ROOT / "docs/plots/overview.svg").read_text():
            problems.append("docs/plots/overview.svg is not what bench/plot.py --overview draws of docs/performance.md")


tap.run([("no text of docs/plots lies over another", drawings), ("nor of a new drawing", new_drawing),
         ("the overview shows what is published", overview)])
