# SPDX-License-Identifier: BSD-3-Clause
"""The benchmarks' JSON lines, gathered over runs."""
import json
import statistics

WEFT = "Weft"
NAMES = {"http://www.open-mpi.org/": "Open MPI"}  # as shmem_info_get_name returns it


def library_of(line):
    """Returns a name without its version."""
    name = " ".join(word for word in line["library"].split() if not word.lstrip("v")[0].isdigit())
    return NAMES.get(name, name)


def read(paths):
    """Returns {(row, PEs, library): lines}, {(operator, ...): lines}, both in the order of the files."""
    rows, operators = {}, {}
    for path in paths:
        with open(path) as file:
            for text in file:
                if not text.startswith("{"):
                    continue
                line = json.loads(text)
                if "row" in line:
                    rows.setdefault((line["row"], line["pes"], library_of(line)), []).append(line)
                else:
                    key = tuple(line[k] for k in ("operator", "dtype", "M", "N", "K", "pes"))
                    operators.setdefault(key, []).append(line)
    return rows, operators


def peers(rows):
    return list(dict.fromkeys(library for _, _, library in rows if library != WEFT))


def median(lines, field):
    return statistics.median(line[field] for line in lines)


def spread(lines, field):
    values = [line[field] for line in lines]
    return f"{min(values):.3g} - {max(values):.3g}"


def ratio(lines, above, below):
    return statistics.median(line[above] / line[below] for line in lines)


def times_better(unit, theirs, ours):
    """Returns how many times better ours is: smaller times, larger rates."""
    return ours / theirs if unit.endswith("/s") else theirs / ours
