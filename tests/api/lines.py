# SPDX-License-Identifier: BSD-3-Clause
"""Programs that misuse the library, each case a statement, and the one line that ends the job."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("WEFT_BUILD", ROOT / "build")).resolve()
STATUS_ERROR = 71


def switch(cases, first):
    """Returns C cases that execute the statement of (name, statement, pattern)."""
    return "\n".join(f"    case {number}: {{ {statement}; }} break;"
                     for number, (_, statement, _) in enumerate(cases, first))


def spoken(run):
    """Returns the library's complaints, without the greeting, places in the program, the list of objects that were not
    freed, and the last lines of PEs that find the job over."""
    return [line for line in run.stderr.splitlines()
            if line.startswith("weft:") and not line.endswith("; leaving") and " heap slots of " not in line
            and " at the end of the job: " not in line
            and not re.match(r"weft: (PE \d+ \(.*?\): )?    ", line)]


def names(line, patterns):
    """Returns whether the line has one of the patterns, in which parentheses are plain characters."""
    patterns = [patterns] if isinstance(patterns, str) else patterns
    return any(re.search(re.sub(r"[()]", r"\\\g<0>", pattern), line) for pattern in patterns)


class Expectation:
    """A program whose argument is the number of a case, and the TAP of its runs."""

    def __init__(self, name, source):
        self.work = pathlib.Path(tempfile.mkdtemp(prefix=f"weft-{name}-"))
        self.program = self.work / name
        self.number = self.failed = 0
        file = self.work / f"{name}.c"
        file.write_text(source)
        command = [str(BUILD / "bin/oshcc"), "-std=gnu11", "-O1", "-pthread", "-o", str(self.program), str(file)]
        run = subprocess.run(command, capture_output=True, text=True)
        if run.returncode != 0:
            sys.exit(f"Bail out! the program does not compile: {run.stderr}")

    def run(self, number, pes, environment=None, seconds=30):
        command = [str(BUILD / "bin/oshrun"), "-n", str(pes), str(self.program), str(number)]
        environment = dict(os.environ, **(environment or {}))
        try:
            return subprocess.run(command, capture_output=True, text=True, timeout=seconds, env=environment)
        except subprocess.TimeoutExpired as error:
            return subprocess.CompletedProcess(command, -1, "", f"the job hangs\n{error.stderr}")

    def line(self, case, pes, speaker, environment=None):
        """The next case ends the job with its line, which is the only one."""
        name, _, pattern = case
        run = self.run(self.number, pes, environment)
        said, wrong = spoken(run), None
        if run.returncode != STATUS_ERROR:
            wrong = f"status {run.returncode}, not {STATUS_ERROR}"
        elif len(said) != 1:
            wrong = f"{len(said)} lines, not one"
        elif not re.match(rf"weft: {speaker}", said[0]) or not names(said[0], pattern):
            wrong = f"not the line that names {pattern}"
        self.verdict(name, wrong, run)

    def first_line(self, case, pes, environment=None):
        """The next case ends the job with its line; several PEs may notice at once."""
        name, _, pattern = case
        run = self.run(self.number, pes, environment)
        said, wrong = spoken(run), None
        if run.returncode != STATUS_ERROR:
            wrong = f"status {run.returncode}, not {STATUS_ERROR}"
        elif not said or not all(names(line, pattern) for line in said):
            wrong = f"not the line that names {pattern}"
        self.verdict(name, wrong, run)

    def skip(self, case, reason):
        self.number += 1
        print(f"ok {self.number} - {case[0]} # SKIP {reason}")

    def verdict(self, name, wrong, run):
        self.number += 1
        if wrong:
            print(f"# {wrong}\n# " + str(run.stderr).replace("\n", "\n# "), file=sys.stderr)
        print(f"{'not ' if wrong else ''}ok {self.number} - {name}", flush=True)
        self.failed += bool(wrong)

    def finish(self):
        print(f"1..{self.number}")
        shutil.rmtree(self.work)
        sys.exit(self.failed != 0)
