#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The public headers: clean in C and C++, the specification's prototypes and no others, generic names
that choose the right routine or none, and a library that has what the headers declare.

The lists of types and prototypes here are the specification's, written down a second time in another
form; nothing is read from the headers' own tables.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("WEFT_BUILD", ROOT / "build")).resolve()
STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]
C_COMPILERS = [c for c in ("gcc", "clang") if shutil.which(c)]
CXX_COMPILERS = [c for c in ("g++", "clang++") if shutil.which(c)]
WORK = pathlib.Path(tempfile.mkdtemp(prefix="weft-headers-"))

# --- What the specification says -----------------------------------------------------------------

FIXED = "int32 int64 uint32 uint64"
AMO = f"int long longlong uint ulong ulonglong {FIXED} size ptrdiff".split()
AMO_BITWISE = f"uint ulong ulonglong {FIXED}".split()
AMO_EXTENDED = ["float", "double"] + AMO
RMA = AMO_EXTENDED + "longdouble char schar short uchar ushort int8 int16 uint8 uint16".split()
WAIT_SCALAR = AMO + ["short", "ushort"]
C_NAMES = {
    "longlong": "long long", "longdouble": "long double", "schar": "signed char",
    "uchar": "unsigned char", "ushort": "unsigned short", "uint": "unsigned int",
    "ulong": "unsigned long", "ulonglong": "unsigned long long", "size": "size_t",
    "ptrdiff": "ptrdiff_t",
    **{f"{u}int{n}": f"{u}int{n}_t" for u in ("", "u") for n in (8, 16, 32, 64)},
}

COPY = "{v} *d, const {v} *s, size_t n, int pe"
STRIDED = "{v} *d, const {v} *s, ptrdiff_t dst, ptrdiff_t sst, size_t n, int pe"
BLOCKS = "{v} *d, const {v} *s, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe"
SIGNAL = "{v} *d, const {v} *s, size_t n, uint64_t *sig, uint64_t signal, int sig_op, int pe"
PLAIN_SET = "T *x, size_t n, const int *status, int cmp, "
INDEX_SET = "T *x, size_t n, size_t *indices, const int *status, int cmp, "


def with_ctx(result, name, arguments):
    """A routine and its form with a leading context."""
    head, tail = name.split("_", 1)
    return [f"{result} {name}({arguments});", f"{result} {head}_ctx_{tail}(shmem_ctx_t ctx, {arguments});"]


def bulk(element, put, get, suffix_of):
    """Put and get of typed and sized routines; `put` and `get` are names without their ending."""
    lines = []
    for verb in (put, get):
        lines += with_ctx("void", suffix_of(verb, ""), COPY.format(v=element))
        lines += with_ctx("void", suffix_of(verb, "_nbi"), COPY.format(v=element))
    for ending in ("_signal", "_signal_nbi"):
        lines += with_ctx("void", suffix_of(put, ending), SIGNAL.format(v=element))
    return lines


