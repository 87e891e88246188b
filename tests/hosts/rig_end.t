#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A rig of hosts ends with its first process, and any user may make one where user namespaces are allowed."""
import os
import pathlib
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "launch"))
from harness import ENVIRONMENT, ROOT, Skip, case, main, settled_leftovers  # noqa: E402

RIG = ROOT / "tests/hosts/rig.py"
NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "/usr/bin/python3"]


def expect_nothing_left(number, *below):
    """Nothing is left of a rig whose outermost process gets this signal; the rig may run below another command."""
    process = subprocess.Popen([*below, RIG, "-n", "1", "sh", "-c", "on h0 sh -c 'echo up; sleep 100'"],
                               env=ENVIRONMENT, stdout=subprocess.PIPE, text=True)
    line = process.stdout.readline()
    if "# SKIP " in line:
        process.wait()
        raise Skip(line.partition("# SKIP ")[2].strip())
    assert line == "up\n", line
    process.send_signal(number)
    assert process.wait(10) == -number, process.returncode
    assert not settled_leftovers(), settled_leftovers()


@case("nothing is left of a rig that is ended, or killed")
def killed():
    for number in (signal.SIGTERM, signal.SIGKILL):
        expect_nothing_left(number)


@case("nothing is left of nobody's rig")
def unprivileged():
    if os.getuid() != 0:
        raise Skip("the case above was not root's either")
    if subprocess.run([*NOBODY, RIG.with_name("kernel.py")], capture_output=True).returncode:
        raise Skip("this folder is closed to others")
    expect_nothing_left(signal.SIGKILL, *NOBODY)


@case("a rig has the status of its command, and passes its streams")
def status():
    result = subprocess.run([RIG, "sh", "-c", "cat; exit 5"], input="in", text=True, capture_output=True)
    if "# SKIP " in result.stdout:
        raise Skip(result.stdout.partition("# SKIP ")[2].splitlines()[0])
    assert (result.returncode, result.stdout) == (5, "in"), result
    assert subprocess.run([RIG, "-n", "999", "true"], capture_output=True).returncode == 1


main()
