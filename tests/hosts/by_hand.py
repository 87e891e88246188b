# SPDX-License-Identifier: BSD-3-Clause
"""PEs on hosts of the rig without a launcher: tests/hosts/starts with a unique id, or with variables. Import it on the
rig (rig.enter)."""
import re
import signal
import subprocess
import sys
import time

import rig
import verbs

sys.path[:0] = [str(rig.HERE.parent / "launch"), str(rig.HERE.parent / "boot")]
from harness import BUILD, ENVIRONMENT, SILENCE, patience, wait_until  # noqa: E402
from starters import FOREIGN  # noqa: E402

STARTS = str((BUILD / "tests/hosts/starts").resolve())
SOON = 1.0
CLEAN = {name: value for name, value in ENVIRONMENT.items() if not name.startswith(FOREIGN) or name.startswith("WEFT_TEST_")}
CLEAN.update(WEFT_HOST_TIMEOUT=str(SILENCE))


def ours(host):
    return [line for _, line in verbs.processes(host) if "starts" in line]


def expect_empty(limit=SILENCE + SOON):
    for host in rig.hosts():
        wait_until(lambda: not ours(host), limit, f"nothing runs on {host}")


class Processes:
    """PEs started by hand, with these settings: PE i on hosts[i]. Those from `late` on start on request."""
    def __init__(self, hosts, kind, variables=None, late=None, **settings):
        self.hosts, self.npes, self.kind, self.settings = hosts, len(hosts), kind, settings
        self.pe, self.pids = {}, {}
        if variables:
            for pe in range(self.npes):
                self.pe[pe] = self.spawn(pe, kind, **variables(pe))
        else:
            self.pe[0] = self.spawn(0, kind, 0, self.npes)
            self.id = self.pe[0].stdout.readline()
            for pe in range(1, late or self.npes):
                self.pe[pe] = self.come(pe)

    def spawn(self, pe, *words, **settings):
        return subprocess.Popen(["on", self.hosts[pe], STARTS, *map(str, words)], text=True, stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**CLEAN, **self.settings, **settings})

    def come(self, pe, npes=None, uniqueid=None, **settings):
        process = self.spawn(pe, self.kind, pe, npes or self.npes, **settings)
        process.stdin.write(uniqueid or self.id)
        process.stdin.flush()
        return process

    def running(self):
        for pe, process in self.pe.items():
            line = process.stdout.readline()
            assert line, process.stderr.read()
            self.pids[pe] = int(line.split()[2])
        time.sleep(0.2)
        self.begin = time.monotonic()
        return self

    def kill(self, pe, number=signal.SIGKILL):
        subprocess.run(["on", self.hosts[pe], "kill", f"-{number}", str(self.pids[pe])], check=True)

    def end(self, seconds_max=10):
        """Returns the output of each, on both streams."""
        self.said = {}
        for pe, process in self.pe.items():
            try:
                self.said[pe] = process.communicate(timeout=patience(seconds_max))
            except subprocess.TimeoutExpired:
                for each in self.pe.values():
                    each.kill()
                raise AssertionError(f"PE {pe} is not over: {[each.communicate() for each in self.pe.values()]}") from None
        self.status = {pe: process.returncode for pe, process in self.pe.items()}
        return self

    def expect(self, status):
        self.end()
        assert set(self.status.values()) == {status}, (self.status, self.said)
        expect_empty()
        return self

    def expect_named(self, culprits, limit, *dead):
        """All PEs except the dead name the culprit, in one line, within the time."""
        self.end()
        seconds = time.monotonic() - self.begin
        assert seconds < patience(limit), f"took {seconds} s: {self.said}"
        for pe in set(self.pe) - set(dead):
            lines = re.findall(rf"^weft: PE {pe} \(pid \d+ on {self.hosts[pe]}\): (.*)$", self.said[pe][1], re.M)
            assert self.status[pe] == 70 and len(lines) == 1, (pe, self.status, self.said)
            assert re.search(rf"({culprits}).*; leaving", lines[0]), (pe, lines)
