#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The public headers: clean in C and C++, and generic names that select the right routine or none.

symbols.t checks the declarations."""
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
HEADERS = ("shmem.h", "shmemx.h", "pshmem.h", "mpp/shmem.h", "mpp/shmemx.h", "mpp/pshmem.h")
C_COMPILERS = [c for c in ("gcc", "clang") if shutil.which(c)]
CXX_COMPILERS = [c for c in ("g++", "clang++") if shutil.which(c)]
WORK = pathlib.Path(tempfile.mkdtemp(prefix="weft-headers-"))

# --- Compiling -----------------------------------------------------------------------------------

PROLOGUE = """#include <shmem.h>
struct other { int x; };
static int i1, i2; static const int ci = 0; static long l1; static const long cl = 0; static long long ll;
static short s1; static unsigned short us; static char c1; static unsigned char uc; static float f1;
static double d1; static long double ld; static uint64_t u64; static int64_t i64; static size_t z1;
static ptrdiff_t pd; static uint32_t u32; static size_t index_[4]; static int status_[4];
__extension__ static float _Complex cf; __extension__ static double _Complex cd; static struct other o; static void *v; static shmem_ctx_t ctx; static shmem_team_t team;
static void use(void) {
    (void)i1, (void)i2, (void)ci, (void)l1, (void)cl, (void)ll, (void)s1, (void)us, (void)c1, (void)uc;
    (void)f1, (void)d1, (void)ld, (void)u64, (void)i64, (void)z1, (void)pd, (void)u32, (void)index_;
    (void)status_, (void)cf, (void)cd, (void)o, (void)v, (void)ctx, (void)team;
}
"""


def compile_text(compiler, text, *flags, language="c", output=None):
    run = subprocess.run(
        [compiler, f"-I{ROOT}/include", *flags, "-x", language, "-",
         *(["-c", "-o", str(output)] if output else ["-fsyntax-only"])],
        input=text, capture_output=True, text=True)
    return run.returncode == 0, run.stderr


def standards(header, *all_of_them):
    """Returns the oldest and the newest standard: the others include these two, and add only a few lines."""
    return all_of_them if header in ("shmem.h", "pshmem.h") else (all_of_them[0], all_of_them[-1])


def clean_in_c(problems):
    for header in HEADERS:
        for compiler in C_COMPILERS:
            for standard in standards(header, "c99", "c11", "c17", "gnu11", "gnu17"):
                ok, text = compile_text(compiler, f"#include <{header}>\n#include <{header}>\nint x;\n",
                                        f"-std={standard}", "-Wstrict-prototypes", *STRICT)
                if not ok:
                    problems.append(f"{compiler} -std={standard} {header}: {text[:300]}")


def clean_in_cxx(problems):
    for header in HEADERS:
        for compiler in CXX_COMPILERS:
            for standard in standards(header, "c++11", "c++14", "c++17", "c++20"):
                ok, text = compile_text(compiler, f"#include <{header}>\nint x;\n", f"-std={standard}",
                                        *STRICT, language="c++")
                if not ok:
                    problems.append(f"{compiler} -std={standard} {header}: {text[:300]}")
            # As old programs do, since not every library's header supported C++.
            ok, text = compile_text(compiler, f'extern "C" {{\n#include <{header}>\n}}\nint x;\n', *STRICT,
                                    language="c++")
            if not ok:
                problems.append(f'{compiler} {header} within extern "C": {text[:300]}')


CONSTANTS = """
SHMEM_THREAD_SINGLE SHMEM_THREAD_FUNNELED SHMEM_THREAD_SERIALIZED SHMEM_THREAD_MULTIPLE
SHMEM_TEAM_NUM_CONTEXTS SHMEM_CTX_SERIALIZED SHMEM_CTX_PRIVATE SHMEM_CTX_NOSTORE
SHMEM_CTX_SESSION_TOTAL_OPS SHMEM_CTX_SESSION_BATCH SHMEM_SIGNAL_SET SHMEM_SIGNAL_ADD
SHMEM_MALLOC_ATOMICS_REMOTE SHMEM_MALLOC_SIGNAL_REMOTE
SHMEM_CMP_EQ SHMEM_CMP_NE SHMEM_CMP_LT SHMEM_CMP_LE SHMEM_CMP_GT SHMEM_CMP_GE
_SHMEM_CMP_EQ _SHMEM_CMP_NE _SHMEM_CMP_LT _SHMEM_CMP_LE _SHMEM_CMP_GT _SHMEM_CMP_GE
SHMEM_MAJOR_VERSION SHMEM_MINOR_VERSION SHMEM_MAX_NAME_LEN
_SHMEM_MAJOR_VERSION _SHMEM_MINOR_VERSION _SHMEM_MAX_NAME_LEN
SHMEM_SYNC_VALUE SHMEM_SYNC_SIZE SHMEM_BCAST_SYNC_SIZE SHMEM_REDUCE_SYNC_SIZE SHMEM_BARRIER_SYNC_SIZE
SHMEM_COLLECT_SYNC_SIZE SHMEM_ALLTOALL_SYNC_SIZE SHMEM_ALLTOALLS_SYNC_SIZE SHMEM_REDUCE_MIN_WRKDATA_SIZE
_SHMEM_SYNC_VALUE _SHMEM_BCAST_SYNC_SIZE _SHMEM_REDUCE_SYNC_SIZE _SHMEM_BARRIER_SYNC_SIZE
_SHMEM_COLLECT_SYNC_SIZE _SHMEM_REDUCE_MIN_WRKDATA_SIZE
""".split()

CONSTANT_PROGRAM = """
#ifdef __cplusplus
#define ASSERT(c) static_assert(c, #c)
#else
#define ASSERT(c) _Static_assert(c, #c)
#endif
ASSERT(SHMEM_MAJOR_VERSION == 1 && SHMEM_MINOR_VERSION == 6);
ASSERT(SHMEM_THREAD_SINGLE < SHMEM_THREAD_FUNNELED && SHMEM_THREAD_FUNNELED < SHMEM_THREAD_SERIALIZED);
ASSERT(SHMEM_THREAD_SERIALIZED < SHMEM_THREAD_MULTIPLE);
ASSERT((SHMEM_CTX_SERIALIZED & SHMEM_CTX_PRIVATE) == 0 && (SHMEM_CTX_PRIVATE & SHMEM_CTX_NOSTORE) == 0);
ASSERT((SHMEM_CTX_SERIALIZED & SHMEM_CTX_NOSTORE) == 0);
ASSERT((SHMEM_MALLOC_ATOMICS_REMOTE & SHMEM_MALLOC_SIGNAL_REMOTE) == 0);
ASSERT(SHMEM_SIGNAL_SET != SHMEM_SIGNAL_ADD);
ASSERT(sizeof SHMEM_VENDOR_STRING <= SHMEM_MAX_NAME_LEN && sizeof _SHMEM_VENDOR_STRING > 1);
shmem_team_t teams[] = {SHMEM_TEAM_WORLD, SHMEM_TEAM_SHARED, SHMEM_TEAM_INVALID};
shmem_ctx_t contexts[] = {SHMEM_CTX_DEFAULT, SHMEM_CTX_INVALID};
shmem_team_config_t team_config = {0};
shmem_ctx_session_config_t session_config = {0};
long work[SHMEM_SYNC_SIZE] = {SHMEM_SYNC_VALUE};
int compare(int cmp) {
    switch (cmp) {
    case SHMEM_CMP_EQ: case SHMEM_CMP_NE: case SHMEM_CMP_LT:
    case SHMEM_CMP_LE: case SHMEM_CMP_GT: case SHMEM_CMP_GE: return 1;
    default: return teams[0] == teams[1] || contexts[0] == contexts[1];
    }
}
"""


def constants(problems):
    """Each is an integer constant expression; values that must differ do."""
    text = "#include <shmem.h>\n#include <shmem.h>\nint compare(int cmp);\n" + CONSTANT_PROGRAM
    text += "".join(f"enum {{ constant{i} = (int){name} }};\n" for i, name in enumerate(CONSTANTS))
    compilers = [(c, "c", "-std=c11") for c in C_COMPILERS] + [(c, "c++", "-std=c++11") for c in CXX_COMPILERS]
    for compiler, language, standard in compilers:
        ok, errors = compile_text(compiler, text, standard, *STRICT, language=language)
        if not ok:
            problems.append(f"{compiler}: {errors[:500]}")


def only_own_macros(problems):
    def macros(text):
        run = subprocess.run(["gcc", "-std=c11", "-dM", "-E", f"-I{ROOT}/include", "-x", "c", "-"],
                             input=text, capture_output=True, text=True, check=True)
        return set(re.findall(r"#define (\w+)", run.stdout))
    new = macros("#include <pshmem.h>\n") - macros("#include <stddef.h>\n#include <stdint.h>\n")
    own = ("SHMEM_", "shmem_", "_SHMEM_", "PSHMEM_H", "WEFT_VERSION")
    problems += [f"leaks {name}" for name in sorted(new) if not name.startswith(own)]
    shapes = set(re.findall(r"#define (\w+)", (ROOT / "include/shmem_typed.h").read_text()))
    problems += [f"{name} is left defined" for name in sorted(shapes & new)]


# --- Generic names ---------------------------------------------------------------------------------

# Statement -> the routine that it must call.
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
    "shmem_wait_until_all(&s1, 1, status_, SHMEM_CMP_EQ, 1)": "shmem_short_wait_until_all",
    "z1 = shmem_test_any_vector(&s1, 1, NULL, SHMEM_CMP_EQ, &s1)": "shmem_short_test_any_vector",
    "z1 = shmem_wait_until_any(&i1, 1, NULL, SHMEM_CMP_EQ, 1)": "shmem_int_wait_until_any",
    "z1 = shmem_wait_until_some(&z1, 1, index_, NULL, SHMEM_CMP_EQ, 1)": "shmem_ulong_wait_until_some",
    "shmem_wait_until_all_vector(&i1, 1, NULL, SHMEM_CMP_EQ, &ci)": "shmem_int_wait_until_all_vector",
    "z1 = shmem_wait_until_some_vector(&i1, 1, index_, NULL, SHMEM_CMP_EQ, &ci)": "shmem_int_wait_until_some_vector",
    "i1 = shmem_test_all(&u64, 1, NULL, SHMEM_CMP_EQ, 1)": "shmem_ulong_test_all",
    "z1 = shmem_test_any_vector(&ll, 1, NULL, SHMEM_CMP_EQ, &ll)": "shmem_longlong_test_any_vector",
    "z1 = shmem_test_some(&i1, 1, index_, NULL, SHMEM_CMP_EQ, 1)": "shmem_int_test_some",
    "i1 = shmem_sync(team)": "shmem_team_sync",
    "shmem_sync(0, 0, 1, &l1)": "shmem_sync",
    "i1 = shmem_broadcast(team, &d1, &d1, 1, 0)": "shmem_double_broadcast",
    "i1 = shmem_broadcast(SHMEM_TEAM_WORLD, &i1, &ci, 1, 0)": "shmem_int_broadcast",
    "i1 = shmem_collect(team, &ld, &ld, 1)": "shmem_longdouble_collect",
    "i1 = shmem_fcollect(team, &z1, &z1, 1)": "shmem_ulong_fcollect",
    "i1 = shmem_alltoall(team, &c1, &c1, 1)": "shmem_char_alltoall",
    "i1 = shmem_alltoalls(team, &us, &us, 1, 1, 1)": "shmem_ushort_alltoalls",
    "i1 = shmem_and_reduce(team, &i1, &ci, 1)": "shmem_int32_and_reduce",
    "i1 = shmem_or_reduce(team, &s1, &s1, 1)": "shmem_int16_or_reduce",
    "i1 = shmem_xor_reduce(team, &l1, &cl, 1)": "shmem_int64_xor_reduce",
    "i1 = shmem_xor_reduce(team, &uc, &uc, 1)": "shmem_uchar_xor_reduce",
    "i1 = shmem_max_reduce(team, &f1, &f1, 1)": "shmem_float_max_reduce",
    "i1 = shmem_min_reduce(team, &pd, &pd, 1)": "shmem_long_min_reduce",
    "i1 = shmem_sum_reduce(team, &cf, &cf, 1)": "shmem_complexf_sum_reduce",
    "i1 = shmem_prod_reduce(team, &cd, &cd, 1)": "shmem_complexd_prod_reduce",
    "i1 = shmem_sum_inscan(team, &ll, &ll, 1)": "shmem_longlong_sum_inscan",
    "i1 = shmem_sum_exscan(team, &cd, &cd, 1)": "shmem_complexd_sum_exscan",
    "f1 = shmem_fetch(&f1, 0)": "shmem_float_fetch",
    "l1 = shmem_fetch(&cl, 0)": "shmem_long_fetch",
    "shmem_set(&d1, 1, 0)": "shmem_double_set",
    "d1 = shmem_swap(&d1, 1, 0)": "shmem_double_swap",
    "i1 = shmem_cswap(&i1, 1, 2, 0)": "shmem_int_cswap",
    "l1 = shmem_finc(&l1, 0)": "shmem_long_finc",
    "shmem_inc(&ll, 0)": "shmem_longlong_inc",
    "i1 = shmem_fadd(&i1, 1, 0)": "shmem_int_fadd",
    "shmem_add(&l1, 1, 0)": "shmem_long_add",
    "z1 = shmem_fetch(&z1, 0)": "shmem_ulong_atomic_fetch",
    "u32 = shmem_fetch((const unsigned *)&u32, 0)": "shmem_uint_atomic_fetch",
    "shmem_set(&u32, 1, 0)": "shmem_uint_atomic_set",
    "u64 = shmem_swap(&u64, 1, 0)": "shmem_ulong_atomic_swap",
    "z1 = shmem_cswap(&z1, 1, 2, 0)": "shmem_ulong_atomic_compare_swap",
    "u32 = shmem_finc(&u32, 0)": "shmem_uint_atomic_fetch_inc",
    "shmem_inc(&u32, 0)": "shmem_uint_atomic_inc",
    "u32 = shmem_fadd(&u32, 1, 0)": "shmem_uint_atomic_fetch_add",
    "shmem_add(&u32, 1, 0)": "shmem_uint_atomic_add",
}

# None of these may compile. Each differs from a statement above only in its error.
REFUSED = [
    "shmem_put(&o, &o, 1, 0)", "shmem_put(v, v, 1, 0)", "shmem_put(ctx, &o, &o, 1, 0)",
    "shmem_put(&ci, &i2, 1, 0)", "shmem_put(&i1, &i2, 1)", "shmem_put(ctx, &i1, &i2, 1, 0, 0)",
    "shmem_put(team, &i1, &i2, 1, 0)", "shmem_put(1, &i1, &i2, 1, 0)", "shmem_put(i1, &i2, 1, 0)",
    "shmem_p(&ci, 1, 0)", "shmem_p(&o, o, 0)", "i1 = shmem_g(v, 0)", "i1 = shmem_g(team, &ci, 0)",
    "shmem_atomic_add(&s1, 1, 0)", "shmem_atomic_add(&d1, 1, 0)", "shmem_atomic_inc(&f1, 0)",
    "shmem_atomic_or(&ll, 1, 0)", "shmem_atomic_and(&d1, 1, 0)", "shmem_atomic_set(&s1, 1, 0)",
    "shmem_atomic_compare_swap(&d1, 1, 2, 0)", "d1 = shmem_atomic_fetch(&ld, 0)",
    "shmem_wait_until(&f1, SHMEM_CMP_EQ, 1)", "i1 = shmem_test(&c1, SHMEM_CMP_EQ, 1)",
    "shmem_wait_until_all(&c1, 1, NULL, SHMEM_CMP_EQ, 1)", "i1 = shmem_sync(ctx)",
    "i1 = shmem_sync(1)", "shmem_signal_add(&u64, 1)", "i1 = shmem_sync(team, 1)",
    "i1 = shmem_broadcast(team, &o, &o, 1, 0)", "i1 = shmem_broadcast(ctx, &d1, &d1, 1, 0)",
    "i1 = shmem_broadcast(&d1, &d1, 1, 0)", "i1 = shmem_collect(team, v, v, 1)",
    "i1 = shmem_fcollect(team, &ci, &i1, 1)", "i1 = shmem_alltoall(team, &cd, &cd, 1)",
    "i1 = shmem_and_reduce(team, &d1, &d1, 1)", "i1 = shmem_or_reduce(team, &ll, &ll, 1)",
    "i1 = shmem_xor_reduce(team, &c1, &c1, 1)", "i1 = shmem_max_reduce(team, &cf, &cf, 1)",
    "i1 = shmem_sum_reduce(team, &o, &o, 1)", "i1 = shmem_sum_exscan(ctx, &i1, &i1, 1)",
    "shmem_set(&s1, 1, 0)", "i1 = shmem_fetch(&ld, 0)", "shmem_add(&d1, 1, 0)",
    "d1 = shmem_cswap(&d1, 1, 2, 0)",
]


# In C++ only: the deprecated function of this name is the one for long.
CXX_CHOICES = {"shmem_wait_until(&l1, SHMEM_CMP_EQ, 1)": "shmem_wait_until"}
NOT_CXX = {"shmem_put(&uc, (&(unsigned char){1}), 1, 0)"}


def functions(statements):
    """Returns a program with each statement in a function of its own, on a line of its own."""
    body = "".join(f"void test{i}(void); void test{i}(void) {{ {statement}; }}\n"
                   for i, statement in enumerate(statements))
    return f"{PROLOGUE}\nvoid used(void); void used(void) {{ use(); }}\n{body}"


def called_routines(obj):
    """Returns number of the function -> names beginning with shmem that its section refers to."""
    run = subprocess.run(["objdump", "-r", str(obj)], capture_output=True, text=True, check=True)
    called, test = {}, None
    for line in run.stdout.splitlines():
        section = re.match(r"RELOCATION RECORDS FOR \[\.text\.(?:_Z\d+)?test(\d+)v?\]", line)
        if line.startswith("RELOCATION"):
            test = int(section.group(1)) if section else None
        name = re.search(r"\b(shmem_\w+)", line)
        if test is not None and name:
            called.setdefault(test, set()).add(name.group(1))
    return called


def check_choices(problems, compiler, choices, *flags, language="c"):
    output = WORK / "choices.o"
    ok, errors = compile_text(compiler, functions(choices), "-ffunction-sections", *flags,
                              language=language, output=output)
    if not ok:
        problems.append(f"{compiler}: {errors[:600]}")
        return
    called = called_routines(output)
    for i, (statement, routine) in enumerate(choices.items()):
        if called.get(i) != {routine}:
            problems.append(f"{compiler}: {statement} calls {called.get(i)}, not {routine}")


def right_choice(problems):
    for compiler in C_COMPILERS:
        check_choices(problems, compiler, CHOICES, "-std=c11", *STRICT)


def right_overload(problems):
    choices = {s: r for s, r in {**CHOICES, **CXX_CHOICES}.items() if s not in NOT_CXX}
    for compiler in CXX_COMPILERS:
        for standard in ("c++11", "c++20"):
            check_choices(problems, compiler, choices, f"-std={standard}", "-Wall", "-Wextra", "-Werror",
                          language="c++")


def check_refused(problems, compiler, unlimited, *flags, language="c"):
    """Compiles all at once, in one preprocessed text, so that the line of an error is that of the statement."""
    text = subprocess.run([compiler, f"-I{ROOT}/include", *flags, "-E", "-P", "-x", language, "-"],
                          input=functions(REFUSED), capture_output=True, text=True, check=True).stdout
    _, errors = compile_text(compiler, text, "-w", unlimited, *flags, language=language)
    wrong = {int(number) for number in re.findall(r"^<stdin>:(\d+):\d+: error", errors, re.M)}
    for number, line in enumerate(text.splitlines(), 1):
        test = re.search(r"void test(\d+)\(void\) *\{", line)
        if test and number not in wrong:
            problems.append(f"{compiler} accepts {REFUSED[int(test.group(1))]}")


def wrong_types(problems):
    for compiler, unlimited in (("gcc", "-fmax-errors=0"), ("clang", "-ferror-limit=0")):
        if compiler in C_COMPILERS:
            check_refused(problems, compiler, unlimited, "-std=c11")
    for compiler, unlimited in (("g++", "-fmax-errors=0"), ("clang++", "-ferror-limit=0")):
        if compiler in CXX_COMPILERS:
            check_refused(problems, compiler, unlimited, "-std=c++11", language="c++")


def users_macros(problems):
    """A program may define macros with short names that our headers use, before and after including them."""
    def define(*names):
        return "".join(f"#define {name} !\n" for name in names)
    before = define("put", "get", "g", "add", "uint32", "int64", "uint", "ushort", "sum")
    after = define("test", "sync", "wait", "set", "p", "fetch", "dest", "source", "team", "pe", "ivar", "cmp")
    statements = "shmem_put(&a, &b, 1, 0); shmem_p(SHMEM_CTX_DEFAULT, &a, 1, 0); a = shmem_g(&b, 0);" \
                 " shmem_atomic_add(&a, 1, 0); a = shmem_sum_reduce(SHMEM_TEAM_WORLD, &a, &b, 1);"
    text = f"{before}#include <pshmem.h>\n{after}void program(void);\n" \
           f"void program(void) {{ static int a, b; {statements} }}\n"
    compilers = [(c, "c", "-std=c11") for c in C_COMPILERS] + [(c, "c++", "-std=c++11") for c in CXX_COMPILERS]
    for compiler, language, standard in compilers:
        ok, errors = compile_text(compiler, text, standard, *STRICT, language=language)
        if not ok:
            problems.append(f"{compiler}: {errors[:300]}")


CXX_PROGRAM = """
#include <cstdio>
#include <shmem.h>
static long flag;
static double values[4];
int main() {
    shmem_init();
    int me = shmem_my_pe(), npes = shmem_n_pes();
    double mine[4] = {me + 0.5, 1, 2, 3};
    shmem_double_put(values, mine, 3, (me + 1) % npes);
    shmem_p(SHMEM_CTX_DEFAULT, &values[3], 7, (me + 1) % npes);
    shmem_fence();
    shmem_atomic_inc(&flag, (me + 1) % npes);
    shmem_wait_until_all(&flag, 1, NULL, SHMEM_CMP_EQ, 1);
    static int one = 1, all;
    shmem_sum_reduce(SHMEM_TEAM_WORLD, &all, &one, 1);
    bool right = values[0] == (me + npes - 1) % npes + 0.5 && shmem_g(&values[3], me) == 7 && all == npes;
    shmem_barrier_all();
    shmem_finalize();
    return right ? 0 : 1;
}
"""


def binding(problems):
    """shmem4py defines functions itself unless it is told that the library has them; a type's name stands for all of
    it."""
    routines = {"shmem_team_t": "shmem_team_sync", "SHMEM_CTX_INVALID": "shmem_ctx_create", "shmem_amo_nbi": "shmem_int_atomic_fetch_nbi",
                "shmem_put_signal": "shmem_int_put_signal", "shmem_broadcast": "shmem_int_broadcast", "shmem_collect": "shmem_int_collect",
                "shmem_fcollect": "shmem_int_fcollect", "shmem_alltoall": "shmem_int_alltoall", "shmem_alltoalls": "shmem_int_alltoalls",
                "shmem_reduce": "shmem_int_sum_reduce", "shmem_wait_test_many": "shmem_int_wait_until_some_vector"}
    told = re.findall(r"#define PySHMEM_HAVE_(\w+) +1", (ROOT / "include/weft/shmem4py.h").read_text())
    checks = "".join(f"#ifndef PySHMEM_HAVE_{name}\n#error {name}\n#endif\n"
                     f"void *p{number} = (void *){routines.get(name, name)};\n" for number, name in enumerate(told))
    ok, errors = compile_text("gcc", f"#define _CFFI_\n#include <shmem.h>\n{checks}", "-Wall", "-Werror")
    if not ok or len(told) < 20:
        problems.append(f"{len(told)} names: {errors[:600]}")
    ok, errors = compile_text("gcc", "#include <shmem.h>\n#ifdef PySHMEM_HAVE_shmem_team_t\n#error others see it, too\n#endif\n")
    if not ok:
        problems.append(errors[:600])


def cxx_program(problems):
    source, program = WORK / "program.cc", WORK / "program"
    source.write_text(CXX_PROGRAM)
    for compiler in CXX_COMPILERS:
        run = subprocess.run([str(BUILD / "bin/oshc++"), *STRICT, "-o", str(program), str(source)],
                             capture_output=True, text=True, env={**os.environ, "OSHCXX": compiler})
        if run.returncode == 0:
            run = subprocess.run([str(BUILD / "bin/oshrun"), "-n", "2", str(program)],
                                 capture_output=True, text=True, timeout=60)
        if run.returncode != 0:
            problems.append(f"{compiler}: {run.stderr[:300]}")


# Flags of programs for OpenSHMEM 1.3, whose waits had pointers to volatile.
VOLATILE = """
static volatile long flag; static volatile unsigned other; static volatile short small; static volatile double real;
long all(int pe) {
    shmem_wait_until(&flag, SHMEM_CMP_EQ, 1);
    shmem_wait_until(&other, SHMEM_CMP_EQ, 1);
    shmem_wait_until(&small, SHMEM_CMP_NE, 1);
    shmem_atomic_inc(&flag, pe);
    shmem_atomic_add(ctx, &other, 3, pe);
    shmem_atomic_set(&real, 1.5, pe);
    return shmem_test(&flag, SHMEM_CMP_EQ, 1) + shmem_atomic_fetch(&flag, pe) + shmem_atomic_fetch(ctx, &other, pe)
        + (long)shmem_atomic_swap(&real, 2, pe) + shmem_atomic_compare_swap(&flag, 1, 2, pe)
        + shmem_atomic_fetch_inc(&other, pe) + shmem_atomic_fetch_add(ctx, &flag, 1, pe);
}
"""
VOLATILE_OLD = """
static volatile long flag; static volatile float real;
long old(int pe) {
    shmem_add(&flag, 1, pe), shmem_inc(&flag, pe), shmem_set(&real, 1, pe);
    return shmem_fadd(&flag, 1, pe) + shmem_finc(&flag, pe) + shmem_cswap(&flag, 1, 2, pe) + (long)shmem_swap(&real, 1, pe)
        + shmem_fetch(&flag, pe);
}
"""
VOLATILE_TYPED = """
static volatile long flag; static volatile short small;
void typed(void) { shmem_long_wait_until(&flag, SHMEM_CMP_EQ, 1), shmem_short_wait_until(&small, SHMEM_CMP_EQ, 1); }
"""


def volatile_flags(problems):
    """Atomics and waits of OpenSHMEM 1.3 accept them, and call the routine of the type."""
    for compiler, language, standard, text in (
            [(c, "c", s, t) for c in C_COMPILERS for s in ("c11", "gnu17") for t in (VOLATILE, VOLATILE_OLD)]
            + [(c, "c++", s, t) for c in CXX_COMPILERS for s in ("c++11", "c++17") for t in (VOLATILE, VOLATILE_TYPED)]):
        ok, errors = compile_text(compiler, f"#include <shmem.h>\nstatic shmem_ctx_t ctx;\n{text}\nvoid *use = &ctx;\n",
                                  f"-std={standard}", *STRICT, language=language,
                                  output=WORK / "volatile.o")
        if not ok:
            problems.append(f"{compiler} -std={standard}: {errors[:600]}")
            continue
        called = set(re.findall(r"shmem_\w+", subprocess.run(["nm", "-u", str(WORK / "volatile.o")], capture_output=True,
                                                             text=True, check=True).stdout))
        if not called or any(not re.match(r"shmem_(ctx_)?(long|uint|short|double|float)_", name) for name in called):
            problems.append(f"{compiler} -std={standard}: it calls {sorted(called)}")


CASES = [
    ("headers are clean in C, one by one and twice", clean_in_c),
    ("headers are clean in C++", clean_in_cxx),
    ("constants are there, and constant", constants),
    ("only names with the prefix are left defined", only_own_macros),
    ("generic names choose the right routine", right_choice),
    ("so they do in C++", right_overload),
    ("wrong types and numbers of arguments are errors", wrong_types),
    ("volatile flags are welcome to atomics and waits", volatile_flags),
    ("macros of the program do no harm", users_macros),
    ("shmem4py is told what there is, and nobody else", binding),
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
