# SPDX-License-Identifier: BSD-3-Clause
"""The ranks of files inside the two largest rooms, from the ground up: a file includes, and its object needs,
what is of its own rank or below it (floors.t, links.t).
"""
import pathlib

RANKS = {
    "core": [
        {"job", "made", "roster"},
        {"window", "placement", "wait", "poll", "blocks", "ivar"},
        {"strided", "cards", "space", "link", "arrive", "bundle", "gather", "engine", "letter", "path", "far_text",
         "far_apply", "far_meet", "far_progress"},
        {"far", "far_rma", "far_bring", "levels", "sync", "static", "route", "order"},
        {"team", "hang"},
        {"arena", "pin"},
        {"heap", "ctx", "share", "share_space", "share_host", "pad"},
        {"misuse", "rma", "amo", "view", "awaited"},
        {"init"},
        {"lock"},
    ],
    "device": [
        {"device", "queue"},
        {"begin", "gpus", "extent", "links", "stage"},
        {"heap", "words", "far", "share", "letters"},
        {"rma"},
        {"turns"},
        {"channels", "device_team", "proxy"},
        {"open", "word"},
        {"stream", "stream_far", "put_signal"},
        {"slice", "space"},
    ],
}


def rank(room, path):
    """Of a source, a header or an object; None: it has none."""
    stem = pathlib.PurePath(path).stem
    return next((i for i, names in enumerate(RANKS[room]) if stem in names), None)