def prototypes():
    lines = []
    for name in RMA:
        typed = []
        typed += bulk("T", "put", "get", lambda verb, end: f"shmem_N_{verb}{end}")
        typed += with_ctx("void", "shmem_N_p", "T *d, T value, int pe")
        typed += with_ctx("T", "shmem_N_g", "const T *s, int pe")
        for verb in ("put", "get"):
            typed += with_ctx("void", f"shmem_N_i{verb}", STRIDED.format(v="T"))
            typed += with_ctx("void", f"shmem_N_ib{verb}", BLOCKS.format(v="T"))
        lines += [(name, line) for line in typed]
    for bits in (8, 16, 32, 64, 128):
        sized = bulk("void", "put", "get", lambda verb, end: f"shmem_{verb}{bits}{end}")
        for verb in ("put", "get"):
            sized += with_ctx("void", f"shmem_i{verb}{bits}", STRIDED.format(v="void"))
            sized += with_ctx("void", f"shmem_ib{verb}{bits}", BLOCKS.format(v="void"))
        lines += [(None, line) for line in sized]
    lines += [(None, line) for line in bulk("void", "put", "get", lambda verb, end: f"shmem_{verb}mem{end}")]

    def atomics(types, operations):
        for name in types:
            for result, operation, arguments in operations:
                lines.extend((name, l) for l in with_ctx(result, f"shmem_N_atomic_{operation}", arguments))

    def fetching(operation):
        return [("void", operation, "T *d, T v, int pe"), ("T", f"fetch_{operation}", "T *d, T v, int pe"),
                ("void", f"fetch_{operation}_nbi", "T *f, T *d, T v, int pe")]
    atomics(AMO, fetching("add") + [
        ("void", "inc", "T *d, int pe"), ("T", "fetch_inc", "T *d, int pe"),
        ("void", "fetch_inc_nbi", "T *f, T *d, int pe"),
        ("T", "compare_swap", "T *d, T c, T v, int pe"),
        ("void", "compare_swap_nbi", "T *f, T *d, T c, T v, int pe")])
    atomics(AMO_BITWISE, fetching("and") + fetching("or") + fetching("xor"))
    atomics(AMO_EXTENDED, [
        ("T", "fetch", "const T *s, int pe"), ("void", "fetch_nbi", "T *f, const T *s, int pe"),
        ("void", "set", "T *d, T v, int pe"), ("T", "swap", "T *d, T v, int pe"),
        ("void", "swap_nbi", "T *f, T *d, T v, int pe")])

    for name in WAIT_SCALAR:
        lines.append((name, "void shmem_N_wait_until(T *x, int cmp, T v);"))
        lines.append((name, "int shmem_N_test(T *x, int cmp, T v);"))
    for name in AMO:
        for ending, value in (("", "T v"), ("_vector", "const T *v")):
            for result, verb, given in (
                    ("void", "wait_until_all", PLAIN_SET), ("size_t", "wait_until_any", PLAIN_SET),
                    ("size_t", "wait_until_some", INDEX_SET), ("int", "test_all", PLAIN_SET),
                    ("size_t", "test_any", PLAIN_SET), ("size_t", "test_some", INDEX_SET)):
                lines.append((name, f"{result} shmem_N_{verb}{ending}({given}{value});"))

    for plain in """
        void shmem_init(void)
        int shmem_init_thread(int requested, int *provided)
        void shmem_finalize(void)
        void shmem_global_exit(int status)
        void shmem_query_initialized(int *initialized)
        void shmem_query_thread(int *provided)
        int shmem_my_pe(void)
        int shmem_n_pes(void)
        int shmem_pe_accessible(int pe)
        int shmem_addr_accessible(const void *addr, int pe)
        void *shmem_ptr(const void *dest, int pe)
        void *shmem_team_ptr(shmem_team_t team, const void *dest, int pe)
        void shmem_info_get_version(int *major, int *minor)
        void shmem_info_get_name(char *name)
        void shmem_pcontrol(int level, ...)
        void *shmem_malloc(size_t size)
        void *shmem_calloc(size_t count, size_t size)
        void *shmem_align(size_t alignment, size_t size)
        void *shmem_malloc_with_hints(size_t size, long hints)
        void *shmem_realloc(void *ptr, size_t size)
        void shmem_free(void *ptr)
        int shmem_team_my_pe(shmem_team_t team)
        int shmem_team_n_pes(shmem_team_t team)
        int shmem_team_get_config(shmem_team_t team, long mask, shmem_team_config_t *config)
        int shmem_team_translate_pe(shmem_team_t from, int pe, shmem_team_t to)
        int shmem_team_split_strided(shmem_team_t parent, int start, int stride, int size, const shmem_team_config_t *config, long mask, shmem_team_t *team)
        int shmem_team_split_2d(shmem_team_t parent, int xrange, const shmem_team_config_t *xc, long xm, shmem_team_t *x, const shmem_team_config_t *yc, long ym, shmem_team_t *y)
        void shmem_team_destroy(shmem_team_t team)
        int shmem_ctx_create(long options, shmem_ctx_t *ctx)
        int shmem_team_create_ctx(shmem_team_t team, long options, shmem_ctx_t *ctx)
        int shmem_ctx_get_team(shmem_ctx_t ctx, shmem_team_t *team)
        void shmem_ctx_destroy(shmem_ctx_t ctx)
        void (shmem_signal_add)(uint64_t *sig, uint64_t signal, int pe)
        void (shmem_signal_set)(uint64_t *sig, uint64_t signal, int pe)
        void shmem_ctx_signal_add(shmem_ctx_t ctx, uint64_t *sig, uint64_t signal, int pe)
        void shmem_ctx_signal_set(shmem_ctx_t ctx, uint64_t *sig, uint64_t signal, int pe)
        uint64_t shmem_signal_fetch(const uint64_t *sig)
        uint64_t shmem_signal_wait_until(uint64_t *sig, int cmp, uint64_t v)
        void shmem_fence(void)
        void shmem_ctx_fence(shmem_ctx_t ctx)
        void shmem_quiet(void)
        void shmem_ctx_quiet(shmem_ctx_t ctx)
        void shmem_pe_quiet(const int *pes, size_t n)
        void shmem_ctx_pe_quiet(shmem_ctx_t ctx, const int *pes, size_t n)
        void shmem_barrier_all(void)
        void shmem_sync_all(void)
        int shmem_team_sync(shmem_team_t team)
        """.strip().splitlines():
        lines.append((None, plain.strip() + ";"))
    return [re.sub(r"\bT\b", C_NAMES.get(name, name), line.replace("_N_", f"_{name}_")) if name else line
            for name, line in lines]


