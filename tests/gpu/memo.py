# SPDX-License-Identifier: BSD-3-Clause
"""For tests of what trials have found out: runs of a program on the pretended driver with a cache folder, and the lines of
its file, which are a key, a value, a hash of both, and a remark."""
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = (ROOT / os.environ.get("WEFT_BUILD", "build")).resolve()
sys.path.insert(0, str(ROOT / "tests"))

KEY, VALUE, CHECK = 0, slice(1, 9), 9  # of a line
NUMBER, TIMES = 4, 5  # of a value: a pretended algorithm's number, and how often it multiplies
WORD = 1 << 64


def run(program, cache, pes, **settings):
    environment = {**os.environ, "LD_LIBRARY_PATH": str(BUILD / "tests/gpu/driver"), "GPU_REQUIRED": "1",
                   "XDG_CACHE_HOME": str(cache), "WEFT_DETERMINISTIC": "0", **settings}
    done = subprocess.run([BUILD / "bin/oshrun", "-n", str(pes), BUILD / program], env=environment, capture_output=True,
                          text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def file(cache):
    return pathlib.Path(cache) / "weft/products"


def lines(cache):
    return file(cache).read_text().splitlines() if file(cache).exists() else []


def words(line):
    numbers, remark = line.split("#")
    assert " x " in remark, line
    return [int(word, 16) for word in numbers.split()]


def checked(entry):
    """Returns the line of a key and a value, with its hash (FNV-1a)."""
    entry, so_far = entry[:CHECK], 0xcbf29ce484222325
    for byte in b"".join(word.to_bytes(8, "little") for word in entry):
        so_far = (so_far ^ byte) * 0x100000001b3 % WORD
    return " ".join(f"{word:x}" for word in (*entry, so_far)) + " # 1 x 1 x 1"


def with_cache(check):
    def case(problems):
        with tempfile.TemporaryDirectory(prefix="weft-cache-") as cache:
            check(cache)
    return case
