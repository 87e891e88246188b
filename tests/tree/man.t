#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Manual pages: every routine, of the specification and of Weft, has its prototype on the page that its
name leads to, no page tells of a routine that does not exist, and the formatters do not complain.
"""
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
import tap  # noqa: E402

PAGES = sorted((ROOT / "docs/man").glob("*.[1-9]"))
SYMBOLS = ROOT / "tests/api/openshmem-1.6-symbols.txt"
STANDARD = {name: prototype for _, _, name, prototype in
            (line.split("\t") for line in SYMBOLS.read_text().splitlines() if not line.startswith("#"))}
DECLARED = subprocess.run(["gcc", "-E", "-P", f"-I{ROOT}/include", "-x", "c", "-"], text=True, check=True,
                          input="#include <weft.h>\n#include <shmemx.h>\n", capture_output=True).stdout
EXTENSIONS = {name: prototype for prototype, name in re.findall(
    r"(?:^|; )(?:__extension__ )?(\w[\w *]*?\b((?:weft|shmemx)_\w+)\([^;{}]*\);)", DECLARED.replace("\n", " ")
    .replace("; ", ";; "), re.M)}
# Functions of <weft/device.cuh>; those that are for everybody are exported by the bitcode, too.
INSIDE_KERNELS = subprocess.run(["gcc", "-E", "-P", "-D__NVPTX__", "-DWEFT_DEVICE_ARCH=900", f"-I{ROOT}/include", "-x", "c", "-"],
                                text=True, check=True, input="#include <weft/device.cuh>\n", capture_output=True).stdout
OF_THE_HEADER = {name: prototype.replace("( ", "(") + ";" for prototype, name in re.findall(
    r"\bstatic (?:inline |__inline__ |__attribute__\(\([\w, ]+\)\) )*(\w[\w *]*?\b(weft_\w+)\([^()]*\)) \{",
    " ".join(INSIDE_KERNELS.split()))}
EXPORTED = {line.split()[0] for line in (ROOT / "tests/gpu/bitcode.list").read_text().splitlines() if line.startswith("weft_")}
DEVICE = {name: OF_THE_HEADER[name] for name in EXPORTED & set(OF_THE_HEADER)}
ROUTINES = {**STANDARD, **EXTENSIONS, **DEVICE}
C_TYPES = {
    "float": "float", "double": "double", "longdouble": "long double", "char": "char",
    "schar": "signed char", "short": "short", "int": "int", "long": "long", "longlong": "long long",
    "uchar": "unsigned char", "ushort": "unsigned short", "uint": "unsigned int",
    "ulong": "unsigned long", "ulonglong": "unsigned long long", "size": "size_t",
    "ptrdiff": "ptrdiff_t", "complexf": "float _Complex", "complexd": "double _Complex",
    **{f"{u}int{n}": f"{u}int{n}_t" for u in ("", "u") for n in (8, 16, 32, 64)},
}
TYPED = re.compile(rf"^(shmemx?)_({'|'.join(C_TYPES)})_(?=.)")
ELEMENTS = "dest|source|value|cond|fetch|ivars?|cmp_values?|pWrk"
OPERATORS = ["add", "and", "or", "xor", "max", "min", "sum", "prod"]
BITS = ["8", "16", "32", "64", "128"]


def family(name):
    """A routine's name without its context and type."""
    return TYPED.sub(r"\1_", name.replace("_ctx_", "_", 1))


def some(names):
    names = sorted(names)
    return ", ".join(names[:12]) + (f" and {len(names) - 12} more" if len(names) > 12 else "")


# --- Reading a page ------------------------------------------------------------------------------

def plain(line):
    """A line of a page without its macros and escapes; the words of .BI and the like are one."""
    line = re.sub(r"\\f(\[\w*\]|.)", "", line).replace(r"\-", "-").replace(r"\e", "\\").replace(r"\&", "")
    if not line.startswith("."):
        return line
    macro, _, rest = line[1:].partition(" ")
    if macro.startswith("\\") or not re.fullmatch(r"[BIR]+", macro):
        return ""
    lexer = shlex.shlex(rest, posix=True)
    lexer.whitespace_split, lexer.quotes, lexer.commenters = True, '"', ""
    return ("" if len(macro) == 2 else " ").join(lexer)


def sections(page):
    """Heading -> plain text."""
    found, heading = {}, None
    for line in page.read_text().replace("\\\n", "").splitlines():
        if line.startswith(".SH "):
            heading = line[4:].strip('"')
            found[heading] = ""
        elif heading:
            found[heading] += plain(line) + "\n"
    return found


TEXTS = {page: sections(page) for page in PAGES}


def squeeze(text):
    return re.sub(r"\s*([*(),;])\s*", r"\1", " ".join(text.split()))


