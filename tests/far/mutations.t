#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Each number, acknowledgment and limit that keeps the order of messages is needed: without it a test fails.

Each mutation is compiled into a library of its own for the test. All are tried with WEFT_TEST_LONG=1; otherwise those of
SHORT, and the lines of the others are only looked up.
"""
import functools
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / os.environ.get("WEFT_BUILD", "build")
LONG = bool(os.environ.get("WEFT_TEST_LONG"))
SEEDS, HANG_SECONDS, HANG_LASTS = 12, "3", 5  # a logged wait may be due to a busy machine
sys.path.insert(0, str(ROOT / "tests"))
import mutation  # noqa: E402
import tap  # noqa: E402

CHANNEL, ARRIVE, BUNDLE, APPLY, MESSAGE = (
    f"src/far/{name}.c" for name in ("channel", "arrive", "bundle", "apply", "message"))
GPU = "src/device/messages.c"
MOVE, REMOTE, ACTIVE, LISTS = (f"src/coll/{name}.c" for name in ("move_far", "remote_matrix", "active", "alltoallv"))
VECTOR, ELEMENTS = "src/coll/vector.c", "src/coll/elements.c"
PUSH, CHAIN, GATHER, ALLTOALL, PACKETS = (
    f"src/coll/{name}.c" for name in ("host_push", "hosts_chain", "hosts_gather", "hosts_alltoall", "host_packets"))
NEAR, REORDERED, LATE = "", "reorder=16,delay_us=50", "pe=1,reorder=64,delay_us=300"

# A row names the missing thing, the test that detects it with its PEs, placement and engine, and expressions that
# occur once in a file, with their replacements. The short form tries the rows of far/messages, which cost least.
MUTATIONS = [
    ("messages are applied as they come", "far/messages", 2, NEAR, "", ARRIVE,
     [(r"ahead = head->number - channel->applied;", "ahead = 1;"), (r"channel->applied = head->number;", "channel->applied++;"),
      (r"channel->applying = head->number;", "channel->applying = channel->applied + 1;")]),
    ("messages are acknowledged before they are applied", "far/messages", 2, NEAR, "", CHANNEL,
     [(r"head->acknowledged = channel->applied;",
       "head->acknowledged = weft_epoch_reached(channel->ack_wanted, channel->applied) ? channel->ack_wanted : channel->applied;"),
      (r"\s+&&\s+weft_epoch_reached\(channel->applied, channel->ack_wanted\)", "")]),
    ("messages are not acknowledged before they are asked for", "far/messages", 2, NEAR, "", CHANNEL,
     [(r"return asked \|\|[^;]*;", "(void)unacked; return asked;")]),
    ("there is no limit to the messages under way", "far/messages", 2, NEAR, "", CHANNEL,
     [(r"channel->sent - acknowledged >= WEFT_CHANNEL_MESSAGES ", "false ")]),
    ("there is no limit to the bytes under way", "far/messages", 2, NEAR, "", CHANNEL,
     [(r"\(under_way && under_way \+ bytes > WEFT_CHANNEL_BYTES\)", "false")]),
    ("answers wait for room as callers do", "far/messages", 2, NEAR, "", CHANNEL,
     [(r"(channel->sent - channel->acknowledged >= WEFT_CHANNEL_)RING - 1", r"\1MESSAGES")]),
    ("answers overtake those that wait for room", "far/messages", 2, NEAR, "", CHANNEL,
     [(r"if \(channel->queue \|\| (channel_emit\(channel, &head, payload, nparts\) != 0\))", r"if (\1")]),
    ("a message goes without the bundle before it", "far/messages", 2, NEAR, "", CHANNEL,
     [(r"!weft_channel_send_kept\(channel\) \|\| !channel_has_room\(channel, bytes, request\)", "!channel_has_room(channel, bytes, request)")]),
    ("a quiet leaves bundles", "far/messages", 2, NEAR, "", CHANNEL,
     [(r"waits = linger && channel_lingers\(channel\)", "waits = !linger && channel->bundle")]),
    ("a quiet does not count what is in a bundle", "far/messages", 2, NEAR, "", CHANNEL,
     [(r"channel->quiet_until = channel->sent;", ";")]),
    ("what is in a bundle is under no limit", "far/messages", 2, NEAR, "", CHANNEL,
     [(r"bundle->bytes \+= bytes;\s+channel_weigh\(channel, bytes\);", "bundle->bytes += bytes;")]),
    ("an old bundle waits on", "far/messages", 2, NEAR, "", CHANNEL,
     [(r"weft_clock_ns\(\) - channel->bundle_ns < YOUNG_NS", "true")]),
    ("lengths in a bundle are taken on trust", "far/messages", 2, NEAR, "", BUNDLE,
     [(r"part\.bytes > \*left \|\| weft_bundle_part_bytes\(part\.bytes\) > \*left", "false")]),
    ("messages to far PEs are applied as they come", "far/order", 2, "each", REORDERED, ARRIVE,
     [(r"ahead = head->number - channel->applied;", "ahead = 1;"), (r"channel->applied = head->number;", "channel->applied++;"),
      (r"channel->applying = head->number;", "channel->applying = channel->applied + 1;")]),
    ("messages to far PEs are acknowledged before they are applied", "far/quiet", 3, "list:0,1,1", LATE, CHANNEL,
     [(r"head->acknowledged = channel->applied;",
       "head->acknowledged = weft_epoch_reached(channel->ack_wanted, channel->applied) ? channel->ack_wanted : channel->applied;"),
      (r"\s+&&\s+weft_epoch_reached\(channel->applied, channel->ack_wanted\)", "")]),
    ("a quiet waits for nothing", "far/quiet", 3, "list:0,1,1", LATE, MESSAGE,
     [(r"!all && atomic_load\(&weft_channels_unfinished\) == 0", "!all")]),
    ("nobody sends what is in a bundle", "far/bundles", 3, "each", "", CHANNEL,
     [(r"waits = linger && channel_lingers\(channel\)", "waits = linger && channel->bundle")]),
    ("a quiet does not wait for answers", "far/rma", 2, "each", REORDERED, MESSAGE,
     [(r"&&\s+weft_epoch_reached\(channel->answered, [\w>-]*answered\)", "")]),
    ("the word of a put is set before its data", "far/order", 2, "each", "", APPLY,
     [(r"(if \(!at \|\| \(reader->left && !put_apply\(reader, header\)\)\)\s+return false;)",
       r"if (at && !on_device) word_apply(header->detail, at, word.value); if (reader->left) usleep(300);\n\1"),
      (r"#include <string.h>\n", "#include <string.h>\n#include <unistd.h>\n")]),
    ("nothing limits what is under way to a far PE", "far/limits", 2, "each", "limit=1600000,ring=8388608,slow_read_us=5",
     CHANNEL, [(r"channel->sent - acknowledged >= WEFT_CHANNEL_MESSAGES ", "false "),
            (r"\(under_way && under_way \+ bytes > WEFT_CHANNEL_BYTES\)", "false")]),
    ("far atomics are no atomics", "far/words", 4, "list:0,0,1,0", "", APPLY,
     [(r"= weft_amo_apply\(op, bytes, word, amo.value, amo.cond\);",
       "= op == WEFT_AMO_ADD && bytes == 8 ? *(volatile uint64_t *)word : weft_amo_apply(op, bytes, word, amo.value, amo.cond);"
       " if (op == WEFT_AMO_ADD && bytes == 8) *(volatile uint64_t *)word = before + amo.value;")]),
    ("offsets are taken on trust", "far/protocol", 2, NEAR, "", APPLY, [(r"!weft_window_fits\(now, lowest, bytes\)", "false")]),
    ("a proxy has slots without end", "far/protocol", 2, NEAR, "", APPLY, [(r"place->slot < window->count", "true")]),
    ("a place is not looked at where a word is", "far/protocol", 2, NEAR, "", APPLY,
     [(r"(uintptr_t\)word % bytes) == 0", r"\1 != 99")]),
    ("collectives do not wait for what they pull and push", "coll/bits", 4, "cyclic:2", LATE, MOVE,
     [(r"weft_far_quiet\(\);", "")]),
    ("what members show is used before it is here", "coll/alltoallv", 3, "each", LATE, REMOTE,
     [(r"if \(team->far\)\s+weft_far_quiet\(\);", "")]),
    ("sizes of an active set are used before they are here", "api/active_set", 3, "each", LATE, ACTIVE,
     [(r"if \(group->far\)\s+weft_far_quiet\(\);", "")]),
    ("what takes its time counts as applied at once", "far/messages", 2, NEAR, "", ARRIVE,
     [(r" \|\| !weft_channels.user->work_done\(channel->pe\)", "")]),
    ("a message that comes again is applied from its beginning on", "far/messages", 2, NEAR, "", ARRIVE,
     [(r"memmove\(payload, payload \+ bytes - left, left\);\s+kept->bytes = sizeof head \+ left;", "")]),
    ("messages to GPU memory are acknowledged early", "gpu/far", 3, "each", REORDERED, ARRIVE,
     [(r" \|\| !weft_channels.user->work_done\(channel->pe\)", "")]),
    ("a word of the host is set before data in GPU memory are there", "gpu/far", 2, "each", "", APPLY,
     [(r"!is_on_device\(place\) && !weft_far_work_done\(reader->from\)", "false")]),
    ("a word in GPU memory does not wait for its data", "gpu/far", 2, "each", "", GPU,
     [(r"error = op == WEFT_SIGNAL_SET \? write_word\(word, signal, sizeof signal\)",
       "error = op == WEFT_SIGNAL_SET ? weft_gpu_signal(word, signal, false, weft_device.gpu->stream)")]),
    ("answers from GPU memory are not waited for", "gpu/far", 2, "each", "", GPU,
     [(r"int error = messages_settle\(from\);", "int error = 0;")]),
    ("a share of the ring is used again at once", "gpu/far", 3, "each", "", GPU,
     [(r"oldest->held \|\| reach_ticket\(oldest->ticket\) != 0", "false"),
      (r"RING_BYTES = 4 << 20", "RING_BYTES = 20 << 10")]),
    ("lists of parts are not fetched", "coll/alltoallv", 3, "each", "", LISTS, [(r"    fetch_lists\(&c\);\n", "")]),
    ("members of a host leave before the others there have done", "coll/hosts", 6, "3+3", REORDERED, PUSH,
     [(r"        weft_sync_barrier_near\(group->team\);\n", "")]),
    ("pushes of earlier calls count for this one", "coll/hosts", 6, "2+2+2", REORDERED, PUSH,
     [(r"        team->pushes \+= most;\n", "")]),
    ("a lane folds before the piece of the host before has come", "coll/hosts", 6, "3+3", REORDERED, CHAIN,
     [(r"lane_await\(lane, WEFT_PUSH_ON, piece\);(\s+step = WEFT_FOLD_FROM_PARTIAL)", r"\1")]),
    ("members of a host are folded from the last to the first", "coll/hosts", 6, "2+2+2", "", CHAIN,
     [(r"(int member = weft_host_push_near\(lane->push), rank\);",
       r"\1, lane->push->levels->near - 1 - rank);")]),
    ("what comes is written over a source that is dest", "coll/hosts", 6, "3+3", "", CHAIN,
     [(r"source != dest \|\| lane->partial != lane->dest \|\| lane->before < 0", "true")]),
    ("a block is not waited for", "coll/hosts_vectors", 6, "3+3", LATE, CHAIN,
     [(r"if \(pieces > 0\)", "if (false)")]),
    ("an average is divided on each host", "coll/hosts_vectors", 6, "3+3", "", ELEMENTS,
     [(r"bool divides = reduction->average && [^;]*;", "bool divides = reduction->average;")]),
    ("a dest is taken for symmetric where one is", "coll/hosts_vectors", 6, "2+2+2", "", VECTOR,
     [(r"over->dest_symmetric &= ", "over->dest_symmetric |= ")]),
    ("the last host gets no block", "coll/hosts", 6, "2+2+2", "", GATHER,
     [(r"distance < levels->nleaders &&", "distance + 1 < levels->nleaders &&")]),
    ("blocks of others are not waited for", "coll/hosts", 6, "4+1+1", LATE, ALLTOALL,
     [(r"weft_host_push_await\(&push, [^;]*;", "(void)all;")]),
    ("packets lie by members, not by hosts", "coll/hosts", 6, "cyclic:2", "", PACKETS,
     [(r"\(size_t\)levels->places\[member\] \*", "(size_t)member *")]),
    ("the area of packets is used again at once", "coll/packets", 4, "2+2", LATE, PACKETS,
     [(r"!weft_epoch_reached\(team->packets_read, epoch - WEFT_PACKETS\)", "false")]),
]
FIRST = {"far/messages", "far/protocol"}
INNER = {*FIRST, "coll/bits", "coll/hosts", "coll/hosts_vectors", "coll/packets", "coll/alltoallv", "gpu/far"}  # tests linked with the library's objects
SHORT = {name for name, test, *_ in MUTATIONS if test in FIRST}
SHORT |= {"members of a host are folded from the last to the first", "packets lie by members, not by hosts"}


def check_tables(problems):
    mutation.check_table(problems, ((name, file, changes) for name, *_, file, changes in MUTATIONS))


def compile_variant(folder, test, file, changes):
    """Compiles the library, or the test that contains its objects, with this source changed, into the folder."""
    cc = os.environ.get("CC", "gcc")
    own = str((BUILD / "obj" / file).with_suffix(".o").relative_to(ROOT))
    words = (BUILD / "tests/far/objects").read_text().split()
    sanitizers = [word for word in words if word.startswith("-")]
    objects = [word for word in words if not word.startswith("-")]
    assert own in objects, f"{own} is none of the library's objects"
    changed, library, program = folder / "changed.o", folder / "libweft.so.0", folder / pathlib.Path(test).name
    compiler = [cc, "-std=c11", "-D_GNU_SOURCE", "-O1", "-fPIC", "-pthread", "-w", "-Iinclude", "-Isrc", "-Itests",
                *sanitizers]
    subprocess.run([*compiler, "-fvisibility=hidden", "-x", "c", "-c", "-", "-o", changed], input=mutation.changed(file, changes),
                   text=True, cwd=ROOT, check=True)
    others = [*(name for name in objects if name != own), changed, "-ldl", "-lpthread", "-lm"]
    if test in INNER:
        subprocess.run([*compiler, f"tests/{test}.c", *others, "-o", program], cwd=ROOT, check=True)
        return [program]
    assert b"libweft.so" in (BUILD / "tests" / test).read_bytes(), f"{test} has the library's objects in it: INNER"
    subprocess.run([cc, "-shared", *sanitizers, f"-Wl,-soname,{library.name}", "-Wl,--version-script=src/weft.map", "-o", library, *others],
                   cwd=ROOT, check=True)
    return ["env", f"LD_PRELOAD={library}", BUILD / "tests" / test]


def run(command, npes, placement, settings, seed):
    """Returns None if the test passes, or the first sign of failure."""
    engine = (BUILD / "tests/far/libweft_fake_engine.so").resolve()
    env = dict(os.environ, WEFT_HANG_SECONDS=HANG_SECONDS)
    if "far" == pathlib.Path(str(command[0])).name:  # the test of GPUs, on the pretended driver
        env.update(LD_LIBRARY_PATH=str((BUILD / "tests/gpu/driver").resolve()), GPU_REQUIRED="1",
                   WEFT_FAKE_DELAY_US="300", WEFT_FAKE_WEAK="1", WEFT_FAKE_SEED=str(seed))
    if placement != NEAR:
        env.update(FAKE_ENGINE=f"seed={seed};{settings}", WEFT_ENGINE=str(engine), WEFT_PRETEND_HOSTS=placement)
    env.pop("WEFT_TEST_LONG", None)  # the short form of the test suffices
    job = subprocess.Popen([BUILD / "bin/oshrun", "-n", str(npes), *command], env=env, text=True,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    seen = None
    for line in job.stdout:
        if not seen and re.search(": expected |weft: |fake engine: ", line):
            seen = line.strip()
            threading.Timer(HANG_LASTS if " has waited " in line else 0, job.terminate).start()
    return seen if job.wait() else None


def check_mutation(problems, test, npes, placement, settings, file, changes):
    with tempfile.TemporaryDirectory(prefix="weft-far-") as folder:
        command = compile_variant(pathlib.Path(folder), test, file, changes)
        mutation.expect_notice(problems, test, range(1, SEEDS + 1), lambda seed: run(command, npes, placement, settings, seed))


def check_original(problems, test, npes, placement, settings):
    with tempfile.TemporaryDirectory(prefix="weft-far-") as folder:
        command = compile_variant(pathlib.Path(folder), test, CHANNEL, [])
        problems.extend(filter(None, (run(command, npes, placement, settings, seed) for seed in range(1, 4))))


def cases():
    yield "what is to be taken out is there, once", check_tables
    for name, *change in MUTATIONS:
        if LONG:
            yield f"tests/{change[0]} passes, {change[2]} {change[3]}", functools.partial(
                check_original, **dict(zip(("test", "npes", "placement", "settings"), change)))
        if LONG or name in SHORT:
            yield name, lambda problems, of=change: check_mutation(problems, *of)


tap.run(list(cases()))
