#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""From the rows of tests/matrix.txt to runs: the command of each test on each number of PEs, in each build.

    tests/matrix.py GOAL BUILD          the files that make builds for the rows of that build
"""
import collections
import os
import re
import sys

import catalog

FOLDERS = {"clang": "build/clang", "asan": "build/san-address-undefined", "tsan": "build/san-thread"}
GPU_SCRIPTS = "gpu/check", "gpu/death", "gpu/examples"  # those that use the machine's GPUs, on GPU_PES of them

UCX = "lib/libweft_ucx.so"  # not built where the headers of UCX are not installed

# How `make test` runs a test of GPUs.
PRETENDED = ["heads", "2:delays", "2:staged", "3:staged", "heads:lines"]

# `name` is unique, `words` the command, and `files` have to be built.
Run = collections.namedtuple("Run", "name build words files")
Row = collections.namedtuple("Row", "build runs tests")


def rows(goal, runs="", tests=""):
    """The rows of a goal of make. `runs` and `tests` replace those of rows with ways."""
    goals = {"check", goal} if goal == "check-all" else {goal}
    lines = catalog.TESTS.joinpath("matrix.txt").read_text().splitlines()
    table = [re.split(r" +\| ", line) for line in lines if "|" in line and line[0] != "#"]
    return [Row(build.strip(), (":" in here and runs or here).split(), (":" in here and tests or which).split())
            for names, build, here, which in table if goals & set(names.split())] or catalog.fail(f"there is no goal {goal}")


def environment(**variables):
    return ["env", *(f"{name}={value}" for name, value in variables.items())]


def suffix_of(*words):
    """The end of a run's name that says how it runs."""
    return "-" + re.sub("[:,;=_ ]+", "-", " ".join(words)).rstrip("-")