EXPECTED = prototypes()
EXPECTED_NAMES = {re.search(r"\(?(shmem_\w+)\)?\(", line).group(1) for line in EXPECTED}

# --- Compiling -----------------------------------------------------------------------------------

PROLOGUE = """#include <shmem.h>
struct other { int x; };
static int i1, i2; static const int ci; static long l1; static const long cl; static long long ll;
static short s1; static unsigned short us; static char c1; static unsigned char uc; static float f1;
static double d1; static long double ld; static uint64_t u64; static int64_t i64; static size_t z1;
static ptrdiff_t pd; static uint32_t u32; static size_t index_[4]; static int status_[4];
static struct other o; static void *v; static shmem_ctx_t ctx; static shmem_team_t team;
static void use(void) {
    (void)i1, (void)i2, (void)ci, (void)l1, (void)cl, (void)ll, (void)s1, (void)us, (void)c1, (void)uc;
    (void)f1, (void)d1, (void)ld, (void)u64, (void)i64, (void)z1, (void)pd, (void)u32, (void)index_;
    (void)status_, (void)o, (void)v, (void)ctx, (void)team;
}
"""


def compile_text(compiler, text, *flags, language="c", output=None):
    run = subprocess.run(
        [compiler, f"-I{ROOT}/include", *flags, "-x", language, "-",
         *(["-c", "-o", str(output)] if output else ["-fsyntax-only"])],
        input=text, capture_output=True, text=True)
    return run.returncode == 0, run.stderr


def snippet(statement):
    return f"{PROLOGUE}\nvoid test(void);\nvoid test(void) {{ use(); {statement}; }}\n"


def clean_in_c(problems):
    for header in ("shmem.h", "shmemx.h", "mpp/shmem.h", "mpp/shmemx.h"):
        for compiler in C_COMPILERS:
            for standard in ("c99", "c11", "c17", "gnu11", "gnu17"):
                ok, text = compile_text(compiler, f"#include <{header}>\n#include <{header}>\nint x;\n",
                                        f"-std={standard}", "-Wstrict-prototypes", *STRICT)
                if not ok:
                    problems.append(f"{compiler} -std={standard} {header}: {text[:300]}")


def clean_in_cxx(problems):
    for header in ("shmem.h", "shmemx.h", "mpp/shmem.h", "mpp/shmemx.h"):
        for compiler in CXX_COMPILERS:
            for standard in ("c++11", "c++14", "c++17", "c++20"):
                ok, text = compile_text(compiler, f"#include <{header}>\nint x;\n", f"-std={standard}",
                                        *STRICT, language="c++")
                if not ok:
                    problems.append(f"{compiler} -std={standard} {header}: {text[:300]}")


