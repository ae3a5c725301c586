# SPDX-License-Identifier: Apache-2.0
"""Input matrices of the recipe goldens: name -> float32 matrix. Blocks run along columns."""
import numpy as np

import recipe_codec as rc

NAN, INF = np.float32(np.nan), np.float32(np.inf)


def up(x):
    return np.nextafter(np.float32(x), INF)


def down(x):
    return np.nextafter(np.float32(x), np.float32(0))


def block_with_amax(rng, amax, n):
    """Random values of |x| <= amax, amax itself at a random place with a random sign."""
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
    """Weights as they come: normal, with a few outlier channels."""
    x = rng.standard_normal((rows, cols))
    x[:, rng.choice(cols, cols // 32, replace=False)] *= 30
    x[rng.choice(rows, 2, replace=False)] *= 8
    return x.astype(np.float32)


def wide(rng, low, high, block, rows=16, cols=256):
    """Half of the rows log-uniform element by element, half block by block."""
    e = rng.uniform(low, high, (rows, cols))
    level = np.repeat(rng.uniform(low, high, (rows // 2, cols // block)), block, axis=1)
    e[rows // 2 :] = np.minimum(level - rng.exponential(2, level.shape), high)
    return (rng.choice([-1, 1], e.shape) * 2.0**e).astype(np.float32)


def mx_table(rng, block=32):
    """The block maxima of the published comparison of scale rules."""
    values = [448, 449, 500, 1, 7.5, 3, 3.5, 6, 6.5, 7, 28, 57344, 30, 60000, 0.1, 464]
    return rows_of([block_with_amax(rng, v, block) for v in values], 4)


def mx_boundary(rng, elem, block=32):
    """amax at each threshold of each rule, its two neighbours, at several powers of two.
    bits 0x437FFFFF (just below 256) is where floor(log2f(x)) is not the exponent field; the
    neighbours above a power of two are where ceil(log2f(x)) is not either."""
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
    """Every midpoint between neighbouring codes, its float32 neighbours, both signs, in blocks
    whose first element pins the scale to 1 (and, in the second half, to 2^-5)."""
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
    """All +0; all -0; -0 among values; values so small that they round to -0 and +0."""
    z = np.zeros(block, np.float32)
    some = np.linspace(-3, 3, block).astype(np.float32)
    some[3], some[7] = -0.0, 0.0
    small = np.full(block, 1e-6, np.float32) * np.resize([1, -1], block).astype(np.float32)
    small[0] = 3.0
    return rows_of([z, -z, some, small], 2)


def tiny(rng, elem, block=32):
    """Block maxima around the smallest scale: subnormal, 2^-127 and the powers where byte 0 meets
    byte 1 for this element."""
    e0 = rc.emax(elem)
    values = [2.0**-149, 3 * 2.0**-149, 2.0**-140, 2.0**-128, 2.0**-127, up(2.0**-127), 2.0**-126]
    for k in range(e0 - 129, e0 - 123):
        for t in (1.0, 1.5, rc.max_value(elem) / 2.0**e0, 1.9375):
            v = np.float32(t * 2.0**k)
            values += [v, up(v), down(v)]
    return rows_of([block_with_amax(rng, v, block) for v in values], 4)


def huge(rng, block=32):
    """Block maxima near the top of float32."""
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
    """One NaN among values, NaN among zeros; untouched neighbours."""
    blocks = [block_with_amax(rng, 3.0, block) for _ in range(6)]
    blocks[1][6] = NAN
    blocks[2][:] = NAN
    blocks[4][:] = 0
    blocks[4][31 % block] = NAN
    return rows_of(blocks, 2)


def short(rng, cols):
    """The last block of each row is short."""
    return rng.standard_normal((5, cols)).astype(np.float32) * np.float32(3)


def mx_cases(elem):
    """(case, f32 matrix, input types)"""
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
