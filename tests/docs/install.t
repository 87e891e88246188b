#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What `make install` leaves behind, with a LIBDIR of its own: every routine has a manual page, headers
come along, and programs compile and run with what was installed, by the wrapper, by the flags of weft.pc
and by CMake, also when all has been moved. `make uninstall` removes that and nothing else.
"""
import atexit
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = os.environ.get("WEFT_BUILD", "build")
SYMBOLS = ROOT / "tests/api/openshmem-1.6-symbols.txt"
sys.path.insert(0, str(ROOT / "tests"))
import tap  # noqa: E402

WORK = pathlib.Path(tempfile.mkdtemp(prefix="weft-install-"))
atexit.register(shutil.rmtree, WORK)
PREFIX = WORK / "prefix"
FOLDERS = [f"PREFIX={PREFIX}", f"LIBDIR={PREFIX}/lib64"]
LIBRARY = PREFIX / "lib64"
STRANGERS = PREFIX / "share/man/man3/strangers.3", LIBRARY / "libother.so"
PROGRAM = "#include <shmem.h>\nint main(void) { shmem_init(); return shmem_n_pes() != 2; }\n"


def run(problems, *command, **options):
    done = subprocess.run(command, capture_output=True, text=True, **options)
    if done.returncode:
        problems.append(f"{' '.join(map(str, command))}: {done.stdout[-300:]}{done.stderr[-300:]}")
    return done.stdout


def make(problems, *arguments, **options):
    return run(problems, "make", f"BUILD={BUILD}", *arguments, cwd=ROOT, **options)


def installs(problems):
    for path in STRANGERS:
        path.parent.mkdir(parents=True)
        path.touch()
    make(problems, "install", *FOLDERS)


def libraries(problems):
    """The file has the version, the soname leads to it, and the linker's name to the soname."""
    for folder in LIBRARY, ROOT / BUILD / "lib":
        chain = [os.readlink(folder / "libweft.so"), os.readlink(folder / "libweft.so.0")]
        if chain[0] != "libweft.so.0" or (folder / chain[1]).is_symlink() or chain[1].count(".") != 4:
            problems.append(f"{folder}: libweft.so -> {chain[0]} -> {chain[1]}")
    if "[libweft.so.0]" not in (out := run(problems, "readelf", "-d", LIBRARY / "libweft.so")):
        problems.append(f"no soname: {out[:300]}")
    for path in LIBRARY / "libweft.so", LIBRARY / "libweft.a", PREFIX / "bin/oshrun", PREFIX / "bin/weft":
        if ".debug_info" in run(problems, "readelf", "-WS", path):
            problems.append(f"{path.name} has the symbols of a debugger: only make install-debug keeps them")
    if "$ORIGIN/../lib64" not in (out := run(problems, "readelf", "-d", PREFIX / "bin/weft")):
        problems.append(f"weft looks for kernels elsewhere: {out[:300]}")


def pages(problems):
    routines = [line.split("\t")[2] for line in SYMBOLS.read_text().splitlines() if not line.startswith("#")]
    wanted = [f"man3/{name}.3" for name in routines] + ["man1/oshrun.1", "man1/oshc++.1", "man7/weft.7"]
    problems += [f"no page {page}" for page in wanted if not (PREFIX / "share/man" / page).exists()][:10]
    problems += [f"{path.name} leads nowhere" for path in (PREFIX / "share/man").rglob("*") if not path.exists()]


def headers(problems):
    for header in (ROOT / "include").rglob("*"):
        if not (PREFIX / "include" / header.relative_to(ROOT / "include")).exists():
            problems.append(f"{header.relative_to(ROOT)} is not installed")


def guides(problems):
    """Guides, and examples that compile with what is installed."""
    folder = PREFIX / "share/doc/weft"
    for guide in folder.glob("docs/*.md"):
        text = re.sub(r"^```.*?^```", "", guide.read_text(), flags=re.M | re.S)  # a[i](x) is no link in a program
        for target in re.findall(r"\]\(([^)#\s:]+)[^)]*\)", text):
            if not (guide.parent / target).exists() and "include/" not in target and not target.endswith("CONTRIBUTING.md"):
                problems.append(f"{guide.name} leads to {target}, which is not installed")
    for example in "heat", "counts", "primes", "rdma_demo", "allgather", "kv_shuffle":
        run(problems, PREFIX / "bin/oshcc", "-O0", *(folder / "examples" / example).glob("*.c"), "-o", WORK / example)
    for script in "minilm/fetch.sh", "rdma_demo/run.sh", "allgather/run.sh", "allgather/data_gen.py", "kv_shuffle/run.sh", \
            "kv_shuffle/data_gen.py":
        if not os.access(folder / "examples" / script, os.X_OK):
            problems.append(f"examples/{script} cannot be run")


def programs(problems):
    (WORK / "program.c").write_text(PROGRAM)
    run(problems, PREFIX / "bin/oshcc", WORK / "program.c", "-o", WORK / "program")
    run(problems, PREFIX / "bin/oshrun", "-n", "2", WORK / "program", timeout=60)


def with_pkg_config(problems):
    """Nothing in weft.pc tells a program where to look when it runs; who needs it asks for libdir."""
    if "rpath" in (LIBRARY / "pkgconfig/weft.pc").read_text():
        problems.append("weft.pc has an rpath")
    if not shutil.which("pkg-config"):
        raise tap.Skip("pkg-config is not installed")
    environment = {**os.environ, "PKG_CONFIG_PATH": str(LIBRARY / "pkgconfig")}
    flags = run(problems, "pkg-config", "--cflags", "--libs", "weft", env=environment).split()
    folder = run(problems, "pkg-config", "--variable=libdir", "weft", env=environment).strip()
    if folder != str(LIBRARY):
        problems.append(f"libdir is {folder}")
    run(problems, "gcc", WORK / "program.c", "-o", WORK / "program", *flags, f"-Wl,-rpath,{folder}")
    run(problems, PREFIX / "bin/oshrun", "-n", "2", WORK / "program", timeout=60)