def prototypes(page):
    """Those of the synopsis, squeezed, every OP written out."""
    synopsis = TEXTS[page].get("SYNOPSIS", "")
    for statement in re.findall(r"^[A-Za-z_][\w *]*\([^;()]*\);", synopsis, re.M):
        for operator in OPERATORS if re.search(r"_OP\b|_OP_", statement) else [""]:
            yield squeeze(re.sub(r"_OP(?=_|\b)", "_" + operator, statement))


# --- Which page ----------------------------------------------------------------------------------

def page_of(problems):
    """Routine -> page, as `make install` links them."""
    run = subprocess.run([ROOT / "tools/man-links.sh", *PAGES], input="\n".join(ROUTINES) + "\n",
                         capture_output=True, text=True)
    problems += run.stderr.splitlines()[:12]
    links = dict(line.split() for line in run.stdout.splitlines())
    pages = {page.name: page for page in PAGES}
    return {name: pages.get(links.get(f"{name}.3", f"{name}.3")) for name in ROUTINES}


def every_routine(problems):
    pages = page_of(problems)
    known = {page: set(prototypes(page)) for page in set(pages.values()) if page}
    lacking = [name for name, page in pages.items() if page and not shown(name, known[page])]
    if lacking:
        families = {f"{family(name)} ({pages[name].name})" for name in lacking}
        problems.append(f"{len(lacking)} prototypes are not in the synopsis of their page: {some(families)}")
    print(f"# {len(ROUTINES)} routines on {len(known)} pages")


def shown(name, known):
    """Whether the prototype, or the one that it is a case of, is among the known ones."""
    context_less = ROUTINES[name].replace("shmem_ctx_t ctx, ", "").replace(name, name.replace("_ctx_", "_", 1))
    return any(squeeze(form) in known for prototype in (ROUTINES[name], context_less)
               for form in general_forms(prototype))


def general_forms(prototype):
    """A prototype as a page may write it: itself, with TYPE and T, or with BITS."""
    name = re.search(r"(\w+)\(", prototype).group(1)
    yield prototype
    typed = TYPED.match(name)
    if typed:
        general = prototype.replace(name, name.replace(typed.group(0), typed.group(1) + "_TYPE_", 1))
        yield with_t(general, C_TYPES[typed.group(2)])
    for bits in BITS:
        general = prototype.replace(name, re.sub(rf"(?<=[a-z]){bits}(?=_|$)", "BITS", name))
        yield general
        yield general.replace(f"uint{bits}_t", "uintBITS_t")


def with_t(prototype, c_type):
    """T for the type of elements: in arguments that hold some, and in a result that is one."""
    result, rest = re.match(r"(.*?)\b(shmemx?_TYPE_.*)", prototype).groups()
    if re.search(r"TYPE_(g|fetch|swap|cswap|finc|fadd|atomic_\w+)\(", rest) and result.strip() == c_type:
        result = "T "
    return result + re.sub(rf"\b{c_type} (?=\*?({ELEMENTS})\b)", "T ", rest)


# --- What pages tell of --------------------------------------------------------------------------

def existing_names():
    """Routines with and without type, size and context, their twins, and what the headers and the
    table of environment variables define."""
    names = {page.stem for page in PAGES}
    for name in ROUTINES:
        short = family(name)
        names |= {name, short, re.sub(r"(8|16|32|64|128)(?=_|$)", "", short)}
    names |= set(OF_THE_HEADER)
    names |= {"p" + name for name in names}
    for source in [*(ROOT / "include").rglob("*.*h"), *(ROOT / "src/base").glob("env.*")]:
        names |= set(re.findall(r"\w+", source.read_text()))
    return names


def no_other_routine(problems):
    """Names may have placeholders: TYPE and the like, and dots for an ending."""
    exist = existing_names()
    lines = "\n".join(exist)
    for page in PAGES:
        told = set(re.findall(r"(?<![\w./\-])(?:p?shmemx?|weft|_?SHMEMX?)_[\w.]*", "\n".join(TEXTS[page].values())))
        unknown = set()
        for name in told - exist:
            pattern = re.sub(r"TYPE|OP|NAME", r"\\w+", re.sub(r"BITS", r"\\d+", re.sub(r"\.\.\.$", r"\\w*", name)))
            if not re.search(rf"^{pattern.rstrip('.')}$", lines, re.M):
                unknown.add(name)
        if unknown:
            problems.append(f"{page.name} tells of {some(unknown)}")


