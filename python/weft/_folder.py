# SPDX-License-Identifier: BSD-3-Clause
"""Detects a mixed installation. Another project's distribution is also called weft, with a package of the same name: if
both are installed, their files overwrite each other in one folder.
"""
import os
import pathlib


def refuse_others() -> None:
    """Raises ImportError if the metadata of the other distribution is beside this folder."""
    site = pathlib.Path(__file__).absolute().parents[1]
    others = [name for name in os.listdir(site)
              if name.startswith("weft-") and name.endswith((".dist-info", ".egg-info"))]
    if others:
        raise ImportError(f"{site}/weft has files of two projects, Weft's and those of {others[0]}: run `pip uninstall "
                          "weft`, then install Weft (the distribution weft-shmem) again, or keep one in an environment "
                          "of its own")
