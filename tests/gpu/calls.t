#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Forbidden calls of teams end the job, with one line that says why: in graphs, of a team that was destroyed, always;
concurrently with another call of the team, in checked mode; of members with different engines, which the last
member reports; and numbers in GPU memory that do not fit: of rows, blocks and peers. On the pretended driver."""
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / os.environ.get("WEFT_BUILD", "build")
STATUS_ERROR = 71
NPES = 2

STALE = "a graph has launched a call of a team that was destroyed"
BUSY = "two calls of one team were under way at once"
ENGINES = ("uses engines between two meetings here, where the engine is 'copy', but packets on PE 1, where the engine is "
           "'auto'")
DEST = "member 1 of the team receives more rows than its dest has"
SOURCE = "the rows of entry 1 of source_splits and source_offsets are not in source"
BLOCK = "entry 0 of from_blocks or to_blocks is not the number of a block"
PEER = "peer_and_role of this PE has the peer 0"
ROWS = "this PE would receive more rows than rows_max: expert 1 has no room for all of its rows"

# scene, whether in checked mode, expected text
SCENES = [
    ("stale_barrier", False, STALE),
    ("stale_meeting", False, STALE),
    ("stale_barrier", True, STALE),
    ("branches", True, BUSY),
    ("beside", True, BUSY),
    ("engines", False, ENGINES),
    ("engines", True, ENGINES),
    ("engines_and_sums", True, None),
    ("overflow", False, ROWS),
    ("exchange_dest", False, DEST),
    ("exchange_source", False, SOURCE),
    ("exchange_negative", False, SOURCE),
    ("kv_block", False, BLOCK),
    ("kv_peer", False, PEER),
    ("ordered", False, None),
    ("ordered", True, None),
]


def run(scene, checked):
    environment = dict(os.environ, LD_LIBRARY_PATH=str((BUILD / "tests/gpu/driver").resolve()), GPU_REQUIRED="1",
                       WEFT_FAKE_DELAY_US="100", **({"SHMEM_DEBUG": "1"} if checked else {}))
    try:
        return subprocess.run([str(BUILD / "bin/oshrun"), "-n", str(NPES), str(BUILD / "tests/gpu/calls"), scene],
                              capture_output=True, text=True, timeout=30, env=environment)
    except subprocess.TimeoutExpired as error:
        return subprocess.CompletedProcess(error.cmd, -1, "", f"the job hangs\n{error.stderr}")


if not (BUILD / "tests/gpu/driver/libcuda.so.1").exists():
    print("1..0 # SKIP the pretended driver is not built")
    sys.exit(0)
failed = 0
for number, (scene, checked, line) in enumerate(SCENES, 1):
    result = run(scene, checked)
    said = [text for text in result.stderr.splitlines()
            if text.startswith("weft:") and not text.endswith("; leaving") and " heap slots of " not in text
            and " at the end of the job: " not in text]
    right = result.returncode == (STATUS_ERROR if line else 0) and (
        any(line in text for text in said) if line else not said)
    failed += not right
    print(f"{'ok' if right else 'not ok'} {number} - {scene}{', checked' if checked else ''}", flush=True)
    if not right:
        print(f"status {result.returncode}: {result.stderr}", file=sys.stderr)
print(f"1..{len(SCENES)}")
sys.exit(failed > 0)
