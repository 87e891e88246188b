#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Kernels that call weft.triton, compiled by Triton for GPUs that need not be present: no symbol is unresolved, the
instructions are those of the functions, and loads stay after the waits for their data.
"""
import importlib.util
import pathlib
import re
import sys
import tempfile
import textwrap

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import tap  # noqa: E402
import triton  # noqa: E402
import triton.language as tl  # noqa: E402
from triton.backends.compiler import GPUTarget  # noqa: E402
from triton.compiler import ASTSource  # noqa: E402
from triton.runtime.jit import JITFunction  # noqa: E402

import weft.triton as wt  # noqa: E402

EXAMPLES = HERE.parents[1] / "examples/python/triton"
ARCHITECTURES = (80, 90)


def compiled(kernel, types, constants, arch=90, num_warps=4, libs=None):
    """All forms of its code; pointers, and integers of 32 bits, are multiples of 16."""
    signature = {name: types.get(name, "constexpr") for name in kernel.arg_names}
    place = kernel.arg_names.index
    even = {(place(name),): [["tt.divisibility", 16]] for name, kind in types.items() if kind[0] == "*" or kind == "i32"}
    source = ASTSource(kernel, signature, {(place(name),): value for name, value in constants.items()}, even)
    return triton.compile(source, target=GPUTarget("cuda", arch, 32),
                          options={"num_warps": num_warps, "extern_libs": libs or wt.libs(arch)}).asm


def example(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, name)


def code_has(problems, code, arch, *patterns, shared=None):
    """The code is whole, and has the instructions. Nothing is called but functions that match `shared`, which the code
    has itself."""
    text = code["ptx"]
    own = re.findall(r"\.func\s+(?:\([^)]*\)\s*)?(\w+)\([^)]*\)[^;{]*\{", text)
    for name in re.findall(r"\bcall(?:\.uni)?\s+(?:\([^)]*\),\s*)?(\w+)", text):
        if name not in own or not shared or not re.search(shared, name):
            problems.append(f"sm_{arch}: it calls {name}")
    problems.extend(f"sm_{arch}: {line}" for line in text.splitlines() if ".extern .func" in line)
    problems.extend(f"sm_{arch}: there is no {pattern}" for pattern in patterns if not re.search(pattern, text))
    if not code["cubin"]:
        problems.append(f"sm_{arch}: it was not assembled")


# --- The programs -----------------------------------------------------------------------------------------

def check_ring(problems):
    types = {"team": "i64", "blocks": "*fp32", "arrived": "*u64", "nelems": "i32", "call": "i32"}
    for arch in ARCHITECTURES:
        code = compiled(example("ring"), types, {"SLICE": 16384}, arch)
        code_has(problems, code, arch, r"st\.release\.sys\.\S*[bu]64", r"ld\.acquire\.sys\.\S*[bu]64", r"st\.\S*v[24]\.[bu](32|64)")


def check_all_reduce(problems):
    types = {"team": "i64", "dest": "*bf16", "source": "*bf16", "nelems": "i32"}
    for arch in ARCHITECTURES:
        code = compiled(example("all_reduce"), types, {"BLOCK": 4096}, arch)
        code_has(problems, code, arch, r"fence\.acq_rel\.sys", r"ld\.acquire\.sys", r"ld\.global\S*\.v4\.b32")


def check_all_gather_matmul(problems):
    pointers = dict.fromkeys(("gathered", "a", "b", "c"), "*bf16")
    types = {"team": "i64", **pointers, "arrived": "*u64", **dict.fromkeys(("call", "rows", "N", "K"), "i32")}
    block = {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64}
    for arch in ARCHITECTURES:
        code = compiled(example("all_gather_matmul"), types, block, arch, num_warps=8)
        product = {80: r"mma\.sync", 90: "wgmma", 100: "tcgen05"}[arch]
        code_has(problems, code, arch, product, r"cp\.async|cp_async", r"st\.release\.sys", r"ld\.acquire\.sys")
        behind_wait(problems, code["ttgir"], "weft_wait_until_b", f"sm_{arch}: ")


# --- All functions ----------------------------------------------------------------------------------------

@wt.jit
def every_function(team, x, w, sig, word, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out, wt.me(team) + wt.n(team))
    wt.put(team, x, x + 64, 10, 1)
    wt.get(team, x, x + 64, 10, 1)
    wt.put_signal(team, x, x + 64, 10, sig, 7, wt.SIGNAL_ADD, 1)
    wt.signal(team, sig, 1, 0)
    wt.signal_add(team, sig, 1, 0)
    tl.store(out, wt.signal_fetch(team, sig))
    tl.store(out, wt.wait_until(team, sig, wt.CMP_LT, 3) + wt.wait_ge(team, sig, 3) + wt.wait_eq(team, sig, 3))
    wt.p(team, x + i, tl.load(wt.at(team, x + i, 1)), 1)
    wt.p(team, sig, 3, 1)
    tl.store(out, wt.g(team, sig, 1))
    tl.store(x + i, wt.g(team, x + i, 1))
    wt.atomic_set(team, word, 3, 1)
    wt.atomic_add(team, sig, 5, 1)
    tl.store(out, wt.atomic_fetch(team, word, 1) + wt.atomic_swap(team, word, 5, 1))
    tl.store(out, wt.atomic_compare_swap(team, sig, 5, 6, 1) + wt.atomic_fetch_add(team, sig, 5, 1))
    tl.store(out, wt.atomic_fetch_and(team, sig, 5, 1) + wt.atomic_fetch_or(team, sig, 5, 1))
    tl.store(out, wt.atomic_fetch_xor(team, sig, 5, 1))
    wt.fence()
    wt.quiet()
    wt.fence_async()
    wt.arrive(team, 0)
    tl.store(out, wt.depart(team, 0) + wt.barrier(team, 0) + wt.sync(team, 0) + wt.barrier_grid(team))
    epoch = wt.ll_epoch_begin(team, 0)
    wt.ll_send(team, 0, i, tl.load(w + i), epoch, 1)
    wt.ll_bcast(team, 0, BLOCK + i, tl.load(w + i), epoch)
    tl.store(w + i, wt.ll_recv(team, 0, i, 1, epoch).to(tl.int64))
    wt.ll_epoch_end(team, 0, epoch)
    wt.abort(team, 3)


TYPES = {"team": "i64", "x": "*fp32", "w": "*i64", "sig": "*u64", "word": "*i32", "out": "*u64"}


def check_every_function(problems):
    used = set(re.findall(r"wt\.(\w+)\(", every_function.src))
    offered = {name for name in wt.__all__ if isinstance(getattr(wt, name), JITFunction)}
    problems.extend(f"{name} is not called here" for name in offered - used)
    for arch in (90, 100):
        code_has(problems, compiled(every_function, TYPES, {"BLOCK": 64}, arch), arch, r"fence\.proxy\.async",
                 r"(st|ld)\.relaxed\.sys\.\S*v4", r"atom\.\S*(sys\S*\.relaxed|relaxed\S*\.sys)", r"red\.release\.sys")


@triton.jit
def wrong_types(team, x, w, sig, word, out, BLOCK: tl.constexpr):
    wt.put(team, x, w, 10, 1)


@triton.jit
def wrong_signal(team, x, w, sig, word, out, BLOCK: tl.constexpr):
    wt.put_signal(team, x, x, 10, word, 1, wt.SIGNAL_SET, 1)


@triton.jit
def wrong_wait(team, x, w, sig, word, out, BLOCK: tl.constexpr):
    wt.wait_ge(team, word, 1)


@triton.jit
def wrong_value(team, x, w, sig, word, out, BLOCK: tl.constexpr):
    wt.signal(team, sig, 1.5, 1)


def check_refusals(problems):
    refusals = {wrong_types: "put: dest and source point to different types", wrong_value: "of type fp32",
                wrong_signal: "put_signal: sig points to no words of 64 bits",
                wrong_wait: "wait_ge: sig points to no words of 64 bits"}
    for kernel, message in refusals.items():
        try:
            compiled(kernel, TYPES, {"BLOCK": 64})
            problems.append(f"{kernel.__name__} was compiled")
        except Exception as error:
            said = f"{error} {error.__cause__} {error.__context__}"
            if message not in said:
                problems.append(f"{kernel.__name__}: {said}")


# --- Elements, words and stores through descriptors -----------------------------------------------------------

@wt.jit
def flags_sent(team, flags, sig):
    wt.put(team, flags, flags, 12345, 1)
    wt.get(team, flags, flags, 12345, 1)
    wt.put_signal(team, flags, flags, 12345, sig, 7, wt.SIGNAL_SET, 1)
    tl.store(wt.at(team, flags, 1), True)


def check_bools(problems):
    """12345 elements have the right number of bytes."""
    ttir = compiled(flags_sent, {"team": "i64", "flags": "*i1", "sig": "*u64"}, {})["ttir"]
    numbers = set(re.findall(r"(%\w+) = arith\.constant 12345 : i64", ttir))
    calls = [line for line in ttir.splitlines() if re.search(r"weft_(put|get|put_signal)_b", line)]
    problems.extend(f"it is not of 12345 bytes: {line.strip()}" for line in calls if not numbers & set(re.findall(r"%\w+", line)))
    if len(calls) != 3:
        problems.append(f"there are {len(calls)} calls, expected 3")


@wt.jit
def words_sent(team, sig, word):
    wt.p(team, sig, 3, 1)
    wt.p(team, word, 3, 1)
    wt.p(team, sig + tl.arange(0, 64), 3, 1)
    wt.p(team, word, 3, tl.arange(0, 8))


def check_words(problems):
    """One word is the block's; tensors of dest or of members go element by element."""
    ttir = compiled(words_sent, {"team": "i64", "sig": "*u64", "word": "*i32"}, {})["ttir"]
    called = re.findall(r"weft_p\w+", ttir)
    if called != ["weft_p64_b", "weft_p32_b", "weft_p64", "weft_p32"]:
        problems.append(f"called are {called}")


