#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Libraries that are not engines, engines that do not open, and links that fail although the PEs live: each ends the job
with a line that names the engine or the PE, and the cause.
"""
import os
import pathlib
import re
import resource
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "faults"))
from strike import check_remains  # noqa: E402
from harness import BUILD, ENGINE, ROOT, Result, case, far, main, preloaded, start  # noqa: E402

STATUS = 71  # of a job that a PE ends with an error
CONTRACT = int(re.search(r"WEFT_ENGINE_VERSION\D*(\d+)", (ROOT / "src/transport/transport.h").read_text())[1])


def fail(engine=ENGINE, settings="", scene=("put", 5), preload=()):
    """Runs a job with that engine, which must fail, below the words `preload`. Returns the lines of its PEs, without places in the program."""
    words = [*preload, *far("each", settings, engine), *(["env", "-u", "WEFT_ENGINE"] if engine is None else [])]
    result = Result(start("-n", 2, *words, BUILD / "tests/far/scenes", *scene), seconds_max=30)
    assert result.status == STATUS, f"status {result.status}: {result.err}"
    check_remains(result, settings or engine)
    return re.findall(r"^weft: PE (\d) \(pid \d+\): (?!    )(.*)$", result.err, re.M)


def expect(said, *words):
    lines = [text for _, text in said]
    assert lines and all(word in lines[0] for word in words), f"nothing of {words}: {lines}"
    strays = [text for text in lines if not all(word in text for word in words) and "ended the job" not in text]
    assert not strays, strays


def made_engine(folder, text):
    """Builds a library that exports just this table."""
    library = f"{folder}/libengine.so"
    source = f'#include "transport/transport.h"\nconst struct weft_engine weft_engine = {{{text}}};'
    subprocess.run([os.environ.get("CC", "gcc"), "-shared", "-fPIC", f"-I{ROOT}/src", "-x", "c", "-", "-o", library],
                   input=source, text=True, check=True)
    return library


@case("there is no such library")
def missing():
    expect(fail(engine="/nowhere/libnone.so"), "/nowhere/libnone.so", "WEFT_ENGINE")
    expect(fail(engine="libnone.so"), "libnone.so", "WEFT_ENGINE")


@case("a library is not an engine, has another version, or lacks functions")
def other_libraries():
    expect(fail(engine="libm.so.6"), "libm.so.6", "is not an engine", "weft_engine")
    with tempfile.TemporaryDirectory(prefix="weft-engine-") as folder:
        expect(fail(engine=made_engine(folder, ".version = WEFT_ENGINE_VERSION + 1")),
               f"version {CONTRACT + 1}", f"version {CONTRACT}:")
        expect(fail(engine=made_engine(folder, '.version = WEFT_ENGINE_VERSION, .name = "hollow", .message_bytes = 8192')),
               "lacks functions")


@case("the engine does not open, on all PEs or on one")
def closed():
    expect(fail(settings="fail_open=5"), "'fake'", "cannot be opened", os.strerror(5))
    expect(fail(settings="pe=1,fail_open=12"), "'fake'", "cannot be opened", os.strerror(12))


@case("links fail, or cannot be made, although the PEs live")
def dead_links():
    expect(fail(settings="pe=1,fail_connect=111"), "PE 0 cannot be reached", os.strerror(111), "'fake'")
    expect(fail(settings="pe=0,fail_message=32"), "PE 1 cannot be reached", os.strerror(32), "'fake'")


@case("a PE has no descriptor left for the thread that serves far PEs: the line names the limit and its value")
def no_descriptor():
    with preloaded("#include <errno.h>\nint eventfd(unsigned first, int flags) { errno = EMFILE; return -1; }") as words:
        said = fail(preload=words)
    number = resource.getrlimit(resource.RLIMIT_NOFILE)[1]  # a PE raises its limit
    expect(said, "cannot start the thread that serves far PEs", "Too many open files", f"; ulimit -n is {number}: raise it")


@case("a signal handler makes a call while its thread holds the lock of messages: it would wait for itself forever")
def handlers():
    for scene in "handler_put", "handler_wait":
        expect(fail(scene=(scene, 1000000)), "by a signal handler that interrupted a call to a far PE", "set a flag")


main()
