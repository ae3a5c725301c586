# SPDX-License-Identifier: Apache-2.0
"""Calls the projects' own quantizers, as installed from PyPI. Each function maps (x, elem, ...) to
(codes, scales, global).

x is a torch tensor in the type of the input. The codes come one per element."""
import ctypes
import glob
import importlib.metadata
import os
import site
import warnings

warnings.filterwarnings("ignore")

import numpy as np
import torch
from compressed_tensors.compressors.mxfp4.base import MXFP4PackedCompressor
from compressed_tensors.compressors.mxfp8.base import MXFP8QuantizationCompressor
from compressed_tensors.compressors.nvfp4.base import NVFP4PackedCompressor
from compressed_tensors.quantization import QuantizationArgs, QuantizationScheme
from compressed_tensors.quantization.quant_args import round_to_quantized_type_args
from compressed_tensors.quantization.utils import calculate_qparams, calculate_range, generate_gparam
from modelopt.torch.quantization.qtensor.mxfp4_tensor import MXFP4QTensor
from modelopt.torch.quantization.qtensor.mxfp8_tensor import MXFP8QTensor
from modelopt.torch.quantization.qtensor.nvfp4_tensor import NVFP4QTensor
from torchao.prototype.mx_formats.config import ScaleCalculationMode
from torchao.prototype.mx_formats.constants import DTYPE_FP6_E2M3, DTYPE_FP6_E3M2
from torchao.prototype.mx_formats.mx_tensor import to_mx
from torchao.prototype.mx_formats.nvfp4_tensor import nvfp4_quantize, per_tensor_amax_to_scale

import recipe_codec as rc


def version(package):
    return f"{package} {importlib.metadata.version(package)}"


TORCHAO = version("torchao")
MODELOPT = version("nvidia-modelopt")
COMPRESSED = version("compressed-tensors")
QUARK = version("amd-quark")

TORCHAO_ELEMENTS = {
    "e4m3": torch.float8_e4m3fn,
    "e5m2": torch.float8_e5m2,
    "e2m3": DTYPE_FP6_E2M3,
    "e3m2": DTYPE_FP6_E3M2,
    "e2m1": torch.float4_e2m1fn_x2,
}
TORCHAO_MODES = {"ocp": "FLOOR", "rceil": "RCEIL", "ceil": "CEIL", "even": "EVEN", "torchao": "FLOOR"}


def tensor(x):
    """Converts a numpy matrix of any input type to a torch tensor with the same bits."""
    if x.dtype == np.float32 or x.dtype == np.float16:
        return torch.from_numpy(x.copy())
    return torch.from_numpy(x.view(np.int16).copy()).view(torch.bfloat16)


def bytes_of(t):
    return t.contiguous().view(torch.uint8).numpy()


def torchao_mx(mode, x, elem):
    """Calls torchao's to_mx. It accepts f32 and bf16, so an f16 input is converted to f32, which is
    exact."""
    t = tensor(x)
    t = t.float() if t.dtype == torch.float16 else t
    scale, data = to_mx(t, TORCHAO_ELEMENTS[elem], 32, ScaleCalculationMode[TORCHAO_MODES[mode]])
    data = bytes_of(data)
    return (rc.unpack4(data) if elem == "e2m1" else data), bytes_of(scale), None


def modelopt_mxfp4(x, elem="e2m1"):
    q, scale = MXFP4QTensor.quantize(tensor(x), 32)
    return rc.unpack4(bytes_of(q._quantized_data)), scale.reshape(x.shape[0], -1).numpy(), None


def modelopt_mxfp8(x, elem="e4m3"):
    q, scale = MXFP8QTensor.quantize(tensor(x))
    return bytes_of(q._quantized_data), scale.reshape(x.shape[0], -1).numpy(), None


def group_extrema(t, block):
    g = t.reshape(t.shape[0], -1, block)
    return g.amin(-1), g.amax(-1)


def compressed_tensors_mx(x, elem):
    """Quantizes to an MX format by the package compressed-tensors, called as llm-compressor calls
    it: minimum and maximum in the weight's own type, then the compressor."""
    bits = rc.BITS[elem]
    args = QuantizationArgs(num_bits=bits, type="float", strategy="group", group_size=32, symmetric=True,
                            scale_dtype=torch.uint8, zp_dtype=torch.uint8)
    t = tensor(x)
    scale, _ = calculate_qparams(*group_extrema(t, 32), args)
    scheme = QuantizationScheme(targets=["Linear"], weights=args)
    compressor = {4: MXFP4PackedCompressor, 8: MXFP8QuantizationCompressor}[bits]
    out = compressor.compress({"weight": t, "weight_scale": scale}, scheme)
    if bits == 4:
        codes = rc.unpack4(bytes_of(out["weight_packed"]))
    else:
        codes = bytes_of(out["weight"])
    return codes, out["weight_scale"].numpy(), None


