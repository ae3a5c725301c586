# SPDX-License-Identifier: Apache-2.0
"""Quantization recipes written as short rules in float32 arithmetic. make_recipes.py compares them
with the real projects where those run on a CPU. Where they do not run, the rules give the
expected bytes: TransformerEngine d0067d0, DeepGEMM 54e2261, DeepSeek-V3 9b4e978.

A rule takes (x, elem, block): x is float32 (rows, cols), and cols is a multiple of the block. It
returns (codes, scales, global or None), with one code per element."""
import numpy as np

import recipe_codec as rc

F32 = np.float32


def blocks_of(x, block):
    return x.reshape(x.shape[0], -1, block)


def block_amax(x, block):
    return np.abs(blocks_of(x, block)).max(axis=-1)


def block_amax_skipping_nan(x, block):
    return np.abs(np.nan_to_num(blocks_of(x, block), nan=0.0, posinf=np.inf, neginf=-np.inf)).max(axis=-1)


def bits(x):
    return np.asarray(x, F32).view(np.uint32).astype(np.int64)


def exponent_field(x):
    return (bits(x) >> 23) & 0xFF


def scale_floor(amax, elem):
    """Returns the scale byte of section 6.3 of MX v1.0, i.e. of the largest power of two <= amax,
    divided by 2^emax."""
    return np.clip(exponent_field(amax) - rc.emax(elem), 0, 254)


def scale_ceil(amax, elem):
    up = (bits(amax) & 0x7FFFFF) != 0
    return np.clip(exponent_field(amax) + up - rc.emax(elem), 0, 254)


def scale_even(amax, elem, mbits=None):
    """Returns the scale byte for amax. First the significand of amax is rounded to the number of
    bits that an element has."""
    mbits = rc.mantissa_bits(elem) if mbits is None else mbits
    rounded = (bits(amax) + (1 << (22 - mbits))) >> 23
    return np.clip(rounded - rc.emax(elem), 0, 254)


def ceil_pow2_byte(x):
    """Computes the PTX instruction cvt.rp.satfinite.ue8m0x2.f32. Returns the e8m0 byte of the
    smallest power of two >= x, or 0 if x is at most 2^-127."""
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
    """Quantizes to MX exactly: each element is x / 2^(byte - 127), rounded to nearest even and
    saturated."""
    amax = block_amax(x, block)
    scales = MX_SCALES[rule](amax, elem)
    scales = np.where(np.isnan(amax), 255, scales).astype(np.uint8)
    ratio = blocks_of(x, block).astype(np.float64) / 2.0 ** (scales.astype(np.float64) - 127)[..., None]
    return rc.encode_nearest_even(ratio.reshape(x.shape), elem), scales, None


def mx_te(x, elem, block=32):
    """Quantizes as TransformerEngine does. The scale rule is rceil. If the scale byte is 0,
    exp2f_rcp returns 1, so the elements are not scaled. If it is 254, exp2f_rcp returns 0
    instead of 2^-127, which no test case covers."""
    amax = block_amax(x, block)
    scales = np.where(np.isnan(amax), 255, scale_rceil(amax, elem)).astype(np.uint8)
    exponent = np.where(scales == 0, 0, scales.astype(np.float64) - 127)
    ratio = blocks_of(x, block).astype(np.float64) / 2.0 ** exponent[..., None]
    return rc.encode_nearest_even(ratio.reshape(x.shape), elem), scales, None


def floor_log2f(x):
    """Computes floorf(log2f(x)), where log2f is rounded to float. For an x just below 2^k the
    result is therefore k."""
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
    """Quantizes as ggml's quantize_row_mxfp4_ref. The scale uses the floor of log2f. Of two codes
    at the same distance, the first in the order of the codes is taken, so ties go toward zero
    and zero is positive."""
    amax = block_amax_skipping_nan(x, block)
    byte = np.where(amax > 0, floor_log2f(amax) - 2 + 127, 0).astype(np.uint8)
    ratio = blocks_of(x, block).astype(np.float64) / 2.0 ** (byte.astype(np.float64) - 127)[..., None]
    return ties_down_signed(ratio).reshape(x.shape), byte, None


