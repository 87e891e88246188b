# SPDX-License-Identifier: BSD-3-Clause
"""The C++ shim: compiled once for the installed PyTorch, stored, and loaded.

PyTorch has no stable binary interface, so the shim is distributed as source. The stored library is found by a hash of
everything that it depends on: PyTorch, CUDA, Python, the sources.
"""
import contextlib
import ctypes
import fcntl
import hashlib
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile

import torch

import weft
from weft.torch._versions import CXX_STANDARD

_SOURCES = pathlib.Path(__file__).parent / "shim"
_LINES_MAX = 40  # of the compiler's output
_MEMBERS = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p, ctypes.POINTER(ctypes.c_int), ctypes.c_int,
                            ctypes.c_void_p, ctypes.c_int)


def _key():
    key = hashlib.sha256(repr((torch.__version__, torch.version.git_version, torch.version.cuda,
                               sys.implementation.cache_tag)).encode())
    headers = pathlib.Path(weft.get_include()).glob("*.h")
    for path in (pathlib.Path(__file__), *sorted(_SOURCES.iterdir()), *sorted(headers)):
        key.update(path.name.encode() + b"\0" + path.read_bytes())
    return key.hexdigest()[:16]


def path():
    """Returns the path of the shim for this PyTorch, whether it exists or not."""
    cache = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(cache) / "weft" / f"torch-{torch.__version__}-{_key()}" / "libweft_torch.so"


def _compiler():
    named = os.environ.get("CXX")
    for words in ([shlex.split(named)] if named else [["g++"], ["c++"], ["clang++"]]):
        if shutil.which(words[0]):
            return words
    raise RuntimeError(
        f"weft.torch.install: there is no C++ compiler ({named or 'g++'}) to make the backend for PyTorch "
        f"{torch.__version__} with: install g++ or name one by CXX; this is needed once")


def _standard_library():
    """Links the C++ library that PyTorch has loaded. A compiler with a static library only would link a second one,
    whose streams would use the first one's locale."""
    for line in pathlib.Path("/proc/self/maps").read_text().splitlines():
        if "/libstdc++.so" in line:
            return [line.split(maxsplit=5)[5]]
    return []


def _compile(to):
    root = pathlib.Path(torch.__file__).parent
    with tempfile.TemporaryDirectory(dir=to.parent) as folder:
        # A single compilation, because PyTorch's headers take most of the time.
        unit, made = pathlib.Path(folder) / "shim.cpp", pathlib.Path(folder) / to.name
        unit.write_text("".join(f'#include "{source}"\n' for source in sorted(_SOURCES.glob("*.cpp"))))
        headers = [f"-I{weft.get_include()}", *(flag for part in ("include", "include/torch/csrc/api/include")
                                        for flag in ("-isystem", str(root / part)))]
        libraries = ["-Wl,-z,defs", str(weft.get_library()), f"-L{root / 'lib'}", "-ltorch_cpu", "-lc10",
                     *_standard_library()]
        abi = f"-D_GLIBCXX_USE_CXX11_ABI={int(torch._C._GLIBCXX_USE_CXX11_ABI)}"
        command = [*_compiler(), f"-std={CXX_STANDARD}", "-O1", "-Wall", "-Wextra", "-Wno-suggest-override", "-fPIC", "-shared",
                   "-fvisibility=hidden", abi, *headers, str(unit), "-o", str(made), *libraries]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            lines = done.stderr.strip().splitlines()
            more = [f"... and {len(lines) - _LINES_MAX} lines more"] if len(lines) > _LINES_MAX else []
            raise RuntimeError("\n".join([f"weft.torch.install: the backend does not compile against PyTorch "
                                          f"{torch.__version__}:", shlex.join(command), *lines[:_LINES_MAX], *more]))
        made.rename(to)


@contextlib.contextmanager
def _alone(folder):
    """Lets one process of this host compile at a time: the ranks of a job come here together."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with open(folder / "lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def is_there():
    """Returns whether the shim has been compiled."""
    return path().is_file()


def load():
    """Returns the loaded shim, compiled first if necessary."""
    to = path()
    if not to.is_file():
        _make(to)
    return _declare(ctypes.CDLL(str(to)))


def _make(to):
    try:
        with _alone(to.parent):
            if not to.is_file():
                _compile(to)
    except OSError as error:
        raise RuntimeError(f"weft.torch.install: the backend for PyTorch is kept in {to.parent}, which cannot be written "
                           f"to ({error}): set XDG_CACHE_HOME to a folder that can") from error


def _declare(shim):
    """Declares the functions of entry.cpp."""
    shim.pyweft_torch_open.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
    shim.pyweft_torch_open.restype = None
    shim.pyweft_torch_register.argtypes = [_MEMBERS, ctypes.c_int]
    shim.pyweft_torch_register.restype = None
    shim.pyweft_torch_process_group.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_char_p,
                                                ctypes.c_int]
    shim.pyweft_torch_process_group.restype = ctypes.c_int
    shim.pyweft_torch_alias.argtypes = [ctypes.c_char_p]
    shim.pyweft_torch_alias.restype = None
    for name in ("pyweft_torch_replace", "pyweft_torch_restore"):
        getattr(shim, name).argtypes = []
        getattr(shim, name).restype = None
    shim.pyweft_torch_count.argtypes = [ctypes.c_int, ctypes.POINTER(ctypes.c_uint64)]
    shim.pyweft_torch_count.restype = ctypes.c_char_p
    return shim


def members_callback(ranks_of):
    """Returns the callback for pyweft_torch_register. ranks_of(group name) returns the PEs of a group, or raises; for
    None, an empty list."""
    def members(group, pes, room, text, text_bytes):
        try:
            ranks = ranks_of(None if group is None else group.decode())
            if len(ranks) > room:
                raise RuntimeError(f"the group has {len(ranks)} members, and there is room for {room}")
            for i, rank in enumerate(ranks):
                pes[i] = rank
            return len(ranks)
        except BaseException as error:  # it can pass through C++ only as text
            said = f"{error or type(error).__name__}".encode()[:text_bytes - 1]
            ctypes.memmove(text, said + b"\0", len(said) + 1)
            return -1
    return _MEMBERS(members)