@wt.jit
def words_loaded(team, sig, word, out):
    a = wt.g(team, sig, 1) + wt.g(team, word, 1).to(tl.uint64) + wt.atomic_fetch(team, sig, 1)
    tl.store(out, a + wt.atomic_fetch(team, word, 1).to(tl.uint64) + wt.signal_fetch(team, sig))
    i = tl.arange(0, 64)
    tl.store(out + i, wt.g(team, sig + i, 1) + wt.atomic_fetch(team, sig + i, 1))


def check_loads_of_words(problems):
    """One word is loaded by one thread, for all; nothing is written."""
    for arch in ARCHITECTURES:
        code = compiled(words_loaded, {"team": "i64", "sig": "*u64", "word": "*i32", "out": "*u64"}, {}, arch)
        called = re.findall(r"symbol = \"(weft_(?:g|signal)\w+)\"", code["ttir"])
        if called != ["weft_g64_b", "weft_g32_b", "weft_g64_b", "weft_g32_b", "weft_signal_fetch_b", "weft_g64"]:
            problems.append(f"sm_{arch}: called are {called}")
        code_has(problems, code, arch, r"ld\.acquire\.sys", r"ld\.shared")
        atomics = len(re.findall("tt.atomic_rmw", code["ttir"]))
        if atomics != 1:
            problems.append(f"sm_{arch}: {atomics} atomics, expected those of the tensor alone")


