#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The machine code of kernels, if nvcc has made any: no kernel spills registers or is large, packets need no fence, no
load may return old data that peers have overwritten, and copies store 16 bytes at once. Images are compressed by
Zstandard. Instructions have 16 bytes on all of these GPUs, and their low 12 bits are the opcode. Files whose kernels
print have local memory for that.

`tests/gpu/images.t --table` prints every kernel's size, registers and local memory."""
import ctypes
import ctypes.util
import pathlib
import re
import struct
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
import tap  # noqa: E402

LIBRARY = ROOT / "build/lib/libweft_cuda.so"
BYTES_MAX = 60 << 10
FATBIN = struct.pack("<IHH", 0xba55ed50, 1, 16)  # magic, version, bytes of its header
CODE, ELF, FRAME = 2, b"\x7fELF", b"\x28\xb5\x2f\xfd"  # kind of an entry that is not PTX; its first bytes
LDG, STG, ST, MEMBAR = 0x981, 0x986, 0x985, 0x992
LDL, STL = 0x983, 0x387
FRAME_BYTES, REGISTERS = 0x11, 0x2f  # attributes of a kernel


class Kernel:
    def __init__(self, gpu, name, code, prints):
        self.gpu, self.name, self.size = gpu, name, len(code)
        self.frame = self.registers = 0
        self.prints = prints
        self.instructions = [(low & 0xfff, high) for low, high in struct.iter_unpack("<QQ", code)]

    def __str__(self):
        return f"{self.name} for sm_{self.gpu}"

    def count(self, *operations):
        return sum(operation in operations for operation, _ in self.instructions)

    def constant_loads(self):
        return sum(operation == LDG and high >> 13 & 15 == 4 for operation, high in self.instructions)

    def stores_16(self):
        return sum(operation in (STG, ST) and high >> 9 & 7 == 6 for operation, high in self.instructions)


def sections_of(elf):
    where, = struct.unpack_from("<Q", elf, 40)
    each, count, names = struct.unpack_from("<HHH", elf, 58)
    headers = [struct.unpack_from("<IIQQQQIIQQ", elf, where + each * i) for i in range(count)]
    text = headers[names][4]
    for name, _, _, _, offset, size, *_ in headers:
        yield elf[text + name:elf.index(b"\0", text + name)].decode(), elf[offset:offset + size]


def attributes(notes):
    """Yields (attribute, symbol, value) of the attributes with a number of a kernel."""
    at = 0
    while at + 4 <= len(notes):
        form, attribute, length = struct.unpack_from("<BBH", notes, at)
        if form == 4 and length == 8:
            yield (attribute, *struct.unpack_from("<II", notes, at + 4))
        at += 4 + (length if form == 4 else 0)


def kernels_of(elf):
    gpu = elf[49]
    sections = dict(sections_of(elf))
    symbols, strings = sections[".symtab"], sections[".strtab"]
    prints = b"\0vprintf\0" in strings
    found = {name[6:]: Kernel(gpu, name[6:], data, prints) for name, data in sections.items()
             if name.startswith(".text.")}

    def named(symbol):
        at, = struct.unpack_from("<I", symbols, 24 * symbol)
        return strings[at:strings.index(b"\0", at)].decode()
    for attribute, symbol, value in attributes(sections[".nv.info"]):
        kernel = found.get(named(symbol))
        if kernel and attribute == FRAME_BYTES:
            kernel.frame = value
        elif kernel and attribute == REGISTERS:
            kernel.registers = value
    return found.values()


def zstandard():
    """Returns the Zstandard library, or None if the system has none."""
    name = ctypes.util.find_library("zstd")
    library = ctypes.CDLL(name) if name else None
    if library:
        library.ZSTD_getFrameContentSize.restype = ctypes.c_ulonglong
        library.ZSTD_decompress.restype = ctypes.c_size_t
    return library


ZSTANDARD = zstandard()


