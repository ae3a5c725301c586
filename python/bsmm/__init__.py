"""Block-scaled matrix multiplication: D = epilogue(alpha * (A . scale_a) x (B . scale_b)^T + ...).

>>> import numpy as np, bsmm
>>> w = np.random.default_rng(0).standard_normal((64, 128), np.float32)
>>> x = np.ones((2, 128), np.float32)
>>> bsmm.matmul(x, bsmm.quantize(w, "mxfp4")).shape
(2, 64)
"""
from ._bsmm import (DeviceError, Error, FileError, FormatError, InvalidError, NotFoundError,
                    OutOfMemoryError, RangeError, UnsupportedError)
from ._blockscaled import BlockScaled, amax, compare, quantize
from ._files import File, open
from ._groups import Groups
from ._describe import Options
from ._explain import Explanation, explain, sol
from ._packed import Packed, forms, pack
from ._product import Plan, matmul
from ._tables import (Format, activations, devices, families, formats, known_devices, layouts,
                      recipes)
from ._threads import set_threads, use_pool
from ._version import __version__

__all__ = [
    "BlockScaled", "DeviceError", "Error", "Explanation", "File", "FileError", "Format",
    "FormatError", "Groups", "InvalidError", "NotFoundError", "Options", "OutOfMemoryError",
    "Packed", "Plan", "RangeError", "UnsupportedError", "__version__", "activations", "amax",
    "compare", "devices", "explain", "families", "formats", "forms", "known_devices", "layouts",
    "matmul", "open", "pack", "quantize", "recipes", "set_threads", "sol", "use_pool",
]
