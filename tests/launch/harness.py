# SPDX-License-Identifier: BSD-3-Clause
"""Helps tests that run jobs: starts oshrun, awaits its end, and finds what it left behind. Cases run by tests/tap.py.

Every process that a test starts carries a mark in its environment, so that processes which outlive it can be found,
however they were started.
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
for sanitizer in ("ASAN", "TSAN"):  # deaths by signal are what is tested
    ENVIRONMENT[f"{sanitizer}_OPTIONS"] = "handle_segv=0:handle_abort=0:handle_sigfpe=0:handle_sigill=0"

# Under nohup, or behind a shell's "&", some signals are ignored, and what is ignored stays so.
for ignored in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
    signal.signal(ignored, signal.SIG_DFL)

STRICT = bool(os.environ.get("WEFT_TEST_STRICT"))  # the promised times, on a machine of its own

cases = []


def memory_await(mebibytes, seconds_max=20):
    """Waits for so much to be available; a case that needs it is skipped where it does not come to be."""
    until = time.monotonic() + seconds_max
    while (available := memory_available()) < mebibytes:
        if time.monotonic() > until:
            raise Skip(f"{mebibytes} MiB of memory are needed, and {available} MiB are available")
        time.sleep(0.5)


def memory_available():
    """In MiB."""
    lines = pathlib.Path("/proc/meminfo").read_text()
    return int(re.search(r"^MemAvailable: *(\d+) kB", lines, re.M)[1]) >> 10


def case(name):
    """Decorates a function that fails by an assertion."""
    def register(function):
        cases.append((name, function))
        return function
    return register


def far(placement, settings="", engine=ENGINE):
    """The words before a program whose PEs pretend to be on several hosts; the engine is that of the tests, with these
    settings (tests/far/engine/settings.h)."""
    return ["env", f"WEFT_PRETEND_HOSTS={placement}", f"WEFT_ENGINE={engine}", f"FAKE_ENGINE={settings}"]


def start(*arguments, below=(), **options):
    """oshrun with these arguments, below another command if there is one, in the background; all its
    streams are pipes."""
    streams = dict(stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    return subprocess.Popen([*below, OSHRUN, *map(str, arguments)], text=True, errors="backslashreplace",
                            env=ENVIRONMENT, **{**streams, **options})


@contextlib.contextmanager
def preloaded(source):
    """The words before a command that put this C into its processes."""
    with tempfile.TemporaryDirectory(prefix="weft-preload-") as folder:
        library = f"{folder}/preload.so"
        subprocess.run(["cc", "-shared", "-fPIC", "-pthread", "-x", "c", "-", "-o", library, "-ldl"], input=source,
                       text=True, check=True)
        yield ["env", f"LD_PRELOAD={library}"]


def patience(seconds):
    """What is promised within that time takes longer where others want the processors, too."""
    crowd = os.getloadavg()[0] / len(os.sched_getaffinity(0))
    return seconds if STRICT else seconds * min(max(crowd, 1), 10)


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
    """(pid, command, state) of every living process that carries the mark, except this one."""
    found = []
    for folder in pathlib.Path("/proc").iterdir():
        if not folder.name.isdigit() or int(folder.name) == os.getpid():
            continue
        try:
            if MARK.encode() in (folder / "environ").read_bytes():
                name, _, rest = (folder / "stat").read_text().partition("(")[2].rpartition(")")
                found.append((int(folder.name), name, rest.split()[0]))
        except OSError:
            pass  # it is gone, or not ours
    return found


def settled_leftovers(seconds=1.0):
    """What is left after processes that were killed had time to disappear."""
    until = time.monotonic() + patience(seconds)
    while leftovers() and time.monotonic() < until:
        time.sleep(0.01)
    return leftovers()


def end_leftovers():
    for pid, *_ in leftovers():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def names():
    """Every name that shared memory could have left behind; others may write to /tmp meanwhile."""
    return set(os.listdir("/dev/shm")) if os.path.isdir("/dev/shm") else set()


def traces():
    """What a job could leave behind in file systems. All else goes with its processes, and those are
    looked for themselves."""
    names = set(os.listdir("/dev/shm")) if os.path.isdir("/dev/shm") else set()
    names |= {name for name in os.listdir(tempfile.gettempdir())
              if "weft" in name and not re.search(r"-[a-z0-9_]{8}$", name)}  # folders of other tests
    with open("/proc/net/unix") as sockets:
        names |= {fields[7] for fields in map(str.split, sockets) if len(fields) > 7 and fields[7][0] == "/"}
    return names


def settled_traces(before, seconds=20.0):
    """What was left behind since `before`; other programs of this machine come and go, too."""
    until = time.monotonic() + seconds
    while traces() - before and time.monotonic() < until:
        time.sleep(0.05)
    return traces() - before


def read_numbers(process, word, count):
    """The numbers of the next `count` lines "word number" on its stdout."""
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
    """Runs the cases, each once that much memory is available, and ends what a case has left running."""
    def guarded(function):
        def check(_):
            memory_await(mebibytes)
            try:
                function()
            finally:
                end_leftovers()
        return check
    tap.run([(name, guarded(function)) for name, function in cases])
