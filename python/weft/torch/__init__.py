# SPDX-License-Identifier: BSD-3-Clause
"""Weft for PyTorch."""
from weft.torch._backend import counters, install, installed  # noqa: F401
