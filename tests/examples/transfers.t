#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The examples rdma_demo, allgather and kv_shuffle check every byte on 1 to 4 PEs: on one host, on pretended hosts, and
in the memory of pretended GPUs. A wrong byte in a result is found, and wrong options are refused with a line."""
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
DEMO, GATHER, SHUFFLE = (FOLDER / name / "run.sh" for name in ("rdma_demo", "allgather", "kv_shuffle"))
FAR = {"WEFT_PRETEND_HOSTS": "each", "WEFT_ENGINE": "tcp"}
DRIVER = BUILD / "tests/gpu/driver"
GPUS = {"WEFT_DETERMINISTIC": "1", "GPU_REQUIRED": "1", "LD_LIBRARY_PATH": str(DRIVER)}


def run(*words, **environment):
    return subprocess.run([str(word) for word in words], cwd=ROOT, capture_output=True, text=True, timeout=120,
                          env={**os.environ, "BUILD": str(BUILD), **environment})


def expect(problems, words, *texts, **environment):
    """Expects success, and these texts in the output."""
    result = run(*words, **environment)
    if result.returncode != 0 or not all(text in result.stdout for text in texts):
        problems.append(f"{words}: status {result.returncode}\n# " +
                        (result.stdout + result.stderr)[-2000:].replace("\n", "\n# "))


def on_pes(pes, environment, *more):
    """Returns a case: all examples on this number of PEs. A shuffle between two PEs or more moves blocks."""
    def case(problems):
        if environment.get("LD_LIBRARY_PATH") and not DRIVER.exists():
            raise tap.Skip("the pretended driver is not built (make tests)")
        largest, cases = (5000, 8) if more else (300000, 13)
        sizes = ("-blocks", 16, "-heads", 2, "-page-size", 4) if more else ()
        expect(problems, [DEMO, "-ranks", pes, "-max", largest, *more], "all messages are right", **environment)
        expect(problems, [GATHER, "-pes", pes, "-times", 3, "-cases", cases, *more], f"{cases} cases on {pes} PEs: right",
               **environment)
        moves = ["blocks of each cache to PE"] if pes > 1 else []
        expect(problems, [SHUFFLE, "-ranks", pes, "-times", 3, *sizes, *more], *moves, f"K and V caches of {pes} PEs: right",
               **environment)
    return case


def types(problems):
    for name in ("int32_t", "float16_t", "bfloat16_t"):
        expect(problems, [GATHER, "-type", "all", "-cases", 3], f"2 PEs, {name}, host memory")


def expect_damage_found(problems, output, verify, suffix=""):
    """Damages this result in three ways, each of which the command must report."""
    good = output.read_bytes()
    for text, bad in ((f"byte 100 is {good[100] ^ 1}, not {good[100]}{suffix}", good[:100] + bytes([good[100] ^ 1]) + good[101:]),
                      ("255 bytes, not", good[:255]), ("missing", None)):
        output.unlink() if bad is None else output.write_bytes(bad)
        result = run(*verify)
        if result.returncode != 1 or f"{output.name}: {text}" not in result.stderr:
            problems.append(f"{verify[0]}: '{text}' is not in {result.stderr!r}, status {result.returncode}")
    output.write_bytes(good)


def finds_a_wrong_byte(problems):
    with tempfile.TemporaryDirectory(prefix="weft-transfers-") as folder:
        expect(problems, [GATHER, "-cases", 2, "-data", folder], "2 cases on 2 PEs: right")
        data = pathlib.Path(folder, "int32_t")
        expect_damage_found(problems, data / "case_1/output_1.bin", [FOLDER / "allgather/verify.py", data, 2, 2])
        shuffle = [SHUFFLE, "-blocks", 20, "-heads", 1, "-page-size", 4, "-head-dim", 4, "-data", folder]
        expect(problems, shuffle, "K and V caches of 2 PEs: right")
        for name in "k_output_0.bin", "v_output_1.bin":
            expect_damage_found(problems, pathlib.Path(folder, name), [FOLDER / "kv_shuffle/verify.py", folder, 2, 20], " (block 3)")


def balances(problems):
    """The scheduler of kv_shuffle leaves the PEs with numbers of blocks that differ less than before."""
    generator = FOLDER / "kv_shuffle/data_gen.py"
    for pes in range(2, 9):
        with tempfile.TemporaryDirectory(prefix="weft-transfers-") as folder:
            line = run(generator, folder, pes, 64, 1, 1, 1).stdout
        before, after = ([int(word) for word in part.split()] for part in re.findall(r"(?<=: )[\d ]+", line))
        if sum(before) != sum(after) or max(after) - min(after) > (max(before) - min(before)) / 2:
            problems.append(f"{pes} PEs: {line}")


def wrong_inputs(problems):
    """Inputs that do not fit the options are refused with the name of the file."""
    with tempfile.TemporaryDirectory(prefix="weft-transfers-") as folder:
        words = [BUILD / "bin/oshrun", "-n", 2, BUILD / "examples/kv_shuffle", "-data", folder, "-blocks"]
        run(FOLDER / "kv_shuffle/data_gen.py", folder, 2, 20, 8, 16, 128)
        expect(problems, [*words, 20], "2 PEs")
        for blocks in 19, 21:
            result = run(*words, blocks)
            if result.returncode != 1 or "k_input_0.bin: its size is wrong" not in result.stderr:
                problems.append(f"{blocks} blocks: status {result.returncode}, {result.stderr!r}")
        pathlib.Path(folder, "nblocks_0.bin").write_bytes(b"\xff" * 8)
        result = run(*words, 20)
        if result.returncode != 1 or "nblocks_0.bin: its number is wrong" not in result.stderr:
            problems.append(f"-1 blocks: status {result.returncode}, {result.stderr!r}")


def refusals(problems):
    launcher, gather, shuffle = BUILD / "bin/oshrun", BUILD / "examples/allgather", BUILD / "examples/kv_shuffle"
    for words, status, text in (
            ([DEMO, "-foo"], 2, "rdma_demo: -foo: options are -max"), ([DEMO, "-max", 7], 2, "rdma_demo: -max: options"),
            ([DEMO, "-max", "12x"], 2, "rdma_demo: -max: options"), ([DEMO, "-ranks"], 2, "run.sh: -ranks needs a value"),
            ([GATHER, "-foo"], 2, "run.sh: -foo: options are"), ([GATHER, "-type", "int8"], 2, "-type int8: types are"),
            ([GATHER, "-cases", 25], 2, "-cases 25: a number from 1 to 24"), ([GATHER, "-pes", "x"], 2, "-pes x: a number"),
            ([launcher, "-n", 2, gather, "-data", "no/such"], 1, "no/such/case_0/input_0.bin: No such file"),
            ([launcher, "-n", 2, gather, "-times", 0], 2, "allgather: -times: options are"),
            ([launcher, "-n", 2, gather], 2, "allgather: no -data"),
            ([SHUFFLE, "-foo"], 2, "run.sh: -foo: options are"), ([SHUFFLE, "-blocks"], 2, "run.sh: -blocks needs a value"),
            ([SHUFFLE, "-heads", 0], 2, "-heads 0: a number from 1 to 128"), ([SHUFFLE, "-ranks", "x"], 2, "-ranks x: a number"),
            ([launcher, "-n", 2, shuffle, "-data", "no/such"], 1, "no/such/k_input_0.bin: No such file"),
            ([launcher, "-n", 2, shuffle, "-blocks", 0], 2, "kv_shuffle: -blocks: options are"),
            ([launcher, "-n", 2, shuffle], 2, "kv_shuffle: no -data: options are -data FOLDER, -blocks 1 to 65536")):
        result = run(*words)
        if result.returncode != status or text not in result.stderr:
            problems.append(f"{words}: status {result.returncode}, '{text}' is not in {result.stderr!r}")
    for script, text in ((DEMO, r"rdma_demo: PE \d: .*(GPU|CUDA)"), (GATHER, r"PE \d: no symmetric memory: .*(GPU|CUDA)"),
                         (SHUFFLE, r"kv_shuffle: PE \d: no symmetric memory: .*(GPU|CUDA)")):
        result = run(script, "-gpu", CUDA_VISIBLE_DEVICES="")
        if result.returncode != 1 or not re.search(text, result.stderr):
            problems.append(f"{script} without a GPU: status {result.returncode}, {result.stderr!r}")


tap.run([
    *((f"all examples on {pes} PEs", on_pes(pes, {})) for pes in (1, 2, 3, 4)),
    *((f"all on {pes} GPUs", on_pes(pes, GPUS, "-gpu")) for pes in (1, 2, 3, 4)),
    *((f"all on {pes} pretended hosts", on_pes(pes, FAR)) for pes in (2, 3)),
    ("all on the GPUs of 2 pretended hosts", on_pes(2, {**FAR, **GPUS}, "-gpu")),
    ("all types are gathered", types),
    ("verify.py finds what is wrong", finds_a_wrong_byte),
    ("a shuffle balances the PEs", balances),
    ("inputs of a wrong size are refused", wrong_inputs),
    ("wrong options are refused", refusals),
])
