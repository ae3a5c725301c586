# SPDX-License-Identifier: Apache-2.0
"""Which recipe meets which input: the groups of make_recipes.py, each a generator of cases.
Where a project runs here, its output is compared with the rule block by block; a block may differ
only for a reason named below, and then `prefer` says whose bytes are expected."""
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
    """Short last blocks are filled with zeros, which no recipe's amax sees."""
    extra = -x.shape[1] % block
    return np.concatenate([x, np.zeros((x.shape[0], extra), x.dtype)], axis=1) if extra else x


def differing_blocks(a, b, block):
    codes = (a[0] != b[0]).reshape(a[0].shape[0], -1, block).any(-1)
    return codes | (a[1] != b[1])


def merge(real, rule, take_rule, block):
    wide = np.repeat(take_rule, block, axis=1)
    return np.where(wide, rule[0], real[0]), np.where(take_rule, rule[1], real[1]), None


def torchao_quirks(mode, x, real, rule):
    """Blocks where to_mx leaves its own rule, because its float arithmetic does:
    byte 0: FLOOR, CEIL and EVEN divide by 2^-126, RCEIL multiplies by 1;
    RCEIL: ceil(log2f(q)) is one too small where q is a few ulp above a power of two."""
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
    """The project's bytes, which the rule must reproduce."""

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
# compressed-tensors computes in the input's type: in f16 a scale or a ratio may leave its range.
IN_F16_RANGE = PLAIN - {"wide_f16", "scale_table", "zeros"} | {f"{c}:{t}" for c in ("scale_table", "zeros") for t in ("f32", "bf16")}
# recipe, formats, cases (CASE or CASE:TYPE), producer. Cases left out are undefined behaviour in
# the project (casts of negative or non-finite floats to uint8) or overflow its arithmetic.
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
    ("ggml", ["mxfp4"], PLAIN,
     checked(projects.ggml_mxfp4, rules.ggml_mxfp4, f"{projects.GGML} quantize_row_mxfp4_ref")),
    ("deepgemm", ["mxfp4"], PLAIN | {"tiny", "huge"},
     by_rule(rules.deepgemm_mxfp4, "DeepGEMM 54e2261 per_token_cast_to_fp4 use_ue8m0 gran_k=32")),
]


def wants(wanted, name, dtype):
    return name in wanted or f"{name}:{dtype}" in wanted


def mx_cases():
    for recipe, formats, wanted, produce in MX_RECIPES:
        for fmt in formats:
            elem = MX_FORMATS[fmt]
            for name, f32, dtypes in inputs.mx_cases(elem):
                for dtype in (t for t in dtypes if wants(wanted, name, t)):
                    x = rc.to_input(f32, dtype)
                    (codes, scales, _), source = produce(padded(x, 32), elem)
                    codes = codes[:, : x.shape[1]]
                    options = "nan-blocks" if name == "nan" else "-"
                    yield Case(name, recipe, fmt, options, dtype, x, elem, codes, scales, None, source)


GROUPS = {"mx": mx_cases}
