# SPDX-License-Identifier: BSD-3-Clause
"""Helpers for tests that run jobs: start oshrun, wait for its end, and find what it left behind. tests/tap.py runs the
cases. Every process that a test starts has a mark in its environment, so that processes that outlive the test can be
found, however they were started.
"""
import contextlib
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import uuid

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
import tap  # noqa: E402
from tap import Skip  # noqa: E402

BUILD = ROOT / os.environ.get("WEFT_BUILD", "build")
OSHRUN = str(BUILD / "bin/oshrun")
EXCHANGE = str(BUILD / "tests/boot/exchange")
PE = str(BUILD / "tests/boot/pe")
ENGINE = str((BUILD / "tests/far/libweft_fake_engine.so").resolve())
MARK = "WEFT_TEST_MARK=" + uuid.uuid4().hex
ENVIRONMENT = dict(os.environ, **dict([MARK.split("=")]))
for sanitizer in ("ASAN", "TSAN"):  # tests kill processes by signals
    ENVIRONMENT[f"{sanitizer}_OPTIONS"] = "handle_segv=0:handle_abort=0:handle_sigfpe=0:handle_sigill=0"

# Under nohup, or after a shell's "&", some signals are ignored, and ignored signals stay ignored.
for ignored in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
    signal.signal(ignored, signal.SIG_DFL)

STRICT = bool(os.environ.get("WEFT_TEST_STRICT"))  # checks the promised times, on an idle machine

cases = []


def memory_await(mebibytes, seconds_max=20):
    """Waits until that much memory is available, and skips the case if it does not become available."""
    until = time.monotonic() + seconds_max
    while (available := memory_available()) < mebibytes:
        if time.monotonic() > until:
            raise Skip(f"{mebibytes} MiB of memory are needed, and {available} MiB are available")
        time.sleep(0.5)


def memory_available():
    """Returns the available memory in MiB."""
    lines = pathlib.Path("/proc/meminfo").read_text()
    return int(re.search(r"^MemAvailable: *(\d+) kB", lines, re.M)[1]) >> 10


def case(name):
    """Decorates the function of a case, which fails by an assertion."""
    def register(function):
        cases.append((name, function))
        return function
    return register


def far(placement, settings="", engine=ENGINE):
    """Returns the words to put before a program so that its PEs pretend to be on several hosts, with the engine of the
    tests and these settings (tests/far/engine/settings.h)."""
    return ["env", f"WEFT_PRETEND_HOSTS={placement}", f"WEFT_ENGINE={engine}", f"FAKE_ENGINE={settings}"]


