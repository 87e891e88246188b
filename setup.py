# SPDX-License-Identifier: BSD-3-Clause
"""What pyproject.toml cannot say: library and extension are built by make, and lie side by side in
the package. Nothing but a C compiler, GNU make and Python's headers is needed; kernels for GPUs come
along where nvcc is (NVCC= in the environment leaves them out), and what kernels of Triton call where clang
is. WEFT_BUILD names a build folder to use instead of a new one.
"""
import os
import pathlib
import shutil
import subprocess
import sys

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

ROOT = pathlib.Path(__file__).resolve().parent


class Make(build_ext):
    """The extension, and beside it what it loads and what others compile against."""

    def build_extension(self, extension):
        build = ROOT / os.environ.get("WEFT_BUILD", pathlib.Path(self.build_temp).resolve() / "make")
        jobs = self.parallel or 2
        subprocess.run(["make", f"-j{jobs}", f"BUILD={build}", f"PYTHON={sys.executable}", "python-package"],
                       cwd=ROOT, check=True)
        target = pathlib.Path(self.get_ext_fullpath(extension.name))
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(build / "python/weft" / target.name, target)
        shutil.copy2(build / "lib/libweft.so", target.parent / "libweft.so.0")
        for pattern in ("libweft_cuda.so", "libweft_ucx.so", "libweft_*_sm*"):
            for library in (build / "lib").glob(pattern):
                shutil.copy2(library, target.parent)
        shutil.copytree(build / "include", target.parent / "include", dirs_exist_ok=True)
        (target.parent / "bin").mkdir(exist_ok=True)
        for tool in ("bin/oshrun", "bin/weft", "package/bin/oshcc", "package/bin/oshc++"):
            shutil.copy2(build / tool, target.parent / "bin")


# The limited API has the buffer protocol from 3.11 on: one wheel serves all these. 3.10 has its own.
LIMITED = sys.version_info >= (3, 11)
setup(
    ext_modules=[Extension("weft._core", sources=[], py_limited_api=LIMITED)],
    cmdclass={"build_ext": Make},
    options={"bdist_wheel": {"py_limited_api": "cp311"}} if LIMITED else {},
)
