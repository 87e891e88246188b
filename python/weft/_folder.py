# SPDX-License-Identifier: BSD-3-Clause
"""Whether the folder of this package is its own. Another project's distribution is called weft, and so is
its package: where both are installed, their files lie in one folder, and of each name there is one.
"""
import os
import pathlib


def refuse_others() -> None:
    """ImportError where the other distribution says, beside this folder, that it is installed."""
    site = pathlib.Path(__file__).absolute().parents[1]
    others = [name for name in os.listdir(site)
              if name.startswith("weft-") and name.endswith((".dist-info", ".egg-info"))]
    if others:
        raise ImportError(f"{site}/weft has files of two projects, Weft's and those of {others[0]}: run `pip uninstall "
                          "weft`, then install Weft (the distribution weft-shmem) again, or keep one in an environment "
                          "of its own")
