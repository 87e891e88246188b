#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""WITHOUT_GPU=1 makes a whole library of the host's calls: it has no file that speaks to a GPU, and every
public name; programs run with it, and those calls that want a GPU say that there is none in it.

The objects of the build are used again, so what is left to do is to link.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build"
sys.path.insert(0, str(ROOT / "tests"))
import tap  # noqa: E402

CALLS = """
import ctypes
weft = ctypes.CDLL("libweft.so.0")
for name in ("weft_last_error", "shmem_malloc", "shmemx_malloc"):
    getattr(weft, name).restype = ctypes.c_void_p
weft.shmem_init()
p, size, stream = ctypes.c_void_p(weft.shmem_malloc(64)), ctypes.c_size_t(8), ctypes.c_void_p(0)
number, block, made = ctypes.c_int(0), ctypes.c_void_p(0), []
for name, arguments in [("shmemx_malloc", (1, size)), ("shmemx_block_alloc", (1, size, ctypes.byref(block))),
                        ("shmemx_block_alloc_on", (0, size, ctypes.byref(block))),
                        ("shmemx_putmem_on_stream", (p, p, size, 0, stream)),
                        ("shmemx_quiet_on_stream", (stream,)),
                        ("shmemx_barrier_all_on_stream", (stream,)),
                        ("shmemx_int_sum_reduce_on_stream", (0, p, p, size, stream)),
                        ("shmemx_pad_put_on_stream", (ctypes.byref(p), 0, 1, 0, 0, ctypes.c_uint64(0), stream)),
                        ("shmemx_device_team", (ctypes.c_void_p(1), 1, 16, ctypes.create_string_buffer(128))),
                        ("shmemx_device", (ctypes.byref(number),))]:
    made.append((name, getattr(weft, name)(*arguments)))
    text = ctypes.string_at(weft.weft_last_error()).decode()
    if not text.startswith(name + ": ") or "built without GPU support" not in text:
        print(name, "says", text)
print(*[f"{name} is {rc}" for name, rc in made if rc not in (-38, None)], sep="\\n")
print("pointer", weft.shmemx_ptr(1, p, 0), "engine", weft.shmemx_get_engine())
weft.shmem_finalize()
"""


def run(command, **more):
    done = subprocess.run(command, cwd=ROOT, text=True, capture_output=True, timeout=300, **more)
    return done.returncode, done.stdout + done.stderr


def names(library, *options):
    lines = run(["nm", *options, "--defined-only", str(library)])[1].splitlines()
    return {line.split()[-1].split("@")[0] for line in lines}


def link(problems):
    subprocess.run(["cp", "-rs", BUILD / "obj", FOLDER / "obj"], check=True)
    for path in [*(FOLDER / "obj").rglob("*.d"), FOLDER / "obj/weft.o"]:
        path.unlink(missing_ok=True)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    version = "".join(re.findall(r"VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", (ROOT / "include/weft/version.h").read_text()))
    library = FOLDER / "lib" / ("libweft.so." + ".".join(version))
    rc, text = run(["make", "WITHOUT_GPU=1", f"BUILD={FOLDER}", str(library), str(FOLDER / "bin/weft")], env=environment)
    if rc:
        problems.append(text[-1500:])
        return
    inside = {name for name in names(library) if re.match(r"weft_(gpu|device)_", name)}
    if inside != {"weft_device_register"}:
        problems.append(f"it has {sorted(inside)}")
    whole = names(BUILD / "lib/libweft.so", "-D")
    if names(library, "-D") != whole:
        problems.append(f"public names differ: {sorted(names(library, '-D') ^ whole)[:9]}")


def programs(problems):
    """Those that are built already."""
    for name in ("examples/counts", "examples/heat", "tests/api/rma", "tests/api/collective", "tests/api/share"):
        if (BUILD / name).exists():
            rc, text = run([str(BUILD / "bin/oshrun"), "-n", "2", str(BUILD / name)], env=WITH)
            if rc or "not ok" in text:
                problems.append(f"{name}: {rc}, {text[-600:]}")
    rc, text = run([str(FOLDER / "bin/weft"), "info"])
    if rc or "built without GPU support" not in text:
        problems.append(f"weft info: {rc}, {text[-300:]}")


def answers(problems):
    rc, text = run([sys.executable, "-c", CALLS], env=WITH)
    if rc or text.strip() != "pointer 0 engine 0":
        problems.append(f"{rc}: {text}")


with tempfile.TemporaryDirectory(prefix="weft-without-gpu-") as folder:
    FOLDER = pathlib.Path(folder)
    WITH = {**os.environ, "LD_LIBRARY_PATH": str(FOLDER / "lib")}
    tap.run([
        ("no file of a GPU is in it, and every public name is", link),
        ("programs run with it", programs),
        ("what wants a GPU answers -ENOSYS, and says why", answers),
    ])
