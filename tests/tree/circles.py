# SPDX-License-Identifier: BSD-3-Clause
"""The search for circles of files, for tests of includes, objects and imports."""


def find_circle(edges):
    """Returns the files of a circle in order, the first one again at the end, or None. Walks in depth: an edge to a
    file whose walk has not ended closes a circle."""
    open_files, done = [], set()

    def visit(file):
        if file in done:
            return None
        if file in open_files:
            return open_files[open_files.index(file):] + [file]
        open_files.append(file)
        found = next(filter(None, map(visit, sorted(edges.get(file, ())))), None)
        open_files.pop()
        done.add(file)
        return found
    return next(filter(None, map(visit, sorted(edges))), None)