def types_as_in_the_list(problems):
    """The TYPES section of a page names the types of its routines."""
    pages = page_of([])
    wanted = {}
    for name, page in pages.items():
        typed = TYPED.match(name.replace("_ctx_", "_", 1))
        if page and typed:
            wanted.setdefault(page, set()).add(typed.group(2))
    for page, types in wanted.items():
        text = TEXTS[page].get("TYPES")
        if text is None:
            problems.append(f"{page.name} has no TYPES")
            continue
        told = {word for word in re.findall(r"\w+", text) if word in C_TYPES}
        if types - told:
            problems.append(f"{page.name}: TYPES lacks {some(types - told)}")
        if told - types - {"signed", "unsigned"} - set(" ".join(C_TYPES[t] for t in types).split()):
            problems.append(f"{page.name}: TYPES has {some(told - types)}")


def variables(problems):
    """Every environment variable of the library's table, and of those that the Python package reads, is in
    weft(7); what is there is read."""
    literal = r'"((?:SHMEMX?|WEFT|SYMMETRIC_MEMORY)_[A-Z0-9_]+)"'
    names = set(re.findall(literal, (ROOT / "src/base/env.h").read_text()))
    for source in (ROOT / "python").rglob("*.py"):
        names |= set(re.findall(literal, source.read_text()))
        names |= set(re.findall(r'environ(?:\.get\(|\[)["\'](\w+)', source.read_text()))
    page = TEXTS[ROOT / "docs/man/weft.7"]
    told = set(re.findall(r"\w+", page["ENVIRONMENT"] + page["STARTING"]))
    if names - told:
        problems.append(f"weft.7 lacks {some(names - told)}")
    unread = {name for name in re.findall(r"WEFT_[A-Z0-9_]+", page["ENVIRONMENT"]) if not name.endswith("_")} - names
    if unread:
        problems.append(f"nothing reads {some(unread)}")


def overview(problems):
    """weft(7) leads to every page of routines."""
    told = TEXTS[ROOT / "docs/man/weft.7"]["SEE ALSO"]
    problems += [f"weft.7 does not name {page.name}" for page in PAGES
                 if page.suffix == ".3" and f"{page.stem}(3)" not in told]


def formats():
    """What the sources print, as regular expressions: %d and the like are anything."""
    literal = r'"(?:[^"\\\n]|\\.)*"'
    named = r'(weft_(?:fail|job_panic)\((?:[^,"]+,)?\s*)?'  # these write the call's name in front
    for source in (ROOT / "src").rglob("*.[ch]"):
        for front, text in re.findall(rf"{named}({literal}(?:(?:\s|PRI\w+)*{literal})*)", source.read_text()):
            text = "".join(re.findall(rf"{literal}|PRI", text)).replace('"', "").replace("PRI", "d")
            text = "%s: " + text if front else text
            parts = re.split(r"%[-\d.*]*[a-z]+", text)
            if sum(map(len, parts)) >= 9:
                yield re.compile(".+".join(map(re.escape, parts)))


def error_lines(problems):
    """An error line in a listing is one that the library writes."""
    known = list(formats())
    begin = r"(?:weft: |shmemx?_\w+: |in shmem_)"
    for page in PAGES:
        for listing in re.findall(rf"^\.EX\n({begin}.*?)^\.EE", page.read_text().replace("\\\n", ""), re.M | re.S):
            for line in re.split(rf"^(?={begin})", listing, flags=re.M)[1:]:
                said = re.sub(r"^weft: (PE \d+ \(pid \d+\): )?", "", " ".join(plain(line).split()))
                if ":" in said and not any(form.fullmatch(said) for form in known):
                    problems.append(f"{page.name}: nothing in src says: {said}")


def referenced_pages(problems):
    ours = {page.name for page in PAGES}
    linked = {f"{name}.3" for name, page in page_of([]).items() if page}
    for page in PAGES:
        for name, section in re.findall(r"\b((?:p?shmemx?|weft|osh)[\w+]*) ?\((\d)\)", "\n".join(TEXTS[page].values())):
            short = f"{name}.{section}"
            if short not in ours | linked and name not in existing_names():
                problems.append(f"{page.name} refers to {name}({section})")


def formatted(command, problems):
    if not shutil.which(command[0]):
        raise tap.Skip(f"{command[0]} is not installed")
    for page in PAGES:
        run = subprocess.run([*command, page], capture_output=True, text=True)
        problems += (run.stdout + run.stderr).splitlines()[:5]


tap.run([
    ("every routine has a page with its prototype", every_routine),
    ("pages tell of existing routines only", no_other_routine),
    ("the types on a page are those of its routines", types_as_in_the_list),
    ("weft(7) has the environment variables that there are", variables),
    ("weft(7) leads to every page", overview),
    ("error lines are what the library writes", error_lines),
    ("references lead to pages", referenced_pages),
    ("mandoc has no complaint", lambda found: formatted(["mandoc", "-Tlint", "-Wwarning"], found)),
    ("groff has no complaint", lambda found: formatted(["groff", "-man", "-t", "-Tutf8", "-ww", "-z"], found)),
])
