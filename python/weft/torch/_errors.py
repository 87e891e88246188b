# SPDX-License-Identifier: BSD-3-Clause
"""Exceptions of two kinds at once. PyTorch's C++ raises RuntimeError for every error, Weft a specific exception;
handlers for either of them must work.
"""


class TimedOutError(RuntimeError, TimeoutError):
    """A wait for a signal took longer than timeout_ms."""


class ArgumentError(RuntimeError, ValueError):
    """An argument is invalid. Some versions of PyTorch raise RuntimeError, others ValueError."""


class OutOfMemoryError(RuntimeError, MemoryError):
    """The machine lacks the memory for a symmetric tensor."""