def modelopt_mxfp4(x, elem="e2m1", block=32):
    """Quantizes as modelopt's MXFP4QTensor.quantize. The exponent is ceil(log2f(amax / 6)), at
    least -127, and ties go toward zero. The sign is computed as (2 - sign) // 2, which gives +0
    and -0 the code 0x8."""
    amax = block_amax(x, block)
    exp = np.maximum(ceil_log2f(amax / F32(6)), -127)
    ratio = blocks_of(x, block).astype(np.float64) / 2.0 ** exp.astype(np.float64)[..., None]
    code = rc.encode_ties_down(ratio) | ((ratio <= 0).astype(np.uint8) << 3)
    return code.reshape(x.shape).astype(np.uint8), (exp + 127).astype(np.uint8), None


def modelopt_mxfp8(x, elem="e4m3", block=32):
    """Quantizes as modelopt's MXFP8QTensor. The exponent is ceil(log2f(amax / 448)), clamped to
    -127..127."""
    amax = block_amax(x, block)
    exp = np.clip(ceil_log2f(amax / F32(448)), -127, 127)
    ratio = blocks_of(x, block).astype(np.float64) / 2.0 ** exp.astype(np.float64)[..., None]
    return rc.encode_nearest_even(ratio.reshape(x.shape), elem), (exp + 127).astype(np.uint8), None


def compressed_tensors_mx(x, elem, block=32):
    """Quantizes as compressed-tensors' generate_mx_scales. The significand of amax is rounded to
    the mantissa bits of FP4 before the scale is computed, even if the elements are FP8. Elements
    are rounded to nearest even. In FP4, a negative value that rounds to zero gives -0, but -0
    gives +0."""
    byte = scale_even(block_amax(x, block), elem, 1).astype(np.uint8)
    ratio = blocks_of(x, block).astype(np.float64) / 2.0 ** (byte.astype(np.float64) - 127)[..., None]
    if elem == "e2m1":
        ratio = np.where(ratio == 0, 0, ratio)
    return rc.encode_nearest_even(ratio.reshape(x.shape), elem), byte, None


def deepgemm_scale(amax, top, pow2):
    """Computes DeepGEMM's scale: amax, at least 1e-4, divided by the largest value of the element
    format. With pow2 the scale is rounded up to a power of two (ceil_to_ue8m0), and its byte is
    from 1 to 254."""
    sf = np.maximum(amax, F32(1e-4)) / F32(top)
    if not pow2:
        return sf.astype(F32)
    field = np.clip((bits(sf) >> 23) + ((bits(sf) & 0x7FFFFF) != 0), 1, 254)
    return rc.bits_to_f32(field.astype(np.uint32) << 23)


def deepgemm_mxfp4(x, elem="e2m1", block=32):
    """Quantizes as DeepGEMM's per_token_cast_to_fp4(use_ue8m0=True, gran_k=32). An element is x *
    (1 / sf), rounded with ties toward zero."""
    sf = deepgemm_scale(block_amax(x, block), 6.0, True)
    ratio = blocks_of(x, block) * (F32(1) / sf)[..., None]
    return ties_down_signed(ratio).reshape(x.shape), exponent_field(sf).astype(np.uint8), None


def quark_mx(x, elem, block=32):
    """Quantizes as Quark's even_round, scaled_real_quantize, Pack_fp4 or Pack_fp6, and
    to_e8m0_uint8. If the scale is the smallest one, 2^-127, Quark divides the elements by it,
    but stores the byte 1, i.e. 2^-126. If amax rounds to Inf, Quark stores the byte 254. It
    never stores a negative zero."""
    amax = block_amax(x, block)
    rounded = (bits(amax) + (1 << (22 - rc.mantissa_bits(elem)))) >> 23
    byte = np.where(rounded == 255, 254, np.clip(rounded - rc.emax(elem), 0, 254))
    ratio = blocks_of(x, block).astype(np.float64) / 2.0 ** (byte.astype(np.float64) - 127)[..., None]
    codes = rc.encode_nearest_even(ratio.reshape(x.shape), elem)
    codes = np.where(codes == 1 << (rc.BITS[elem] - 1), 0, codes).astype(np.uint8)
    return codes, np.maximum(byte, 1).astype(np.uint8), None


