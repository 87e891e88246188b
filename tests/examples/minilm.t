#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The sentence encoder says what an independent numpy reference says, at any number of PEs.

Skipped only when numpy or the model cannot be had. Unless WEFT_TEST_LONG is set, only 2 PEs read the
whole of the licence.
"""
import importlib.util
import os
import pathlib
import re
import subprocess
import sys
import tempfile
from unittest import mock

SYSTEM_PYTHON = "/usr/bin/python3"  # numpy may be a package of the system's Python alone
if not importlib.util.find_spec("numpy") and sys.executable != SYSTEM_PYTHON \
        and os.path.exists(SYSTEM_PYTHON) and "MINILM_TEST" not in os.environ:
    os.execve(SYSTEM_PYTHON, [SYSTEM_PYTHON, *sys.argv], {**os.environ, "MINILM_TEST": "1"})
if not importlib.util.find_spec("numpy"):
    print("1..0 # SKIP numpy is missing")
    sys.exit(0)

ENVIRONMENT = dict(os.environ)
os.environ["OPENBLAS_NUM_THREADS"] = "1"  # several wait for each other over matrices this small
sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
import numpy  # noqa: E402
import tap  # noqa: E402
from minilm_reference import Model  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / os.environ.get("WEFT_BUILD", "build")
MODEL = ROOT / "build/models/all-MiniLM-L6-v2"
GPL = "/usr/share/common-licenses/GPL-3"
LONG = bool(os.environ.get("WEFT_TEST_LONG"))
PE_COUNTS = (1, 2, 3, 4, 6) if LONG else (2, 3)
TOLERANCE = 1e-4
GPL_STRIDE = 8  # the reference encodes every eighth sentence of the licence, to take seconds

# Every sentence here is a paragraph, so that the example cuts the text in the same places.
HARD_SENTENCES = [
    "Caf\u00e9 cr\u00e8me, na\u00efve Zo\u00eb, \u00c5ngstr\u00f6m and cafe\u0301 vis-a\u0300-vis are words with accents.",
    "\u201cQuotes\u201d \u2014 dashes \u2013 and dots\u2026 as printers set them.",
    "\u6771\u4eac and \u5317\u4eac are cities with two ideographs each.",
    "\u041c\u043e\u0441\u043a\u0432\u0430 \u0438 \u0401\u043b\u043a\u0430; \u0391\u03b8\u03ae\u03bd\u03b1 \u03ba\u03b1\u03b9 \u03bd\u03b7\u03c3\u03af.",
    "An emoji \U0001f600 and a soft\u00adhyphen and a zero\u200bwidth space.",
    "The word " + "a" * 100 + " is as long as words get.",
    "The word " + "a" * 101 + " is longer than words get.",
    "It never ends: " + "!?" * 200 + " so it is truncated.",
    "All of " + " ".join(chr(c) for c in range(0xC0, 0x180)) + " is Latin.",
    "So is " + " ".join(chr(c) for c in range(0x1E00, 0x1E80)) + " in its way.",
    "So is " + " ".join(chr(c) for c in range(0x1E80, 0x1EFA)) + " in its way.",
    "antidisestablishmentarianism pneumonoultramicroscopicsilicovolcanoconiosis and so on.",
]


def fetch_model():
    run = subprocess.run([ROOT / "examples/minilm/fetch.sh", MODEL], text=True,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if run.returncode:
        print("1..0 # SKIP the model cannot be fetched")
        print("# " + run.stdout.replace("\n", "\n# "))
        sys.exit(0)


def ask(pes, text, *options, expected_status=0, program=BUILD / "examples/minilm"):
    """Runs the example; its output, and words -> embedding of the sentences."""
    with tempfile.NamedTemporaryFile() as dump:
        run = subprocess.run([BUILD / "bin/oshrun", "-n", str(pes), program, "--model",
                              MODEL, "--text", text, "--dump", dump.name, *options],
                             text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                             env=ENVIRONMENT, timeout=300)
        if run.returncode != expected_status:
            raise AssertionError(f"{pes} PEs end with {run.returncode}:\n{run.stdout}")
        rows = [line.split("\t") for line in open(dump.name, encoding="utf-8").read().split("\n")]
        return run.stdout, {row[0]: numpy.array(row[1:], "f8") for row in rows[:-1]}


def largest_difference(embeddings, expected):
    missing = expected.keys() - embeddings.keys()
    assert not missing, f"sentences are missing: {missing}"
    return max(abs(embeddings[words] - expected[words]).max() for words in expected)


class Test:
    def __init__(self, folder):
        self.reference = Model(MODEL)
        self.hard = os.path.join(folder, "hard.txt")
        self.tiny = os.path.join(folder, "tiny.txt")
        self.excerpt = os.path.join(folder, "excerpt.txt")
        pathlib.Path(self.hard).write_text("\n\n".join(HARD_SENTENCES), encoding="utf-8")
        pathlib.Path(self.tiny).write_text("Is it so?", encoding="utf-8")
        if os.path.exists(GPL):  # the price is in section 4
            whole = pathlib.Path(GPL).read_text(encoding="utf-8")
            pathlib.Path(self.excerpt).write_text(whole.partition("\n  5. ")[0], encoding="utf-8")
        self.expected = {}

    def compare(self, pes, text, stride=1, *options):
        output, embeddings = ask(pes, text, *options)
        for words in list(embeddings)[::stride]:
            if words not in self.expected:
                self.expected[words] = self.reference.encode(words)
        difference = largest_difference(
            embeddings, {words: self.expected[words] for words in list(embeddings)[::stride]})
        print(f"# {len(embeddings)} sentences on {pes} PEs: within {difference:.1e} of numpy")
        assert difference <= TOLERANCE, f"{difference} from the reference"
        return output, embeddings

    def licence(self, pes):
        output, _ = self.compare(pes, GPL if pes == 2 or LONG else self.excerpt, GPL_STRIDE)
        first = re.split(r"\n\n +0\.\d+ ", output)[1]
        assert re.search(r"charge any price|for a fee", " ".join(first.split())), output

    def hard_text(self, pes):
        _, embeddings = self.compare(pes, self.hard)
        assert list(embeddings) == HARD_SENTENCES, "the sentences were cut elsewhere"

    def members_without_rows(self, pes):
        """9 tokens: with 6 PEs the last has none."""
        self.compare(pes, self.tiny, 1, "--question", "Is it?")

    def on_gpus(self, pes):
        """The part for GPUs, on pretended ones. 9 tokens: the last of 4 PEs has no full share."""
        driver, program = BUILD / "tests/gpu/driver", BUILD / "tests/gpu/minilm"
        if not program.exists():
            raise tap.Skip("it is not built for the pretended driver (make tests)")
        with mock.patch.dict(ENVIRONMENT, LD_LIBRARY_PATH=str(driver)):
            output, embeddings = ask(pes, self.tiny, "--device", "gpu", "--question", "Is it?",
                                     program=program)
        assert f"{pes} GPU" in output, output
        for words, found in embeddings.items():
            assert largest_difference({words: found}, {words: self.reference.encode(words)}) <= TOLERANCE

    def refusals(self, _):
        """One line that says what is wrong."""
        with tempfile.TemporaryDirectory() as folder:
            for path in MODEL.iterdir():
                os.symlink(path, os.path.join(folder, path.name))
            weights = os.path.join(folder, "model.safetensors")
            os.unlink(weights)
            pathlib.Path(weights).write_bytes((MODEL / "model.safetensors").read_bytes()[:10 ** 6])
            output, _ = ask(2, GPL, "--model", folder, expected_status=1)
            assert "model.safetensors" in output and "truncated" in output, output
        output, _ = ask(5, GPL, expected_status=1)
        assert "5 PEs cannot share 12 heads" in output and "1, 2, 3, 4, 6" in output, output
        output, _ = ask(2, "/nonexistent", expected_status=1)
        assert "/nonexistent: No such file" in output, output
        output, _ = ask(1, self.tiny, "--device", "tpu", expected_status=2)
        assert "--device takes cpu or gpu" in output, output


fetch_model()
with tempfile.TemporaryDirectory() as scratch:
    test = Test(scratch)
    cases = [(f"the licence on {n} PEs: as the reference, and the answer is about a price",
              test.licence, n) for n in PE_COUNTS if os.path.exists(GPL)]
    cases += [(f"accents, ideographs and limits on {n} PEs", test.hard_text, n) for n in (1, 3)]
    cases += [(f"few tokens on {n} PEs", test.members_without_rows, n) for n in (4, 6)]
    cases += [(f"few tokens on {n} pretended GPUs", test.on_gpus, n) for n in (1, 2, 4)]
    cases += [("a damaged model, 5 PEs and a missing text are refused", test.refusals, 0)]
    failed = 0
    for number, (name, case, pes) in enumerate(cases, 1):
        try:
            case(pes)
            print(f"ok {number} - {name}", flush=True)
        except tap.Skip as reason:
            print(f"ok {number} - {name} # SKIP {reason}", flush=True)
        except (AssertionError, OSError, subprocess.SubprocessError) as error:
            failed += 1
            print(f"not ok {number} - {name}\n# " + str(error).replace("\n", "\n# "), flush=True)
    print(f"1..{len(cases)}")
sys.exit(failed != 0)