ORDERED = ["wt.put(team, x, x, 8, 1)", "wt.get(team, x, x, 8, 1)", "wt.put_signal(team, x, x, 8, sig, 1, wt.SIGNAL_SET, 1)",
           "wt.signal(team, sig, 1, 1)", "wt.signal_add(team, sig, 1, 1)", "wt.fence()", "wt.quiet()", "wt.arrive(team, 0)",
           "wt.barrier(team, 0)", "wt.barrier_grid(team)"]


def check_descriptors(problems):
    """Behind a store through a tensor descriptor each waits until it is done, not only read (as Triton 3.6 leaves it), and
    syncs the block then."""
    with tempfile.TemporaryDirectory() as folder:
        for number, call in enumerate(ORDERED):
            lines = f"""
                @wt.jit
                def stored(team, x, sig):
                    tile = tl.make_tensor_descriptor(x, [64, 64], [64, 1], [64, 64])
                    tile.store([0, 0], tl.full([64, 64], 1.0, tl.float32))
                    {call}
            """
            kernel = kernel_of(folder, f"stored{number}", lines)
            text = compiled(kernel, {"team": "i64", "x": "*fp32", "sig": "*u64"}, {})["ptx"]
            store, done = text.find("cp.async.bulk.tensor"), re.search(r"cp\.async\.bulk\.wait_group\s+0", text)
            sync = done and re.search(r"bar(rier)?\.(cta\.)?(sync|red)", text[done.end():])
            release = re.search(r"fence\.acq_rel\.sys|release\.sys|red\.\S*sys", text[store:])
            if store < 0 or not sync or done.start() < store or release and store + release.start() < done.end() + sync.start():
                problems.append(f"{call}: store at {store}, wait {done}, sync {sync}, release {release}")


# --- Collectives by NVSHMEM's names ------------------------------------------------------------------------