def same_prototypes(problems):
    """A second declaration must be compatible with the first: a compile error otherwise."""
    text = "#include <shmem.h>\n" + "\n".join(EXPECTED) + "\n"
    for compiler in C_COMPILERS:
        ok, errors = compile_text(compiler, text, "-std=c11", *STRICT)
        if not ok:
            problems.append(f"{compiler}: {errors[:600]}")
    plain = re.sub(r"\((shmem_signal_\w+)\)", r"\1", text)
    for compiler in CXX_COMPILERS:
        ok, errors = compile_text(compiler, 'extern "C" {\n' + plain + "}\n", "-std=c++11", language="c++")
        if not ok:
            problems.append(f"{compiler}: {errors[:600]}")


def declared_names():
    run = subprocess.run(["gcc", "-std=c11", "-E", "-P", f"-I{ROOT}/include", "-x", "c", "-"],
                         input="#include <shmem.h>\n", capture_output=True, text=True, check=True)
    return set(re.findall(r"\b(shmem_\w+)\(", run.stdout))


def same_names(problems):
    declared = declared_names()
    problems += [f"not declared: {name}" for name in sorted(EXPECTED_NAMES - declared)[:10]]
    problems += [f"declared, but not the specification's: {name}" for name in sorted(declared - EXPECTED_NAMES)[:10]]
    print(f"# {len(declared)} routines are declared")


def only_own_macros(problems):
    def macros(text):
        run = subprocess.run(["gcc", "-std=c11", "-dM", "-E", f"-I{ROOT}/include", "-x", "c", "-"],
                             input=text, capture_output=True, text=True, check=True)
        return set(re.findall(r"#define (\w+)", run.stdout))
    new = macros("#include <shmem.h>\n") - macros("#include <stddef.h>\n#include <stdint.h>\n")
    problems += [f"leaks {name}" for name in sorted(new) if not name.startswith(("SHMEM_", "shmem_"))]
    shapes = set(re.findall(r"#define (\w+)", (ROOT / "include/shmem_typed.h").read_text()))
    problems += [f"{name} is left defined" for name in sorted((shapes & new) - {"SHMEM_TYPED_H"})]


def library_has_all(problems):
    run = subprocess.run(["nm", "-D", "--defined-only", str(BUILD / "lib/libweft.so")],
                         capture_output=True, text=True, check=True)
    exported = {line.split()[2] for line in run.stdout.splitlines()}
    problems += [f"declared, not exported: {name}" for name in sorted(declared_names() - exported)[:10]]
    problems += [f"exported: {name}" for name in sorted(exported)
                 if not name.startswith(("shmem", "pshmem", "weft_"))][:10]
    internal = {name for name in exported if name.startswith("weft_")}
    public = set(re.findall(r"\b(weft_\w+)\(", (ROOT / "include/weft.h").read_text()))
    problems += [f"internal, but exported: {name}" for name in sorted(internal - public)[:10]]


# --- Generic names ---------------------------------------------------------------------------------

