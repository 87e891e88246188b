# SPDX-License-Identifier: BSD-3-Clause
"""What `import torch` calls where Weft is installed (entry point "torch.backends"): a module by itself,
because every import of PyTorch comes here, and Weft itself is loaded only if it is asked for.

Nothing unless WEFT_TORCH_BACKEND=1. Never raises, because `import torch` would fail; never compiles,
because it has to be fast: where the shim has not been made, it says how to make it.
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
