#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Kernels access memory that peers write or read only by the functions of weft/device/ptx.cuh and base/gpu.cuh: these
specify the order and, on a host, implement the weak memory by which tests find a missing order. So kernel files have no
dereference or subscript of their own, except of arrays within a thread or a block, and those that the table below lists
with reasons."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
import tap  # noqa: E402

# A file, an expression for the place, and the reason why it is allowed.
ALLOWED = [
    ("include/weft/device/packet.cuh", r"\*data = ", "the caller's own variable"),
    ("include/weft/device/team.cuh", r"t->places\[m\]", "written by the host before the kernel"),
    ("src/coll/fold.cuh", r"\*to = a;", "an element in registers"),
    ("src/coll/ll.cu", r"\*data = load|, \*place\b", "the caller's own variables"),
    ("src/coll/ll.cu", r"\*so_far = |\bunits\[|\bround\[id\]", "shared memory of the block"),
    ("src/coll/ll.cuh", r"\bfrom\[k\]|\bto\[k\]", "the member's own source and dest"),
    ("src/coll/marked_fold.cuh", r"\*\(const (number_vector|uint32_t|uint16_t) \*\)", "the member's own source"),
    ("src/coll/norm.cu", r"\b(numbers|z|y|bias|more|weight)\.of\[k\]|&to\[k\]", "registers, and an address"),
    ("src/coll/marked_fold.cuh", r"\bsums\[u\]", "registers"),
    ("src/coll/marked.cu", r"\*\((number_vector|uint32_t|uint16_t) \*\)", "the member's own dest"),
    ("src/coll/marked.cuh", r"\bquads\[k\]", "registers"),
    ("src/fused/kv_shuffle.cu", r"task\.own\[cache\]", "written by the host before the kernel"),
    ("src/fused/warps.cuh", r"\*total = ", "the caller's own variable"),
    ("src/fused/warps.cuh", r"\bsums\[", "shared memory of the block"),
    ("src/fused/experts.cuh", r"list->of\[", "shared memory of the block"),
    ("src/fused/experts_dispatch.cu", r"to\.of\[", "shared memory of the block"),
    ("src/fused/hopper_tile.cuh", r"\*\(const uint16_t \*\)from", "shared memory of the block"),
    ("src/fused/hopper_tile.cuh", r"block\.turns\[i\] = 0", "shared memory of the block"),
    ("src/fused/hopper_tile.cuh", r"\bof\[\d\]", "registers"),
    ("src/fused/hopper_mma.cuh", r"\(sums\[i\]\)", "registers"),
    ("src/fused/hopper_ptx.cuh", r"\(sums\[i\]\)", "registers"),
    ("src/fused/hopper_reduce.cuh", r"\bvalues\[k\]|\bsums\[row\]|\bfound\[i / UNIT|\brounded\[", "registers"),
    ("src/fused/scale.cu", r"\btask\.(source|dest|rows|cols)\[", "matrices that no peer writes"),
    ("src/transport/barrier.cu", r"mine->epoch = epoch", "no peer has it"),
    ("src/transport/pad.cu", r"pad\.pads\[pad\.me\]", "written by the host before the kernel"),
    ("src/transport/word.cu", r"\*\(uint(32|64)_t \*\)amo\.fetch", "a result for the program"),
    ("src/transport/slice.cu", r"\*\(const int(32|64)_t \*\)n\.at", "a number of the program's"),
]
# Pointers to words that members share.
WORDS = r"\b(?:mine|head|theirs)->\w+"


def kernel_files():
    for folder, pattern in ("src", "*.cu"), ("src", "*.cuh"), ("include/weft/device", "*.cuh"):
        for path in sorted((ROOT / folder).rglob(pattern)):
            if path.parent.name != "base" and path.name not in {"ptx.cuh", "check.cuh"}:
                yield path


def bare(text):
    """Returns the text without comments and strings, with the same lines."""
    text = re.sub(r"/\*.*?\*/", lambda comment: re.sub(r"[^\n]", " ", comment[0]), text, flags=re.S)
    return re.sub(r'"(\\.|[^"\n])*"', '""', text)


def own_arrays(text):
    declared = re.findall(r"\b[\w:]+(?:<[^<>;]*>)? \**(\w+)\[[^\]]*\](?:\[[^\]]*\])?\s*[=;,)]", text)
    return set(declared) | set(re.findall(r", (\w+)\[[^\]]*\];", text)) | set(re.findall(r"WEFT_SHARED\(\w+, (\w+)", text))


def accesses(text):
    """Yields (line, text) of accesses outside of functions."""
    text, found = bare(text), set()
    arrays = own_arrays(text)
    for match in re.finditer(r"(?<![\w.>])(&?)\s*(?:\w+(?:\.|->))*(\w+)\[", text):
        if not match[1] and match[2] not in arrays:
            found.add(match.start(2))
    for match in re.finditer(r"(?:^|[;{}=(,?:!|+-]|\breturn)\s*(\*)\s*[(\w]", text, re.M):
        found.add(match.start(1))
    for match in re.finditer(r"(&(?:\w+\.)?)?" + WORDS + r"(?!\[|\w)", text):
        if not match[1] and not re.search(r"&(?:\w+\.)?$", text[:match.start()]):
            found.add(match.start())
    lines = text.split("\n")
    for at in sorted(found):
        line = text.count("\n", 0, at)
        yield line + 1, lines[line].strip()


def is_declaration(line):
    """Returns whether `*` makes a type, or follows one."""
    return re.search(r"\*\w+[,)]? *(?:[,;)]|$)", line) is not None and "=" not in line


def check_files(problems):
    used = set()
    for path in kernel_files():
        name = str(path.relative_to(ROOT))
        for number, line in accesses(path.read_text()):
            reasons = [rule for rule in ALLOWED if rule[0] == name and re.search(rule[1], line)]
            used.update(reasons)
            if not reasons and not is_declaration(line):
                problems.append(f"{name}:{number}: {line}")
    problems.extend(f"{rule[0]} has nothing like {rule[1]} any more" for rule in ALLOWED if rule not in used)


def check_finds(problems):
    """The test finds accesses that it must find."""
    for line in ("    peer[me] = epoch;", "    *word = 1;", "    if (mine->arrived[i] < epoch)", "    x = *flag;",
                 "    return head->epoch;", "    f(*place);"):
        if not list(accesses(f"void f(void) {{\n{line}\n}}\n")):
            problems.append(f"not found: {line}")
    for line in ("    uint64_t own[4] = {0};\n    own[1] = 2;", "    uint64_t *p = &row[m];",
                 "    weft_st_relaxed_sys(&mine->epoch, epoch);", "    /* *word = 1; */"):
        if list(accesses(f"void f(void) {{\n{line}\n}}\n")):
            problems.append(f"found: {line}")


tap.run([("accesses that are no function's are found", check_finds),
         ("kernels touch shared words by functions alone", check_files)])
