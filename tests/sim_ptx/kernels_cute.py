"""Defines kernels in NVIDIA's CuTe DSL that multiply on tensor cores, for the tests of the simulator. The
DSL computes every descriptor and every layout of shared memory, tensor memory and registers. TMA loads A and
B."""
import cutlass
import cutlass.cute as cute
import cutlass.utils.blackwell_helpers as sm100
import cutlass.utils.blockscaled_layout as scale_layouts
import cutlass.utils.hopper_helpers as sm90
from cutlass.cute.nvgpu import OperandMajorMode, cpasync, tcgen05, warpgroup
from cutlass.memory import SmemAllocator
from cutlass.utils import LayoutEnum

THREADS, LANES, COLUMNS = 128, 128, 512
LANE = 1 << 16  # The distance of two lanes in the addresses of tensor memory.
K_MAJOR = OperandMajorMode.K


class Product:
    """Computes D = A x B^T for one tile by tcgen05.mma. `kind` makes the MMA operation; `step` is the K of the
    shared memory; `loads` are the types that shared memory holds. `scales` is (type of scales, elements per
    scale) or None."""

    def __init__(self, op, types, loads, shape, step, ctas=1, scales=None, copy=tcgen05.Cp4x32x128bOp, load=None):
        self.op, self.types, self.loads, self.shape, self.step = op, types, loads, shape, step
        self.ctas, self.scales, self.copy, self.load = ctas, scales, copy, load
        self.group = tcgen05.CtaGroup.TWO if ctas == 2 else tcgen05.CtaGroup.ONE

    @cute.jit
    def __call__(self, a: cute.Pointer, b: cute.Pointer, sa: cute.Pointer, sb: cute.Pointer, d: cute.Pointer):
        m, n, k = self.shape
        tiler = (m, n, self.step)
        mma = cute.make_tiled_mma(self.op(self.ctas))
        orders = [(1, 0) if major == K_MAJOR else (0, 1) for major in (mma.op.a_major_mode, mma.op.b_major_mode)]
        ga = cute.make_tensor(a, cute.make_ordered_layout((m, k), order=orders[0]))
        gb = cute.make_tensor(b, cute.make_ordered_layout((n, k), order=orders[1]))
        gd = cute.make_tensor(d, cute.make_layout((m, n), stride=(n, 1)))
        la = sm100.make_smem_layout_a(mma, tiler, self.loads[0], 1)
        lb = sm100.make_smem_layout_b(mma, tiler, self.loads[1], 1)
        load = cpasync.CopyBulkTensorTileG2SOp(self.group)
        cluster = cute.tiled_divide(cute.make_layout((self.ctas, 1, 1)), (mma.thr_id.shape,))
        unpacked = [l if l != t else None for l, t in zip(self.loads, self.types)]
        tma_a, ta = cute.nvgpu.make_tiled_tma_atom_A(load, ga, cute.slice_(la, (None, None, None, 0)), tiler, mma, cluster.shape,
                                                     internal_type=unpacked[0])
        tma_b, tb = cute.nvgpu.make_tiled_tma_atom_B(load, gb, cute.slice_(lb, (None, None, None, 0)), tiler, mma, cluster.shape,
                                                     internal_type=unpacked[1])
        gsa, gsb, lsa, lsb = None, None, None, None
        if cutlass.const_expr(self.scales is not None):
            gsa = cute.make_tensor(sa, scale_layouts.tile_atom_to_shape_SF((m, k, 1), self.scales[1]))
            gsb = cute.make_tensor(sb, scale_layouts.tile_atom_to_shape_SF((n, k, 1), self.scales[1]))
            lsa = scale_layouts.make_smem_layout_sfa(mma, tiler, self.scales[1], 1)
            lsb = scale_layouts.make_smem_layout_sfb(mma, tiler, self.scales[1], 1)
        self.kernel(mma, tma_a, ta, tma_b, tb, gsa, gsb, gd, la, lb, lsa, lsb).launch(
            grid=(self.ctas, 1, 1), block=(THREADS, 1, 1), cluster=(self.ctas, 1, 1))

    @cute.kernel
    def kernel(self, mma: cute.TiledMma, tma_a: cute.CopyAtom, ga: cute.Tensor, tma_b: cute.CopyAtom, gb: cute.Tensor, gsa, gsb,
               gd: cute.Tensor, la: cute.ComposedLayout, lb: cute.ComposedLayout, lsa, lsb):
        m, n, k = self.shape
        warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        thread, _, _ = cute.arch.thread_idx()
        rank = cute.arch.make_warp_uniform(cute.arch.block_idx_in_cluster())
        first = rank == 0
        memory = SmemAllocator()
        full = memory.allocate_array(cutlass.Int64, 1)
        done = memory.allocate_array(cutlass.Int64, 1)
        held = memory.allocate_array(cutlass.Int32, 1)
        sa = memory.allocate_tensor(self.loads[0], la.outer, 1024, la.inner)
        sb = memory.allocate_tensor(self.loads[1], lb.outer, 1024, lb.inner)
        if warp == 0:
            with cute.arch.elect_one():
                cute.arch.mbarrier_init(full, 1)
                cute.arch.mbarrier_init(done, 1)
            cute.arch.mbarrier_init_fence()
            cute.arch.alloc_tmem(COLUMNS, held, is_two_cta=self.ctas == 2)
        self.meet()

        # These tensors are the parts of the operands that this thread block loads, followed by the
        # parts that the tensor cores read.
        part = mma.get_slice(rank)
        whole = cute.make_layout(1)
        sa_, ga_ = cpasync.tma_partition(tma_a, 0, whole, cute.group_modes(sa, 0, 3),
                                         cute.group_modes(part.partition_A(cute.local_tile(ga, (m, self.step), (None, None))), 0, 3))
        sb_, gb_ = cpasync.tma_partition(tma_b, 0, whole, cute.group_modes(sb, 0, 3),
                                         cute.group_modes(part.partition_B(cute.local_tile(gb, (n, self.step), (None, None))), 0, 3))
        fa, fb = mma.make_fragment_A(sa), mma.make_fragment_B(sb)
        at = cute.arch.retrieve_tmem_ptr(mma.op.acc_dtype, 16, held)
        acc = cute.make_tensor(at, mma.make_fragment_C(mma.partition_shape_C((m, n))).layout)
        # The mbarrier counts the bytes of global memory that TMA loads.
        bytes_ = self.ctas * (cute.size_in_bytes(self.types[0], cute.slice_(la, (None, None, None, 0))) +
                              cute.size_in_bytes(self.types[1], cute.slice_(lb, (None, None, None, 0))))
        if cutlass.const_expr(self.scales is not None):
            one = mma if cutlass.const_expr(self.ctas == 1) else cute.make_tiled_mma(self.op(1))
            ssa = memory.allocate_tensor(self.scales[0], lsa, 128)
            ssb = memory.allocate_tensor(self.scales[0], lsb, 128)
            tiler = (m, n, self.step)
            used = tcgen05.find_tmem_tensor_col_offset(acc)
            tsa = cute.make_tensor(cute.recast_ptr(at + used, dtype=self.scales[0]),
                                   scale_layouts.make_tmem_layout_sfa(mma, tiler, self.scales[1], cute.slice_(lsa, (None, None, None, 0))))
            tsb = cute.make_tensor(cute.recast_ptr(at + used + tcgen05.find_tmem_tensor_col_offset(tsa), dtype=self.scales[0]),
                                   scale_layouts.make_tmem_layout_sfb(mma, tiler, self.scales[1], cute.slice_(lsb, (None, None, None, 0))))
            copy_a, from_a, to_a = self.scale_copy(ssa, tsa)
            copy_b, from_b, to_b = self.scale_copy(ssb, tsb)

        mma.set(tcgen05.Field.ACCUMULATE, False)
        for step in cutlass.range_constexpr(k // self.step):
            if cutlass.const_expr(self.scales is not None):
                # Each thread block has the scales of its own rows of A and of all rows of B.
                self.move(thread, part.partition_A(cute.local_tile(gsa, (m, self.step, 1), (0, step, 0))[None, None, 0]), ssa)
                self.move(thread, one.get_slice(0).partition_B(cute.local_tile(gsb, (n, self.step, 1), (0, step, 0))[None, None, 0]), ssb)
                cute.arch.fence_proxy("async.shared", space="cta")
            self.meet()
            if warp == 0:
                if first:
                    with cute.arch.elect_one():
                        cute.arch.mbarrier_arrive_and_expect_tx(full, bytes_)
                cute.copy(tma_a, ga_[(None, 0, step)], sa_[(None, 0)], tma_bar_ptr=full)
                cute.copy(tma_b, gb_[(None, 0, step)], sb_[(None, 0)], tma_bar_ptr=full)
                if first:
                    cute.arch.mbarrier_wait(full, step % 2)
                    if cutlass.const_expr(self.scales is not None):
                        cute.copy(copy_a, from_a[(None, None, None, None, 0)], to_a)
                        cute.copy(copy_b, from_b[(None, None, None, None, 0)], to_b)
                    for block in cutlass.range_constexpr(cute.size(fa, mode=[2])):
                        if cutlass.const_expr(self.scales is not None):
                            mma.set(tcgen05.Field.SFA, tsa[(None, None, block)].iterator)
                            mma.set(tcgen05.Field.SFB, tsb[(None, None, block)].iterator)
                        cute.gemm(mma, acc, fa[(None, None, block, 0)], fb[(None, None, block, 0)], acc)
                        mma.set(tcgen05.Field.ACCUMULATE, True)
                    with cute.arch.elect_one():
                        tcgen05.commit(done, 3 if self.ctas == 2 else None, self.group)
            cute.arch.mbarrier_wait(done, step % 2)

        self.store(thread, mma, part, acc, gd)
        self.meet()
        if warp == 0:
            cute.arch.relinquish_tmem_alloc_permit(is_two_cta=self.ctas == 2)
            cute.arch.dealloc_tmem(at, COLUMNS, is_two_cta=self.ctas == 2)

    @cute.jit
    def meet(self):
        """Waits for all threads of the thread blocks that compute this product together."""
        if cutlass.const_expr(self.ctas == 2):
            cute.arch.cluster_arrive()
            cute.arch.cluster_wait()
        else:
            cute.arch.sync_threads()

    @cute.jit
    def move(self, thread, source, target):
        """Copies scales to shared memory, one byte at a time."""
        s, t = cute.filter_zeros(source), cute.filter_zeros(cute.slice_(target, (None, None, None, 0)))
        for i in cutlass.range(thread, cute.size(t), THREADS):
            t[i] = s[i]

    @cute.jit
    def scale_copy(self, shared, tensor):
        """Returns the operation that copies scales from shared to tensor memory, with its source
        and its target."""
        copy = tcgen05.make_s2t_copy(cute.make_copy_atom(self.copy(self.group), self.scales[0]), cute.filter_zeros(tensor))
        part = copy.get_slice(0)
        source = tcgen05.get_s2t_smem_desc_tensor(copy, part.partition_S(cute.filter_zeros(shared)))
        return copy, source, part.partition_D(cute.filter_zeros(tensor))

    @cute.jit
    def store(self, thread, mma, part, acc, gd):
        """Stores the accumulators to D."""
        m, n, k = self.shape
        out = part.partition_C(gd)
        load = tcgen05.make_tmem_copy(cute.make_copy_atom(self.load(), mma.op.acc_dtype), acc)
        mine = load.get_slice(thread)
        source, target = mine.partition_S(acc), mine.partition_D(out)
        registers = cute.make_rmem_tensor(target.shape, gd.element_type)
        cute.copy(load, source, registers)
        cute.arch.fence_view_async_tmem_load()
        cute.copy(cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), gd.element_type), registers, target)


