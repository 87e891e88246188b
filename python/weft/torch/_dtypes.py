# SPDX-License-Identifier: BSD-3-Clause
"""PyTorch's dispatcher hands a list of dtypes over as numbers, which no function of Python turns back
(the table in torch.distributed._symmetric_memory is of an older numbering). So the dispatcher itself
is asked once what it makes of each dtype."""
import torch

_library = torch.library.Library("weft", "FRAGMENT")
_library.define("_numbers(ScalarType[] dtypes) -> int[]")
_library.impl("_numbers", lambda dtypes: dtypes, "CompositeExplicitAutograd")

_all = sorted({value for value in vars(torch).values() if isinstance(value, torch.dtype)}, key=str)
_dtype_of = dict(zip(torch.ops.weft._numbers(_all), _all))


def dtypes_of(given):
    """A list of dtypes, their numbers and None, as dtypes and None."""
    return [_dtype_of[each] if isinstance(each, int) else each for each in given]