class Plan:
    """All runs of some rows. `build` is the folder of gcc's build; `count` leaves runs on that many PEs alone."""

    def __init__(self, build, long=False, count=None):
        self.build, self.long, self.count = build, long, count
        self.seed = os.environ.get("WEFT_TEST_SEED", os.getpid())
        self.patience = 3600 if long else None
        self.counts = [count] if count else [1, 2, 3, 4, 5, 8] if long else [1, 2, 3, 4]
        self.runs = {}

    def folder(self, build):
        return FOLDERS.get(build, self.build)

    def add_rows(self, table):
        for row in table:
            wanted = re.compile("|".join(f"(?:{test})" for test in row.tests))
            for where in row.runs:
                count, _, way = where.partition(":")
                add = self.add_on_gpus if way == "gpu" else self.add_test
                for name in filter(wanted.match, catalog.all_tests()):
                    add(name, row.build, way, int(count) if count.isdigit() else None)
        return list(self.runs.values())

    def only(self, name, way):
        """The runs of one test."""
        if not way.startswith("hosts:"):
            self.add_script(name, way, asked=True)
            if any(path.suffix == ".py" for path in catalog.all_tests()[name]):
                self.add_module(name, way)
        runs = PRETENDED if name.startswith("gpu/") and not way else [f"heads:{way}"]
        return self.add_rows([Row("gcc", runs, [f"{name}$"])])

    def add(self, name, build, suffix, words, *files):
        unique = "" if build == "gcc" else os.path.basename(FOLDERS[build]) + "/"
        unique += name + suffix
        self.runs.setdefault(unique, Run(unique, build, words, files))

    def add_test(self, name, build, way, count):
        if build == "gcc" and not way.startswith("hosts:"):
            self.add_script(name, way)
        source = catalog.program(name)
        if source and not catalog.is_helper(source):
            for npes in self.counts_of(source, way, count):
                self.add_program(name, build, way, npes)

    def add_script(self, name, way, asked=False):
        script = next((path for path in catalog.all_tests()[name] if path.suffix == ".t"), None)
        far = "Far: also" if self.long else "Far: also."
        if script and (not way or asked or way == "each" and any(far in line for line in catalog.head(script))):
            self.add(name, "gcc", suffix_of("far", way) if way else "",
                     (self.far("gcc", way) if way else []) + ["timeout", str(self.patience or 300), f"tests/{name}.t"])

    def add_module(self, name, way):
        """The tests of a file of pytest."""
        self.add(name, "gcc", "", (self.far("gcc", way) if way else []) +
                 ["tests/python/pes.t", name.split("/")[1], *([str(self.count)] if self.count else [])])

    def counts_of(self, source, way, count):
        """The numbers of PEs of a program in a row: `count`, or all in its head."""
        pes = catalog.pes_of(source)
        if not way.startswith("hosts:"):
            return [npes for npes in pes or self.counts if count in (None, npes) and self.count in (None, npes)]
        hosts, here = map(int, way.split(":")[1].split("x"))
        if not pes or len(pes) >= 4 and hosts * here <= pes[-1]:  # a list such as 1 2 3 4 7 allows any number
            return [hosts * here]
        return [npes for npes in pes if npes == hosts * here]

    def add_program(self, name, build, way, npes):
        if way.startswith("hosts:"):
            self.add_on_hosts(name, build, way, npes)
        elif way == "lines":
            self.add_far_lines(name, build, npes)
        elif name.startswith("gpu/") and way in ("", "delays", "staged"):
            self.add_pretended(name, build, way, npes)
        elif way:
            suffix = suffix_of("far", way)
            self.add_job(name, build, npes, suffix, self.driver(name, build) + self.far(build, way))
        else:
            self.add_far_lines(name, build, npes) or self.add_job(name, build, npes)

    def add_job(self, name, build, npes, suffix="", before=(), options=(), limit=120):
        folder = self.folder(build)
        self.add(name, build, f"-{npes}pe{suffix}",
                 [*before, "timeout", str(self.patience or limit),
                  f"{folder}/bin/oshrun", *options, "-n", str(npes), f"{folder}/tests/{name}"],
                 f"{folder}/tests/{name}", *([catalog.engine(folder)] if "-far-" in suffix else []),
                 *([f"{folder}/{UCX}"] if suffix.endswith("-ucx") else []))

    def driver(self, name, build):
        """The words by which a test of GPUs finds the pretended driver."""
        library = os.path.realpath(self.folder(build)) + "/tests/gpu/driver"
        return environment(LD_LIBRARY_PATH=library, GPU_REQUIRED=1) if name.startswith("gpu/") else []

    def far(self, build, placement, settings=None, variable=""):
        """PEs pretend to be on several hosts; WEFT_ENGINE or the engine of tests, which reorders, carries messages."""
        engine = os.environ.get("WEFT_ENGINE") or os.path.realpath(catalog.engine(self.folder(build)))
        settings = f"seed={self.seed},reorder=16" if settings is None else settings
        return environment(WEFT_PRETEND_HOSTS=placement, WEFT_ENGINE=engine, FAKE_ENGINE=settings) + variable.split()

    def add_far_lines(self, name, build, npes):
        lines = catalog.far_lines(catalog.program(name)) if npes > 1 or not name.startswith("gpu/") else []
        for placement, settings, variable in lines:
            suffix = suffix_of("far", placement, settings, variable)
            self.add_job(name, build, npes, suffix, self.driver(name, build) + self.far(build, placement, settings, variable))
        return bool(lines)

    def add_on_hosts(self, name, build, way, npes):
        _, shape, *how = way.split(":")
        hosts, here = shape.split("x")
        options = ["--hosts", ",".join(f"h{host}:{here}" for host in range(int(hosts)))]
        options += ["--map-by", "node"] if "cyclic" in how else []
        driver = self.driver(name, build)
        options += ["-x", "LD_LIBRARY_PATH", "-x", "GPU_REQUIRED"] if driver else []
        variables = driver[1:] + [{"ucx": "WEFT_ENGINE=ucx", "proxy": "WEFT_PROXIES=host"}[kind]
                                  for kind in how if kind != "cyclic"]
        variables += ["WEFT_SSH=fakessh", f"WEFT_TEST_HOSTS={' '.join(options)}"]
        self.add_job(name, build, npes, suffix_of(way), ["tests/hosts/rig.py", "-n", hosts, "env", *variables],
                     options, 300)  # hosts may have to share a processor here

    def add_pretended(self, name, build, way, npes):
        """A test of GPUs on the pretended driver: with delays and late stores, or where two GPUs do not reach each other."""
        delays = ["WEFT_FAKE_DELAY_US=200", "WEFT_FAKE_WEAK=1", f"WEFT_FAKE_SEED={self.seed}"]
        staged = ["WEFT_FAKE_NO_PEER=0-1", *(delays if npes == 2 else ["WEFT_FAKE_GPUS=3", "WEFT_FAKE_FENCED_WRITES=1"])]
        if way != "staged" or catalog.staged(catalog.program(name)):
            words = {"": [], "delays": delays, "staged": staged}[way]
            self.add_job(name, build, npes, f"-{way}" if way else "", self.driver(name, build) + words)

    def add_on_gpus(self, name, build, _, npes):
        if name in GPU_SCRIPTS and (npes != 1 or name == "gpu/examples"):
            self.add(name, build, f"-{npes}pe", environment(WEFT_BUILD=self.folder(build), GPU_REAL=1, GPU_PES=npes) +
                     ["timeout", str(self.patience or 300), f"tests/{name}.t"])
        source = catalog.program(name)
        if source and not catalog.is_helper(source) and npes in (catalog.pes_of(source) or self.counts):
            self.add_job(name, build, npes)
            if catalog.staged(source) and npes == 2:
                self.add_job(name, build, npes, "-staged", ["env", "SHMEMX_PEER_ACCESS=off"])


def targets(goal, build):
    """The files that make builds for the rows of a build."""
    plan = Plan("build", long=goal == "check-all")
    files = {file for run in plan.add_rows([row for row in rows(goal) if row.build == build])
             for file in run.files if not file.endswith(UCX)}
    gpu = any("/tests/gpu/" in file for file in files)
    return sorted(files | (catalog.driver(plan.folder(build)) if gpu else set()))


if __name__ == "__main__":
    print(*targets(*sys.argv[1:]))
