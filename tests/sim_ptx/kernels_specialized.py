"""Defines a persistent Gluon kernel for block-scaled products, whose warps have different tasks. It has the structure of the last
and fastest kernel of Triton's tutorial of block-scaled products: tiles of 128 x 256, three stages, one warp that loads by TMA, one
warp that issues tcgen05.cp and tcgen05.mma, and four warps that store D. compare_gluon.py runs it."""
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.blackwell import (TensorMemoryLayout, TensorMemoryScalesLayout, allocate_tensor_memory,
                                                                 fence_async_shared, mbarrier, tcgen05_commit, tcgen05_copy,
                                                                 tcgen05_mma_scaled, tma)


@gluon.aggregate
class Job:
    """Holds what the three groups of warps share. `full` and `empty` are the barriers of the stages. `done` and `read` are the
    barriers of the accumulator. STAGES is the number of stages. BAND is explained at `place`."""
    a: tma.tensor_descriptor
    b: tma.tensor_descriptor
    d: tma.tensor_descriptor
    a_scales: tma.tensor_descriptor
    b_scales: tma.tensor_descriptor
    a_stages: gl.shared_memory_descriptor
    b_stages: gl.shared_memory_descriptor
    a_scale_stages: gl.shared_memory_descriptor
    b_scale_stages: gl.shared_memory_descriptor
    full: gl.shared_memory_descriptor
    empty: gl.shared_memory_descriptor
    done: gl.shared_memory_descriptor
    read: gl.shared_memory_descriptor
    STAGES: gl.constexpr
    BAND: gl.constexpr

    @gluon.jit
    def steps(self):
        return self.a.shape[1] // self.a.block_type.shape[1]

    @gluon.jit
    def tiles_n(self):
        return gl.cdiv(self.d.shape[1], self.d.block_type.shape[1])

    @gluon.jit
    def tiles_m(self):
        return gl.cdiv(self.d.shape[0], self.d.block_type.shape[0])

    @gluon.jit
    def place(self, tile):
        """Returns the row and the column of a tile. Tiles are numbered column by column in bands of BAND rows of tiles."""
        across, down = self.tiles_n(), self.tiles_m()
        first = tile // (self.BAND * across) * self.BAND
        height = gl.minimum(down - first, self.BAND)
        inside = tile - first * across
        return first + inside % height, inside // height


@gluon.jit
def load(job):
    count = 0
    for tile in range(gl.program_id(0), job.tiles_m() * job.tiles_n(), gl.num_programs(0)):
        m, n = job.place(tile)
        for step in range(0, job.steps()):
            stage = count % job.STAGES
            bar = job.full.index(stage)
            mbarrier.wait(job.empty.index(stage), (count // job.STAGES & 1) ^ 1)
            mbarrier.expect(
                bar, job.a.block_type.nbytes + job.b.block_type.nbytes + job.a_scales.block_type.nbytes +
                job.b_scales.block_type.nbytes)
            tma.async_load(job.a, [m * job.a.block_type.shape[0], step * job.a.block_type.shape[1]], bar, job.a_stages.index(stage))
            tma.async_load(job.b, [n * job.b.block_type.shape[0], step * job.b.block_type.shape[1]], bar, job.b_stages.index(stage))
            tma.async_load(job.a_scales, [0, m * job.a_scales.block_type.shape[1], step * job.a_scales.block_type.shape[2], 0, 0], bar,
                           job.a_scale_stages.index(stage))
            tma.async_load(job.b_scales, [0, n * job.b_scales.block_type.shape[1], step * job.b_scales.block_type.shape[2], 0, 0], bar,
                           job.b_scale_stages.index(stage))
            count += 1


@gluon.jit
def as_matrix(scales):
    """Returns a stage's scales, which have the layout nv_128x4, as a matrix of scales."""
    rows: gl.constexpr = scales.shape[1]
    cols: gl.constexpr = scales.shape[2]
    return scales.reshape((rows, cols, 32, 4, 4)).permute((0, 3, 2, 1, 4)).reshape((rows * 128, cols * 4))


@gluon.jit
def multiply(job, sums, A_TYPE: gl.constexpr, B_TYPE: gl.constexpr):
    count = 0
    number = 0
    for tile in range(gl.program_id(0), job.tiles_m() * job.tiles_n(), gl.num_programs(0)):
        mbarrier.wait(job.read, (number & 1) ^ 1)
        for step in range(0, job.steps()):
            stage = count % job.STAGES
            mbarrier.wait(job.full.index(stage), count // job.STAGES & 1)
            a_scales = as_matrix(job.a_scale_stages.index(stage))
            b_scales = as_matrix(job.b_scale_stages.index(stage))
            layout: gl.constexpr = TensorMemoryScalesLayout()
            a_columns = allocate_tensor_memory(a_scales.dtype, a_scales.shape, layout)
            b_columns = allocate_tensor_memory(b_scales.dtype, b_scales.shape, layout)
            tcgen05_copy(a_scales, a_columns)
            tcgen05_copy(b_scales, b_columns)
            tcgen05_mma_scaled(job.a_stages.index(stage), job.b_stages.index(stage).permute((1, 0)), sums, a_columns, b_columns, A_TYPE,
                               B_TYPE, use_acc=step > 0)
            tcgen05_commit(job.empty.index(stage))
            count += 1
        tcgen05_commit(job.done)
        number += 1


@gluon.jit
def store(job, sums):
    staging = gl.allocate_shared_memory(job.d.dtype, job.d.block_type.shape, job.d.layout)
    number = 0
    for tile in range(gl.program_id(0), job.tiles_m() * job.tiles_n(), gl.num_programs(0)):
        m, n = job.place(tile)
        mbarrier.wait(job.done, number & 1)
        x = sums.load()
        mbarrier.arrive(job.read, count=1)
        number += 1
        tma.store_wait(0)
        staging.store(x.to(job.d.dtype))
        fence_async_shared()
        tma.async_store(job.d, [m * job.d.block_type.shape[0], n * job.d.block_type.shape[1]], staging)
    tma.store_wait(0)


@gluon.jit
def ring(of, STAGES: gl.constexpr):
    return gl.allocate_shared_memory(of.dtype, [STAGES] + of.block_type.shape, of.layout)


@gluon.jit
def barriers(COUNT: gl.constexpr):
    made = gl.allocate_shared_memory(gl.int64, [COUNT, 1], mbarrier.MBarrierLayout())
    for i in gl.static_range(COUNT):
        mbarrier.init(made.index(i), count=1)
    return made


@gluon.jit
def specialized(a, b, d, a_scales, b_scales, A_TYPE: gl.constexpr, B_TYPE: gl.constexpr, STAGES: gl.constexpr, BAND: gl.constexpr):
    rows: gl.constexpr = d.block_type.shape[0]
    cols: gl.constexpr = d.block_type.shape[1]
    sums = allocate_tensor_memory(gl.float32, [rows, cols], TensorMemoryLayout([rows, cols], col_stride=1))
    job = Job(a, b, d, a_scales, b_scales, ring(a, STAGES), ring(b, STAGES), ring(a_scales, STAGES), ring(b_scales, STAGES),
              barriers(STAGES), barriers(STAGES), barriers(1).index(0), barriers(1).index(0), STAGES, BAND)
    gl.warp_specialize([(store, (job, sums)), (multiply, (job, sums, A_TYPE, B_TYPE)), (load, (job, ))], [1, 1], [24, 24])