# These are the NVFP4 recipes, with blocks of 16 elements and e4m3 scales. Each line of the
# functions below performs a single float32 operation.

EPS = F32(2.0**-6)
LOW = F32(2.0**-9)
FLT_MAX = np.finfo(F32).max


def e2m1_codes(y, signed_zero):
    """Rounds to e2m1. If signed_zero is false, -0 gives the code 0x0, but a negative value that
    rounds to zero gives 0x8."""
    y = y if signed_zero else np.where(y == 0, F32(0), y)
    return rc.encode_nearest_even(y, "e2m1")


def f8(x):
    """Rounds a block scale to e4m3 and returns its code and its value in f32."""
    code = rc.round_e4m3(x)
    return code, rc.decode_e4m3(code).astype(F32)


def by_block(factor):
    return factor[..., None].astype(F32)


@np.errstate(all="ignore")
def nvfp4_torchao(x, elem="e2m1", block=16):
    s = F32(np.abs(x).max() / F32(2688))
    code, value = f8(np.clip(block_amax(x, block) / F32(6) / s, EPS, F32(448)))
    y = blocks_of(x, block) * by_block((F32(1) / s) / value)
    return e2m1_codes(y, True).reshape(x.shape), code, s


@np.errstate(all="ignore")
def nvfp4_torchao_one_level(x, elem="e2m1", block=16):
    code, value = f8(np.clip(block_amax(x, block) / F32(6), EPS, F32(448)))
    y = blocks_of(x, block) * by_block(F32(1) / value)
    return e2m1_codes(y, True).reshape(x.shape), code, None


@np.errstate(all="ignore")
def nvfp4_te(x, elem="e2m1", block=16):
    """Quantizes as TransformerEngine's compute_global_encode_scaling_factor_FP4 and
    NVFP4QuantizerRef. S_enc is the factor by which the tensor is multiplied, so the stored scale
    of the tensor is 1 / S_enc."""
    amax_t = np.abs(x).max()
    s_enc = min(F32(2688) / amax_t, FLT_MAX) if amax_t != 0 and not np.isinf(amax_t) else F32(1)
    s_dec = F32(1) / s_enc
    code, value = f8(np.minimum(block_amax(x, block) * (s_enc * F32(F32(1) / F32(6))), FLT_MAX))
    enc = np.minimum(F32(1) / (value * s_dec), FLT_MAX)
    y = blocks_of(x, block) * by_block(enc)
    return e2m1_codes(y, False).reshape(x.shape), code, s_dec


@np.errstate(all="ignore")
def nvfp4_modelopt(x, elem="e2m1", block=16):
    s2 = F32(np.abs(x).max() / F32(2688))
    ratio = block_amax(x, block) / (F32(6) * s2)
    code, value = f8(np.clip(np.where(ratio == 0, F32(1), ratio), LOW, F32(448)))
    y = blocks_of(x, block) / by_block(value * s2)
    return e2m1_codes(y, False).reshape(x.shape), code, s2


@np.errstate(all="ignore")
def nvfp4_compressed_tensors(x, elem="e2m1", block=16, dtype="f32"):
    """Quantizes to NVFP4 as compressed-tensors. Three results are rounded to the input's type,
    because torch computes them there: 1 / amax_t, its product with 2688, and amax / 6. The rest
    is computed in f32."""
    as_input = lambda v: rc.to_input(v, dtype).astype(F32)
    tiny = {"f32": 2.0**-126, "bf16": 2.0**-126, "f16": 2.0**-14}[dtype]
    g = as_input(as_input(F32(1) / max(np.abs(x).max(), F32(tiny))) * F32(2688))
    g = g if np.isfinite(g) else F32(1)
    code, _ = f8(np.minimum(g * as_input(block_amax(x, block) / F32(6)), F32(448)))
    code = np.where(code == 0, np.uint8(0x20), code)
    y = blocks_of(x, block) / by_block(rc.decode_e4m3(code).astype(F32) / g)
    return e2m1_codes(y, False).reshape(x.shape), code, g


