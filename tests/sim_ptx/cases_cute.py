"""Defines the test cases of the kernels in kernels_cute.py: the operands, the results in double and the bounds of
the errors. The module imports the DSL only where a case is compiled. A case has a name and these methods:
    compile()               returns the kernel's PTX
    arrays()                returns the arrays of the kernel's arguments; the last one is its result
    arguments(device, at)   returns the arguments, where `at` are the addresses of the arrays
    wrong(result)           returns None, or a text that says how the result is wrong"""
import ctypes
import itertools
import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "sim_gfx9"))
import driver
import formats as F
import numpy as np

# TYPES maps an element type to (name in the DSL, bits, type of a tensor map that copies elements
# unchanged, type of a tensor map that spreads 16 elements over 16 bytes).
TYPES = {
    "e4m3": ("Float8E4M3FN", 8, 0, 0), "e5m2": ("Float8E5M2", 8, 0, 0), "e3m2": ("Float6E3M2FN", 6, None, 15),
    "e2m3": ("Float6E2M3FN", 6, None, 15), "e2m1": ("Float4E2M1FN", 4, 13, 14), "s8": ("Int8", 8, 0, 0), "u8": ("Uint8", 8, 0, 0),
    "f16": ("Float16", 16, 6, 6), "bf16": ("BFloat16", 16, 9, 9), "tf32": ("TFloat32", 32, 11, 11),
}
SCALES = {"ue8m0": "Float8E8M0FNU", "ue4m3": "Float8E4M3FN"}


SWIZZLES = {128: 3, 64: 2, 32: 1, 16: 0}  # Maps the bytes of a box's row in shared memory to a CUtensorMapSwizzle.


def first_wrong(result, expect, bound):
    wrong = ~(np.abs(result.astype(np.float64) - expect) <= bound)
    if not wrong.any():
        return None
    first = tuple(int(n) for n in np.argwhere(wrong)[0])
    return f"{wrong.sum()} of {wrong.size} wrong, first at {first}: {result[first]} for {expect[first]}"


def random_codes(rng, shape, kind):
    """Returns random codes without NaN and Inf."""
    bits = TYPES[kind][1]
    if bits >= 16:
        x = rng.standard_normal(shape).astype(np.float16 if kind == "f16" else np.float32)
        codes = x.view(np.uint16 if kind == "f16" else np.uint32)
        return (codes >> 16).astype(np.uint16) if kind == "bf16" else codes & 0xFFFFE000 if kind == "tf32" else codes
    codes = rng.integers(0, 1 << bits, shape).astype(np.uint8)
    return codes & 0xBF if kind in ("e4m3", "e5m2") else codes


def decode(codes, kind):
    """Returns the values of codes in double."""
    if kind in ("s8", "u8", "f16", "tf32"):
        return codes.view({"s8": np.int8, "u8": np.uint8, "f16": np.float16, "tf32": np.float32}[kind]).astype(np.float64)
    if kind == "bf16":
        return F.from_bf16(codes).astype(np.float64)
    return 2.0 ** (codes.astype(np.float64) - 127) if kind == "ue8m0" else F.decode(codes, kind.removeprefix("u"))


def pack(codes, bits):
    """Packs codes along the last axis without gaps. The first code takes the lowest bits."""
    if bits >= 8:
        return np.ascontiguousarray(codes)
    ones = (codes[..., None] >> np.arange(bits, dtype=np.uint8)) & 1
    return np.packbits(ones.reshape(*codes.shape[:-1], -1), axis=-1, bitorder="little")


