#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What docs/migration.md and README name as a counterpart exists: C's names in the library or its headers,
Python's in the package. Of other packages for Python every public name has a row."""
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "python")]
import interpreter  # noqa: E402
import tap  # noqa: E402

ROOT = interpreter.ROOT
C_NAME = re.compile(r"(?:shmemx?|weft|SHMEMX?|WEFT)_[A-Za-z0-9_]+")
PYTHON_NAME = re.compile(r"(?:weft|Buffer|Team|Ctx|Lock)\.\w+")
LOOK = """
import importlib.util, sys, weft
for name in sys.argv[1:]:
    holder, member = name.split(".")
    known = hasattr(weft if holder == "weft" else getattr(weft, holder), member)
    if not known and not (holder == "weft" and importlib.util.find_spec(name)):
        print(name)
"""

# The public names of other packages, by the heading of their table. Constants of an enumeration are its own.
PUBLIC = {"shmem4py": """
    MAJOR_VERSION MINOR_VERSION VENDOR_STRING info_get_version info_get_name THREAD init finalize global_exit
    init_thread query_thread CTX Ctx Ctx.create Ctx.destroy Ctx.get_team Ctx.fence Ctx.quiet CTX_DEFAULT
    CTX_INVALID Team Team.destroy Team.split_strided Team.get_config Team.my_pe Team.n_pes Team.translate_pe
    Team.create_ctx Team.sync TEAM_WORLD TEAM_SHARED TEAM_INVALID my_pe n_pes pe_accessible addr_accessible
    ptr MALLOC alloc free fromalloc new_array del_array array empty zeros ones full put get iput iget put_nbi
    get_nbi atomic_set atomic_inc atomic_add atomic_and atomic_or atomic_xor atomic_fetch atomic_swap
    atomic_compare_swap atomic_fetch_inc atomic_fetch_add atomic_fetch_and atomic_fetch_or atomic_fetch_xor
    atomic_fetch_nbi atomic_swap_nbi atomic_compare_swap_nbi atomic_fetch_inc_nbi atomic_fetch_add_nbi
    atomic_fetch_and_nbi atomic_fetch_or_nbi atomic_fetch_xor_nbi AMO atomic_op atomic_fetch_op
    atomic_fetch_op_nbi new_signal del_signal SigAddr signal_fetch SIGNAL put_signal put_signal_nbi
    barrier_all sync_all sync broadcast collect fcollect alltoall alltoalls OP reduce and_reduce or_reduce
    xor_reduce max_reduce min_reduce sum_reduce prod_reduce CMP wait_until wait_until_all wait_until_any
    wait_until_some wait_until_all_vector wait_until_any_vector wait_until_some_vector test test_all test_any
    test_some test_all_vector test_any_vector test_some_vector signal_wait_until fence quiet new_lock del_lock
    LockHandle set_lock test_lock clear_lock Lock Lock.destroy Lock.acquire Lock.release pcontrol
""", "nvshmem4py": """
    BufferTypes ComparisonType DeviceLibLanguage InitStatus MutableEnum NvshmemError NvshmemInvalid
    NvshmemKernelObject NvshmemResource NvshmemStream NvshmemStreamsType SignalOp SmemAmount TeamConfig
    TeamUniqueId Teams ThreadSupport UniqueID Version alltoall array array_get_buffer ask_smem atomic_add
    atomic_and atomic_compare_swap atomic_fetch atomic_fetch_add atomic_fetch_and atomic_fetch_inc
    atomic_fetch_or atomic_fetch_xor atomic_inc atomic_or atomic_set atomic_swap atomic_xor barrier
    barrier_all broadcast buffer bytearray bytetensor collective_on_buffer fcollect finalize
    find_device_bitcode_library flush free free_array free_tensor get get_multicast_array get_multicast_buffer
    get_multicast_tensor get_name get_nbi get_peer_array get_peer_buffer get_peer_tensor get_team_unique_id
    get_unique_id get_version init init_status library_finalize library_init module_finalize module_init my_pe
    n_pes put put_nbi put_signal put_signal_nbi query_thread quiet reduce reducescatter
    register_external_array register_external_buffer register_external_tensor signal_fetch signal_op
    signal_wait sync sync_all team_destroy team_get_config team_init team_my_pe team_n_pes team_split_2d
    team_split_strided team_translate_pe tensor tensor_get_buffer unregister_external_array
    unregister_external_buffer unregister_external_tensor
"""}


