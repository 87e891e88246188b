#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""An interpreter that loads the library late: processes that a script starts find each other by a unique id that the
script passes to them, or by an all-gather that is written in Python."""
import ctypes
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/boot"))
import starters  # noqa: E402
from harness import BUILD, case, main  # noqa: E402

LIBRARY = BUILD / "lib/libweft.so"
GATHER = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)


class Attr(ctypes.Structure):
    _fields_ = [("pe", ctypes.c_int), ("npes", ctypes.c_int), ("requested", ctypes.c_int), ("uniqueid", ctypes.c_void_p),
                ("allgather", GATHER), ("context", ctypes.c_void_p)]


def load():
    library = ctypes.CDLL(str(LIBRARY))
    library.shmem_malloc.restype = ctypes.c_void_p
    library.weft_last_error.restype = ctypes.c_char_p
    return library


def pe_main(how, pe, npes):
    """A process of the job, which communicates with the script by stdin and stdout."""
    weft = load()
    attr = Attr(pe=pe, npes=npes)

    def gather(mine, everything, size, _):
        sys.stdout.buffer.write(ctypes.string_at(mine, size))
        sys.stdout.buffer.flush()
        ctypes.memmove(everything, sys.stdin.buffer.read(size * npes), size * npes)
        return 0

    if how == "id":
        uniqueid = ctypes.create_string_buffer(sys.stdin.buffer.read(128), 128)
        attr.uniqueid = ctypes.addressof(uniqueid)
        status = weft.shmemx_init_attr(1, ctypes.byref(attr))
    else:
        attr.allgather = GATHER(gather)
        status = weft.shmemx_init_attr(2, ctypes.byref(attr))
    assert status == 0, weft.weft_last_error()
    word = weft.shmem_malloc(ctypes.c_size_t(8))
    weft.shmem_long_p(ctypes.c_void_p(word), ctypes.c_long(100 + pe), (pe + 1) % npes)
    weft.shmem_barrier_all()
    assert ctypes.c_long.from_address(word).value == 100 + (pe - 1) % npes
    weft.shmem_finalize()


def start(how, npes):
    return [subprocess.Popen([sys.executable, __file__, "pe", how, str(pe), str(npes)], env=starters.CLEAN, bufsize=0,
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for pe in range(npes)]


def finish(processes):
    for process in processes:
        _, err = process.communicate(timeout=20)
        assert process.returncode == 0, err.decode()


@case("by unique id, at 1 to 4 PEs")
def unique_id():
    made = ctypes.create_string_buffer(128)
    for npes in (1, 2, 3, 4):
        assert load().shmemx_get_uniqueid(made) == 0
        processes = start("id", npes)
        for process in processes:
            process.stdin.write(made.raw)
        finish(processes)


@case("by a gathering of the script's, at 2 to 4 PEs")
def gathering():
    size = 136  # of one contribution; a script that does not know it would have to frame its messages
    for npes in (2, 3, 4):
        processes = start("gather", npes)
        everything = b"".join(process.stdout.read(size) for process in processes)
        assert len(everything) == size * npes, [process.communicate()[1] for process in processes]
        for process in processes:
            process.stdin.write(everything)
        finish(processes)


if sys.argv[1:2] == ["pe"]:
    pe_main(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
else:
    main()