KINDS = ["i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "fp16", "bf16", "fp32", "fp64"]


def collectives(nvshmem, operation):
    """All functions of PyTorch's helpers, for one type."""
    lines = f"""
        @triton.jit
        def kernel(dest, source, n):
            n = n.to(tl.int64)
            nvshmem.alltoall(0, dest, source, n)
            nvshmem.broadcast(0, dest, source, n, 1)
            nvshmem.reduce(0, dest, source, n, "{operation}")
    """
    with tempfile.TemporaryDirectory() as folder:
        kernel = kernel_of(folder, operation, lines)
        kernel.fn.__globals__.update(nvshmem=nvshmem, triton=triton)
        return kernel


def check_collectives(problems):
    try:
        import torch.utils._triton as of_torch
    except ImportError:
        raise tap.Skip("no Python here has both PyTorch and Triton") from None
    there_is_a_gpu, of_torch.has_triton = of_torch.has_triton, lambda: True  # or there are no helpers
    import torch.distributed._symmetric_memory._nvshmem_triton as helpers
    of_torch.has_triton = there_is_a_gpu
    if not hasattr(helpers, "reduce"):
        raise tap.Skip("this PyTorch has no such helpers")
    from weft.triton import nvshmem
    for number, operation in enumerate(["sum", "prod", "max", "min"]):
        for kind in KINDS[number::4]:
            kernel = collectives(helpers, operation)
            code = compiled(kernel, {"dest": f"*{kind}", "source": f"*{kind}", "n": "i32"}, {},
                            libs={"nvshmem": nvshmem.bitcode_path(90)})
            code_has(problems, code, 90, r"fence\.acq_rel\.sys", r"ld\.acquire\.sys", shared="broadcast")


# --- Loads stay behind waits ------------------------------------------------------------------------------

def behind_wait(problems, ttgir, symbol, where=""):
    """From the first call of the symbol on is the first load by which a product's operand comes."""
    lines = ttgir.splitlines()
    wait = next((number for number, line in enumerate(lines) if f'symbol = "{symbol}"' in line or symbol in line), None)
    if wait is None:
        problems.append(f"{where}there is no {symbol}")
    problems.extend(f"{where}a load is in front of {symbol}: {line.strip()[:100]}" for line in lines[:wait]
                    if re.search(r"async_copy_global_to_local|tt\.load|async_tma_copy", line))


def waiting_product(wait):
    """A product in a loop as the pipeliner likes them, with a wait in front of the loads."""
    lines = f"""
        @wt.jit
        def product(team, x, y, out, sig, BLOCK: tl.constexpr):
            i = tl.arange(0, BLOCK)
            tile = i[:, None] * BLOCK + i[None, :]
            sums = tl.zeros([BLOCK, BLOCK], tl.float32)
            for m in range(wt.n(team)):
                {wait}
                part = m * BLOCK * BLOCK + tile
                sums = tl.dot(tl.load(x + part), tl.load(y + part), sums)
            tl.store(out + tile, sums)
    """
    return lines


WAITS = {
    "wt.wait_ge(team, sig + m, 1)": "weft_wait_until_b",
    "wt.wait_eq(team, sig + m, 1)": "weft_wait_until_b",
    "wt.wait_until(team, sig + m, wt.CMP_GT, 0)": "weft_wait_until_b",
    "wt.barrier(team, m)": "weft_barrier_b",
    "wt.depart(team, m)": "weft_depart_b",
    "wt.barrier_grid(team)": "weft_barrier_grid",
    "wt.get(team, x + m * 64, y, 64, m)": "weft_get_b",
    "wt.signal_fetch(team, sig + m)": "weft_signal_fetch_b",
}


def kernel_of(folder, name, lines):
    """The last function that the lines define; Triton reads them in a file."""
    path = pathlib.Path(folder) / f"{name}.py"
    path.write_text("import triton\nimport triton.language as tl\nimport weft.triton as wt\nnvshmem = None\n" + textwrap.dedent(lines))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, re.findall(r"def (\w+)", lines)[-1])


def check_loads(problems):
    types = {"team": "i64", "x": "*bf16", "y": "*bf16", "out": "*fp32", "sig": "*u64"}
    with tempfile.TemporaryDirectory() as folder:
        for number, (wait, symbol) in enumerate(WAITS.items()):
            product = kernel_of(folder, f"product{number}", waiting_product(wait))
            for arch in (80, 90):
                code = compiled(product, types, {"BLOCK": 128}, arch, num_warps=8)
                behind_wait(problems, code["ttgir"], symbol, f"sm_{arch}, {wait}: ")


tap.run([
    ("the ring with signals is compiled", check_ring),
    ("the all-reduce is compiled", check_all_reduce),
    ("the all-gather that feeds a product is compiled", check_all_gather_matmul),
    ("every function is compiled", check_every_function),
    ("wrong types are refused with the reason", check_refusals),
    ("elements of bools have a byte", check_bools),
    ("a single word is stored once for the program", check_words),
    ("a single word is loaded once for the program", check_loads_of_words),
    ("functions wait for stores through tensor descriptors", check_descriptors),
    ("collectives by NVSHMEM's names are compiled", check_collectives),
    ("loads stay behind waits, in loops that Triton pipelines", check_loads),
])
