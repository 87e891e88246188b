#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The order in the kernels of collectives is necessary: with one flag, fence, epoch or barrier removed from the source,
their tests fail on the pretended driver, which runs all threads in random order and lets stores arrive late. So the
tests would find a mistake.

Each mutation is compiled into a driver of its own. With WEFT_TEST_LONG=1 all are tried, and the originals, which in the
short form run by themselves (tests/matrix.txt, with delays)."""
import functools
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / os.environ.get("WEFT_BUILD", "build")
DRIVER = BUILD / "tests/gpu/driver"
LONG = bool(os.environ.get("WEFT_TEST_LONG"))
SEEDS, NPES, HANG_MS = 12 if LONG else 6, 3, 3000
PATIENCE_MS = 60000  # of an original, whose peers may have to wait for a processor
sys.path.insert(0, str(ROOT / "tests"))
sys.path.insert(0, str(ROOT / "tests/gpu"))
import mutation  # noqa: E402
import tap  # noqa: E402
import device_mutations  # noqa: E402

# For each kernel and its test: what is missing, a file, the original (an expression that occurs once) and its
# replacement. The short form tries the first of each, except those in LONG_ALONE.
UNCOUNTED = ("src/transport/gpu_channel.cuh", r"weft_st_relaxed_sys\(word, epoch\);", ";")
LL = [
    ("half of a packet's flags is not looked at", "include/weft/device/packet.cuh",
     r"(\w+)\.b != (\w+) \|\| \1\.d != \2", r"\1.b != \2"),
    ("packets of all calls have one slot", "src/coll/ll.cu", r"\S+ & 1 \? [\w.]+ : 0", "0"),
    ("a broadcast does not wait until the others have started", "src/coll/ll.cu",
     r"weft_ld_relaxed_sys\(&started\[i\]\) < epoch - 1", "false"),
    ("nobody says that it has started a broadcast", "src/coll/ll.cu", r"weft_st_relaxed_sys\([^;]*started[^;]*;", ";"),
    ("calls by packets are not counted", *UNCOUNTED),
    ("an exchange is counted before all threads have its epoch", "src/coll/ll.cu",
     r"(gather\(work, place, abort\);\s+\}\s+)weft_block_sync\(\);", r"\1"),
    ("threads fold before the others have received", "src/coll/ll.cu",
     r"weft_block_sync\(\);(\s+if \(place\.group)", r"\1"),
    ("threads of large calls fold before the others have received", "src/coll/ll.cu",
     r"weft_block_sync\(\);(\s+if \(folds\))", r"\1"),
    ("inboxes keep what has flags that come round", "include/weft/device/packet.cuh", r"!weft_gpu_epoch_is_last\(epoch\)", "true"),
]
PUSH = [
    ("the word behind pushed data is no release", "src/transport/gpu_channel.cuh",
     r"weft_st_release_sys(\([^;]*CHANNEL_DONE)", r"weft_st_relaxed_sys\1"),
    ("the word behind pushed data does not wait for the block's other threads", "src/transport/gpu_channel.cuh",
     r"(tell_done\([^}]*?)weft_block_sync\(\);", r"\1"),
    ("data is pushed to members that have not come to the call", "src/coll/push.cu",
     r"!weft_channel_await\([^;]*CHANNEL_READY, *epoch\)", "false"),
    ("a member does not wait for what is pushed to it", "src/coll/push.cu",
     r"weft_channel_await\([^;]*CHANNEL_DONE, *epoch\)", "true"),
    ("exchanges are not counted", *UNCOUNTED),
]
MARKED = [
    ("one word of a marked unit is looked at", "src/coll/marked.cuh", r"(unit\.a == WEFT_MARK) \|\|[^;]*;", r"\1;"),
    ("a marked word is not put back", "src/coll/marked.cuh",
     r"weft_st_relaxed_sys\([^;]*\{WEFT_MARK, WEFT_MARK, WEFT_MARK, WEFT_MARK\}\);", ";"),
    ("a number that is a mark is sent as it is", "src/coll/marked.cuh",
     r"word == WEFT_MARK \? WEFT_UNMARKED : word", "word"),
    ("marked words of all calls have one slot", "src/coll/marked.cu", r"\(uint32_t\)\(epoch & 1\)", "0"),
    ("answers lie where marked words are sent first", "src/coll/marked.cuh", "WEFT_MARKED_ANSWER = 2", "WEFT_MARKED_ANSWER = 0"),
    ("sums by marked words are not counted", *UNCOUNTED),
]
BARRIER = [
    ("a barrier's epoch is counted before all threads have it", "src/transport/barrier.cu",
     r"weft_block_sync\(\);", ""),
    ("a barrier does not wait", "src/transport/barrier.cu", r"weft_ld_acquire_sys\(&mine->arrived\[i\]\) < epoch",
     "false"),
    ("barriers are not counted", "src/transport/barrier.cu", r"mine->epoch = epoch;", ";"),
]
MEET = [
    ("a meeting waits for nobody", "src/coll/meet.cu", r"weft_ld_acquire_sys\(&mine\[i\]\) != 1", "false"),
    ("a meeting tells nobody", "src/coll/meet.cu", r"weft_st_relaxed_sys\(&member\[me\], 1u\);", ";"),
    ("a meeting leaves what it was told for the next one", "src/coll/meet.cu",
     r"weft_st_relaxed_sys\(&mine\[i\], 0u\);", ";"),
]
TILE = "src/fused/hopper_tile.cuh"
HOPPER = [
    ("a stage is loaded before it is empty", TILE, r"await\(block\.empty[^;]*;", ";"),
    ("a step is multiplied before it has arrived", TILE, r"await\(block\.full[^;]*;", ";"),
    ("a stage is released while it is multiplied", TILE, r"weft_wgmma_wait<1>\(\);", ""),
    ("the last stage of a tile is released while it is multiplied", TILE, r"weft_wgmma_wait<0>\(\);(\s+release)", r"\1"),
    ("a stage is released in one block", TILE, r"thread < WEFT_HOPPER_CLUSTER", "thread == block.rank"),
    ("bulk stores do not see the sums", TILE, r"weft_fence_async_shared\(\);", ""),
    ("a panel is stored before all threads have written", TILE,
     r"(weft_fence_async_shared\(\);\s+)weft_named_sync\(barrier, GROUP_THREADS\);", r"\1"),
    ("threads write a panel that the first one has not waited for", TILE,
     r"weft_named_sync\(barrier, GROUP_THREADS\);(\s+panel_write)", r"\1"),
    ("a panel is written again before its store has read it", TILE, r"weft_bulk_wait_read\(\);", ";"),
    ("one of two panels is written again before its store has read it", TILE, r"weft_bulk_wait_read_but_one\(\);", ";"),
    ("three panels take turns in two places", "src/fused/hopper_task.h", r"count % 2 \? count : 2", "count == 1 ? 1 : 2"),
    ("both blocks load the same half of a row-major B", TILE, r"block\.rank \* WEFT_HOPPER_BOX_DEPTH", "0"),
    ("a block ends before its stores have read its memory", TILE, r"weft_bulk_wait\(\);", ";"),
    ("a block uses mbarriers before the other one has made them", TILE,
     r"weft_cluster_sync\(\);", ""),
    ("a block ends before the other one is done with it", "src/fused/hopper.cu", r"weft_cluster_sync\(\);", ""),
]
EXCHANGE = "src/fused/hopper_exchange.cuh"
COUNTS = [
    ("the count of a chunk is no release", EXCHANGE, r"weft_red_add_sys\(", "weft_red_add_relaxed_sys_u64("),
    ("a chunk is counted before all lanes have stored", EXCHANGE, r"weft_warp_sync\(\);", ""),
    ("calls are not counted", EXCHANGE, r"weft_st_relaxed_sys\(epoch[^;]*;", ";"),
    ("tiles are not taken anew in each call", EXCHANGE, r"weft_st_relaxed_sys\(&words->tiles[^;]*;", ";"),
    ("pieces are not taken anew in each call", EXCHANGE, r"weft_st_relaxed_sys\(&words->pieces[^;]*;", ";"),
    ("one block alone is given the tiles", TILE, r"rank < WEFT_HOPPER_CLUSTER; rank\+\+", "rank < 1; rank++"),
]
CROWD = [  # a cluster takes more tiles than there are turns
    ("an earlier turn passes for this one", TILE, r"found >> 32 != turn \+ 1", "found == 0"),
]
GATHERER = "src/fused/hopper_gather.cuh"
GATHER = [
    *COUNTS,
    ("rows are loaded before they have arrived", GATHERER, r"await_chunk\([^;]*have->count\);", ";"),
    ("a member leaves before it has all shards", "src/fused/hopper.cu", r"await_all\(call\);", ";"),
    ("the own shard is in the slot of another member", GATHERER, r"me \* gather->units", "member * gather->units"),
]
REDUCER = "src/fused/hopper_reduce.cuh"
REDUCE = [
    *COUNTS,
    ("parts are added before they have arrived", REDUCER, r"await_chunk\([^;]*PARTS[^;]*;", ";"),
    ("sums are not collected anew in each call", EXCHANGE, r"weft_st_relaxed_sys\(&words->collected[^;]*;", ";"),
    ("lanes copy sums for which lane 0 still waits", REDUCER, r"weft_warp_sync\(\);(\s+rows_copy<FLIGHT>\(\s*rows_in_c\(task, part\),\s+rows_in_slot)", r"\1"),
    ("sums are copied before they have arrived", REDUCER, r"await_chunk\([^;]*SUMS[^;]*;", ";"),
    ("lanes load parts for which lane 0 still waits", REDUCER, r"weft_warp_sync\(\);(\s+if \(n == 2)", r"\1"),
    ("a part is pushed before it is in memory", REDUCER, r"weft_bulk_wait\(\);", ";"),
    ("a panel is written before its store has read it", REDUCER, r"panel_await<WIDTH>\(\);", ";"),
    ("a warpgroup writes a panel that is not free", REDUCER,
     r"weft_named_sync(\(PANEL_FREE[^;]*;\s+panel_write)", r"weft_named_arrive\1"),
    ("a warpgroup gets ahead where its part is outside", REDUCER,
     r"else\s+weft_named_sync\(PANEL_FREE[^;]*;", ""),
    ("bulk stores do not see the sums", REDUCER, r"weft_fence_async_shared\(\);", ""),
    ("chunks without tiles are not counted", "src/fused/hopper.cu", r"count_empty\(call\);", ";"),
    ("the own part is stored, not added", REDUCER, r"if \(add\)", "if (false)"),
]
NORMER = "src/coll/norm.cu"
NORM = [
    ("squares are added before the others have written theirs", NORMER, r"(sums\[thread\] = mine;\s+)weft_block_sync\(\);(\s+if)", r"\1\2"),
    ("the total is taken before it is complete", NORMER, r"weft_block_sync\(\);(\s+for \(uint32_t i = 0; i < few)", r"\1"),
    ("scales are used before they are found", NORMER, r"(scale_groups<T, Word>\(task, row, factor\);\s+)weft_block_sync\(\);", r"\1"),
    ("rows of different blocks have one place", NORMER, r"begin = channel \* work\.part,", "begin = 0,"),
]
WARPS = "src/fused/warps.cuh"
SUMS = [
    ("threads add before the others have written their numbers", WARPS,
     r"(sums\[thread\] = mine;\s+)weft_block_sync\(\);", r"\1"),
    ("a thread's number is replaced before others have read it", WARPS,
     r"weft_block_sync\(\);(\s+sums\[thread\] \+= other;)", r"\1"),
    ("the next sum begins before this one is read", WARPS, r"(- mine;\s+)weft_block_sync\(\);", r"\1"),
]
EXCHANGER = "src/fused/row_exchange.cu"
EXCHANGE_ROWS = [
    *SUMS[:2],
    ("a part begins where the one before it begins", EXCHANGER, r"to \+= rows;", ""),
    ("all pieces of a part are the first one", EXCHANGER, r"\(piece - pieces_until\(task, member, k\)\)", "(uint64_t)0"),
]
COMBINE = [
    ("rows are added before all lanes have written where they are", "src/fused/experts_combine.cu",
     r"weft_warp_sync\(\);", ""),
    ("a list is used before all lanes have written it", "src/fused/experts.cuh",
     r"(address;\s+)weft_warp_sync\(\);", r"\1"),
]
KERNELS = [("src/coll/ll.cu", "gpu/ll", LL), ("src/coll/push.cu", "gpu/push", PUSH),
           ("src/coll/marked.cu", "gpu/marked", MARKED),
           ("src/coll/norm.cu", "gpu/norm", NORM),
           ("src/fused/hopper.cu", "gpu/hopper", HOPPER), ("src/fused/hopper.cu", "gpu/hopper_gather", GATHER),
           ("src/fused/hopper.cu", "gpu/hopper_reduce", REDUCE),
           ("src/fused/hopper.cu", "gpu/crowd", CROWD),
           ("src/fused/experts_dispatch.cu", "gpu/experts", SUMS),
           ("src/fused/row_exchange.cu", "gpu/row_exchange", EXCHANGE_ROWS),
           ("src/fused/experts_combine.cu", "gpu/experts", COMBINE),
           ("src/transport/barrier.cu", "gpu/word", BARRIER), ("src/coll/meet.cu", "gpu/stream_collectives", MEET),
           *device_mutations.KERNELS]
LONG_ALONE = {"gpu/stream_collectives", "gpu/device_copies"}


def check_tables(problems):
    mutation.check_table(problems, ((name, file, [(old, new)]) for *_, mutations in KERNELS for name, file, old, new in mutations))


def compile_variant(folder, kernel, file, old, new):
    """Builds a driver with this kernel's source changed, in the folder."""
    text = mutation.changed(file, [(old, new)])
    changed = folder / file
    changed.parent.mkdir(parents=True, exist_ok=True)
    changed.write_text(text)
    source = (BUILD / "obj/tests/gpu/driver" / kernel).with_suffix(".cc").read_text()
    if file == kernel:
        source = source.replace(f'"{kernel}"', f'"{changed}"')
    if changed.parent == folder / "tests/gpu/driver":
        shutil.copy(ROOT / "tests/gpu/driver/device.h", changed.parent)  # which it finds beside itself
    object_ = folder / "kernel.o"
    cxx = os.environ.get("CXX", "g++")
    subprocess.run([cxx, "-std=c++17", "-O1" if LONG else "-O0", "-fPIC", "-pthread", "-fvisibility=hidden", "-ffp-contract=off", "-w", "-Wno-psabi",
                    f"-I{folder}/src", f"-I{folder}/include", f"-I{folder}/tests/gpu/driver", "-Iinclude", "-I.", "-Isrc", "-Itests", "-Itests/gpu/driver", "-x", "c++", "-c", "-",
                    "-o", object_], input=source, text=True, cwd=ROOT, check=True)
    own = str((BUILD / "obj/tests/gpu/driver" / kernel).with_suffix(".o").relative_to(ROOT))
    objects = (DRIVER / "objects").read_text().split()
    assert own in objects, f"{own} is none of the driver's objects"
    subprocess.run([cxx, "-shared", "-Wl,-soname,libcuda.so.1", "-o", folder / "libcuda.so.1",
                    *(name for name in objects if name != own), object_, "-ldl", "-lpthread", "-lm"],
                   cwd=ROOT, check=True)
    for name in ("libweft_cuda.so", "libcublasLt.so.13"):
        shutil.copy(DRIVER / name, folder)


