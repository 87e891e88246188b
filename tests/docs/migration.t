#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What docs/migration.md, docs/cann-shmem.md and README name as a counterpart exists: C's names in the library, its
headers or its manual, Python's names in the package. Of other packages for Python, and of CANN SHMEM's functions
for the host, every public name has a row."""
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

# The public names of other packages, by the heading of their tables; the headings of docs/cann-shmem.md are its own.
# Constants of an enumeration are its own.
CANN_HOST = "Start and end", "Memory", "Teams", "Put, get and signals by the host", "Waits, tests, barriers", "Log and profiling", "Engines"
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
""", "Python": """
    aclshmem_init aclshmem_get_unique_id aclshmem_init_using_unique_id aclshmem_finalize aclshmem_malloc
    aclshmem_free aclshmem_ptr aclshmemx_get_heap_base my_pe pe_count set_conf_store_tls_key set_conf_store_tls
    team_my_pe team_n_pes team_split_strided team_split_2d team_translate_pe team_destroy InitAttr InitStatus
    OpEngineType aclshmem_calloc aclshmem_align aclshmemx_init_status get_ffts_config aclshmem_global_exit
    aclshmem_putmem_nbi aclshmem_getmem_nbi aclshmemx_putmem_signal aclshmemx_putmem_signal_nbi aclshmem_putmem
    aclshmem_getmem aclshmem_info_get_version aclshmem_info_get_name aclshmem_team_get_config set_log_level
    set_extern_logger aclshmem_create_tensor aclshmem_free_tensor aclshmem_signal_wait_until OptionalAttr
    calc_nbytes construct_tensor_from_ptr get_unique_id init finalize get_version UniqueID put_signal signal_op
    signal_wait put get quiet buffer free get_peer_buffer ComparisonType SignalOp n_pes init_status
""", CANN_HOST: """
    aclshmemx_init_status aclshmemx_get_uniqueid aclshmemx_set_attr_uniqueid_args aclshmemx_init_attr
    aclshmem_finalize aclshmemx_finalize aclshmem_info_get_version aclshmem_info_get_name
    aclshmemx_set_config_store_tls_key aclshmem_global_exit aclshmemx_set_conf_store_tls
    aclshmemx_instance_ctx_get aclshmemx_instance_ctx_set aclshmem_malloc aclshmem_calloc aclshmem_align
    aclshmem_free aclshmemx_malloc aclshmemx_calloc aclshmemx_align aclshmemx_free aclshmemx_get_heap_base
    aclshmem_team_split_strided aclshmem_team_split_2d aclshmem_team_translate_pe aclshmem_team_destroy
    aclshmem_my_pe aclshmem_n_pes aclshmem_team_my_pe aclshmem_team_n_pes aclshmem_team_get_config
    aclshmemx_set_extern_logger aclshmemx_set_log_level aclshmemx_show_prof aclshmemx_get_prof aclshmem_barrier
    aclshmem_barrier_all aclshmemx_barrier_on_stream aclshmemx_barrier_all_on_stream aclshmem_sync
    aclshmem_sync_all util_get_ffts_config aclshmemx_handle_wait aclshmemx_signal_wait_until_on_stream
    aclshmem_signal_wait_until aclshmem_TYPE_wait_until aclshmem_TYPE_wait aclshmem_TYPE_wait_until_all
    aclshmem_TYPE_wait_until_any aclshmem_TYPE_wait_until_some aclshmem_TYPE_wait_until_all_vector
    aclshmem_TYPE_wait_until_any_vector aclshmem_TYPE_wait_until_some_vector aclshmem_TYPE_test
    aclshmem_TYPE_test_any aclshmem_TYPE_test_some aclshmem_TYPE_test_all_vector aclshmem_TYPE_test_any_vector
    aclshmem_TYPE_test_some_vector aclshmem_TYPE_put_signal aclshmem_TYPE_put_signal_nbi aclshmem_putSIZE_signal
    aclshmem_putSIZE_signal_nbi aclshmemx_putmem_signal aclshmemx_putmem_signal_nbi aclshmemx_signal_op_on_stream
    aclshmem_ptr aclshmem_TYPE_put aclshmem_TYPE_put_nbi aclshmem_TYPE_iput aclshmem_putSIZE aclshmem_putSIZE_nbi
    aclshmem_iputSIZE aclshmem_TYPE_get aclshmem_TYPE_get_nbi aclshmem_TYPE_iget aclshmem_getSIZE
    aclshmem_getSIZE_nbi aclshmem_igetSIZE aclshmem_TYPE_p aclshmem_TYPE_g aclshmem_putmem aclshmem_getmem
    aclshmem_putmem_nbi aclshmem_getmem_nbi aclshmemx_putmem_on_stream aclshmemx_getmem_on_stream
    aclshmemx_set_mte_config aclshmemx_set_sdma_config aclshmemx_set_rdma_config aclshmemx_set_udma_config
    aclshmemx_quiet_on_stream
"""}


def counterparts(document):
    """The names in back quotes in all columns but the first, of every table."""
    for line in document.read_text().splitlines():
        if line.startswith("|"):
            for cell in line.strip("|").split(" | ")[1:]:
                yield from re.findall(r"`([^`]+)`", cell)


CANN = ROOT / "docs/cann-shmem.md"
DOCUMENTS = [ROOT / "docs/migration.md", CANN, ROOT / "README.md"]
NAMES = [name for document in DOCUMENTS for name in counterparts(document)]


def of_c(problems):
    symbols = subprocess.run(["nm", "-D", "--defined-only", interpreter.BUILD / "lib/libweft.so"], check=True,
                             capture_output=True, text=True).stdout
    known = set(symbols.split()) | set(C_NAME.findall(" ".join(
        text.read_text() for text in [*(ROOT / "include").rglob("*.*h"), *(ROOT / "docs/man").glob("*.[37]")])))
    found = {name for text in NAMES for name in C_NAME.findall(text)}
    problems += [f"there is no {name}" for name in sorted(found - known)]
    if len(found) < 200:
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
    for document in DOCUMENTS[:2]:
        for number, line in enumerate(document.read_text().splitlines(), 1):
            if line.startswith("|") and re.search(r"\|\s+\|", line):
                problems.append(f"{document.name}:{number} has an empty cell")


def rows_of(heading):
    """(names in the first cell, the second) of the tables below a heading, or below one of several."""
    pages = (ROOT / "docs/migration.md").read_text() + CANN.read_text()
    for name in [heading] if isinstance(heading, str) else heading:
        for line in pages.split(f"\n## {name}\n")[1].split("\n## ")[0].splitlines():
            if line.startswith("| `"):
                there, here = line.strip("|").split(" | ")[:2]
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


tap.run([("every public name of other libraries has a row", has_every_name),
         ("C's counterparts exist", of_c), ("Python's counterparts exist", of_python),
         ("no cell is left empty", is_said_plainly)])