# Statement -> the routine it has to call.
CHOICES = {
    "shmem_put(&i1, &i2, 1, 0)": "shmem_int_put",
    "shmem_put(ctx, &i1, &i2, 1, 0)": "shmem_ctx_int_put",
    "shmem_put(SHMEM_CTX_DEFAULT, &i1, &ci, 1, 0)": "shmem_ctx_int_put",
    "shmem_put(&i64, &i64, 1, 0)": "shmem_long_put",
    "shmem_put(&z1, &z1, 1, 0)": "shmem_ulong_put",
    "shmem_put(&ld, &ld, 1, 0)": "shmem_longdouble_put",
    "shmem_put(&c1, &c1, 1, 0)": "shmem_char_put",
    "shmem_put(&uc, (&(unsigned char){1}), 1, 0)": "shmem_uchar_put",
    "shmem_put(index_, index_, 1, 0)": "shmem_ulong_put",
    "shmem_get(&s1, &s1, 1, 0)": "shmem_short_get",
    "shmem_get(ctx, &us, &us, 1, 0)": "shmem_ctx_ushort_get",
    "shmem_put_nbi(&f1, &f1, 1, 0)": "shmem_float_put_nbi",
    "shmem_get_nbi(ctx, &d1, &d1, 1, 0)": "shmem_ctx_double_get_nbi",
    "shmem_p(&d1, 1, 0)": "shmem_double_p",
    "shmem_p(ctx, &ll, 1, 0)": "shmem_ctx_longlong_p",
    "i1 = shmem_g(&ci, 0)": "shmem_int_g",
    "l1 = shmem_g(&l1, 0)": "shmem_long_g",
    "l1 = shmem_g(ctx, &cl, 0)": "shmem_ctx_long_g",
    "shmem_iput(&i1, &i2, 1, 1, 1, 0)": "shmem_int_iput",
    "shmem_iget(ctx, &i1, &i2, 1, 1, 1, 0)": "shmem_ctx_int_iget",
    "shmem_ibput(ctx, &i1, &i2, 1, 1, 1, 1, 0)": "shmem_ctx_int_ibput",
    "shmem_ibget(&i1, &i2, 1, 1, 1, 1, 0)": "shmem_int_ibget",
    "shmem_put_signal(&i1, &i2, 1, &u64, 1, SHMEM_SIGNAL_SET, 0)": "shmem_int_put_signal",
    "shmem_put_signal_nbi(ctx, &d1, &d1, 1, &u64, 1, SHMEM_SIGNAL_ADD, 0)": "shmem_ctx_double_put_signal_nbi",
    "d1 = shmem_atomic_fetch(&d1, 0)": "shmem_double_atomic_fetch",
    "l1 = shmem_atomic_fetch(ctx, &cl, 0)": "shmem_ctx_long_atomic_fetch",
    "shmem_atomic_fetch_nbi(&i1, &ci, 0)": "shmem_int_atomic_fetch_nbi",
    "shmem_atomic_set(ctx, &f1, 1, 0)": "shmem_ctx_float_atomic_set",
    "i1 = shmem_atomic_swap(&i1, 1, 0)": "shmem_int_atomic_swap",
    "shmem_atomic_swap_nbi(&i1, &i2, 1, 0)": "shmem_int_atomic_swap_nbi",
    "i1 = shmem_atomic_compare_swap(&i1, 1, 2, 0)": "shmem_int_atomic_compare_swap",
    "shmem_atomic_compare_swap_nbi(ctx, &i1, &i2, 1, 2, 0)": "shmem_ctx_int_atomic_compare_swap_nbi",
    "shmem_atomic_inc(&pd, 0)": "shmem_long_atomic_inc",
    "shmem_atomic_inc(ctx, &u32, 0)": "shmem_ctx_uint_atomic_inc",
    "z1 = shmem_atomic_fetch_inc(&z1, 0)": "shmem_ulong_atomic_fetch_inc",
    "shmem_atomic_fetch_inc_nbi(ctx, &i1, &i2, 0)": "shmem_ctx_int_atomic_fetch_inc_nbi",
    "shmem_atomic_add(&ll, 1, 0)": "shmem_longlong_atomic_add",
    "ll = shmem_atomic_fetch_add(ctx, &ll, 1, 0)": "shmem_ctx_longlong_atomic_fetch_add",
    "shmem_atomic_fetch_add_nbi(&i1, &i2, 1, 0)": "shmem_int_atomic_fetch_add_nbi",
    "shmem_atomic_and(&i1, 1, 0)": "shmem_int32_atomic_and",
    "shmem_atomic_or(&l1, 1, 0)": "shmem_int64_atomic_or",
    "shmem_atomic_xor(ctx, &u64, 1, 0)": "shmem_ctx_ulong_atomic_xor",
    "i1 = shmem_atomic_fetch_and(&i1, 1, 0)": "shmem_int32_atomic_fetch_and",
    "u32 = shmem_atomic_fetch_or(ctx, &u32, 1, 0)": "shmem_ctx_uint_atomic_fetch_or",
    "shmem_atomic_fetch_xor_nbi(&l1, &l1, 1, 0)": "shmem_int64_atomic_fetch_xor_nbi",
    "shmem_signal_add(&u64, 1, 0)": "shmem_signal_add",
    "shmem_signal_add(ctx, &u64, 1, 0)": "shmem_ctx_signal_add",
    "shmem_signal_set(&u64, 1, 0)": "shmem_signal_set",
    "shmem_signal_set(SHMEM_CTX_DEFAULT, &u64, 1, 0)": "shmem_ctx_signal_set",
    "shmem_wait_until(&s1, SHMEM_CMP_EQ, 1)": "shmem_short_wait_until",
    "shmem_wait_until(&l1, SHMEM_CMP_EQ, 1)": "shmem_long_wait_until",
    "i1 = shmem_test(&us, SHMEM_CMP_EQ, 1)": "shmem_ushort_test",
    "shmem_wait_until_all(&i1, 1, status_, SHMEM_CMP_EQ, 1)": "shmem_int_wait_until_all",
    "z1 = shmem_wait_until_any(&i1, 1, NULL, SHMEM_CMP_EQ, 1)": "shmem_int_wait_until_any",
    "z1 = shmem_wait_until_some(&z1, 1, index_, NULL, SHMEM_CMP_EQ, 1)": "shmem_ulong_wait_until_some",
    "shmem_wait_until_all_vector(&i1, 1, NULL, SHMEM_CMP_EQ, &ci)": "shmem_int_wait_until_all_vector",
    "z1 = shmem_wait_until_some_vector(&i1, 1, index_, NULL, SHMEM_CMP_EQ, &ci)": "shmem_int_wait_until_some_vector",
    "i1 = shmem_test_all(&u64, 1, NULL, SHMEM_CMP_EQ, 1)": "shmem_ulong_test_all",
    "z1 = shmem_test_any_vector(&ll, 1, NULL, SHMEM_CMP_EQ, &ll)": "shmem_longlong_test_any_vector",
    "z1 = shmem_test_some(&i1, 1, index_, NULL, SHMEM_CMP_EQ, 1)": "shmem_int_test_some",
    "i1 = shmem_sync(team)": "shmem_team_sync",
}

