# SPDX-License-Identifier: Apache-2.0
"""Input matrices of the recipe golden files. The functions yield the name and the float32 matrix of
each. Blocks run along columns."""
import numpy as np

import recipe_codec as rc

NAN, INF = np.float32(np.nan), np.float32(np.inf)


def up(x):
    return np.nextafter(np.float32(x), INF)


def down(x):
    return np.nextafter(np.float32(x), np.float32(0))


def block_with_amax(rng, amax, n):
    """Returns random values with |x| <= amax. One element at a random position has the magnitude
    amax and a random sign."""
    amax = np.float32(amax)
    x = (rng.uniform(-1, 1, n) ** 3).astype(np.float32) * amax
    x[rng.integers(n)] = amax * np.float32(rng.choice([-1, 1]))
    return x


def rows_of(blocks, blocks_per_row):
    n = len(blocks[0])
    while len(blocks) % blocks_per_row:
        blocks.append(np.zeros(n, np.float32))
    return np.stack(blocks).reshape(-1, blocks_per_row * n).astype(np.float32)


def normal(rng, rows=16, cols=256):
    """Returns a matrix like real weights: normally distributed, with a few outlier channels."""
    x = rng.standard_normal((rows, cols))
    x[:, rng.choice(cols, cols // 32, replace=False)] *= 30
    x[rng.choice(rows, 2, replace=False)] *= 8
    return x.astype(np.float32)


def wide(rng, low, high, block, rows=16, cols=256):
    """Returns values with exponents from low to high. In the first half of the rows, each element
    has a random exponent. In the second half, each block has a random exponent, which is the
    largest of its elements."""
    e = rng.uniform(low, high, (rows, cols))
    level = np.repeat(rng.uniform(low, high, (rows // 2, cols // block)), block, axis=1)
    e[rows // 2 :] = np.minimum(level - rng.exponential(2, level.shape), high)
    return (rng.choice([-1, 1], e.shape) * 2.0**e).astype(np.float32)


def mx_table(rng, block=32):
    """Returns blocks whose maxima occur in a published comparison of scale rules."""
    values = [448, 449, 500, 1, 7.5, 3, 3.5, 6, 6.5, 7, 28, 57344, 30, 60000, 0.1, 464]
    return rows_of([block_with_amax(rng, v, block) for v in values], 4)


def mx_boundary(rng, elem, block=32):
    """Returns blocks whose amax is a threshold of a scale rule or one of its two float32 neighbors,
    at several powers of two. At such numbers the log2f of a library may be wrong: just below 256
    (bits 0x437FFFFF), floor(log2f(x)) is too large by one, and just above a power of two,
    ceil(log2f(x)) may be too small by one."""
    top = rc.max_value(elem)
    m = top / 2.0 ** rc.emax(elem)
    thresholds = [1.0, m, 1.75, 1.875, 1.9375, 1.5, 1.25]
    blocks = []
    for k in (-40, -9, -1, 0, 3, 8, 60):
        for t in thresholds:
            v = np.float32(t * 2.0**k)
            blocks += [block_with_amax(rng, a, block) for a in (v, up(v), down(v))]
    blocks.append(block_with_amax(rng, rc.bits_to_f32(0x437FFFFF), block))
    return rows_of(blocks, 4)


def element_ties(elem, block=32):
    """Returns every midpoint between neighboring codes and its float32 neighbors, with both signs.
    The first element of each block determines the block's scale: 1 in the first half of the
    matrix and 2^-5 in the second half."""
    table = rc.magnitudes(elem)
    middle = ((table[:-1] + table[1:]) / 2).astype(np.float32)
    values = np.concatenate([middle, [up(v) for v in middle], [down(v) for v in middle], table])
    values = np.concatenate([values, -values]).astype(np.float32)
    values = np.resize(values, -(-values.size // (block - 1)) * (block - 1))
    blocks = values.reshape(-1, block - 1)
    pin = np.full((blocks.shape[0], 1), np.float32(2.0 ** rc.emax(elem)))
    one = np.concatenate([pin, np.where(np.abs(blocks) > rc.max_value(elem), 0, blocks)], axis=1)
    return rows_of(list(one) + list(one * np.float32(2.0**-5)), 4)


def zeros(block=32):
    """Returns blocks of +0, blocks of -0, blocks with -0 among other values, and values so small
    that they round to -0 and +0."""
    z = np.zeros(block, np.float32)
    some = np.linspace(-3, 3, block).astype(np.float32)
    some[3], some[7] = -0.0, 0.0
    small = np.full(block, 1e-6, np.float32) * np.resize([1, -1], block).astype(np.float32)
    small[0] = 3.0
    return rows_of([z, -z, some, small], 2)


def tiny(rng, elem, block=32):
    """Returns blocks whose maxima give scales near the smallest e8m0 scale. The maxima are
    subnormal numbers, 2^-127, and the powers of two at which the scale byte of this element
    format changes from 0 to 1."""
    e0 = rc.emax(elem)
    values = [2.0**-149, 3 * 2.0**-149, 2.0**-140, 2.0**-128, 2.0**-127, up(2.0**-127), 2.0**-126]
    for k in range(e0 - 129, e0 - 123):
        for t in (1.0, 1.5, rc.max_value(elem) / 2.0**e0, 1.9375):
            v = np.float32(t * 2.0**k)
            values += [v, up(v), down(v)]
    return rows_of([block_with_amax(rng, v, block) for v in values], 4)


def huge(rng, block=32):
    """Returns blocks with maxima near the largest float32."""
    top = np.finfo(np.float32).max
    values = [top, down(top), 2.0**127, down(2.0**127), up(2.0**127), 1.75 * 2.0**127]
    values += [1.9 * 2.0**126, 2.0**120, 1.25 * 2.0**125, 3e38]
    return rows_of([block_with_amax(rng, v, block) for v in values], 2)


def inf(rng, block=32):
    blocks = [block_with_amax(rng, 3.0, block) for _ in range(4)]
    blocks[0][5] = INF
    blocks[1][6] = -INF
    blocks[2][[0, 9]] = INF, -INF
    return rows_of(blocks, 2)


def nan(rng, block=32):
    """Returns blocks with one NaN among other values, blocks of NaN, blocks with one NaN among
    zeros, and blocks without NaN."""
    blocks = [block_with_amax(rng, 3.0, block) for _ in range(6)]
    blocks[1][6] = NAN
    blocks[2][:] = NAN
    blocks[4][:] = 0
    blocks[4][31 % block] = NAN
    return rows_of(blocks, 2)


def short(rng, cols):
    """Returns a matrix whose rows end in a short block."""
    return rng.standard_normal((5, cols)).astype(np.float32) * np.float32(3)


def mx_cases(elem):
    """Yields (case, float32 matrix, input types) for the MX recipes."""
    rng = np.random.default_rng(20250917)
    every = ("f32", "bf16", "f16")
    yield "normal", normal(rng), every
    yield "wide", wide(rng, -60, 60, 32), ("f32", "bf16")
    yield "wide_f16", wide(rng, -13, 15, 32), ("f16",)
    yield "scale_table", mx_table(rng), every
    yield "boundary", mx_boundary(rng, elem), ("f32", "bf16")
    yield "ties", element_ties(elem), ("f32",)
    yield "zeros", zeros(), every
    yield "tiny", tiny(rng, elem), ("f32",)
    yield "huge", huge(rng), ("f32",)
    yield "inf", inf(rng), ("f32", "bf16")
    yield "nan", nan(rng), ("f32", "bf16")
    yield "short", short(rng, 68), ("f32",)


def pinned(rng, amax_t, amaxes, block, per_row=4):
    """Returns blocks with the given maxima, after a first block with the maximum of the whole
    tensor."""
    return rows_of([block_with_amax(rng, a, block) for a in [amax_t, *amaxes]], per_row)


def nvfp4_gap(rng, amax_t, amax):
    """Returns a tensor whose maximum and block maxima are such that two recipes round the block
    scale differently."""
    return pinned(rng, amax_t, [amax] * 3, 16)


def nvfp4_scales(rng, low, high):
    """Returns 1024 blocks whose maxima cover the range of e4m3 and exceed it at both ends."""
    amax = 2.0 ** rng.uniform(low, high, 1024)
    return rows_of([block_with_amax(rng, a, 16) for a in amax], 32)


def nvfp4_ue4m3(rng):
    """Returns blocks for which ggml's conversion of amax / 6 to e4m3 differs from rounding to
    nearest even. ggml rounds ties up and saturates earlier."""
    values = [250, 300, 1.0625, 0.0156, 240, 248, 256, 257, 448, 449, 500, 2.0**-10, 2.0**-9, 0.001, 0.0146]
    return rows_of([block_with_amax(rng, 6 * v, 16) for v in values], 4)


def nvfp4_ties(pin):
    """Returns blocks with the maximum 6 that contain midpoints between element codes. The maximum
    of the whole tensor makes all divisions by scales exact."""
    x = element_ties("e2m1", 16)
    half = x[: x.shape[0] // 2].copy()
    half[:, ::16] = 6
    top = np.zeros((1, x.shape[1]), np.float32)
    top[0, 0] = pin
    return np.concatenate([top, half])


def nvfp4_cases():
    rng = np.random.default_rng(20251105)
    every = ("f32", "bf16", "f16")
    yield "normal", normal(rng), every
    yield "wide", wide(rng, -8, 8, 16), every
    yield "scales", nvfp4_scales(rng, -8, 12), ("f32", "bf16")
    yield "low_scales", nvfp4_scales(rng, -14, 4), ("f32", "bf16")
    yield "gap_te", nvfp4_gap(rng, 1.6875, 0.6328125), every
    yield "gap_modelopt", nvfp4_gap(rng, 3.5625, 0.66796875), every
    yield "gap_compressed", nvfp4_gap(rng, 14, 11.5), every
    yield "ue4m3", nvfp4_ue4m3(rng), ("f32",)
    yield "ties", nvfp4_ties(6.0), ("f32",)
    yield "ties_unit", nvfp4_ties(2688.0), ("f32",)
    yield "zeros", zeros(16), every
    yield "all_zero", np.zeros((2, 32), np.float32), every
    yield "tiny", pinned(rng, 2.0**-100, [2.0**-101, 2.0**-108, 2.0**-114, 2.0**-127, 2.0**-140, 0], 16), ("f32",)
    yield "subnormal", pinned(rng, 2.0**-130, [2.0**-131, 2.0**-140, 2.0**-149, 0], 16), ("f32",)
    yield "huge", pinned(rng, 3e38, [1e38, 2.0**127, 2.0**100, 1], 16), ("f32",)
    yield "inf", inf(rng, 16), ("f32",)
    yield "nan", nan(rng, 16), ("f32",)
    yield "short", short(rng, 40), ("f32",)


def fp8_gap(rng, amax, x):
    """Returns a matrix with the largest magnitude amax, in which many elements are x. Recipes
    compute x / s, x * (1 / s) or x * (448 / amax), where s = amax / 448, and for this x these
    three results differ."""
    m = np.tile(block_with_amax(rng, amax, 128), (4, 2))
    m[:, 3:40] = x
    m[:, 41] = -x
    return m


def fp8_amaxes(rng):
    """Returns groups of 128 elements with chosen maxima: 1e-4, below which some recipes clamp the
    maximum, 448 times powers of two, the float32 neighbours of these numbers, very small and very
    large numbers, and random ones."""
    fixed = [1e-4, up(1e-4), down(1e-4), 1e-5, 0, 2.0**-126, 2.0**-149, 448, 449, 447, up(448), down(448)]
    fixed += [448 * 2.0**k for k in (-22, -21, -3, 4)] + [up(448 * 2.0**8), down(448 * 2.0**8)]
    fixed += [448 * 2.0**9 * (1 + j * 2.0**-23) for j in range(1, 6)] + [1e-37, 1e30, 3.4e38]
    return rows_of([block_with_amax(rng, a, 128) for a in fixed + list(2.0 ** rng.uniform(-12, 12, 24))], 2)


def fp8_zeros():
    x = np.zeros((2, 256), np.float32)
    x[0, :128] = -0.0
    x[1, :128:2] = 1e-9
    x[1, 1:128:2] = -1e-9
    x[1, 0] = 5
    return x


def fp8_inf(rng):
    x = rows_of([block_with_amax(rng, 3.0, 128) for _ in range(4)], 2)
    x[0, 7], x[1, 130] = INF, -INF
    return x


def fp8_cases():
    rng = np.random.default_rng(20241226)
    every = ("f32", "bf16", "f16")
    yield "normal", normal(rng, 256, 384), ("bf16",)
    yield "small", normal(rng, 32, 256), every
    yield "short_edge", normal(rng, 200, 300), ("bf16",)
    yield "wide", wide(rng, -20, 20, 128, 32, 256), ("f32",)
    yield "amaxes", fp8_amaxes(rng), ("f32",)
    yield "gap_reciprocal", fp8_gap(rng, 3.25, 2.4375), every
    yield "zeros", fp8_zeros(), every
    yield "all_zero", np.zeros((3, 130), np.float32), ("f32",)
    yield "inf", fp8_inf(rng), ("f32",)