class Copy:
    """Copies a matrix of 32-bit words from shared to tensor memory by tcgen05.cp, and then the 128
    lanes of tensor memory to D. `rows` is the (shape, stride) of the matrix's rows in shared
    memory, counted in rows. `lanes` is the same in tensor memory, counted in lanes. A stride of
    0 in `rows` means that a row goes to several lanes."""

    def __init__(self, op, atom, rows, lanes, columns):
        self.op, self.atom, self.rows, self.lanes, self.columns = op, atom, rows, lanes, columns

    @cute.jit
    def __call__(self, a: cute.Pointer, d: cute.Pointer):
        layout = cute.make_layout((LANES, self.columns), stride=(self.columns, 1))
        self.kernel(cute.make_tensor(a, layout), cute.make_tensor(d, layout)).launch(grid=(1, 1, 1), block=(THREADS, 1, 1))

    @cute.kernel
    def kernel(self, ga: cute.Tensor, gd: cute.Tensor):
        warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        thread, _, _ = cute.arch.thread_idx()
        memory = SmemAllocator()
        done = memory.allocate_array(cutlass.Int64, 1)
        held = memory.allocate_array(cutlass.Int32, 1)
        layout = cute.tile_to_shape(tcgen05.make_smem_layout_atom(self.atom, cutlass.Int32), (LANES, self.columns), (0, 1))
        shared = memory.allocate_tensor(cutlass.Int32, layout.outer, 1024, layout.inner)
        if warp == 0:
            with cute.arch.elect_one():
                cute.arch.mbarrier_init(done, 1)
            cute.arch.mbarrier_init_fence()
            cute.arch.alloc_tmem(COLUMNS, held)
        for c in cutlass.range_constexpr(self.columns):
            shared[thread, c] = ga[thread, c]
        cute.arch.fence_proxy("async.shared", space="cta")
        cute.arch.sync_threads()
        at = cute.arch.retrieve_tmem_ptr(cutlass.Int32, 16, held)
        all_lanes = cute.make_tensor(at, cute.make_layout((LANES, self.columns), stride=(LANE, 1)))
        target = cute.composition(all_lanes, (cute.make_layout(self.lanes[0], stride=self.lanes[1]), cute.make_layout(self.columns)))
        source = cute.composition(shared, (cute.make_layout(self.rows[0], stride=self.rows[1]), cute.make_layout(self.columns)))
        copy = tcgen05.make_s2t_copy(cute.make_copy_atom(self.op(tcgen05.CtaGroup.ONE), cutlass.Int32), target)
        part = copy.get_slice(0)
        from_, to = tcgen05.get_s2t_smem_desc_tensor(copy, part.partition_S(source)), part.partition_D(target)
        if warp == 0:
            cute.copy(copy, from_, to)
            with cute.arch.elect_one():
                tcgen05.commit(done)
        cute.arch.mbarrier_wait(done, 0)
        load = tcgen05.make_tmem_copy(cute.make_copy_atom(tcgen05.Ld32x32bOp(tcgen05.Repetition(self.columns)), cutlass.Int32), all_lanes)
        mine = load.get_slice(thread)
        out = mine.partition_D(gd)
        registers = cute.make_rmem_tensor(out.shape, cutlass.Int32)
        cute.copy(load, mine.partition_S(all_lanes), registers)
        cute.arch.fence_view_async_tmem_load()
        cute.autovec_copy(registers, out)
        cute.arch.sync_threads()
        if warp == 0:
            cute.arch.relinquish_tmem_alloc_permit()
            cute.arch.dealloc_tmem(at, COLUMNS)


