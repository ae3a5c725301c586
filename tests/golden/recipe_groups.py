# SPDX-License-Identifier: Apache-2.0
"""Says which recipe is tested on which inputs. Each group of make_recipes.py is a generator of
cases.

Where a project runs on this machine, its output is compared with the rule in recipe_rules.py, block
by block. A block may differ only for a reason named here. The case then takes that block from the
rule."""
from dataclasses import dataclass

import numpy as np

import recipe_codec as rc
import recipe_inputs as inputs
import recipe_projects as projects
import recipe_rules as rules


@dataclass
class Case:
    name: str
    recipe: str
    format: str
    options: str
    dtype: str
    x: np.ndarray
    elem: str
    codes: np.ndarray
    scales: np.ndarray
    level2: object
    source: str


MX_FORMATS = {"mxfp8": "e4m3", "mxfp8_e5m2": "e5m2", "mxfp6_e2m3": "e2m3", "mxfp6_e3m2": "e3m2", "mxfp4": "e2m1"}


def padded(x, block):
    """Appends zeros to each row up to a whole number of blocks. Zeros do not change the amax of a
    block."""
    extra = -x.shape[1] % block
    return np.concatenate([x, np.zeros((x.shape[0], extra), x.dtype)], axis=1) if extra else x


def differing_blocks(a, b, block):
    codes = (a[0] != b[0]).reshape(a[0].shape[0], -1, block).any(-1)
    return codes | (a[1] != b[1])


def merge(real, rule, take_rule, block):
    wide = np.repeat(take_rule, block, axis=1)
    return np.where(wide, rule[0], real[0]), np.where(take_rule, rule[1], real[1]), None


def torchao_quirks(mode, x, real, rule):
    """Returns which blocks of torchao's to_mx may differ from the rule that torchao documents. This
    happens in two cases. If the scale byte is 0, which stands for 2^-127, FLOOR, CEIL and EVEN
    divide the elements by 2^-126, and RCEIL multiplies them by 1. In RCEIL, ceil(log2f(q)) is
    one too small if q is a few ulp above a power of two, because log2f rounds."""
    amax = rules.block_amax(np.asarray(x, np.float32), 32)
    byte0 = (real[1] == 0) & (rule[1] == 0) & (amax > 0)
    log2 = (real[1].astype(int) + 1 == rule[1]) if mode == "rceil" else np.zeros_like(byte0)
    return byte0 | log2


def mx_torchao(mode, x, elem):
    real = projects.torchao_mx(mode, x, elem)
    rule = rules.mx(mode, np.asarray(x, np.float32), elem)
    differ = differing_blocks(real, rule, 32) & (rule[1] != 255)
    quirk = torchao_quirks(mode, x, real, rule)
    assert not (differ & ~quirk).any(), (mode, elem)
    source = f"{projects.TORCHAO} to_mx {projects.TORCHAO_MODES[mode]}"
    if not differ.any():
        return real, source
    other = {"rceil": "TransformerEngine d0067d0 float_to_e8m0"}.get(mode, "MX v1.0 section 6.3")
    share = f"{differ.sum()} of {differ.size} blocks"
    return merge(real, rule, differ, 32), f"{source}; {share} by rule: {other}"


def checked(project, rule, source):
    """Returns a function that computes the project's bytes and fails unless the rule in
    recipe_rules.py gives the same bytes."""

    def produce(x, elem):
        real = project(x, elem)
        assert not differing_blocks(real, rule(np.asarray(x, np.float32), elem), 32).any(), source
        return real, source

    return produce


def by_rule(rule, source):
    return lambda x, elem: (rule(np.asarray(x, np.float32), elem), f"rule: {source}")


def torchao_only(x, elem):
    return projects.torchao_mx("torchao", x, elem), f"{projects.TORCHAO} to_mx FLOOR"


def standard(mode):
    return lambda x, elem: mx_torchao(mode, x, elem)