# None of these may compile. They differ from statements above in what is wrong alone.
REFUSED = [
    "shmem_put(&o, &o, 1, 0)", "shmem_put(v, v, 1, 0)", "shmem_put(ctx, &o, &o, 1, 0)",
    "shmem_put(&ci, &i2, 1, 0)", "shmem_put(&i1, &i2, 1)", "shmem_put(ctx, &i1, &i2, 1, 0, 0)",
    "shmem_put(team, &i1, &i2, 1, 0)", "shmem_put(1, &i1, &i2, 1, 0)", "shmem_put(i1, &i2, 1, 0)",
    "shmem_p(&ci, 1, 0)", "shmem_p(&o, o, 0)", "i1 = shmem_g(v, 0)", "i1 = shmem_g(team, &ci, 0)",
    "shmem_atomic_add(&s1, 1, 0)", "shmem_atomic_add(&d1, 1, 0)", "shmem_atomic_inc(&f1, 0)",
    "shmem_atomic_or(&ll, 1, 0)", "shmem_atomic_and(&d1, 1, 0)", "shmem_atomic_set(&s1, 1, 0)",
    "shmem_atomic_compare_swap(&d1, 1, 2, 0)", "d1 = shmem_atomic_fetch(&ld, 0)",
    "shmem_wait_until(&f1, SHMEM_CMP_EQ, 1)", "i1 = shmem_test(&c1, SHMEM_CMP_EQ, 1)",
    "shmem_wait_until_all(&s1, 1, NULL, SHMEM_CMP_EQ, 1)", "i1 = shmem_sync(ctx)",
    "i1 = shmem_sync(1)", "shmem_signal_add(&u64, 1)",
]