def find_ggml():
    """Loads libggml-base, which contains ggml's quantizers in C. The wheel of pywhispercpp has this
    library."""
    for folder in site.getsitepackages():
        for path in glob.glob(os.path.join(folder, "pywhispercpp.libs", "libggml-base*.so*")):
            return ctypes.CDLL(path)
    raise SystemExit("pywhispercpp (for libggml-base) is not installed")


ggml = find_ggml()
ggml.ggml_version.restype = ctypes.c_char_p
GGML = f"ggml {ggml.ggml_version().decode()} ({version('pywhispercpp')})"


def ggml_row(function, x, block, block_bytes):
    flat = np.ascontiguousarray(np.asarray(x, np.float32)).ravel()
    out = np.zeros(flat.size // block * block_bytes, np.uint8)
    pointer = ctypes.POINTER(ctypes.c_float)
    getattr(ggml, function)(flat.ctypes.data_as(pointer), out.ctypes.data_as(ctypes.c_void_p),
                            ctypes.c_int64(flat.size))
    return out.reshape(-1, block_bytes)


def split_halves(qs):
    """Splits ggml's bytes into codes. The low nibbles are the first half of a block, and the high
    nibbles are the second half."""
    return np.concatenate([qs & 15, qs >> 4], axis=-1)


def ggml_mxfp4(x, elem="e2m1"):
    raw = ggml_row("quantize_row_mxfp4_ref", x, 32, 17)
    return split_halves(raw[:, 1:]).reshape(x.shape), raw[:, 0].reshape(x.shape[0], -1), None


def ggml_nvfp4(x, elem="e2m1"):
    """Calls ggml's quantizer to NVFP4. It writes super-blocks of 64 elements: four scales, then the
    codes of four sub-blocks of 16 elements. In a sub-block, the low nibbles are the first eight
    codes and the high nibbles the other eight."""
    raw = ggml_row("quantize_row_nvfp4_ref", x, 64, 36)
    codes = split_halves(raw[:, 4:].reshape(-1, 8))
    return codes.reshape(x.shape), raw[:, :4].reshape(x.shape[0], -1), None


def torchao_nvfp4(x, elem="e2m1", one_level=False):
    t = tensor(x)
    t = t.float() if t.dtype == torch.float16 else t
    s = None if one_level else per_tensor_amax_to_scale(t.abs().max())
    scale, data = nvfp4_quantize(t, 16, s)
    codes = rc.unpack4(bytes_of(data).reshape(x.shape[0], -1))
    return codes, bytes_of(scale).reshape(x.shape[0], -1), None if one_level else s.numpy()


def modelopt_nvfp4(x, elem="e2m1"):
    q, scale, s2 = NVFP4QTensor.quantize(tensor(x), 16)
    return rc.unpack4(bytes_of(q._quantized_data)), bytes_of(scale), s2.numpy()


def compressed_tensors_nvfp4(x, elem="e2m1"):
    """Quantizes to NVFP4 by the package compressed-tensors, called as llm-compressor calls it:
    minimum and maximum in the weight's own type, then the compressor."""
    args = QuantizationArgs(num_bits=4, type="float", strategy="tensor_group", group_size=16, symmetric=True,
                            scale_dtype=torch.float8_e4m3fn, zp_dtype=torch.float8_e4m3fn)
    t = tensor(x)
    low, high = group_extrema(t, 16)
    top = torch.maximum(high.max(), -low.min()).reshape(1)
    g = generate_gparam(-top, top)
    scale, _ = calculate_qparams(low, high, args, global_scale=g)
    scheme = QuantizationScheme(targets=["Linear"], weights=args)
    out = NVFP4PackedCompressor.compress({"weight": t, "weight_scale": scale, "weight_global_scale": g}, scheme)
    return rc.unpack4(bytes_of(out["weight_packed"])), bytes_of(out["weight_scale"]), g.numpy()[0]


def quark_mx(x, elem):
    """Quantizes by the function that Quark uses for export. Quark compiles its kernels when it is
    first used."""
    from quark.torch.kernel.hw_emulation.hw_emulation_interface import scaled_real_quantize_impl
    from quark.torch.quantization.utils import even_round
    from quark.torch.utils.numerics import to_e8m0_uint8
    from quark.torch.utils.pack import Pack_fp4, Pack_fp6

    name = {"e2m1": "fp4", "e2m3": "fp6_e2m3", "e3m2": "fp6_e3m2"}[elem]
    t = tensor(x)
    scale = even_round(t.abs().reshape(x.shape[0], -1, 32).amax(-1), name)
    q = scaled_real_quantize_impl(name, t, scale, None, -1, 32, 0, 0, 0, "per_group").float()
    if elem == "e2m1":
        codes = rc.unpack4(Pack_fp4("per_group", name).pack(q, False).numpy())
    else:
        codes = rc.unpack6(Pack_fp6("per_group", name, *rc.ELEMENTS[elem][:2]).pack(q, False).numpy())
    return codes, to_e8m0_uint8(scale).numpy(), None