PLAIN = {"normal", "wide", "wide_f16", "scale_table", "boundary", "ties", "zeros", "short"}
ALL = PLAIN | {"tiny", "huge", "inf", "nan"}
# These are the inputs for compressed-tensors, which computes in the input's type. In f16, some
# scales or ratios would overflow or underflow, so f16 inputs with such values are left out.
IN_F16_RANGE = PLAIN - {"wide_f16", "scale_table", "zeros"} | {f"{c}:{t}" for c in ("scale_table", "zeros") for t in ("f32", "bf16")}
# Each row is (recipe, formats, inputs, producer); the producer computes the expected bytes. An
# input is CASE or CASE:TYPE. Inputs are left out if the project's result is undefined (a cast of a
# negative or non-finite float to uint8) or if its arithmetic overflows.
MX_RECIPES = [
    ("ocp", MX_FORMATS, ALL, standard("ocp")),
    ("rceil", MX_FORMATS, ALL, standard("rceil")),
    ("ceil", MX_FORMATS, ALL, standard("ceil")),
    ("even", MX_FORMATS, ALL, standard("even")),
    ("torchao", MX_FORMATS, {"normal", "zeros", "tiny", "inf", "nan"}, torchao_only),
    ("modelopt", ["mxfp4"], PLAIN | {"tiny", "huge"},
     checked(projects.modelopt_mxfp4, rules.modelopt_mxfp4, f"{projects.MODELOPT} MXFP4QTensor.quantize")),
    ("modelopt", ["mxfp8"], PLAIN | {"tiny", "huge"},
     checked(projects.modelopt_mxfp8, rules.modelopt_mxfp8, f"{projects.MODELOPT} MXFP8QTensor.quantize")),
    ("compressed-tensors", ["mxfp4", "mxfp8"], IN_F16_RANGE,
     checked(projects.compressed_tensors_mx, rules.compressed_tensors_mx, f"{projects.COMPRESSED} calculate_qparams")),
    ("quark", ["mxfp6_e2m3", "mxfp6_e3m2", "mxfp4"], PLAIN | {"tiny", "huge"},
     checked(projects.quark_mx, rules.quark_mx, f"{projects.QUARK} even_round")),
    ("ggml", ["mxfp4"], PLAIN | {"nan"},
     checked(projects.ggml_mxfp4, rules.ggml_mxfp4, f"{projects.GGML} quantize_row_mxfp4_ref")),
    ("deepgemm", ["mxfp4"], PLAIN | {"tiny", "huge"},
     by_rule(rules.deepgemm_mxfp4, "DeepGEMM 54e2261 per_token_cast_to_fp4 use_ue8m0 gran_k=32")),
]


# The golden bytes of TransformerEngine's recipe are in a separate file. They come from the rule in
# recipe_rules.py, because TransformerEngine quantizes only on GPUs.
TE_RECIPES = [
    ("te", MX_FORMATS, PLAIN | {"tiny"}, by_rule(rules.mx_te, "TransformerEngine d0067d0 ptx.cuh exp2f_rcp")),
]


def wants(wanted, name, dtype):
    return name in wanted or f"{name}:{dtype}" in wanted


def mx_cases(recipes=MX_RECIPES):
    for recipe, formats, wanted, produce in recipes:
        for fmt in formats:
            elem = MX_FORMATS[fmt]
            for name, f32, dtypes in inputs.mx_cases(elem):
                for dtype in (t for t in dtypes if wants(wanted, name, t)):
                    x = rc.to_input(f32, dtype)
                    (codes, scales, _), source = produce(padded(x, 32), elem)
                    codes = codes[:, : x.shape[1]]
                    options = "nan-blocks" if (scales == 255).any() else "-"
                    yield Case(name, recipe, fmt, options, dtype, x, elem, codes, scales, None, source)


NV_ALL = {name for name, _, _ in inputs.nvfp4_cases()}
NV_FINITE = NV_ALL - {"inf", "nan"}
# For some tensors, these projects return only NaN: if amax is 0, Inf or NaN, or so small that the
# reciprocal of the tensor's scale overflows. Such tensors are left out.
NV_SANE = NV_FINITE - {"all_zero", "subnormal"}


def nv_project(project, rule, source, pad=16):
    """Returns a function that computes the project's bytes and fails unless the rule in
    recipe_rules.py gives the same bytes in all blocks without a NaN scale."""

    def produce(x, dtype):
        wide = padded(x, pad)
        real, expected = project(wide), rule(np.asarray(wide, np.float32), dtype)
        differ = differing_blocks(real, expected, 16) & (real[1] != 0x7F)
        assert not differ.any() and (real[2] is None or np.float32(real[2]) == expected[2]), source
        return real, source

    return produce


