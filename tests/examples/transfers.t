#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The examples rdma_demo and allgather check every byte on 1 to 4 PEs: on one host, on pretended hosts, and in the
memory of pretended GPUs. A wrong byte in a result is found, and wrong options are refused with a line."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / os.environ.get("WEFT_BUILD", "build")
sys.path.insert(0, str(ROOT / "tests"))
import tap  # noqa: E402

FOLDER = ROOT / "examples"
DEMO, GATHER = FOLDER / "rdma_demo/run.sh", FOLDER / "allgather/run.sh"
FAR = {"WEFT_PRETEND_HOSTS": "each", "WEFT_ENGINE": "tcp"}
DRIVER = BUILD / "tests/gpu/driver"
GPUS = {"WEFT_DETERMINISTIC": "1", "GPU_REQUIRED": "1", "LD_LIBRARY_PATH": str(DRIVER)}


def run(*words, **environment):
    return subprocess.run([str(word) for word in words], cwd=ROOT, capture_output=True, text=True, timeout=120,
                          env={**os.environ, "BUILD": str(BUILD), **environment})


def expect(problems, words, ends, **environment):
    """Expects success, and this text in the output."""
    result = run(*words, **environment)
    if result.returncode != 0 or ends not in result.stdout:
        problems.append(f"{words}: status {result.returncode}\n# " +
                        (result.stdout + result.stderr)[-2000:].replace("\n", "\n# "))


def on_pes(pes, environment, *more):
    """Returns a case: both examples on this number of PEs."""
    def case(problems):
        if environment.get("LD_LIBRARY_PATH") and not DRIVER.exists():
            raise tap.Skip("the pretended driver is not built (make tests)")
        largest, cases = (5000, 8) if more else (300000, 13)
        expect(problems, [DEMO, "-ranks", pes, "-max", largest, *more], "all messages are right", **environment)
        expect(problems, [GATHER, "-pes", pes, "-times", 3, "-cases", cases, *more], f"{cases} cases on {pes} PEs: right",
               **environment)
    return case


def types(problems):
    for name in ("int32_t", "float16_t", "bfloat16_t"):
        expect(problems, [GATHER, "-type", "all", "-cases", 3], f"2 PEs, {name}, host memory")


def finds_a_wrong_byte(problems):
    with tempfile.TemporaryDirectory(prefix="weft-allgather-") as folder:
        expect(problems, [GATHER, "-cases", 2, "-data", folder], "2 cases on 2 PEs: right")
        data = pathlib.Path(folder, "int32_t")
        output = data / "case_1/output_1.bin"
        good = output.read_bytes()
        for name, bad in (("byte 100 is", good[:100] + bytes([good[100] ^ 1]) + good[101:]), ("255 bytes, not", good[:255])):
            output.write_bytes(bad)
            result = run(FOLDER / "allgather/verify.py", data, 2, 2)
            if result.returncode != 1 or f"output_1.bin: {name}" not in result.stderr:
                problems.append(f"'{name}' is not in {result.stderr!r}, status {result.returncode}")
        output.unlink()
        if "output_1.bin: missing" not in run(FOLDER / "allgather/verify.py", data, 2, 2).stderr:
            problems.append("a missing result is not found")


def refusals(problems):
    launcher, gather = BUILD / "bin/oshrun", BUILD / "examples/allgather"
    for words, status, text in (
            ([DEMO, "-foo"], 2, "rdma_demo: -foo: options are -max"), ([DEMO, "-max", 7], 2, "rdma_demo: -max: options"),
            ([DEMO, "-max", "12x"], 2, "rdma_demo: -max: options"), ([DEMO, "-ranks"], 2, "run.sh: -ranks needs a value"),
            ([GATHER, "-foo"], 2, "run.sh: -foo: options are"), ([GATHER, "-type", "int8"], 2, "-type int8: types are"),
            ([GATHER, "-cases", 25], 2, "-cases 25: a number from 1 to 24"), ([GATHER, "-pes", "x"], 2, "-pes x: a number"),
            ([launcher, "-n", 2, gather, "-data", "no/such"], 1, "no/such/case_0/input_0.bin: No such file"),
            ([launcher, "-n", 2, gather, "-times", 0], 2, "allgather: -times: options are"),
            ([launcher, "-n", 2, gather], 2, "allgather: no -data")):
        result = run(*words)
        if result.returncode != status or text not in result.stderr:
            problems.append(f"{words}: status {result.returncode}, '{text}' is not in {result.stderr!r}")
    for script, text in (DEMO, r"rdma_demo: PE \d: .*(GPU|CUDA)"), (GATHER, r"PE \d: no symmetric memory: .*(GPU|CUDA)"):
        result = run(script, "-gpu", CUDA_VISIBLE_DEVICES="")
        if result.returncode != 1 or not re.search(text, result.stderr):
            problems.append(f"{script} without a GPU: status {result.returncode}, {result.stderr!r}")


tap.run([
    *((f"both examples on {pes} PEs", on_pes(pes, {})) for pes in (1, 2, 3, 4)),
    *((f"both on {pes} GPUs", on_pes(pes, GPUS, "-gpu")) for pes in (1, 2, 3, 4)),
    *((f"both on {pes} pretended hosts", on_pes(pes, FAR)) for pes in (2, 3)),
    ("both on the GPUs of 2 pretended hosts", on_pes(2, {**FAR, **GPUS}, "-gpu")),
    ("all types are gathered", types),
    ("verify.py finds what is wrong", finds_a_wrong_byte),
    ("wrong options are refused", refusals),
])