LISTS = """
cmake_minimum_required(VERSION 3.10)
project(ring C)
find_package(Weft 0.1 REQUIRED COMPONENTS weft static)
find_package(Weft 0.1 REQUIRED)
foreach(kind weft static)
  add_executable(ring-${kind} ../program.c)
  target_link_libraries(ring-${kind} Weft::${kind})
  add_test(NAME ${kind} COMMAND Weft::oshrun -n 2 $<TARGET_FILE:ring-${kind}>)
endforeach()
enable_testing()
"""


def with_cmake(problems):
    """Installed and moved, and in place."""
    if not shutil.which("cmake"):
        raise tap.Skip("cmake is not installed")
    project = WORK / "project"
    project.mkdir()
    (project / "CMakeLists.txt").write_text(LISTS)
    moved = PREFIX.rename(WORK / "moved")
    in_place = (ROOT / BUILD).resolve()
    for where, folder in (f"Weft_DIR={moved}/lib64/cmake/Weft", moved), (f"CMAKE_PREFIX_PATH={in_place}", in_place):
        built = WORK / f"built-{folder.name}"
        run(problems, "cmake", "-S", project, "-B", built, f"-D{where}", "-DCMAKE_C_COMPILER_FORCED=1")
        out = run(problems, "cmake", "--build", built, "--verbose")
        if str(folder) not in out or str(PREFIX) in out:
            problems.append(f"built against another one than {folder}")
        run(problems, "ctest", "--output-on-failure", cwd=built)
    moved.rename(PREFIX)


def refused_by_cmake(problems):
    """What it cannot give it says."""
    if not shutil.which("cmake"):
        raise tap.Skip("cmake is not installed")
    for wanted, text in (("9.0 REQUIRED", "9.0"), ("REQUIRED COMPONENTS fortran", "no component fortran")):
        (WORK / "wrong").mkdir(exist_ok=True)
        (WORK / "wrong/CMakeLists.txt").write_text(
            f"cmake_minimum_required(VERSION 3.10)\nproject(wrong NONE)\nfind_package(Weft {wanted})\n")
        done = subprocess.run(["cmake", "-S", WORK / "wrong", "-B", WORK / "wrong/built", f"-DWeft_DIR={LIBRARY}/cmake/Weft"],
                              capture_output=True, text=True)
        if done.returncode == 0 or text not in done.stderr:
            problems.append(f"{wanted}: status {done.returncode}: {done.stderr[-400:]}")


def uninstalls(problems):
    make(problems, "install", *FOLDERS)
    make(problems, "uninstall", *FOLDERS)
    left = [path for path in PREFIX.rglob("*") if not path.is_dir()]
    if sorted(left) != sorted(STRANGERS):
        problems.append(f"left are {left[:10]}")
    wanted = {folder for path in STRANGERS for folder in path.parents}
    problems += [f"{path} is left" for path in PREFIX.rglob("*") if path.is_dir() and path not in wanted]
    again = subprocess.run(["make", f"BUILD={BUILD}", "uninstall", *FOLDERS], cwd=ROOT, capture_output=True, text=True)
    if again.returncode == 0 or "nothing is known to be installed" not in again.stderr:
        problems.append(f"once more: status {again.returncode}: {again.stderr}")


def staged(problems):
    """For a package: below DESTDIR, for where it will be."""
    stage = WORK / "a stage"
    folders = [f"DESTDIR={stage}", "PREFIX=/usr", "LIBDIR=/usr/lib/somewhere"]
    make(problems, "install-debug", *folders)
    if ".debug_info" not in run(problems, "readelf", "-WS", stage / "usr/lib/somewhere/libweft.so"):
        problems.append("make install-debug leaves no symbols for a debugger")
    if "libdir=/usr/lib/somewhere\n" not in (stage / "usr/lib/somewhere/pkgconfig/weft.pc").read_text():
        problems.append("weft.pc is for another place")
    out = run(problems, stage / "usr/bin/oshcc", "--showme:libdirs", "--showme:libdirs")
    if out != f"'{stage}/usr/lib/somewhere'\n":
        problems.append(f"oshcc looks in {out}")
    make(problems, "uninstall", *folders)
    problems += [f"{path} is left" for path in stage.rglob("*")]


def quiet(problems):
    """A line for each command; V=1 shows the command."""
    source = ROOT / "src/base/env.c"
    for arguments, wanted in ((), f"CC    {source.relative_to(ROOT)}\n"), (("V=1",), "-c src/base/env.c -o "):
        out = make(problems, "-W", "src/base/env.c", *arguments, f"{WORK}/quiet/obj/src/base/env.o", f"BUILD={WORK}/quiet")
        if wanted not in out or (not arguments and out.count("\n") != 1):
            problems.append(f"make {arguments}: {out[:300]}")


tap.run([
    ("make install", installs),
    ("the library's file and its links", libraries),
    ("every routine has a page, no link is broken", pages),
    ("all headers come along", headers),
    ("guides and examples come along", guides),
    ("programs compile and run with what is installed", programs),
    ("programs compile with the flags of weft.pc", with_pkg_config),
    ("CMake finds it, also moved, and in place", with_cmake),
    ("CMake hears what is not there", refused_by_cmake),
    ("make uninstall removes what was installed", uninstalls),
    ("DESTDIR is a stage", staged),
    ("make says in a line what it does", quiet),
])
