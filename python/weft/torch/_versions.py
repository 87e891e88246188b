# SPDX-License-Identifier: BSD-3-Clause
"""What differs from one version of PyTorch to the next: all of it stands here, so that no other file
asks for a version. A version that nobody has tried works as far as it can, and says so once."""
import warnings

import torch

TESTED = (2, 11), (2, 15)
VERSION = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])

# What PyTorch's headers want.
CXX_STANDARD = "c++20" if VERSION >= (2, 14) else "c++17"


def warn_if_untested():
    """Once in a process; Python's filter of warnings may take it away."""
    first, last = (".".join(map(str, version)) for version in TESTED)
    if not TESTED[0] <= VERSION <= TESTED[1]:
        warnings.warn(f"weft.torch: tested with PyTorch {first} to {last}, this is {torch.__version__}", stacklevel=3)


# --- Lists of dtypes --------------------------------------------------------------------------------

# The operator stays: PyTorch lists all that were ever defined, and asks each for its overloads.
_seen = []
_operators = torch.library.Library("weft", "FRAGMENT")
_operators.define("_see(ScalarType?[] dtypes) -> ()")
_operators.impl("_see", _seen.extend, "CompositeExplicitAutograd")


def _numbers_of(dtypes):
    """What the dispatcher makes of a list of dtypes that may hold None: numbers, which no function of
    Python turns back (the table in torch.distributed._symmetric_memory is of an older numbering), or
    dtypes. A list that must not hold None may fare otherwise, so this is of the operators' own kind."""
    _seen.clear()
    torch.ops.weft._see(dtypes)
    return list(_seen)


_dtypes = sorted({value for value in vars(torch).values() if isinstance(value, torch.dtype)}, key=str)
_dtype_of = dict(zip(_numbers_of(_dtypes), _dtypes))


def dtypes_of(given):
    """A list of dtypes, their numbers and None, as dtypes and None."""
    return [_dtype_of[each] if isinstance(each, int) else each for each in given]
