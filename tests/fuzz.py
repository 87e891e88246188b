#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Inputs of the fuzzer as lines of hexadecimal digits, and as files.

    fuzz.py read corpus.txt FOLDER      a file for each line
    fuzz.py write FILE...               a line for each file
"""
import pathlib
import sys

verb, *names = sys.argv[1:] or [""]
if verb == "read" and len(names) == 2:
    folder = pathlib.Path(names[1])
    folder.mkdir(parents=True, exist_ok=True)
    lines = pathlib.Path(names[0]).read_text().splitlines()
    for number, line in enumerate(line for line in lines if not line.startswith("#")):
        (folder / f"line-{number}").write_bytes(bytes.fromhex(line))
elif verb == "write" and names:
    for name in names:
        print(pathlib.Path(name).read_bytes().hex())
else:
    sys.exit(__doc__)
