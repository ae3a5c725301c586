"""Triton kernels that read their operands by tensor maps (TMA). test_tma.py has their operands and
expected results."""
import triton
import triton.language as tl


@triton.jit
def dot(a, b, c, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Computes the GEMM C (M, N) = A (M, K) x B (N, K)^T, where a, b and c are tensor maps."""
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in tl.range(0, K, BK, num_stages=3):
        acc = tl.dot(a.load([m, k]), b.load([n, k]).T, acc)
    c.store([m, n], acc)


@triton.jit
def dot_scaled(a, sa, b, sb, c, K, FA: tl.constexpr, FB: tl.constexpr, PA: tl.constexpr, PB: tl.constexpr,
               BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, V: tl.constexpr):
    """Computes the block-scaled GEMM C = (A * sa) x (B * sb)^T. Each scale belongs to V elements
    along K. The scales have the layout nv_128x4, as an array of shape (1, rows/128, K/V/4, 2,
    256)."""
    pm, pn = tl.program_id(0), tl.program_id(1)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in tl.range(0, K, BK, num_stages=2):
        x = a.load([pm * BM, k // PA])
        y = b.load([pn * BN, k // PB])
        xs = sa.load([0, pm * (BM // 128), k // V // 4, 0, 0])
        ys = sb.load([0, pn * (BN // 128), k // V // 4, 0, 0])
        xs = xs.reshape(BM // 128, BK // V // 4, 32, 4, 4).trans(0, 3, 2, 1, 4).reshape(BM, BK // V)
        ys = ys.reshape(BN // 128, BK // V // 4, 32, 4, 4).trans(0, 3, 2, 1, 4).reshape(BN, BK // V)
        acc = tl.dot_scaled(x, xs, FA, y.T, ys, FB, acc)
    c.store([pm * BM, pn * BN], acc)


@triton.jit
def combine(a, c, OP: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    """Combines each element of C with the element of A by a reduction of TMA, such as an addition.
    The last tiles extend past the end of C."""
    at = [tl.program_id(0) * BM, tl.program_id(1) * BN]
    x = a.load(at)
    if OP == "add":
        c.atomic_add(at, x)
    elif OP == "and":
        c.atomic_and(at, x)
    elif OP == "or":
        c.atomic_or(at, x)
    else:
        c.atomic_xor(at, x)