def run(driver, test, seed, hang_ms=HANG_MS):
    """Returns None if the test passes, otherwise the first failure: a wrong result, a kernel that waits in vain, or a
    number that does not fit."""
    env = dict(os.environ, LD_LIBRARY_PATH=str(driver), GPU_REQUIRED="1", GPU_SEED=str(seed), WEFT_FAKE_GPUS=str(NPES),
               WEFT_FAKE_WEAK="1", WEFT_FAKE_SEED=str(seed), WEFT_FAKE_HANG_MS=str(hang_ms))
    env.pop("WEFT_TEST_LONG", None)  # the test's short form is enough
    job = subprocess.Popen([BUILD / "bin/oshrun", "-n", str(NPES), BUILD / "tests" / test], env=env, text=True,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    lines = []
    for line in job.stdout:
        lines.append(line)
        if re.search(r": expected |in vain|^pretended GPU: | on a stream: ", line):
            job.terminate()
            job.communicate()
            return line.strip()
    if job.wait():
        raise OSError(f"tests/{test} came to {job.returncode}: {''.join(lines[-5:])}")
    return None


def check_mutation(problems, kernel, test, file, old, new):
    with tempfile.TemporaryDirectory() as folder:
        compile_variant(pathlib.Path(folder), kernel, file, old, new)
        mutation.expect_notice(problems, test, range(SEEDS), lambda seed: run(folder, test, seed))


def check_original(problems, test):
    seen = [run(DRIVER.resolve(), test, seed, PATIENCE_MS) for seed in range(3)]
    problems.extend(filter(None, seen))


def cases():
    yield "what is to be taken out is there, once", check_tables
    for kernel, test, mutations in KERNELS:
        if not LONG and test in LONG_ALONE:
            continue
        if LONG:
            yield f"tests/{test} passes", functools.partial(check_original, test=test)
        for name, *change in mutations if LONG else mutations[:1]:
            yield name, lambda problems, of=(kernel, test, *change): check_mutation(problems, *of)


tap.run(list(cases()))