class WarpProduct:
    """Computes the block-scaled D = A x B^T for the tile of one warp by mma.sync. If A and B have
    different types, each 4-bit element occupies a byte of memory."""

    def __init__(self, op, types, scales, shape):
        self.op, self.types, self.scales, self.shape = op, types, scales, shape

    @cute.jit
    def __call__(self, a: cute.Pointer, b: cute.Pointer, sa: cute.Pointer, sb: cute.Pointer, d: cute.Pointer):
        m, n, k = self.shape
        tensors = [cute.make_tensor(p, cute.make_layout((rows, k), stride=(k, 1))) for p, rows in ((a, m), (b, n))]
        each = self.scales[1]
        factors = [cute.make_tensor(p, cute.make_layout((rows, (each, k // each)), stride=(k // each, (0, 1))))
                   for p, rows in ((sa, m), (sb, n))]
        self.kernel(*tensors, *factors, cute.make_tensor(d, cute.make_layout((m, n), stride=(n, 1)))).launch(
            grid=(1, 1, 1), block=(32, 1, 1))

    @cute.kernel
    def kernel(self, ga: cute.Tensor, gb: cute.Tensor, gsa: cute.Tensor, gsb: cute.Tensor, gd: cute.Tensor):
        thread, _, _ = cute.arch.thread_idx()
        op = self.op()
        mma = cute.make_tiled_mma(op, cute.make_layout((1, 1, 1)), permutation_mnk=op.shape_mnk)
        part = mma.get_slice(thread)
        fa, fb = (self.fragment(t, p, make) for t, p, make in zip(
            self.types, (part.partition_A(ga), part.partition_B(gb)), (mma.make_fragment_A, mma.make_fragment_B)))
        fsa = self.factors(gsa, sm100.thrfrg_SFA(gsa.layout, part), thread)
        fsb = self.factors(gsb, sm100.thrfrg_SFB(gsb.layout, part), thread)
        out = part.partition_C(gd)
        acc = cute.make_rmem_tensor(out.shape, cutlass.Float32)
        acc.fill(0.0)
        for block in cutlass.range_constexpr(cute.size(fa, mode=[2])):
            cute.gemm(mma, acc, [fa[None, None, block], fsa[None, None, block]], [fb[None, None, block], fsb[None, None, block]], acc)
        cute.autovec_copy(acc, out)

    @cute.jit
    def fragment(self, kind, source, make):
        """Returns the elements of a thread in registers. An e2m1 element that occupies a byte is in
        bits 2 to 5."""
        registers = make(source)
        cute.autovec_copy(source, registers)
        if cutlass.const_expr(kind.width == 8 and kind.is_integer):
            for i in cutlass.range_constexpr(cute.size(registers)):
                registers[i] = kind(registers[i] << 2)
        return registers

    @cute.jit
    def factors(self, source, layout, thread):
        """Returns the scales of a thread in registers."""
        mine = cute.make_tensor(source.iterator, layout)[(thread, (0, 0)), (None, None)]
        mine = cute.group_modes(cute.flatten(mine), 0, 2)
        registers = cute.make_fragment_like(mine)
        scales, to = cute.filter_zeros(mine), cute.filter_zeros(registers)
        for i in cutlass.range_constexpr(cute.size(to)):
            to[i] = scales[i]
        return registers


class GroupProduct:
    """Computes D = A x B^T for one tile of 64 rows by wgmma. TMA loads all of A and B into shared
    memory."""

    def __init__(self, types, out, shape, majors):
        self.types, self.out, self.shape, self.majors = types, out, shape, majors

    @cute.jit
    def __call__(self, a: cute.Pointer, b: cute.Pointer, d: cute.Pointer):
        m, n, k = self.shape
        orders = [(1, 0) if major == K_MAJOR else (0, 1) for major in self.majors]
        ga, gb = (cute.make_tensor(p, cute.make_ordered_layout((rows, k), order=order))
                  for p, rows, order in zip((a, b), (m, n), orders))
        gd = cute.make_tensor(d, cute.make_layout((m, n), stride=(n, 1)))
        mma = sm90.make_trivial_tiled_mma(*self.types, *self.majors, self.out, (1, 1, 1), (m, n))
        kinds = [LayoutEnum.ROW_MAJOR if major == K_MAJOR else LayoutEnum.COL_MAJOR for major in self.majors]
        la = cute.slice_(sm90.make_smem_layout_a(kinds[0], (m, n, k), self.types[0], 1), (None, None, 0))
        lb = cute.slice_(sm90.make_smem_layout_b(kinds[1], (m, n, k), self.types[1], 1), (None, None, 0))
        load = cpasync.CopyBulkTensorTileG2SOp()
        tma_a, ta = cpasync.make_tiled_tma_atom(load, ga, la, (m, k))
        tma_b, tb = cpasync.make_tiled_tma_atom(load, gb, lb, (n, k))
        self.kernel(mma, tma_a, ta, tma_b, tb, gd, la, lb).launch(grid=(1, 1, 1), block=(THREADS, 1, 1))

    @cute.kernel
    def kernel(self, mma: cute.TiledMma, tma_a: cute.CopyAtom, ga: cute.Tensor, tma_b: cute.CopyAtom, gb: cute.Tensor, gd: cute.Tensor,
               la: cute.ComposedLayout, lb: cute.ComposedLayout):
        m, n, k = self.shape
        warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        thread, _, _ = cute.arch.thread_idx()
        memory = SmemAllocator()
        full = memory.allocate_array(cutlass.Int64, 1)
        sa = memory.allocate_tensor(self.types[0], la.outer, 1024, la.inner)
        sb = memory.allocate_tensor(self.types[1], lb.outer, 1024, lb.inner)
        whole = cute.make_layout(1)
        sa_, ga_ = cpasync.tma_partition(tma_a, 0, whole, cute.group_modes(sa, 0, 2), cute.group_modes(ga, 0, 2))
        sb_, gb_ = cpasync.tma_partition(tma_b, 0, whole, cute.group_modes(sb, 0, 2), cute.group_modes(gb, 0, 2))
        if warp == 0:
            with cute.arch.elect_one():
                cute.arch.mbarrier_init(full, 1)
            cute.arch.mbarrier_init_fence()
        cute.arch.sync_threads()
        if warp == 0:
            with cute.arch.elect_one():
                cute.arch.mbarrier_arrive_and_expect_tx(full, cute.size_in_bytes(self.types[0], la) + cute.size_in_bytes(self.types[1], lb))
            cute.copy(tma_a, ga_, sa_, tma_bar_ptr=full)
            cute.copy(tma_b, gb_, sb_, tma_bar_ptr=full)
        cute.arch.mbarrier_wait(full, 0)
        part = mma.get_slice(thread)
        fa, fb = mma.make_fragment_A(mma.get_slice(0).partition_A(sa)), mma.make_fragment_B(mma.get_slice(0).partition_B(sb))
        out = part.partition_C(gd)
        acc = cute.make_rmem_tensor(out.shape, self.out)
        mma.set(warpgroup.Field.ACCUMULATE, False)
        warpgroup.fence()
        for block in cutlass.range_constexpr(cute.size(fa, mode=[2])):
            cute.gemm(mma, acc, fa[None, None, block], fb[None, None, block], acc)
            mma.set(warpgroup.Field.ACCUMULATE, True)
        warpgroup.commit_group()
        warpgroup.wait_group(0)
        cute.autovec_copy(acc, out)
