"""Defines Gluon kernels for the simulator of PTX. In some kernels two thread blocks
compute one product together (cta_group::2). Others use tcgen05.ld and tcgen05.st in all their shapes."""
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.blackwell import (TensorMemoryLayout, allocate_tensor_memory, clc, fence_async_shared,
                                                                 mbarrier, tcgen05_mma)


@gluon.jit
def load_tile(at, ROWS: gl.constexpr, COLS: gl.constexpr, layout: gl.constexpr):
    r = gl.arange(0, ROWS, layout=gl.SliceLayout(1, layout))
    c = gl.arange(0, COLS, layout=gl.SliceLayout(0, layout))
    return gl.load(at + r[:, None] * COLS + c[None, :])


@gluon.jit
def store_tile(at, x, ROWS: gl.constexpr, COLS: gl.constexpr, layout: gl.constexpr):
    r = gl.arange(0, ROWS, layout=gl.SliceLayout(1, layout))
    c = gl.arange(0, COLS, layout=gl.SliceLayout(0, layout))
    gl.store(at + r[:, None] * COLS + c[None, :], gl.convert_layout(x, layout))


@gluon.jit
def pair_dot(a, b, d, M: gl.constexpr, N: gl.constexpr, K: gl.constexpr, STEPS: gl.constexpr):
    """Computes D = A B by a pair of thread blocks. A is M x K, and B is K x N. If STEPS is 2, a
    second product adds to the accumulators of the first one."""
    rows: gl.constexpr = gl.BlockedLayout([1, 8], [4, 8], [4, 1], [1, 0], cga_layout=[[1, 0]])
    cols: gl.constexpr = gl.BlockedLayout([1, 8], [4, 8], [4, 1], [1, 0], cga_layout=[[0, 1]])
    left: gl.constexpr = gl.NVMMASharedLayout.get_default_for([M, K], a.dtype.element_ty, cga_layout=[[1, 0]])
    right: gl.constexpr = gl.NVMMASharedLayout.get_default_for([K, N], b.dtype.element_ty, cga_layout=[[0, 1]])
    acc_layout: gl.constexpr = TensorMemoryLayout([M // 2, N], 1, cga_layout=[[1, 0]], two_ctas=True)
    x = gl.allocate_shared_memory(a.dtype.element_ty, [M, K], left, load_tile(a, M, K, rows))
    y = gl.allocate_shared_memory(b.dtype.element_ty, [K, N], right, load_tile(b, K, N, cols))
    acc = allocate_tensor_memory(gl.float32, [M, N], acc_layout)
    bar = mbarrier.allocate_mbarrier()
    mbarrier.init(bar, count=1)
    fence_async_shared(cluster=True)
    gl.barrier(cluster=True)
    tcgen05_mma(x, y, acc, use_acc=False, mbarriers=[bar])
    mbarrier.wait(bar, 0)
    if STEPS == 2:
        tcgen05_mma(x, y, acc, use_acc=True, mbarriers=[bar])
        mbarrier.wait(bar, 1)
    store_tile(d, acc.load(), M, N, rows)


@gluon.jit
def move_tile(a, d, N: gl.constexpr, STORE: gl.constexpr, LOAD: gl.constexpr):
    """Copies a tile of 128 x N to tensor memory in one shape and back in another."""
    tile: gl.constexpr = gl.BlockedLayout([1, 4], [4, 8], [4, 1], [1, 0])
    memory = allocate_tensor_memory(gl.float32, [128, N], TensorMemoryLayout([128, N], 1))
    x = load_tile(a, 128, N, tile)
    memory.store(gl.convert_layout(x, memory.get_reg_layout(instr_variant=STORE)))
    store_tile(d, memory.load(memory.get_reg_layout(instr_variant=LOAD)), 128, N, tile)


@gluon.jit
def persistent(d, ROUNDS: gl.constexpr):
    """Tests cluster launch control. Each running program takes over the work of programs that have
    not begun, and adds 1 to the word of each program whose work it does."""
    response = gl.allocate_shared_memory(gl.int64, [2], gl.SwizzledSharedLayout(1, 1, 1, [0]))
    bar = mbarrier.allocate_mbarrier()
    mbarrier.init(bar, count=1)
    work = gl.program_id(0)
    phase = 0
    for _ in range(ROUNDS):
        if work >= 0:
            gl.atomic_add(d + work, 1)
            mbarrier.expect(bar, 16)
            clc.try_cancel(response, bar)
            mbarrier.wait(bar, phase)
            result = clc.load_result(response)
            work = gl.where(result.is_canceled(), result.program_id(0), -1)
            phase ^= 1
