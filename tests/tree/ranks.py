# SPDX-License-Identifier: BSD-3-Clause
"""The ranks of files inside device, from the ground up: a file includes, and its object needs,
what is of its own rank or below it (floors.t, links.t).
"""
import pathlib

RANKS = {
    "device": [
        {"device", "queue"},
        {"begin", "gpus", "extent", "links", "stage"},
        {"heap", "words", "far", "share", "messages"},
        {"rma"},
        {"turns"},
        {"channels", "device_team", "half", "proxy"},
        {"open", "word"},
        {"stream", "stream_far", "put_signal"},
        {"slice", "space"},
    ],
}


def rank(room, path):
    """Of a source, a header or an object; None: it has none."""
    stem = pathlib.PurePath(path).stem
    return next((i for i, names in enumerate(RANKS[room]) if stem in names), None)