def unpacked(image):
    """Returns an image as it was before compression, which may have appended some zeros."""
    if not image.startswith(FRAME):
        return image
    room = ZSTANDARD.ZSTD_getFrameContentSize(image, ctypes.c_size_t(len(image)))
    length = ZSTANDARD.ZSTD_findFrameCompressedSize(image, ctypes.c_size_t(len(image)))
    code = ctypes.create_string_buffer(room)
    made = ZSTANDARD.ZSTD_decompress(code, ctypes.c_size_t(room), image, ctypes.c_size_t(length))
    assert made == room, f"an image does not decompress: {made} of {room} bytes"
    return code.raw


def images_of(library):
    """Returns the machine code of each entry of each fatbin: a header, and entries with headers of their own."""
    for match in re.finditer(re.escape(FATBIN), library):
        size, = struct.unpack_from("<Q", library, match.end())
        at, end = match.end() + 8, match.end() + 8 + size
        while at < end:
            kind, _, head, length = struct.unpack_from("<HHIQ", library, at)
            if kind == CODE:
                yield unpacked(library[at + head:at + head + length])
            at += head + length


def read_kernels():
    if not LIBRARY.exists() or not ZSTANDARD:
        return []
    images = [image for image in images_of(LIBRARY.read_bytes()) if image.startswith(ELF)]
    return [kernel for image in images for kernel in kernels_of(image)]


KERNELS = read_kernels()


def those(pattern):
    if not LIBRARY.exists():
        raise tap.Skip("no nvcc has made kernels here")
    if not KERNELS:
        raise tap.Skip("there is no libzstd here, or kernels are compressed in another way")
    return [kernel for kernel in KERNELS if re.match(pattern, kernel.name)]


def check_found(problems):
    listed = (ROOT / "src/transport/gpu_kernel.h").read_text()
    names = {kernel.name for kernel in those("")}
    problems += [f"{name} is not there" for name in re.findall(r"X\((weftk_\w+)\)", listed) if name not in names]
    problems += [f"{kernel} has no registers" for kernel in KERNELS if not 0 < kernel.registers < 256]
    gpus = {kernel.gpu for kernel in KERNELS}
    problems += [f"{name} is for {sorted(made)} alone" for name in sorted(names)
                 if (made := {kernel.gpu for kernel in KERNELS if kernel.name == name}) != gpus]


def check_spills(problems):
    problems += [f"{kernel} has {kernel.frame} bytes of local memory, {kernel.count(LDL, STL)} instructions use it"
                 for kernel in those("") if not kernel.prints and (kernel.frame or kernel.count(LDL, STL))]


def check_sizes(problems):
    problems += [f"{kernel} has {kernel.size} bytes" for kernel in those("") if kernel.size > BYTES_MAX]


def check_packets(problems):
    problems += [f"{kernel} has {kernel.count(MEMBAR)} MEMBAR" for kernel in those("weftk_(ll|marked)_")
                 if kernel.count(MEMBAR)]


def check_loads(problems):
    problems += [f"{kernel} has {kernel.constant_loads()} LDG.CONSTANT" for kernel in those("")
                 if kernel.constant_loads()]


def check_stores(problems):
    problems += [f"{kernel} has no STG.128" for kernel in those("weftk_(copy|put|push|fold|ll|marked)_?")
                 if not kernel.stores_16()]


if sys.argv[1:] == ["--table"]:
    for kernel in sorted(KERNELS, key=lambda one: (one.gpu, -one.size)):
        print(f"sm_{kernel.gpu:<4} {kernel.name:32} {kernel.size:6} bytes {kernel.registers:4} registers "
              f"{kernel.frame:4} bytes local")
    sys.exit()
tap.run([
    ("every kernel is there for every GPU", check_found),
    ("no kernel has local memory", check_spills),
    ("no kernel has more than 60 KiB", check_sizes),
    ("packets have no fence", check_packets),
    ("no load may miss what peers write", check_loads),
    ("kernels that copy store 16 bytes at once", check_stores),
])