def right_choice(problems):
    for compiler in C_COMPILERS:
        for statement, routine in CHOICES.items():
            output = WORK / "choice.o"
            ok, errors = compile_text(compiler, snippet(statement), "-std=c11", *STRICT, output=output)
            if not ok:
                problems.append(f"{compiler}: {statement}: {errors[:300]}")
                continue
            run = subprocess.run(["nm", "-u", str(output)], capture_output=True, text=True, check=True)
            called = {line.split()[-1] for line in run.stdout.splitlines() if "shmem" in line}
            if called != {routine}:
                problems.append(f"{compiler}: {statement} calls {called}, not {routine}")


def wrong_types(problems):
    for compiler in C_COMPILERS:
        for statement in REFUSED:
            if compile_text(compiler, snippet(statement), "-std=c11", "-w")[0]:
                problems.append(f"{compiler} accepts {statement}")


def users_macros(problems):
    """A program may have macros with the short names that occur in ours."""
    macros = "".join(f"#define {name} !\n" for name in ("put", "get", "p", "g", "add", "fetch", "test", "sync"))
    for compiler in C_COMPILERS:
        for statement in ("shmem_put(&i1, &i2, 1, 0)", "shmem_p(ctx, &d1, 1, 0)", "i1 = shmem_g(&ci, 0)"):
            text = snippet("HERE").replace("HERE", statement).replace("void test(void)", "void program(void)")
            text = text.replace("#include <shmem.h>\n", "#include <shmem.h>\n" + macros)
            ok, errors = compile_text(compiler, text, "-std=c11", *STRICT)
            if not ok:
                problems.append(f"{compiler}: {statement}: {errors[:300]}")


CXX_PROGRAM = """
#include <cstdio>
#include <shmem.h>
static long flag;
static double values[4];
int main() {
    shmem_init();
    int me = shmem_my_pe(), npes = shmem_n_pes();
    double mine[4] = {me + 0.5, 1, 2, 3};
    shmem_double_put(values, mine, 4, (me + 1) % npes);
    shmem_fence();
    shmem_long_atomic_set(&flag, 1, (me + 1) % npes);
    shmem_long_wait_until(&flag, SHMEM_CMP_EQ, 1);
    bool right = values[0] == (me + npes - 1) % npes + 0.5;
    shmem_barrier_all();
    shmem_finalize();
    return right ? 0 : 1;
}
"""


def cxx_program(problems):
    source, program = WORK / "program.cc", WORK / "program"
    source.write_text(CXX_PROGRAM)
    for compiler in CXX_COMPILERS:
        run = subprocess.run([str(BUILD / "bin/oshc++"), *STRICT, "-o", str(program), str(source)],
                             capture_output=True, text=True, env={**os.environ, "OSHCC": compiler})
        if run.returncode == 0:
            run = subprocess.run([str(BUILD / "bin/oshrun"), "-n", "2", str(program)],
                                 capture_output=True, text=True, timeout=60)
        if run.returncode != 0:
            problems.append(f"{compiler}: {run.stderr[:300]}")


CASES = [
    ("headers are clean in C, one by one and twice", clean_in_c),
    ("headers are clean in C++", clean_in_cxx),
    ("every prototype is the specification's", same_prototypes),
    ("no routine is missing, none is added", same_names),
    ("only names with the prefix are left defined", only_own_macros),
    ("the library exports what is declared and nothing internal", library_has_all),
    ("generic names choose the right routine", right_choice),
    ("wrong types and numbers of arguments are errors", wrong_types),
    ("macros of the program do no harm", users_macros),
    ("a C++ program runs", cxx_program),
]

failed = 0
for number, (name, check) in enumerate(CASES, 1):
    found = []
    check(found)
    for line in found:
        print("# " + line.replace("\n", "\n# "), file=sys.stderr)
    print(f"{'not ' if found else ''}ok {number} - {name}", flush=True)
    failed += bool(found)
print(f"1..{len(CASES)}")
shutil.rmtree(WORK)
sys.exit(failed != 0)
