# SPDX-License-Identifier: BSD-3-Clause
"""All differences between versions of PyTorch, so that no other file asks for a version. An untested version works as
far as it can, with one warning.
"""
import warnings

import torch

TESTED = (2, 11), (2, 15)
VERSION = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])

# The standard that PyTorch's headers require.
CXX_STANDARD = "c++20" if VERSION >= (2, 14) else "c++17"


def warn_if_untested():
    """Warns once in a process; Python's warning filters apply."""
    first, last = (".".join(map(str, version)) for version in TESTED)
    if not TESTED[0] <= VERSION <= TESTED[1]:
        warnings.warn(f"weft.torch: tested with PyTorch {first} to {last}, this is {torch.__version__}", stacklevel=3)


# --- Lists of dtypes --------------------------------------------------------------------------------

# The operator stays registered: PyTorch lists all operators ever defined, and asks each for its overloads.
_seen = []
_operators = torch.library.Library("weft", "FRAGMENT")
_operators.define("_see(ScalarType?[] dtypes) -> ()")
_operators.impl("_see", _seen.extend, "CompositeExplicitAutograd")


def _numbers_of(dtypes):
    """Returns the dispatcher's representation of a list of dtypes and None: numbers, which no Python function converts
    back (the table in torch.distributed._symmetric_memory has an older numbering), or dtypes. A list without None may
    be represented otherwise, so the argument has the operators' own type."""
    _seen.clear()
    torch.ops.weft._see(dtypes)
    return list(_seen)


_dtypes = sorted({value for value in vars(torch).values() if isinstance(value, torch.dtype)}, key=str)
_dtype_of = dict(zip(_numbers_of(_dtypes), _dtypes))


def dtypes_of(given):
    """Returns a list of dtypes, their numbers and None as dtypes and None."""
    return [_dtype_of[each] if isinstance(each, int) else each for each in given]
