#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""pip install of a clean checkout into a fresh environment: the installed files, and runs far from the checkout. The
library is the one already built; with WEFT_TEST_LONG=1 pip builds it from scratch, and once more from a source
distribution.
"""
import atexit
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
import interpreter  # noqa: E402
import tap  # noqa: E402

LONG = os.environ.get("WEFT_TEST_LONG")


def outside(python):
    """Returns the Python from which the environment is made, because packages of an environment are not inherited."""
    asked = subprocess.run([python, "-c", "import sys; print(sys._base_executable)"], capture_output=True, text=True)
    return asked.stdout.strip() or python


def builds(python):
    """Returns whether the package can be built without network access."""
    headers = "import sysconfig; open(sysconfig.get_path('include') + '/Python.h')"
    return interpreter.has(python, "setuptools", "wheel", "ensurepip", "pip") and subprocess.run(
        [python, "-c", headers], capture_output=True).returncode == 0


PYTHON = next(filter(builds, map(outside, interpreter.CANDIDATES)), None)
LIMITED = PYTHON and subprocess.run([PYTHON, "-c", "import sys; sys.exit(sys.version_info < (3, 11))"]).returncode == 0
WORK = pathlib.Path(tempfile.mkdtemp(prefix="weft-package-"))
atexit.register(shutil.rmtree, WORK)
SCRIPTS = WORK / "fresh/bin"
PROGRAM = """
import weft
weft.init()
total = weft.zeros(1)
memoryview(total)[0] = 1
weft.all_reduce(total)
assert memoryview(total)[0] == weft.n_pes()
print(f"{weft.my_pe()} of {weft.n_pes()} in {weft.get_library()} {weft.get_include()}")
"""


def environment(build):
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "WEFT_BUILD")}
    return {**kept, "NVCC": "", "PIP_DISABLE_PIP_VERSION_CHECK": "1", **({"WEFT_BUILD": str(build)} if build else {})}


def run(problems, *command, build=None, **options):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, env=environment(build), **options)
    if done.returncode:
        problems += [f"{' '.join(map(str, command))}: status {done.returncode}",
                     *(done.stdout + done.stderr).splitlines()[-30:]]
    return done.stdout


def checkout():
    """Copies the files known to git with their times, so that make finds its outputs up to date."""
    names = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=interpreter.ROOT, capture_output=True,
                           text=True).stdout.split("\n")
    for name in filter(None, names):
        if (interpreter.ROOT / name).is_file():
            (WORK / "checkout" / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(interpreter.ROOT / name, WORK / "checkout" / name)


def pip(problems, *arguments, build=None):
    return run(problems, SCRIPTS / "python", "-m", "pip", "install", "--no-build-isolation", "--no-deps", "--no-index",
               *arguments, build=build, cwd=WORK, timeout=1200)


def installs(problems):
    checkout()
    run(problems, PYTHON, "-m", "venv", "--system-site-packages", WORK / "fresh")
    pip(problems, WORK / "checkout", build=None if LONG else interpreter.BUILD)


def runs(problems):
    for command, pes in ([SCRIPTS / "oshrun", "-n", "2", SCRIPTS / "python"], 2), ([SCRIPTS / "python"], 1):
        out = run(problems, *command, "-c", PROGRAM, cwd=WORK, timeout=60)
        problems += [f"no PE {pe} of {pes} in the environment: {out}" for pe in range(pes)
                     if f"{pe} of {pes} in {WORK}/fresh/" not in out]
    if "Weft" not in (out := run(problems, SCRIPTS / "weft", "info", cwd=WORK)):
        problems.append(f"weft info: {out[:200]}")


def commands_beside_a_build(problems):
    """The package named by PYTHONPATH is the one whose commands run; a package without commands gives an error."""
    path = {**environment(None), "PYTHONPATH": str(interpreter.BUILD / "python")}
    done = subprocess.run([SCRIPTS / "oshrun", "-n", "2", SCRIPTS / "python", "-c", PROGRAM], cwd=WORK, env=path,
                          capture_output=True, text=True, timeout=60)
    if done.returncode or f"1 of 2 in {interpreter.BUILD}" not in done.stdout:
        problems += [f"status {done.returncode}", *(done.stdout + done.stderr).splitlines()[-20:]]
    shutil.copytree(interpreter.BUILD / "python/weft", WORK / "parts/here/weft")
    path["PYTHONPATH"] = str(WORK / "parts/here")
    path["LD_LIBRARY_PATH"] = str(interpreter.BUILD / "lib")
    done = subprocess.run([SCRIPTS / "weft", "info"], cwd=WORK, env=path, capture_output=True, text=True, timeout=60)
    if done.returncode != 1 or "Traceback" in done.stderr or "weft: bin/weft is neither in" not in done.stderr:
        problems += [f"status {done.returncode}", *(done.stdout + done.stderr).splitlines()[-20:]]


def has_device_library(problems):
    """Libraries of kernel functions, if clang has built them."""
    if not (interpreter.BUILD / "lib/libweft_device_sm90.ptx").exists():
        raise tap.Skip("this build has no libweft_device: there was no clang for GPUs")
    ask = "import weft; print(weft.get_device_library(80), '.target sm_90' in open(weft.get_device_library(90, 'ptx')).read())"
    out = run(problems, SCRIPTS / "python", "-c", ask, cwd=WORK).split()
    if not out or not out[0].startswith(str(WORK)) or out[1] != "True":
        problems.append(f"it says {out}")


def compiles(problems):
    """Headers and library can be used to compile code."""
    (WORK / "program.c").write_text("#include <weft.h>\nint main(void) { shmem_init(); return shmem_n_pes() != 2; }\n")
    ask = "import weft; print(weft.get_include(), weft.get_library())"
    include, library = run(problems, SCRIPTS / "python", "-c", ask, cwd=WORK).split()
    run(problems, "gcc", WORK / "program.c", "-o", WORK / "program", f"-I{include}", library,
        f"-Wl,-rpath,{pathlib.Path(library).parent}")
    run(problems, SCRIPTS / "oshrun", "-n", "2", WORK / "program", timeout=60)


def wrappers(problems):
    """All four commands belong to the environment, and C and C++ programs need nothing else."""
    static = "#include <shmem.h>\nstatic long hers;\nint main(void) { shmem_init(); " \
             "shmem_long_p(&hers, 1, (shmem_my_pe() + 1) % 2); shmem_barrier_all(); return hers != 1; }\n"
    for wrapper, name in ("oshcc", "static.c"), ("oshc++", "static.cc"):
        (WORK / name).write_text(static)
        run(problems, SCRIPTS / wrapper, name, "-o", "static", cwd=WORK)
        run(problems, SCRIPTS / "oshrun", "-n", "2", WORK / "static", timeout=60)
    if f"-L{folder()} -Wl,-rpath,{folder()} -l:libweft.so.0 -lm\n" != (
            out := run(problems, SCRIPTS / "oshcc", "--showme:link")):
        problems.append(out)
    done = subprocess.run([SCRIPTS / "oshcc", "-static-weft", "static.c"], cwd=WORK, capture_output=True, text=True)
    if done.returncode != 2 or "no libweft.a" not in done.stderr:
        problems.append(f"-static-weft: status {done.returncode}: {done.stderr[-300:]}")


def folder():
    return next((WORK / "fresh/lib").glob("python3*/site-packages/weft"))


def another_package(problems):
    """A made-up distribution that has put its files into the same folder: before ours, then over it."""
    other, own = folder().parent / "weft-1.2.3.dist-info", folder() / "__init__.py"
    other.mkdir()
    (folder() / "loom.py").touch()
    kept = own.read_text()
    for module in "weft", "weft.torch":
        done = subprocess.run([SCRIPTS / "python", "-c", f"import {module}"], cwd=WORK, capture_output=True, text=True,
                              env=environment(None))
        last = (done.stderr.splitlines() or [""])[-1]
        if done.returncode == 0 or not last.startswith("ImportError: ") or \
                not all(word in last for word in ("weft-1.2.3", "pip uninstall weft", "weft-shmem")):
            problems.append(f"import {module}: status {done.returncode}: {done.stderr[-400:]}")
        own.write_text("from weft import loom\n")
    own.write_text(kept)
    for path in folder() / "loom.py", *(folder() / "__pycache__").glob("loom.*"):
        path.unlink()
    other.rmdir()


def metadata(problems):
    ask = "import importlib.metadata as m; print(*map(': '.join, m.metadata('weft-shmem').items()), sep='\\n')"
    out = run(problems, SCRIPTS / "python", "-c", ask, cwd=WORK)
    for line in ("Name: weft-shmem", "Author: The Weft authors", "License: BSD-3-Clause", "Keywords: OpenSHMEM",
                 "Description-Content-Type: text/markdown", "Classifier: Operating System :: POSIX :: Linux"):
        if line not in out:
            problems.append(f"no {line}: {out[:800]}")


def extension():
    ask = "import sysconfig; print(sysconfig.get_config_var('EXT_SUFFIX'))"
    suffix = subprocess.run([PYTHON, "-c", ask], capture_output=True, text=True).stdout.strip()
    return "_core.abi3.so" if LIMITED else f"_core{suffix}"


def contents(problems):
    found = folder()
    for name in ("py.typed", "_core.pyi", "torch/__init__.pyi", "torch/hyperparallel.pyi", extension(),
                 "libweft.so.0", "include/shmem.h", "include/weft/addr.h"):
        if not (found / name).exists():
            problems.append(f"no {name}")
    problems += [f"{path.name} is none of the package's" for path in found.rglob("*.[ch]") if path.parent == found]
    entry = "import importlib.metadata as m; print([e.value for e in m.entry_points(group='torch.backends')])"
    if "weft_autoload:load" not in (out := run(problems, SCRIPTS / "python", "-c", entry, cwd=WORK)):
        problems.append(f"torch's entry points: {out}")
    tags = [line for path in found.parent.glob("weft_shmem-*.dist-info/WHEEL") for line in path.read_text().splitlines()]
    wanted = "Tag: cp311-abi3-linux" if LIMITED else "Tag: cp310-cp310-linux"
    if not any(line.startswith(wanted) for line in tags):
        problems.append(f"tags: {tags}")


def source_distribution(problems):
    if not LONG:
        raise tap.Skip("WEFT_TEST_LONG=1 builds one")
    run(problems, SCRIPTS / "python", "setup.py", "-q", "sdist", cwd=WORK / "checkout")
    pip(problems, "--force-reinstall", next((WORK / "checkout/dist").glob("weft[-_]shmem-*.tar.gz")))
    runs(problems)


def wheel_tools(problems):
    """`make wheel` does without the network where it can, and not where it cannot."""
    run(problems, PYTHON, "-m", "venv", "--without-pip", WORK / "bare")
    for python, isolated in (WORK / "bare/bin/python", True), (PYTHON, False):
        out = run(problems, "make", "-n", "wheel", f"PYTHON={python}", "NVCC=", cwd=interpreter.ROOT)
        if ("--no-build-isolation" in out) == isolated or ("pip fetches" in out) != isolated:
            problems.append(f"make wheel with {python}: {out}")


def leaves(problems):
    run(problems, SCRIPTS / "python", "-m", "pip", "uninstall", "-y", "weft-shmem", cwd=WORK)
    problems += [f"{path} is left" for path in (WORK / "fresh").rglob("*weft*") if "__pycache__" not in str(path)]


if PYTHON is None:
    print("1..0 # SKIP no Python from 3.10 on has its headers, setuptools, wheel and venv")
    sys.exit(0)
tap.run([
    ("pip install", installs),
    ("programs run far from the checkout", runs),
    ("its commands beside a build folder", commands_beside_a_build),
    ("C compiles against it", compiles),
    ("it has the functions of kernels", has_device_library),
    ("oshcc and oshc++ are there", wrappers),
    ("another package's files in the folder are named", another_package),
    ("its metadata", metadata),
    ("what a package has", contents),
    ("make wheel takes the tools that there are", wheel_tools),
    ("a source distribution", source_distribution),
    ("pip uninstall", leaves),
])