def start(*arguments, below=(), **options):
    """Starts oshrun with these arguments in the background, below another command if given; all its streams are
    pipes."""
    streams = dict(stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    return subprocess.Popen([*below, OSHRUN, *map(str, arguments)], text=True, errors="backslashreplace",
                            env=ENVIRONMENT, **{**streams, **options})


@contextlib.contextmanager
def preloaded(source):
    """Returns the words to put before a command so that its processes preload this C source."""
    with tempfile.TemporaryDirectory(prefix="weft-preload-") as folder:
        library = f"{folder}/preload.so"
        subprocess.run(["cc", "-shared", "-fPIC", "-pthread", "-x", "c", "-", "-o", library, "-ldl"], input=source,
                       text=True, check=True)
        yield ["env", f"LD_PRELOAD={library}"]


def crowd():
    """Returns how many processes want each processor, from 1 to 10; 1 in strict runs."""
    return 1 if STRICT else min(max(os.getloadavg()[0] / len(os.sched_getaffinity(0)), 1), 10)


def patience(seconds):
    """Returns the time to allow for a promised time: three times as long, since the load of the last minute shows a
    sudden crowd late and another virtual machine's not at all, and longer if other processes need the processors."""
    return seconds if STRICT else seconds * 3 * crowd()


SILENCE = min(crowd(), 3.0)  # WEFT_HOST_TIMEOUT of tests: on a loaded machine heartbeats are late, too


class Result:
    def __init__(self, process, text=None, seconds_max=10):
        begin = time.monotonic()
        try:
            self.out, self.err = process.communicate(text, timeout=patience(seconds_max))
        except subprocess.TimeoutExpired:
            running = leftovers()
            process.kill()
            raise AssertionError(f"not over after {seconds_max} s: {running}") from None
        self.seconds = time.monotonic() - begin
        self.status = process.returncode

    def expect(self, status, err=None, out=None, seconds_max=2.0):
        assert self.status == status, f"status {self.status}, not {status}: {self.err}"
        assert err is None or err in self.err, f"stderr lacks '{err}': {self.err}"
        assert out is None or out == self.out, f"stdout is {self.out!r}, not {out!r}"
        assert self.seconds < patience(seconds_max), f"took {self.seconds} s"
        left = settled_leftovers()
        assert not left, f"still running: {left}"
        return self


def run(*arguments, text=None, **options):
    if text is not None:
        options["stdin"] = subprocess.PIPE
    return Result(start(*arguments, **options), text)


def leftovers():
    """Returns (pid, command, state) of every living process with the mark, except this one."""
    found = []
    for folder in pathlib.Path("/proc").iterdir():
        if not folder.name.isdigit() or int(folder.name) == os.getpid():
            continue
        try:
            if MARK.encode() in (folder / "environ").read_bytes():
                name, _, rest = (folder / "stat").read_text().partition("(")[2].rpartition(")")
                found.append((int(folder.name), name, rest.split()[0]))
        except OSError:
            pass  # it has ended, or belongs to another user
    return found


def settled_leftovers(seconds=1.0):
    """Returns the leftovers after killed processes had time to disappear."""
    until = time.monotonic() + patience(seconds)
    while leftovers() and time.monotonic() < until:
        time.sleep(0.01)
    return leftovers()


def end_leftovers():
    for pid, *_ in leftovers():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def names():
    """Returns every name that shared memory could have left behind; other programs may write to /tmp meanwhile."""
    return set(os.listdir("/dev/shm")) if os.path.isdir("/dev/shm") else set()


def traces():
    """Returns what a job could leave behind in file systems. Everything else disappears with its processes, which
    leftovers() finds."""
    names = set(os.listdir("/dev/shm")) if os.path.isdir("/dev/shm") else set()
    names |= {name for name in os.listdir(tempfile.gettempdir())
              if "weft" in name and not re.search(r"-[a-z0-9_]{8}$", name)}  # folders of other tests
    with open("/proc/net/unix") as sockets:
        names |= {fields[7] for fields in map(str.split, sockets) if len(fields) > 7 and fields[7][0] == "/"}
    return names


def settled_traces(before, seconds=20.0):
    """Returns the traces left behind since `before`, after waiting for those of other programs to disappear."""
    until = time.monotonic() + seconds
    while traces() - before and time.monotonic() < until:
        time.sleep(0.05)
    return traces() - before


def read_numbers(process, word, count):
    """Returns the numbers in the next `count` lines "word number" of its stdout."""
    numbers = []
    while len(numbers) < count:
        line = process.stdout.readline()
        assert line, f"the output ended: {process.stderr.read()}"
        if line.split()[0] == word:
            numbers.append(int(line.split()[1]))
    return numbers


def gone(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


def wait_until(condition, seconds, what):
    until = time.monotonic() + patience(seconds)
    while not condition():
        assert time.monotonic() < until, f"not within {seconds} s: {what}"
        time.sleep(0.002)


def main(mebibytes=0):
    """Runs the cases, each when that much memory is available, and kills processes that a case has left running."""
    def guarded(function):
        def check(_):
            memory_await(mebibytes)
            try:
                function()
            finally:
                end_leftovers()
        return check
    tap.run([(name, guarded(function)) for name, function in cases])
