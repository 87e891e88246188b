# SPDX-License-Identifier: BSD-3-Clause
"""Errors that PyTorch's C++ has as RuntimeError, whatever they are, and Weft by what they are: both.
What a program catches with PyTorch's handles it catches with these, too."""


class TimedOutError(RuntimeError, TimeoutError):
    """A wait for a signal was longer than timeout_ms."""


class ArgumentError(RuntimeError, ValueError):
    """An argument cannot be. Some versions of PyTorch raise the one, some the other."""


class OutOfMemoryError(RuntimeError, MemoryError):
    """The machine does not have the memory of a symmetric tensor."""