def ggml_ue4m3(x):
    """Computes ggml_fp32_to_ue4m3, which rounds ties up. Below 2^-6 the mantissa is (int)(x * 512 +
    0.5), at most 7. Numbers that round to 256 or more give 448."""
    x = np.minimum(x, F32(448)).astype(F32)
    b = bits(x)
    exp = (b >> 23) - 127 + 7
    sub = np.minimum((x * F32(512) + F32(0.5)).astype(np.int64), 7)
    man = ((b >> 20) & 7) + ((b >> 19) & 1)
    exp, man = exp + (man > 7), np.where(man > 7, 0, man)
    code = np.where(exp >= 15, 0x7E, (exp << 3) | man)
    return np.where((b >> 23) - 127 + 7 <= 0, sub, code).astype(np.uint8)


def ggml_nvfp4(x, elem="e2m1", block=16):
    """Quantizes as ggml's quantize_row_nvfp4_ref. The scale is amax / 6. Of two codes at the same
    distance, the first is taken. If the scale is zero, all codes are 0."""
    code = ggml_ue4m3(block_amax_skipping_nan(x, block) / F32(6))
    value = rc.decode_e4m3(code)
    with np.errstate(all="ignore"):
        ratio = np.where(value[..., None] == 0, 0, blocks_of(x, block) / value[..., None])
    return ties_down_signed(ratio).reshape(x.shape), code, None


# These are the FP8 recipes with f32 scales for groups of 1 x 128 or blocks of 128 x 128 elements. x
# is padded with zeros to whole blocks.


def tiles(x, rows, cols=128):
    return x.reshape(x.shape[0] // rows, rows, x.shape[1] // cols, cols)


def fp8(rule, x, rows, pow2):
    amax = np.abs(tiles(x, rows)).max(axis=(1, 3))
    quantized, scales = rule(tiles(x, rows), amax, pow2)
    return rc.encode_nearest_even(quantized, "e4m3").reshape(x.shape), scales.astype(F32), None


def spread(scale):
    return scale[:, None, :, None].astype(F32)


@np.errstate(all="ignore")
def fp8_deepseek(x, amax, pow2):
    """Computes act_quant_kernel of DeepSeek's kernel.py. The scale s is max(amax, 1e-4) / 448, and
    elements are x / s. With pow2, s becomes exp2(ceil(log2(s)))."""
    s = (np.maximum(amax, F32(1e-4)) / F32(448)).astype(F32)
    s = np.exp2(ceil_log2f(s).astype(np.float64)).astype(F32) if pow2 else s
    return x / spread(s), s


@np.errstate(all="ignore")
def fp8_deepgemm(x, amax, pow2):
    """Computes per_token_cast_to_fp8 and per_block_cast_to_fp8 of DeepGEMM's utils/math.py.
    Elements are x * (1 / sf)."""
    sf = deepgemm_scale(amax, 448.0, pow2)
    return x * spread(F32(1) / sf), sf


@np.errstate(all="ignore")
def fp8_te(x, amax, pow2):
    """Computes TransformerEngine's compute_scale_from_amax with epsilon 0. The factor is 448 /
    amax. It is 1 if amax is 0, Inf or NaN, and FLT_MAX if it overflows. pow2 clears its
    mantissa. The stored scale is 1 / factor."""
    scale = (F32(448) / amax).astype(F32)
    scale = np.where(np.isinf(scale), FLT_MAX, scale)
    scale = rc.bits_to_f32(scale.view(np.uint32) & np.uint32(0xFF800000)) if pow2 else scale
    scale = np.where((amax == 0) | ~np.isfinite(amax), F32(1), scale).astype(F32)
    return x * spread(scale), F32(1) / scale