def nv_rule(rule, source):
    return lambda x, dtype: (rule(np.asarray(padded(x, 16), np.float32)), f"rule: {source}")


def no_dtype(rule):
    return lambda x, dtype: rule(x)


def torchao_one_level(x):
    return projects.torchao_nvfp4(x, one_level=True)


def compressed_rule(x, dtype):
    return rules.nvfp4_compressed_tensors(x, dtype=dtype)


# Each row is (recipe, options, cases, producer); the producer computes the expected bytes.
NVFP4_RECIPES = [
    ("torchao", "-", NV_SANE,
     nv_project(projects.torchao_nvfp4, no_dtype(rules.nvfp4_torchao), f"{projects.TORCHAO} nvfp4_quantize")),
    ("torchao", "one-level", NV_ALL,
     nv_project(torchao_one_level, no_dtype(rules.nvfp4_torchao_one_level), f"{projects.TORCHAO} nvfp4_quantize")),
    ("te", "-", NV_ALL - {"nan"},
     nv_rule(rules.nvfp4_te, "TransformerEngine d0067d0 core_nvfp4.cuh, reference_nvfp4.py")),
    ("modelopt", "-", NV_SANE,
     nv_project(projects.modelopt_nvfp4, no_dtype(rules.nvfp4_modelopt), f"{projects.MODELOPT} NVFP4QTensor.quantize")),
    ("compressed-tensors", "divisor", NV_FINITE,
     nv_project(projects.compressed_tensors_nvfp4, compressed_rule, f"{projects.COMPRESSED} NVFP4PackedCompressor")),
    ("ggml", "-", NV_ALL - {"huge", "inf"},
     nv_project(projects.ggml_nvfp4, no_dtype(rules.ggml_nvfp4), f"{projects.GGML} quantize_row_nvfp4_ref", 64)),
]


def nvfp4_cases():
    for recipe, options, wanted, produce in NVFP4_RECIPES:
        for name, f32, dtypes in inputs.nvfp4_cases():
            for dtype in dtypes if name in wanted else ():
                x = rc.to_input(f32, dtype)
                (codes, scales, level2), source = produce(x, dtype)
                codes, scales = codes[:, : x.shape[1]], scales[:, : -(-x.shape[1] // 16)]
                flags = "nan-blocks" if (scales & 0x7F == 0x7F).any() else None
                flags = ",".join(f for f in (options if options != "-" else None, flags) if f) or "-"
                yield Case(name, recipe, "nvfp4", flags, dtype, x, "e2m1", codes, scales, level2, source)


FP8_SHAPES = {"fp8_group128": 1, "fp8_block128": 128}
FP8_RECIPES = [
    ("deepseek", rules.fp8_deepseek, "DeepSeek-V3 9b4e978 inference/kernel.py act_quant, IEEE division"),
    ("deepgemm", rules.fp8_deepgemm, "DeepGEMM 54e2261 per_token_cast_to_fp8, per_block_cast_to_fp8"),
    ("te", rules.fp8_te, "TransformerEngine d0067d0 recipe_common.cuh compute_scale_from_amax"),
]


def fp8_cases():
    for recipe, rule, source in FP8_RECIPES:
        for fmt, tile_rows in FP8_SHAPES.items():
            for name, f32, dtypes in inputs.fp8_cases():
                for dtype in dtypes if recipe == "te" or name != "inf" else ():
                    x = rc.to_input(f32, dtype)
                    rows, cols = x.shape
                    wide = np.pad(np.asarray(x, np.float32), ((0, -rows % tile_rows), (0, -cols % 128)))
                    for pow2 in (False, True):
                        codes, scales, _ = rules.fp8(rule, wide, tile_rows, pow2)
                        yield Case(name, recipe, fmt, "pow2" if pow2 else "-", dtype, x, "e4m3",
                                   codes[:rows, :cols], scales, None, f"rule: {source}")


GROUPS = {"mx": mx_cases, "mx_te": lambda: mx_cases(TE_RECIPES), "nvfp4": nvfp4_cases, "fp8": fp8_cases}
