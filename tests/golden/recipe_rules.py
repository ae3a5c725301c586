# SPDX-License-Identifier: Apache-2.0
"""Recipes written out as short rules in float32 arithmetic. They are compared with the real
projects where those run on a CPU (make_recipes.py), and are the expected bytes where they do not:
TransformerEngine d0067d0, DeepGEMM 54e2261, DeepSeek-V3 9b4e978.

A rule takes (x, elem, block): x float32 (rows, cols), cols a multiple of the block. It gives
(codes, scales, global or None), codes one per element."""
import numpy as np

import recipe_codec as rc

F32 = np.float32


def blocks_of(x, block):
    return x.reshape(x.shape[0], -1, block)


def block_amax(x, block):
    return np.abs(blocks_of(x, block)).max(axis=-1)


def bits(x):
    return np.asarray(x, F32).view(np.uint32).astype(np.int64)


def exponent_field(x):
    return (bits(x) >> 23) & 0xFF


def scale_floor(amax, elem):
    """MX v1.0 section 6.3: X = largest power of two <= amax, over 2^emax."""
    return np.clip(exponent_field(amax) - rc.emax(elem), 0, 254)


def scale_ceil(amax, elem):
    up = (bits(amax) & 0x7FFFFF) != 0
    return np.clip(exponent_field(amax) + up - rc.emax(elem), 0, 254)


def scale_even(amax, elem, mbits=None):
    """Rounds the significand of amax to the element's precision first."""
    mbits = rc.mantissa_bits(elem) if mbits is None else mbits
    rounded = (bits(amax) + (1 << (22 - mbits))) >> 23
    return np.clip(rounded - rc.emax(elem), 0, 254)


def ceil_pow2_byte(x):
    """cvt.rp.satfinite.ue8m0x2.f32: the power of two at or above x; 2^-127 and less give 0."""
    b = bits(x)
    field, frac = b >> 23, b & 0x7FFFFF
    up = (frac > 0) & (field != 0xFE) & ~((field == 0) & (frac <= 0x400000))
    byte = np.where(np.isinf(x), 0xFE, field + up)
    return np.where(np.isnan(x), 0xFF, byte)


def scale_rceil(amax, elem):
    with np.errstate(invalid="ignore"):
        return ceil_pow2_byte(np.asarray(amax, F32) * F32(1.0 / F32(rc.max_value(elem))))


MX_SCALES = {"ocp": scale_floor, "ceil": scale_ceil, "even": scale_even, "rceil": scale_rceil}


def mx(rule, x, elem, block=32):
    """element = RNE(x / 2^(byte - 127)), saturating, in exact arithmetic."""
    amax = block_amax(x, block)
    scales = MX_SCALES[rule](amax, elem)
    scales = np.where(np.isnan(amax), 255, scales).astype(np.uint8)
    ratio = blocks_of(x, block).astype(np.float64) / 2.0 ** (scales.astype(np.float64) - 127)[..., None]
    return rc.encode_nearest_even(ratio.reshape(x.shape), elem), scales, None


def floor_log2f(x):
    """floorf(log2f(x)) with log2f rounded to float: just below 2^k it gives k."""
    with np.errstate(divide="ignore"):
        return np.floor(np.log2(np.asarray(x, np.float64)).astype(F32))


def ceil_log2f(x):
    with np.errstate(divide="ignore"):
        return np.ceil(np.log2(np.asarray(x, np.float64)).astype(F32))


def ties_down_signed(ratio, drop_zero_sign=True):
    code = rc.encode_ties_down(ratio)
    sign = (ratio < 0) & (code != 0) if drop_zero_sign else (ratio < 0)
    return (code | (sign.astype(np.uint8) << 3)).astype(np.uint8)


def ggml_mxfp4(x, elem="e2m1", block=32):
    """quantize_row_mxfp4_ref: log2f floor, nearest by strict < in code order (ties toward zero,
    zero has no sign)."""
    amax = block_amax(x, block)
    byte = np.where(amax > 0, floor_log2f(amax) - 2 + 127, 0).astype(np.uint8)
    ratio = blocks_of(x, block).astype(np.float64) / 2.0 ** (byte.astype(np.float64) - 127)[..., None]
    return ties_down_signed(ratio).reshape(x.shape), byte, None


def modelopt_mxfp4(x, elem="e2m1", block=32):
    """MXFP4QTensor.quantize: ceil(log2f(amax / 6)) >= -127, ties toward zero, and the sign rule
    (2 - sign) // 2, which gives +0 and -0 the code 0x8."""
    amax = block_amax(x, block)
    exp = np.maximum(ceil_log2f(amax / F32(6)), -127)
    ratio = blocks_of(x, block).astype(np.float64) / 2.0 ** exp.astype(np.float64)[..., None]
    code = rc.encode_ties_down(ratio) | ((ratio <= 0).astype(np.uint8) << 3)
    return code.reshape(x.shape).astype(np.uint8), (exp + 127).astype(np.uint8), None


def modelopt_mxfp8(x, elem="e4m3", block=32):
    """MXFP8QTensor: ceil(log2f(amax / 448)), clamped to -127..127."""
    amax = block_amax(x, block)
    exp = np.clip(ceil_log2f(amax / F32(448)), -127, 127)
    ratio = blocks_of(x, block).astype(np.float64) / 2.0 ** exp.astype(np.float64)[..., None]
    return rc.encode_nearest_even(ratio.reshape(x.shape), elem), (exp + 127).astype(np.uint8), None


def compressed_tensors_mx(x, elem, block=32):
    """generate_mx_scales: even rounding of amax with the mantissa of FP4, also for FP8; elements by
    nearest even; FP4 keeps the sign of what rounds to zero but not that of -0."""
    byte = scale_even(block_amax(x, block), elem, 1).astype(np.uint8)
    ratio = blocks_of(x, block).astype(np.float64) / 2.0 ** (byte.astype(np.float64) - 127)[..., None]
    if elem == "e2m1":
        ratio = np.where(ratio == 0, 0, ratio)
    return rc.encode_nearest_even(ratio.reshape(x.shape), elem), byte, None


def deepgemm_scale(amax, top, pow2):
    """amax clamped to 1e-4, divided by the element's maximum; pow2: ceil_to_ue8m0, 1..254."""
    sf = np.maximum(amax, F32(1e-4)) / F32(top)
    if not pow2:
        return sf.astype(F32)
    field = np.clip((bits(sf) >> 23) + ((bits(sf) & 0x7FFFFF) != 0), 1, 254)
    return rc.bits_to_f32(field.astype(np.uint32) << 23)


def deepgemm_mxfp4(x, elem="e2m1", block=32):
    """per_token_cast_to_fp4(use_ue8m0=True, gran_k=32): x * (1 / sf), ties toward zero."""
    sf = deepgemm_scale(block_amax(x, block), 6.0, True)
    ratio = blocks_of(x, block) * (F32(1) / sf)[..., None]
    return ties_down_signed(ratio).reshape(x.shape), exponent_field(sf).astype(np.uint8), None
