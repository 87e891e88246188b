#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The command `weft`: what info says of GPUs and of hosts, and the table and drawing of perf, without a GPU and with
those of the pretended driver.
"""
import atexit
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / os.environ.get("WEFT_BUILD", "build")
sys.path.insert(0, str(ROOT / "tests"))
import tap  # noqa: E402

WORK = pathlib.Path(tempfile.mkdtemp(prefix="weft-tools-"))
atexit.register(shutil.rmtree, WORK)
DRIVER = BUILD / "tests/gpu/driver"
NO_GPU = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
GPUS = {**os.environ, "LD_LIBRARY_PATH": str(DRIVER)}
CALLS = ("put", "get", "signal", "barrier")
ALL_CALLS = (*CALLS, "put_nbi", "get_nbi", "bi_put", "bi_get", "atomic", "all_gather", "all_reduce")
# The number of columns on GPUs of the calls that cannot be made in all four ways.
COLUMNS = {"barrier": 3, "put_nbi": 2, "get_nbi": 2, "atomic": 2, "all_gather": 3, "all_reduce": 3}
FIGURE = r"[\d.e+]+ (?:ns|us)"


def weft(npes, *arguments, environment=NO_GPU):
    return subprocess.run([BUILD / "bin/oshrun", "-n", str(npes), BUILD / "bin/weft", *arguments], cwd=WORK,
                          capture_output=True, text=True, timeout=120, env=environment)


def expect(problems, what, condition, result):
    if not condition:
        problems.append(f"{what}: status {result.returncode}\n# " +
                        (result.stdout + result.stderr).replace("\n", "\n# "))


def gpu_section(result):
    return re.search(r"^GPUs\n((?:  .*\n)+)", result.stdout, re.M).group(1)


def need_driver():
    if not DRIVER.exists():
        raise tap.Skip("the pretended driver is not built (make tests)")


def helps(problems):
    for words in (["-h"], ["--help"], ["help"], ["info", "-h"], ["info", "--help"], ["perf", "-h"], ["perf", "put", "--help"]):
        result = subprocess.run([BUILD / "bin/weft", *words], capture_output=True, text=True, timeout=60)
        begin = "usage: oshrun -n 2 weft perf [NAME]..." if "perf" in words else "usage: weft info"
        expect(problems, words, result.returncode == 0 and result.stdout.startswith(begin) and not result.stderr, result)
        for word in ("16m", "32k", "1m", "weft-perf.svg", *ALL_CALLS, "all") if "perf" in words else ():
            expect(problems, f"{words}: {word}", word in result.stdout, result)


def info_without(problems):
    result = weft(2, "info")
    expect(problems, "one reason", re.fullmatch(r"  none +\S.*\n", gpu_section(result)), result)


def info_with(problems):
    need_driver()
    result = weft(3, "info", environment=GPUS)
    section = gpu_section(result)
    for pattern in (r"  PE 0 +GPU 0, .* GiB, capability 9\.0, \d+ multiprocessors\n", r"  PE 1 +GPU 1, ",
                    r"  links +load and store, atomics, rank 0: 0-1 1-0", r"the same GPU: 0-2 2-0\n",
                    r"  copies +within the GPU ", r" to a peer ", r" from a peer ", r" to the host ", r" from the host "):
        expect(problems, pattern, re.search(pattern, section), result)


def info_staged(problems):
    need_driver()
    for name, value in (("WEFT_FAKE_NO_PEER", "0-1"), ("SHMEMX_PEER_ACCESS", "off")):
        result = weft(2, "info", environment=dict(GPUS, **{name: value}))
        expect(problems, name, "links        staged through host memory (no peer access): 0-1 1-0\n" in
               gpu_section(result), result)


def info_hosts(problems):
    result = weft(2, "info")
    expect(problems, "OpenSSL", re.search(r"^hosts\n  engine +\S.*\n  TLS +OpenSSL 3\.\d.*\n", result.stdout, re.M), result)
    folder = WORK / "broken"
    folder.mkdir()
    (folder / "libssl.so.3").write_text("This is no library.\n")
    result = weft(2, "info", environment={**NO_GPU, "LD_LIBRARY_PATH": str(folder)})
    expect(problems, "none", re.search(r"^  TLS +none: there is no OpenSSL 3 here .*: install libssl3", result.stdout, re.M),
           result)


def check_perf(problems, result, on_gpus=False, calls=CALLS):
    expect(problems, "status", result.returncode == 0 and not result.stderr, result)
    tables = re.findall(r"^(\w+) +(host memory.*)\n((?: .*\n)+)", result.stdout, re.M)
    expect(problems, "a table for each call", [name for name, _, _ in tables] == list(calls), result)
    for name, head, rows in tables:
        columns = COLUMNS.get(name, 4) if on_gpus else 1
        rate = "" if name in ("signal", "barrier", "atomic") else r" +[\d.e+]+ [MG]B/s"
        size = "" if name in ("barrier", "atomic") else " +8 B"
        expect(problems, f"{name}: {columns} columns", len(re.findall("memory", head)) == columns and
               re.match(rf"{size}(?: +{FIGURE}{rate}){{{columns}}} *\n", rows), result)


def check_drawing(problems, path, wanted):
    root = xml.etree.ElementTree.parse(path).getroot()
    text = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    width, height = float(root.get("width")), float(root.get("height"))
    problems += [f"{path.name} lacks '{word}'" for word in wanted if word not in text]
    for element in root.iter("{http://www.w3.org/2000/svg}circle"):
        if not (0 <= float(element.get("cx")) <= width and 0 <= float(element.get("cy")) <= height):
            problems.append(f"{path.name}: a point lies outside")


def perf_on_the_host(problems):
    check_perf(problems, weft(2, "perf", "-m", "4k", "-o", "host.svg"))
    check_drawing(problems, WORK / "host.svg", [
        "put and quiet, microseconds (logarithmic)", "get, GB/s (logarithmic)", "bytes (logarithmic)", "host memory",
        "barrier of all PEs, microseconds", "4 KiB"])


def perf_on_gpus(problems):
    need_driver()
    check_perf(problems, weft(3, "perf", "-m", "512", environment=GPUS), True)
    check_drawing(problems, WORK / "weft-perf.svg", ["GPU memory, host calls", "GPU memory, in a graph", "512 B"])


def perf_of_some(problems):
    check_perf(problems, weft(2, "perf", "get", "-m", "64", "-o", "get.svg"), False, ("get",))


def perf_of_all(problems):
    check_perf(problems, weft(3, "perf", "all", "-m", "64k", "-o", "all.svg"), False, ALL_CALLS)
    check_drawing(problems, WORK / "all.svg", [
        "put, 8 before a quiet, GB/s (logarithmic)", "get in both directions, microseconds (logarithmic)",
        "atomic fetch-add, microseconds", "all-gather of all PEs, GB/s (logarithmic)", "32 KiB"])
    far = dict(NO_GPU, WEFT_PRETEND_HOSTS="each", WEFT_ENGINE="tcp")
    check_perf(problems, weft(2, "perf", "all", "-m", "64", "-o", "far.svg", environment=far), False, ALL_CALLS)


def perf_of_all_on_gpus(problems):
    need_driver()
    check_perf(problems, weft(2, "perf", "all", "-m", "512", environment=GPUS), True, ALL_CALLS)


def rates(problems):
    """Both directions of bi_put count, and in an all-gather what all PEs have sent."""
    result = weft(3, "perf", "put", "bi_put", "all_gather", "all_reduce", "-m", "8")
    for name, moved in (("put", 8), ("bi_put", 16), ("all_gather", 24), ("all_reduce", 8)):
        time, unit, rate, scale = re.search(rf"^{name} .*\n +8 B +(\S+) (ns|us) +(\S+) ([MG])B/s", result.stdout, re.M).groups()
        expected = moved / (float(time) * {"ns": 1e-9, "us": 1e-6}[unit])
        found = float(rate) * {"M": 1e6, "G": 1e9}[scale]
        expect(problems, f"{name}: {found} is not {expected}", abs(found - expected) < 0.02 * expected, result)


def wrong_arguments(problems):
    for arguments, text in ((["perf", "gather"], "gather"), (["perf", "put", "bi_all"], "bi_all"), (["perf", "-m", "4x"], "4x"), (["perf", "-m"], "-m"),
                            (["perf", "-o"], "-o"), (["measure"], "unknown command 'measure'")):
        result = weft(1, *arguments)
        expect(problems, " ".join(arguments), result.returncode == 2 and text in result.stderr, result)
    result = weft(1, "perf")
    expect(problems, "one PE", result.returncode == 2 and "oshrun -n 2" in result.stderr, result)
    result = weft(2, "perf", "barrier", "-o", "no/such/folder.svg")
    expect(problems, "no folder", result.returncode == 1 and "no/such/folder.svg: No such file" in result.stderr, result)


tap.run([
    ("every command has help", helps),
    ("weft info says why there is no GPU", info_without),
    ("weft info shows GPUs, links and engines", info_with),
    ("weft info names pairs that are staged", info_staged),
    ("weft info says what hosts speak to each other by", info_hosts),
    ("weft perf measures the host, as table and drawing", perf_on_the_host),
    ("weft perf measures GPUs", perf_on_gpus),
    ("weft perf measures what is named", perf_of_some),
    ("weft perf measures all calls, near and far", perf_of_all),
    ("weft perf measures all calls on GPUs", perf_of_all_on_gpus),
    ("its rates are bytes over time", rates),
    ("what is wrong is named", wrong_arguments),
])
