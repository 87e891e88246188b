#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Kernels compiled with WEFT_CHECK: misuse gives one line that names PE, block, thread, function, argument, value and
remedy, by one of the threads, and ends the job. A long wait reports what it waits for, and ends the job as well.

On the pretended driver, or on this machine's GPUs with GPU_REAL=1; GPU_PES is the number of PEs."""
import os
import pathlib
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = (ROOT / os.environ.get("WEFT_BUILD", "build")).resolve()
sys.path.insert(0, str(ROOT / "tests"))
import tap  # noqa: E402

REAL = bool(os.environ.get("GPU_REAL"))
NPES = int(os.environ.get("GPU_PES", "2"))
ENVIRONMENT = {**os.environ, "GPU_REQUIRED": "1"}
if not REAL:
    ENVIRONMENT["LD_LIBRARY_PATH"] = str(BUILD / "tests/gpu/driver")
LAST, SECONDS = NPES - 1, 10
AT = "(0x)?[0-9a-f]+"

# In the order of tests/gpu/check/misuse.h: the line after PE, block and thread.
MISUSE = [
    "weft_signal: argument t is of version 0, and this kernel knows version 1: fill it by shmemx_device_team",
    f"weft_put_b: argument m is {NPES}, but the team has {NPES} members: pass 0 to {LAST}$",
    f"weft_get_w: argument m is -1, but the team has {NPES} members: pass 0 to {LAST}$",
    f"weft_put_t: argument dest is {AT}, and 8 bytes from there are not in this PE's device heap, {AT} to {AT}: pass this",
    rf"weft_put_b: argument dest is {AT}, and \d+ bytes from there are not in this PE's device heap",
    "weft_put_signal_b: argument m is 99, but",
    "weft_put_signal_w: argument op is 7: pass one of the constants of weft/device.cuh, 1 to 2$",
    f"weft_at: argument m is {NPES + 1}, but",
    f"weft_bulk_put: argument to is {AT}, not aligned to 16 bytes",
    "weft_bulk_put: argument bytes is 15, not a multiple of 16",
    f"weft_p64: argument dest is {AT}, not aligned to 8 bytes",
    f"weft_signal: argument sig is {AT}, and 8 bytes from there are not in this PE's device heap",
    f"weft_atomic_add32: argument m is {NPES}, but",
    f"weft_wait_until: argument sig is {AT}, not aligned to 8 bytes",
    "weft_wait_until: argument cmp is 0: pass one of the constants of weft/device.cuh, 1 to 6$",
    "weft_barrier_b: argument channel is 2, but the handle has 2: pass a smaller one, or ask shmemx_device_team",
    "weft_ll_epoch_begin: argument channel is 7, but the handle has 2",
    "weft_ll_send: argument unit is 4, but a slot of 64 bytes has 4: pass a smaller one",
    f"weft_ll_recv: argument m is {NPES}, but",
    "weft_ll_epoch_begin: argument t is a handle that has been freed, number [1-9]",
    f"weft_put_b: argument m is {NPES}, but the team has {NPES} members: pass 0 to {LAST}$",
]
BY_ROWS = len(MISUSE) - 1   # in a grid and blocks of two dimensions
WAITS = [
    f"weft_wait_until: has waited 0.3 s for the word at {AT} to be >= 5: it is 0$",
    r"weft_barrier: has waited 0.3 s for member \d on channel 1: this is epoch 1, and it has reached 0$",
    r"weft_sync: has waited 0.3 s for member \d on channel 1: this is epoch 1, and it has reached 0$",
    "weft_barrier(_grid)?: has waited 0.3 s for (all blocks of all members: of this grid 2 of 2 have reached epoch 1"
    "|member [0-9] on channel 0: this is epoch 1, and it has reached 0)$",
    r"weft_ll_recv: has waited 0.3 s for packet 2 of member \d on channel 1, epoch 7$",
    f"nvshmem_int_wait_until: has waited 0.3 s for the word at {AT} to be < -5: it is 0$",
    f"nvshmem_short_wait_until_any: has waited 0.3 s for one of 2 words from {AT} on to be == -3: the first is 0$",
    f"nvshmem_uint64_wait_until_some: has waited 0.3 s for one of 2 words from {AT} on to be > 18446744073709551615: the "
    "first is 0$",
    f"weft_wait_until_ns: has waited 0.3 s for the word at {AT} to be >= 5: it is 0$",
]
BOUNDED = len(MISUSE) + len(WAITS) - 1   # ends by itself, and so does the job


def play(number):
    command = [BUILD / "bin/oshrun", "-n", str(NPES), BUILD / "tests/gpu/check", str(number)]
    began = time.monotonic()
    ran = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT, timeout=60)
    said = [line for line in (ran.stdout + ran.stderr).splitlines() if re.match(r"weft: PE \S+, block", line)]
    return ran, said, time.monotonic() - began


def ends(number, pattern, lines_most):
    """Functions without a handle, or with a bad one, cannot report: the kernel traps."""
    traps = re.search("of version 0|weft_bulk", pattern)

    def check(problems):
        if "weft_bulk" in pattern and not REAL:
            raise tap.Skip("pretended bulk copies look for themselves")
        ran, said, seconds = play(number)
        place = r"block 0,[01],0, thread \d+,[01],0" if number == BY_ROWS else r"block [01], thread \d+"
        right = [line for line in said if re.match(rf"weft: PE (-1|{LAST}), {place}: {pattern}", line)]
        if not 1 <= len(said) <= lines_most or right != said:
            problems.append(f"{len(said)} lines, of which {len(right)} are like: {pattern}")
        goes_on = ran.returncode in (0, 97, 98) and not (traps and "the kernel has failed" in ran.stdout)
        if goes_on != (number == BOUNDED) or seconds > SECONDS:
            problems.append(f"status {ran.returncode} after {seconds:.1f} s")
        if problems:
            problems += (ran.stdout + ran.stderr).splitlines()[:12]
    return check


if not (BUILD / "tests/gpu/check").exists() or REAL and not (BUILD / "tests/gpu/check.fatbin").exists():
    print("1..0 # SKIP the kernels of this test are not built: there is no nvcc")
    sys.exit(0)
if NPES == 1:
    print("1..0 # SKIP a PE alone waits for nobody")
    sys.exit(0)
tap.run(tap.ahead([(pattern.split(",")[0], ends(number, pattern, 1)) for number, pattern in enumerate(MISUSE)] +
                  [(pattern.split(":")[0] + " that lasts", ends(len(MISUSE) + number, pattern, 16))
                   for number, pattern in enumerate(WAITS)]))
