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


def published(problems):
    """The pictures of bars show the figures that docs/performance.md publishes."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, ROOT / "bench/plot.py", "--published", ROOT / "docs/performance.md", folder], check=True)
        for new in sorted(pathlib.Path(folder).iterdir()):
            if new.read_text() != (ROOT / "docs/plots" / new.name).read_text():
                problems.append(f"docs/plots/{new.name} is not what bench/plot.py --published draws of docs/performance.md")


def filled(problems):
    """The bars of docs/plots/peers.svg begin where the names of the rows end, and the longest ends near the right edge."""
    drawing = (ROOT / "docs/plots/peers.svg").read_text()
    width = float(re.search(r'width="(\d+)"', drawing)[1])
    bars = [(float(x), float(x) + float(wide)) for x, wide in re.findall(r'<rect x="([\d.]+)" y="[\d.]+" width="([\d.]+)"', drawing)]
    names = max(right for text, _, right, _ in boxes(drawing) if text.endswith(" PEs"))
    if min(bars)[0] > names + 20 or max(right for _, right in bars) < width - 80:
        problems.append(f"peers.svg: names end at {names}, bars go from {min(bars)[0]} to {max(right for _, right in bars)} of {width}")


tap.run([("no text of docs/plots lies over another", drawings), ("nor of a new drawing", new_drawing),
         ("the bars show what is published", published), ("and fill their drawing", filled)])
