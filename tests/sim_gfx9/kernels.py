"""Triton kernels that the simulators of gfx942 and gfx950 run. cases.py gives their operands and
expected results."""
import triton
import triton.language as tl


@triton.jit
def dot(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, ACC: tl.constexpr):
    """Computes the GEMM C (M, N) = A (M, K) x B (N, K)^T with a loop over K."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    ks = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), dtype=ACC)
    for k in range(0, K, BK):
        x = tl.load(a + rows[:, None] * K + (k + ks)[None, :])
        y = tl.load(b + cols[None, :] * K + (k + ks)[:, None])
        acc = tl.dot(x, y, acc, input_precision="ieee", out_dtype=ACC)
    tl.store(c + rows[:, None] * N + cols[None, :], acc)


@triton.jit
def dot_tf32(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, ACC: tl.constexpr):
    """Computes the GEMM C (M, N) = A (M, K) x B (N, K)^T on tf32 operands of 19 bits."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    ks = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), dtype=ACC)
    for k in range(0, K, BK):
        x = tl.load(a + rows[:, None] * K + (k + ks)[None, :])
        y = tl.load(b + cols[None, :] * K + (k + ks)[:, None])
        acc = tl.dot(x, y, acc, input_precision="tf32")
    tl.store(c + rows[:, None] * N + cols[None, :], acc)