def packed_scales(scales):
    """Returns scales of shape (rows, blocks) in the layout nv_128x4 (docs/LAYOUTS.md)."""
    rows, blocks = scales.shape
    return np.ascontiguousarray(scales.reshape(rows // 128, 4, 32, blocks // 4, 4).transpose(0, 3, 2, 1, 4))


class Case:
    """Represents one product by tcgen05. `kind` names the class of the DSL's operation, `scale` is (type of
    scales, elements of a scale) or None, and `step` is the K of shared memory. `majors` has a letter for A and
    for B: k if K is contiguous, m if M or N is. TMA spreads elements of less than 8 bits if `spread` is set.
    `negated` lists the operands that the instruction negates."""

    def __init__(self, name, kind, a, b, shape, step, ctas=1, scale=None, copy="Cp4x32x128bOp", majors="kk", spread=False,
                 load=("Ld32x32bOp", 32), negated=""):
        self.name, self.kind, self.types, self.shape, self.step = name, kind, (a, b), shape, step
        self.ctas, self.scale, self.copy, self.majors, self.spread = ctas, scale, copy, majors, spread
        self.load, self.negated = load, negated
        self.out = np.int32 if kind == "MmaI8Op" else np.float32

    # The methods from here on compile the kernel.
    def operation(self, ctas):
        """Makes the DSL's MMA operation. With two thread blocks it is that of the pair, otherwise
        that of one block, which has its rows of A and all of B."""
        import cutlass
        from cutlass.cute.nvgpu import OperandMajorMode, tcgen05
        a, b = (getattr(cutlass, TYPES[t][0]) for t in self.types)
        m, n, _ = self.shape
        shape = (m // (self.ctas // ctas), n, {4: 64, 16: 16, 32: 8}.get(TYPES[self.types[0]][1] if not self.spread else 8, 32))
        group = tcgen05.CtaGroup.TWO if ctas == 2 else tcgen05.CtaGroup.ONE
        source = tcgen05.OperandSource.SMEM
        major = [OperandMajorMode.K if m == "k" else OperandMajorMode.MN for m in self.majors]
        op = getattr(tcgen05, self.kind)
        if self.kind == "MmaMXF8F6F4Op":
            return op(a, b, shape, group, source, *major)
        if self.kind == "MmaMXF4Op":
            return op(shape, group, source)
        if self.kind == "MmaMXF4NVF4Op":
            return op(getattr(cutlass, SCALES[self.scale[0]]), shape, group, source)
        if self.kind == "MmaF8F6F4Op":
            return op(a, b, cutlass.Float32, shape, group, source, *major)
        if self.kind == "MmaTF32Op":
            return op(shape, group, source, *major)
        if self.kind == "MmaI8Op":
            return op(a, shape, group, source, *major)
        return op(a, cutlass.Float32, shape, group, source, *major)

    def compile(self):
        """Returns the PTX of the product's kernel."""
        import cutlass
        import cutlass.cute as cute
        import kernels_cute
        from cutlass.cute.nvgpu import tcgen05
        from cutlass.cute.runtime import make_ptr
        kinds = [getattr(cutlass, TYPES[t][0]) for t in self.types]
        loads = [cutlass.Int8 if self.spread and t.width < 8 else t for t in kinds]
        scale = (getattr(cutlass, SCALES[self.scale[0]]), self.scale[1]) if self.scale else None
        load = lambda: getattr(tcgen05, self.load[0])(tcgen05.Repetition(self.load[1]))
        product = kernels_cute.Product(self.operation, kinds, loads, self.shape, self.step, self.ctas, scale,
                                       getattr(tcgen05, self.copy), load)
        out = cutlass.Int32 if self.out == np.int32 else cutlass.Float32
        pointers = [make_ptr(t, 0, cute.AddressSpace.gmem, assumed_align=32) for t in (*kinds, cutlass.Uint8 if not scale else scale[0],
                                                                                      cutlass.Uint8 if not scale else scale[0], out)]
        return cute.compile(product, *pointers).__ptx__

    # The methods from here on make operands and compare results.
    def operands(self):
        """Returns A and B, each as (codes, scales)."""
        rng, k = np.random.default_rng(len(self.name)), self.shape[2]
        out = []
        for rows, kind in zip(self.shape, self.types):
            scales = None
            if self.scale:
                # All scales of a row are similar, so that an error in any of them changes the row's
                # results noticeably.
                low, high, width = (90, 150, 8) if self.scale[0] == "ue8m0" else (1, 0x67, 24)
                scales = (rng.integers(low, high, (rows, 1)) + rng.integers(0, width, (rows, k // self.scale[1]))).astype(np.uint8)
            out.append((random_codes(rng, (rows, k), kind), scales))
        return out

    def values(self, operands):
        """Returns the values of A and B in double."""
        out = []
        for (codes, scales), kind in zip(operands, self.types):
            x = decode(codes, kind)
            x = x if scales is None else x * np.repeat(decode(scales, self.scale[0]), self.scale[1], 1)
            out.append(-x if "AB"[len(out)] in self.negated else x)
        return out

    def faults(self, operands):
        """Yields changed operands, to show that the comparison can fail. The lowest bit of one
        scale, or of the largest code of a row, is inverted. The results must then differ by more
        than the error bound."""
        rng = np.random.default_rng(7)
        for which in range(2):
            for part in range(1 if self.scale is None else 2):
                changed = [tuple(None if x is None else x.copy() for x in operand) for operand in operands]
                array = changed[which][part]
                row, column = (rng.integers(0, n) for n in array.shape)
                if part == 0:
                    column = np.abs(self.values(operands)[which][row]).argmax()
                array[row, column] ^= 0x2000 if self.types[which] == "tf32" and part == 0 else 1
                yield ("A", "B")[which] + ("", "'s scales")[part], changed

    def difference(self, result, operands):
        """Returns None if the result is within the error bound. Each of the K additions in fp32 may
        lose 2^-23 of the sum of the products' magnitudes. Sums of integers are exact."""
        a, b = self.values(operands)
        bound = 0 if self.out == np.int32 else self.shape[2] * 2.0 ** -23 * (np.abs(a) @ np.abs(b).T)
        return first_wrong(result, a @ b.T, bound)

    def wrong(self, result):
        operands = self.operands()
        missed = [what for what, changed in self.faults(operands) if self.difference(result, changed) is None]
        return self.difference(result, operands) or (f"a wrong bit of {missed} is within the bound" if missed else None)

    # The methods from here on make the arguments of the kernel.
    def arrays(self):
        operands = self.operands()
        stored = [codes if major == "k" else codes.T for (codes, _), major in zip(operands, self.majors)]
        packed = [pack(codes, TYPES[kind][1]) for codes, kind in zip(stored, self.types)]
        scales = [packed_scales(s) for _, s in operands if s is not None]
        return packed + scales + [np.full(self.shape[:2], -1, np.int32).view(self.out)]

    def tensor_map(self, device, which, at):
        """Returns the CUtensorMap by which a thread block loads its rows of A or B."""
        _, bits, plain, spread = TYPES[self.types[which]]
        held = max(bits, 8) if self.spread else bits
        extents, tile = (self.shape[2], self.shape[which]), (self.step, self.shape[which] // self.ctas)
        if self.majors[which] == "m":
            extents, tile = extents[::-1], tile[::-1]
        row = min(1024, tile[0] * held)
        return driver.tensor_map(device, spread if self.spread else plain, at, extents, [extents[0] * bits // 8],
                                 (row // held, tile[1]), SWIZZLES[row // 8])

    def arguments(self, device, at):
        # The kernel's first argument is the state of the MMA operation. Its bytes 1 and 2 say
        # whether A and B are negated. Without scales, a mask follows of the lanes of tensor memory
        # that the operation must not write, which is 0 here.
        state = (ctypes.c_uint8 * (12 if self.scale else 32 * self.ctas))(0, "A" in self.negated, "B" in self.negated)
        return [state, *(self.tensor_map(device, k, at[k]) for k in range(2)), *at[2:]]


class CopyCase:
    """Represents a copy by tcgen05.cp. See kernels_cute.Copy for `rows` and `lanes`."""
    ctas = 1

    def __init__(self, name, op, atom, rows, lanes, columns):
        self.name, self.op, self.atom, self.rows, self.lanes, self.columns = name, op, atom, rows, lanes, columns

    def compile(self):
        import cutlass
        import cutlass.cute as cute
        import kernels_cute
        from cutlass.cute.nvgpu import tcgen05
        from cutlass.cute.runtime import make_ptr
        copy = kernels_cute.Copy(getattr(tcgen05, self.op), getattr(tcgen05.SmemLayoutAtomKind, self.atom), self.rows, self.lanes, self.columns)
        return cute.compile(copy, *[make_ptr(cutlass.Int32, 0, cute.AddressSpace.gmem, assumed_align=32)] * 2).__ptx__

    def arrays(self):
        source = np.random.default_rng(3).integers(0, 1 << 31, (128, self.columns)).astype(np.int32)
        return [source, np.full_like(source, -1)]

    def arguments(self, device, at):
        return at

    def wrong(self, result):
        source, expect = self.arrays()
        for index in itertools.product(*map(range, self.rows[0])):
            row, lane = (sum(np.multiply(index, stride)) for stride in (self.rows[1], self.lanes[1]))
            expect[lane] = source[row]
        return first_wrong(result, expect, 0)


class WarpCase(Case):
    """Represents a block-scaled product of one warp by mma.sync. Elements of 4 bits take a byte each if A
    and B have different types."""

    def __init__(self, name, kind, a, b, shape, scale):
        super().__init__(name, kind, a, b, shape, 0, scale=scale)

    def mixed(self):
        return self.types[0] != self.types[1]

    def compile(self):
        import cutlass
        import cutlass.cute as cute
        import kernels_cute
        from cutlass.cute.nvgpu import warp
        from cutlass.cute.runtime import make_ptr
        kinds = [getattr(cutlass, TYPES[t][0]) for t in self.types]
        factor = getattr(cutlass, SCALES[self.scale[0]])
        held = [cutlass.Int8 if self.mixed() and k.width < 8 else k for k in kinds]
        operation = lambda: getattr(warp, self.kind)(*kinds[:1 + self.mixed()], cutlass.Float32, factor)
        product = kernels_cute.WarpProduct(operation, held, (factor, self.scale[1]), self.shape)
        pointers = [make_ptr(t, 0, cute.AddressSpace.gmem, assumed_align=32) for t in (*held, factor, factor, cutlass.Float32)]
        return cute.compile(product, *pointers).__ptx__

    def arrays(self):
        operands = self.operands()
        codes = [pack(c, 8 if self.mixed() else TYPES[t][1]) for (c, _), t in zip(operands, self.types)]
        return codes + [s for _, s in operands] + [np.full(self.shape[:2], np.nan, np.float32)]

    def arguments(self, device, at):
        return at


class GroupCase(Case):
    """Represents a product of 64 rows by wgmma. Shared memory holds all of A and B."""

    def __init__(self, name, a, b, shape, majors="kk"):
        super().__init__(name, "MmaI8Op" if a in ("s8", "u8") else "", a, b, shape, shape[2], majors=majors)

    def compile(self):
        import cutlass
        import cutlass.cute as cute
        import kernels_cute
        from cutlass.cute.nvgpu import OperandMajorMode
        from cutlass.cute.runtime import make_ptr
        kinds = [getattr(cutlass, TYPES[t][0]) for t in self.types]
        out = cutlass.Int32 if self.out == np.int32 else cutlass.Float32
        majors = [OperandMajorMode.K if m == "k" else OperandMajorMode.MN for m in self.majors]
        product = kernels_cute.GroupProduct(kinds, out, self.shape, majors)
        return cute.compile(product, *[make_ptr(t, 0, cute.AddressSpace.gmem, assumed_align=32) for t in (*kinds, out)]).__ptx__

    def difference(self, result, operands):
        """Returns None if the result is right. For FP8, the tensor cores keep 14 bits of sums, and
        the simulator must give bitwise identical results."""
        if self.types[0] not in ("e4m3", "e5m2"):
            return super().difference(result, operands)
        return first_wrong(result, F.tensor_core_dot(*self.values(operands), self.types[0]), 0)

    def arguments(self, device, at):
        # The kernel's first argument is the state of the MMA operation. Its value does not matter,
        # because each product sets it.
        return [ctypes.c_uint8(), *super().arguments(device, at)[1:]]


def mx(name, a, b, shape=(128, 128, 256), **more):
    """Returns a block-scaled product. Its elements have 8 bits, or TMA spreads them over 8 bits."""
    return Case(name, "MmaMXF8F6F4Op", a, b, shape, 128, scale=("ue8m0", 32), spread=True, **more)


def all_cases(arch):
    if arch == "sm_100a":
        return [
            mx("mxfp8", "e4m3", "e4m3"), mx("mxfp8_e5m2", "e5m2", "e5m2", negated="A"),
            mx("mxfp6_e3m2", "e3m2", "e3m2"), mx("mxfp6_e2m3", "e2m3", "e2m3"),
            mx("e3m2_e4m3", "e3m2", "e4m3"), mx("e4m3_e2m3", "e4m3", "e2m3"), mx("e4m3_e2m1", "e4m3", "e2m1"),
            mx("e2m1_e3m2", "e2m1", "e3m2"), mx("e5m2_e4m3_n256", "e5m2", "e4m3", (128, 256, 256)),
            mx("pair_mxfp8", "e4m3", "e4m3", (256, 128, 256), ctas=2), mx("pair_e2m3_e5m2", "e2m3", "e5m2", (256, 256, 256), ctas=2),
            Case("mxfp4", "MmaMXF4Op", "e2m1", "e2m1", (128, 128, 512), 256, scale=("ue8m0", 32)),
            Case("nvfp4", "MmaMXF4NVF4Op", "e2m1", "e2m1", (128, 128, 512), 256, scale=("ue4m3", 16)),
            Case("pair_mxfp4", "MmaMXF4Op", "e2m1", "e2m1", (256, 128, 512), 256, ctas=2, scale=("ue8m0", 32)),
            Case("pair_nvfp4", "MmaMXF4NVF4Op", "e2m1", "e2m1", (256, 256, 512), 256, ctas=2, scale=("ue4m3", 16)),
            Case("mxfp8_mn", "MmaMXF8F6F4Op", "e4m3", "e5m2", (128, 128, 256), 128, scale=("ue8m0", 32), majors="mm"),
            Case("f8f6f4", "MmaF8F6F4Op", "e3m2", "e2m1", (128, 128, 256), 128, spread=True),
            Case("f8f6f4_m64", "MmaF8F6F4Op", "e4m3", "e2m3", (64, 72, 256), 128, spread=True, load=("Ld16x256bOp", 1)),
            Case("f8_mn", "MmaF8F6F4Op", "e5m2", "e4m3", (128, 64, 256), 128, majors="mk"),
            Case("f8_swizzle_64", "MmaF8F6F4Op", "e4m3", "e5m2", (128, 128, 128), 64),
            Case("f8_swizzle_32", "MmaF8F6F4Op", "e5m2", "e4m3", (128, 64, 64), 32),
            Case("f8_mn_swizzle_64", "MmaF8F6F4Op", "e4m3", "e4m3", (64, 64, 64), 32, majors="mm", load=("Ld16x128bOp", 8)),
            Case("f8_mn_swizzle_32", "MmaF8F6F4Op", "e4m3", "e5m2", (128, 32, 128), 128, majors="km"),
            Case("f8_mn_plain", "MmaF8F6F4Op", "e4m3", "e5m2", (128, 16, 128), 128, majors="km", load=("Ld32x32bOp", 16)),
            Case("pair_f8f6f4", "MmaF8F6F4Op", "e2m3", "e4m3", (256, 96, 256), 128, ctas=2, spread=True),
            Case("bf16", "MmaF16BF16Op", "bf16", "bf16", (128, 128, 128), 64, negated="AB"),
            Case("f16_mn", "MmaF16BF16Op", "f16", "f16", (128, 64, 128), 64, majors="mm"),
            Case("tf32", "MmaTF32Op", "tf32", "tf32", (128, 128, 64), 32, negated="B"),
            Case("pair_tf32", "MmaTF32Op", "tf32", "tf32", (256, 64, 64), 32, ctas=2),
            Case("s8", "MmaI8Op", "s8", "s8", (128, 128, 256), 128),
            Case("u8", "MmaI8Op", "u8", "u8", (64, 64, 256), 128, load=("Ld16x64bOp", 16)),
            Case("pair_s8", "MmaI8Op", "s8", "s8", (128, 128, 256), 128, ctas=2),
            CopyCase("cp_128x128b", "Cp128x128bOp", "K_SW64", ((128,), (1,)), ((128,), (1,)), 32),
            CopyCase("cp_128x256b", "Cp128x256bOp", "K_INTER", ((128,), (1,)), ((128,), (1,)), 16),
            CopyCase("cp_128x256b_swizzle_128", "Cp128x256bOp", "K_SW128", ((128,), (1,)), ((128,), (1,)), 32),
            CopyCase("cp_64x128b_02_13", "Cp2x64x128b0213Op", "K_SW32", ((64, 2), (1, 0)), ((64, 2), (1, 64)), 16),
            CopyCase("cp_64x128b_01_23", "Cp2x64x128b0123Op", "K_INTER", ((32, 2, 2), (1, 32, 0)), ((32, 2, 2), (1, 64, 32)), 8),
            CopyCase("cp_32x128b_warpx4", "Cp4x32x128bOp", "K_SW128", ((32, 4), (1, 0)), ((32, 4), (1, 32)), 32),
        ]
    if arch == "sm_90a":
        return [
            GroupCase("group_f16", "f16", "f16", (64, 128, 64)),
            GroupCase("group_bf16_mn", "bf16", "bf16", (64, 64, 64), "mm"),
            GroupCase("group_e4m3", "e4m3", "e4m3", (64, 96, 128)),
            GroupCase("group_e5m2", "e5m2", "e5m2", (64, 64, 64)),
            GroupCase("group_s8", "s8", "s8", (64, 64, 128)),
            GroupCase("group_u8", "u8", "u8", (64, 32, 64)),
        ]
    if arch == "sm_120a":
        shape = (32, 16, 128)
        return [
            WarpCase("warp_mxfp8", "MmaMXF8Op", "e4m3", "e4m3", shape, ("ue8m0", 32)),
            WarpCase("warp_mxfp8_e5m2", "MmaMXF8Op", "e5m2", "e5m2", shape, ("ue8m0", 32)),
            WarpCase("warp_mxfp4", "MmaMXF4Op", "e2m1", "e2m1", shape, ("ue8m0", 32)),
            WarpCase("warp_nvfp4", "MmaMXF4NVF4Op", "e2m1", "e2m1", shape, ("ue4m3", 16)),
            WarpCase("warp_e2m1_e4m3", "MmaMXF8F6F4Op", "e2m1", "e4m3", shape, ("ue8m0", 32)),
            WarpCase("warp_e5m2_e2m1", "MmaMXF8F6F4Op", "e5m2", "e2m1", shape, ("ue8m0", 32)),
        ]
    return []
