# SPDX-License-Identifier: BSD-3-Clause
"""The entry point "torch.backends", called by `import torch` if Weft is installed. A module of its own, because every
import of PyTorch runs it, and Weft itself is loaded only if requested.

Does nothing unless WEFT_TORCH_BACKEND=1. Never raises, because `import torch` would fail; never compiles, because it
must be fast: if the shim was not compiled, it says how to.
"""
import os
import sys


def load():
    if os.environ.get("WEFT_TORCH_BACKEND") != "1":
        return
    try:
        from weft.torch import _backend, _shim
        if _shim.is_there():
            _backend.install()
        else:
            print("weft: WEFT_TORCH_BACKEND=1, but there is no backend for this PyTorch yet: run "
                  "`python -c 'import weft.torch; weft.torch.install()'` once", file=sys.stderr)
    except Exception as error:
        print(f"weft: WEFT_TORCH_BACKEND=1, but the backend cannot be installed: {error}", file=sys.stderr)