@triton.jit
def dot_masked(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, ACC: tl.constexpr):
    """Computes the GEMM C (M, N) = A (M, K) x B (N, K)^T for any M, N and K, with masked loads and
    stores."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=ACC)
    for k in range(0, K, BK):
        ks = k + tl.arange(0, BK)
        x = tl.load(a + rows[:, None] * K + ks[None, :], mask=(rows[:, None] < M) & (ks[None, :] < K), other=0.0)
        y = tl.load(b + cols[None, :] * K + ks[:, None], mask=(cols[None, :] < N) & (ks[:, None] < K), other=0.0)
        acc = tl.dot(x, y, acc, input_precision="ieee", out_dtype=ACC)
    tl.store(c + rows[:, None] * N + cols[None, :], acc, mask=(rows[:, None] < M) & (cols[None, :] < N))


@triton.jit
def dot_scaled(a, sa, b, sb, c, M, N, K, FA: tl.constexpr, FB: tl.constexpr, PA: tl.constexpr, PB: tl.constexpr,
               BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Computes the block-scaled GEMM C (M, N) = (A (M, K) * sa) x (B (N, K) * sb)^T. sa and sb are
    the block scales. PA and PB are the number of elements of A and of B in a byte."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    ka = tl.arange(0, BK // PA)
    kb = tl.arange(0, BK // PB)
    ks = tl.arange(0, BK // 32)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        x = tl.load(a + rows[:, None] * (K // PA) + (k // PA + ka)[None, :])
        y = tl.load(b + cols[None, :] * (K // PB) + (k // PB + kb)[:, None])
        xs = tl.load(sa + rows[:, None] * (K // 32) + (k // 32 + ks)[None, :])
        ys = tl.load(sb + cols[:, None] * (K // 32) + (k // 32 + ks)[None, :])
        acc = tl.dot_scaled(x, xs, FA, y, ys, FB, acc)
    tl.store(c + rows[:, None] * N + cols[None, :], acc)


@triton.jit
def dot_scaled_shuffled(a, sa, b, sb, c, M, N, K, FA: tl.constexpr, FB: tl.constexpr, PA: tl.constexpr,
                        PB: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, DIM: tl.constexpr):
    """Computes a block-scaled GEMM. The scales have the layout that the scaled MFMA of DIM rows
    reads: cdna4_mfma16 for DIM 16 and cdna4_mfma32 for DIM 32 (docs/LAYOUTS.md)."""
    BS: tl.constexpr = BK // 32
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    ka = tl.arange(0, BK // PA)
    kb = tl.arange(0, BK // PB)
    at = tl.arange(0, BS * 32)
    tiles_m = tl.program_id(0) * (BM // 32) + tl.arange(0, BM // 32)
    tiles_n = tl.program_id(1) * (BN // 32) + tl.arange(0, BN // 32)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        x = tl.load(a + rows[:, None] * (K // PA) + (k // PA + ka)[None, :])
        y = tl.load(b + cols[None, :] * (K // PB) + (k // PB + kb)[:, None])
        xs = tl.load(sa + tiles_m[:, None] * K + (k + at)[None, :])
        ys = tl.load(sb + tiles_n[:, None] * K + (k + at)[None, :])
        if DIM == 32:
            xs = xs.reshape(BM // 32, BS // 8, 2, 32, 4, 1).permute(0, 3, 1, 4, 2, 5).reshape(BM, BS)
            ys = ys.reshape(BN // 32, BS // 8, 2, 32, 4, 1).permute(0, 3, 1, 4, 2, 5).reshape(BN, BS)
        else:
            xs = xs.reshape(BM // 32, BS // 8, 4, 16, 2, 2, 1).permute(0, 5, 3, 1, 4, 2, 6).reshape(BM, BS)
            ys = ys.reshape(BN // 32, BS // 8, 4, 16, 2, 2, 1).permute(0, 5, 3, 1, 4, 2, 6).reshape(BN, BS)
        acc = tl.dot_scaled(x, xs, FA, y, ys, FB, acc)
    tl.store(c + rows[:, None] * N + cols[None, :], acc)


@triton.jit
def convert(x, y, n, BLOCK: tl.constexpr, TO: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, mask=at < n)
    tl.store(y + at, v.to(TO), mask=at < n)


@triton.jit
def unary(x, y, n, BLOCK: tl.constexpr, OP: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, mask=at < n, other=1.0)
    if OP == "exp":
        r = tl.exp(v)
    elif OP == "exp2":
        r = tl.exp2(v)
    elif OP == "log":
        r = tl.log(tl.abs(v))
    elif OP == "log2":
        r = tl.log2(tl.abs(v))
    elif OP == "sin":
        r = tl.sin(v)
    elif OP == "cos":
        r = tl.cos(v)
    elif OP == "sqrt":
        r = tl.sqrt(tl.abs(v))
    elif OP == "sqrt_rn":
        r = tl.sqrt_rn(tl.abs(v))
    elif OP == "rsqrt":
        r = tl.rsqrt(tl.abs(v))
    elif OP == "erf":
        r = tl.erf(v)
    elif OP == "floor":
        r = tl.floor(v)
    elif OP == "ceil":
        r = tl.ceil(v)
    else:
        r = tl.sigmoid(v)
    tl.store(y + at, r, mask=at < n)


@triton.jit
def binary(x, y, z, n, BLOCK: tl.constexpr, OP: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + at, mask=at < n, other=1)
    b = tl.load(y + at, mask=at < n, other=1)
    if OP == "add":
        r = a + b
    elif OP == "mul":
        r = a * b
    elif OP == "div":
        r = a / b
    elif OP == "div_rn":
        r = tl.div_rn(a, b)
    elif OP == "floordiv":
        r = a // b
    elif OP == "mod":
        r = a % b
    elif OP == "min":
        r = tl.minimum(a, b)
    elif OP == "max":
        r = tl.maximum(a, b)
    elif OP == "mulhi":
        r = tl.umulhi(a, b)
    elif OP == "shift":
        r = (a << (b & 15)) ^ (a >> (b & 7))
    elif OP == "logic":
        r = (a & b) | (~a ^ (b | 12))
    elif OP == "compare":
        r = tl.where(a < b, a, b) + tl.where(a == b, 1, 0) + tl.where(a >= 2, b, a)
    else:
        r = tl.fma(a, b, a)
    tl.store(z + at, r, mask=at < n)


@triton.jit
def softmax(x, y, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    v = tl.load(x + row * n + at, mask=at < n, other=-float("inf"))
    e = tl.exp(v - tl.max(v, axis=0))
    tl.store(y + row * n + at, e / tl.sum(e, axis=0), mask=at < n)


@triton.jit
def reduce(x, y, ROWS: tl.constexpr, COLS: tl.constexpr, AXIS: tl.constexpr, OP: tl.constexpr):
    r = tl.arange(0, ROWS)
    c = tl.arange(0, COLS)
    v = tl.load(x + r[:, None] * COLS + c[None, :])
    if OP == "sum":
        s = tl.sum(v, axis=AXIS)
    elif OP == "max":
        s = tl.max(v, axis=AXIS)
    elif OP == "min":
        s = tl.min(v, axis=AXIS)
    elif OP == "xor":
        s = tl.xor_sum(v, axis=AXIS)
    elif OP == "argmax":
        s = tl.argmax(v, axis=AXIS)
    else:
        s = tl.argmin(v, axis=AXIS)
    if AXIS == 0:
        tl.store(y + c, s)
    else:
        tl.store(y + r, s)


@triton.jit
def scan(x, y, ROWS: tl.constexpr, COLS: tl.constexpr, AXIS: tl.constexpr, OP: tl.constexpr):
    r = tl.arange(0, ROWS)
    c = tl.arange(0, COLS)
    at = r[:, None] * COLS + c[None, :]
    v = tl.load(x + at)
    if OP == "sum":
        v = tl.cumsum(v, axis=AXIS)
    elif OP == "sort":
        v = tl.sort(v, dim=AXIS)
    elif OP == "flip":
        v = tl.flip(v, dim=AXIS)
    else:
        v = tl.cumprod(v, axis=AXIS)
    tl.store(y + at, v)


@triton.jit
def atomic(x, y, n, BLOCK: tl.constexpr, BINS: tl.constexpr, OP: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, mask=at < n, other=0)
    p = y + at % BINS
    if OP == "add":
        tl.atomic_add(p, v, mask=at < n)
    elif OP == "max":
        tl.atomic_max(p, v, mask=at < n)
    elif OP == "min":
        tl.atomic_min(p, v, mask=at < n)
    elif OP == "and":
        tl.atomic_and(p, v, mask=at < n)
    elif OP == "or":
        tl.atomic_or(p, v, mask=at < n)
    else:
        tl.atomic_xor(p, v, mask=at < n)


@triton.jit
def ticket(counter, y, n):
    """Gives each program a different number. Every program adds 1 to a counter, guarded by a lock
    that it takes by compare-and-swap."""
    while tl.atomic_cas(counter, 0, 1, sem="acquire") == 1:
        pass
    t = tl.load(counter + 1)
    tl.store(counter + 1, t + 1)
    tl.store(y + tl.program_id(0), t)
    tl.debug_barrier()
    tl.atomic_xchg(counter, 0, sem="release")


@triton.jit
def transpose(x, y, M, N, BM: tl.constexpr, BN: tl.constexpr):
    r = tl.program_id(0) * BM + tl.arange(0, BM)
    c = tl.program_id(1) * BN + tl.arange(0, BN)
    v = tl.load(x + r[:, None] * N + c[None, :], mask=(r[:, None] < M) & (c[None, :] < N))
    tl.store(y + c[:, None] * M + r[None, :], tl.trans(v), mask=(c[:, None] < N) & (r[None, :] < M))


@triton.jit
def gather(x, index, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    i = tl.load(index + at, mask=at < n, other=0)
    tl.store(y + at, tl.load(x + i, mask=at < n), mask=at < n)


@triton.jit
def gather_block(x, index, y, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(y + at, tl.gather(tl.load(x + at), tl.load(index + at), 0))


@triton.jit
def histogram(x, y, N: tl.constexpr, BINS: tl.constexpr):
    tl.store(y + tl.arange(0, BINS), tl.histogram(tl.load(x + tl.arange(0, N)), BINS))


@triton.jit
def random(y, seed, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.randint(seed, at))


@triton.jit
def attention(q, k, v, o, T, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    """Computes attention, o = softmax(q x k^T) x v, in a loop over blocks of keys."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    d = tl.arange(0, D)
    x = tl.load(q + rows[:, None] * D + d[None, :])
    top = tl.full((BM,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    acc = tl.zeros((BM, D), dtype=tl.float32)
    for t in range(0, T, BN):
        cols = t + tl.arange(0, BN)
        s = tl.dot(x, tl.load(k + cols[None, :] * D + d[:, None]))
        new = tl.maximum(top, tl.max(s, axis=1))
        p = tl.exp2(s - new[:, None])
        f = tl.exp2(top - new)
        total = total * f + tl.sum(p, axis=1)
        y = tl.load(v + cols[:, None] * D + d[None, :])
        acc = tl.dot(p.to(y.dtype), y, acc * f[:, None])
        top = new
    tl.store(o + rows[:, None] * D + d[None, :], acc / total[:, None])