def counterparts(document):
    """The names in back quotes in all columns but the first, of every table."""
    for line in document.read_text().splitlines():
        if line.startswith("|"):
            for cell in line.strip("|").split(" | ")[1:]:
                yield from re.findall(r"`([^`]+)`", cell)


DOCUMENTS = [ROOT / "docs/migration.md", ROOT / "README.md"]
NAMES = [name for document in DOCUMENTS for name in counterparts(document)]


def of_c(problems):
    symbols = subprocess.run(["nm", "-D", "--defined-only", interpreter.BUILD / "lib/libweft.so"], check=True,
                             capture_output=True, text=True).stdout
    known = set(symbols.split()) | set(C_NAME.findall(" ".join(
        header.read_text() for header in (ROOT / "include").rglob("*.*h"))))
    found = {name for text in NAMES for name in C_NAME.findall(text)}
    problems += [f"there is no {name}" for name in sorted(found - known)]
    if len(found) < 90:
        problems.append(f"only {len(found)} names were found")


def of_python(problems):
    if not (interpreter.BUILD / "python").is_dir() or not interpreter.find():
        raise tap.Skip("the Python package is not built, or no Python from 3.10 on is here")
    found = sorted({name for text in NAMES for name in PYTHON_NAME.findall(text)})
    done = subprocess.run([interpreter.find(), "-c", LOOK, *found], capture_output=True, text=True,
                          env=interpreter.environment())
    problems += [f"there is no {name}" for name in done.stdout.split()] + done.stderr.splitlines()
    if len(found) < 60:
        problems.append(f"only {len(found)} names were found")


def is_said_plainly(problems):
    for document in DOCUMENTS[:1]:
        for number, line in enumerate(document.read_text().splitlines(), 1):
            if line.startswith("|") and re.search(r"\|\s+\|", line):
                problems.append(f"{document.name}:{number} has an empty cell")


def rows_of(heading):
    """(names in the first cell, the second) of the table below a heading."""
    section = (ROOT / "docs/migration.md").read_text().split(f"\n## {heading}\n")[1].split("\n## ")[0]
    for line in section.splitlines():
        if line.startswith("| `"):
            there, here = line.strip("|").split(" | ")
            yield re.findall(r"`([^`]+)`", there), here.strip()


def spelled_out(names):
    """What a cell names: `atomic_set`, `_inc` are atomic_set and atomic_inc; `Ctx`, `destroy` Ctx.destroy."""
    whole, short = [name for name in names if name[0] != "_"], [name for name in names if name[0] == "_"]
    found = set(whole) | {f"{names[0].partition('.')[0]}.{name}" for name in whole[1:]}
    for name in short:
        found |= {word[:end] + name for word in set(found) for end in range(len(word) + 1) if word[end:end + 1] in ("_", "")}
    return found


def has_every_name(problems):
    for heading, names in PUBLIC.items():
        rows = [(spelled_out(there), here) for there, here in rows_of(heading)]
        for name in names.split():
            here = [here for there, here in rows if name in there]
            if not here:
                problems.append(f"{heading}: {name} has no row")
        problems += [f"{heading}: {here!r} gives no reason" for _, here in rows
                     if re.fullmatch(r"(no counterpart( yet)?|not needed)", here)]


tap.run([("every public name of packages for Python has a row", has_every_name),
         ("C's counterparts exist", of_c), ("Python's counterparts exist", of_python),
         ("no cell is left empty", is_said_plainly)])
