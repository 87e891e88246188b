#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The Python examples, and the listings of the documents that are Python programs, run; the sentence encoder prints the
reference values of examples/minilm's test, if the model is available.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
import interpreter  # noqa: E402
import tap  # noqa: E402

ROOT = interpreter.ROOT
PYTHON = interpreter.find("numpy")
MODEL = ROOT / "build/models/all-MiniLM-L6-v2"
SENTENCES = ["May I charge money for copies?", "You may charge any price or no price for each copy that you convey.",
             "Caf\u00e9 cr\u00e8me and na\u00efve Zo\u00eb are words with accents, so it goes on!",
             "antidisestablishmentarianism, pneumonoultramicroscopicsilicovolcanoconiosis (and so on)."]
REFERENCE = """
import json, sys
sys.path.insert(0, sys.argv[1])
from minilm_reference import Model
model = Model(sys.argv[2])
print(json.dumps([model.encode(text).tolist() for text in json.loads(sys.argv[3])]))
"""


def run(problems, pes, *command):
    done = subprocess.run([interpreter.BUILD / "bin/oshrun", "-n", str(pes), PYTHON, *command], capture_output=True,
                          text=True, env=interpreter.environment(), timeout=200)
    if done.returncode:
        problems += [f"{command[0]} on {pes} PEs: status {done.returncode}", *(done.stdout + done.stderr).splitlines()[-20:]]
    return done.stdout


def example(name, *expected):
    def scene(problems):
        for pes in (3, 1) if name == "hello.py" else (3,):
            out = run(problems, pes, ROOT / "examples/python" / name)
            problems += [f"{pes} PEs: no {text!r}" for text in expected if text not in out]
    return scene


def listings(problems):
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    programs = [(page.name, text) for page in pages for text in re.findall(r"^```python\n(.*?)^```", page.read_text(), re.M | re.S)
                if "weft.init()" in text and "import torch" not in text]
    for name, text in programs:
        with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
            file.write(text)
            file.flush()
            out = run(problems, 2, file.name)
            problems += [f"{name}: no output"] if "print" in text and not out else []
    print(f"# {len(programs)} programs")


def encoder(problems):
    import json
    fetched = subprocess.run([ROOT / "examples/minilm/fetch.sh", MODEL], capture_output=True, text=True)
    if fetched.returncode:
        raise tap.Skip("the model cannot be fetched")
    with tempfile.TemporaryDirectory() as folder:
        text, dump = pathlib.Path(folder, "text"), pathlib.Path(folder, "dump")
        text.write_text("\n\n".join(SENTENCES[1:]), encoding="utf-8")
        expected = json.loads(subprocess.run([PYTHON, "-c", REFERENCE, ROOT / "tests/examples", MODEL, json.dumps(SENTENCES)],
                                             capture_output=True, text=True, check=True).stdout)
        for pes in (1, 2, 3) if os.environ.get("WEFT_TEST_LONG") else (2,):
            run(problems, pes, ROOT / "examples/python/minilm.py", "--model", MODEL, "--text", text, "--question",
                SENTENCES[0], "--dump", dump)
            rows = [line.split("\t") for line in dump.read_text(encoding="utf-8").splitlines()] if dump.exists() else []
            if [row[0] for row in rows] != SENTENCES:
                problems.append(f"{pes} PEs: sentences are {[row[0] for row in rows]}")
                return
            difference = max(abs(float(got) - want) for row, vector in zip(rows, expected) for got, want in zip(row[1:], vector))
            print(f"# {pes} PEs: within {difference:.1e} of the reference")
            if difference > 1e-4:
                problems.append(f"{pes} PEs: {difference} from the reference")


def no_model(problems):
    done = subprocess.run([PYTHON, ROOT / "examples/python/minilm.py", "--model", "/nowhere"], capture_output=True,
                          text=True, env=interpreter.environment(), timeout=60)
    if done.returncode != 2 or "fetch it with examples/minilm/fetch.sh /nowhere" not in done.stderr:
        problems += [f"status {done.returncode}", *done.stderr.splitlines()[-20:]]


if PYTHON is None:
    print("1..0 # SKIP no Python from 3.10 on has numpy")
    sys.exit(0)
tap.run([
    ("hello", example("hello.py", "PE 0 found: hello from PE")),
    ("ring", example("ring.py", "after 3 rounds the token is")),
    ("one-shot all-reduce", example("one_shot_all_reduce.py", "agree with weft.all_reduce")),
    ("listings in the documents", listings),
    ("the sentence encoder", encoder),
    ("the sentence encoder without its model", no_model),
])
