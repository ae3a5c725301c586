"""Compares the Triton kernels of kernels_tma.py, which read their operands by tensor maps, with NumPy
in double. usage: test_tma.py ARCH FOLDER"""
import ctypes
import pathlib
import re
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "sim_gfx9"))
import driver
import formats as F
import kernels_tma as K
import numpy as np
from triton.compiler import ASTSource
from triton_ptx import compile_ptx

TYPES = {"u8": (0, 1), "fp8e4nv": (0, 1), "fp8e5": (0, 1), "fp16": (6, 2), "bf16": (9, 2), "fp32": (7, 4), "i32": (3, 4), "u32": (2, 4)}


def compile_kernel(arch, fn, types, constants, warps=4):
    names = fn.arg_names
    signature = dict(zip(names, types + ["constexpr"] * (len(names) - len(types))))
    attrs = {(i,): [["tt.divisibility", 16]] for i, t in enumerate(types) if t == "i32"}
    source = ASTSource(fn, signature, {(names.index(k),): v for k, v in constants.items()}, attrs)
    return compile_ptx(source, arch, {"num_warps": warps})


def tensor_map(device, kind, at, shape, box, swizzle, fp4_padded=False):
    """Returns the CUtensorMap of an array without gaps whose last dimension is contiguous. If
    fp4_padded is set, the array has two 4-bit elements in a byte, and the copy spreads them over
    units of 16 bytes."""
    number, size = (14, 1) if fp4_padded else TYPES[kind]
    rank = len(shape)
    extents = list(shape[::-1])
    strides, step = [], size
    for n in extents[:-1]:
        step *= n
        strides.append(step)
    boxes = list(box[::-1])
    if fp4_padded:
        extents[0] *= 2  # The array counts bytes of two elements; the box of the copy counts elements already.
    return driver.tensor_map(device, number, at, extents, strides, boxes, swizzle)


def launch(device, built, grid, tensors, scalars):
    """Runs a kernel. `tensors` lists (array, kind) in the order of the kernel's tensor maps. The
    kernel's arguments are each tensor map, followed by its shape and its strides."""
    shapes = built.metadata.tensordesc_meta
    args, buffers = [], []
    for (array, kind), meta in zip(tensors, shapes):
        at = device.upload(array)
        buffers.append(at)
        args.append(tensor_map(device, kind, at, array.shape, meta["block_size"], meta["swizzle"], meta.get("fp4_padded", False)))
        args += [ctypes.c_int32(n) for n in array.shape]
        step, strides = 1, []
        for n in array.shape[::-1]:
            strides.insert(0, step)
            step *= n
        args += [ctypes.c_int64(n) for n in strides]
    args += [ctypes.c_int32(n) for n in scalars] + [ctypes.c_uint64(0), ctypes.c_uint64(0)]
    module = device.load(built.asm["ptx"])
    found = re.search(r"\.reqntid (\d+)", built.asm["ptx"])
    threads = int(found.group(1)) if found else 32 * built.metadata.num_warps
    device.launch(device.function(module, built.metadata.name, built.metadata.shared), grid, (threads,), built.metadata.shared, args)
    out = device.download(buffers[-1], tensors[-1][0].copy())
    for at in buffers:
        device.free(at)
    device.unload(module)
    return out


def compare(name, got, expect, bound):
    wrong = ~(np.abs(got - expect) <= bound)
    print(f"{name}: {'equal' if not wrong.any() else str(wrong.sum()) + ' wrong'}", flush=True)
    return wrong.any()


def run_dot(device, arch, kind, warps):
    rng = np.random.default_rng(1)
    M, N, KK, BM, BN, BK = 256, 128, 192, 128, 64, 64
    if kind == "fp16":
        a, b = rng.standard_normal((M, KK)).astype(np.float16), rng.standard_normal((N, KK)).astype(np.float16)
        av, bv = a.astype(np.float64), b.astype(np.float64)
    else:
        a, b = (F.encode(rng.standard_normal(s), "e4m3").astype(np.uint8) for s in ((M, KK), (N, KK)))
        av, bv = F.decode(a, "e4m3"), F.decode(b, "e4m3")
    types = [f"tensordesc<{kind}[{BM},{BK}]>", f"tensordesc<{kind}[{BN},{BK}]>", f"tensordesc<fp32[{BM},{BN}]>", "i32"]
    built = compile_kernel(arch, K.dot, types, dict(BM=BM, BN=BN, BK=BK), warps)
    got = launch(device, built, (M // BM, N // BN), [(a, kind), (b, kind), (np.zeros((M, N), np.float32), "fp32")], [KK])
    if kind != "fp16" and "wgmma.mma_async" in built.asm["ptx"]:
        # The tensor cores keep 14 bits of FP8 sums, and the simulator must give bitwise identical
        # results, so no error is allowed.
        return compare(f"dot {kind}, {warps} warps", got, F.tensor_core_dot(av, bv, "e4m3"), 0)
    return compare(f"dot {kind}, {warps} warps", got, av @ bv.T, KK * 2.0 ** -23 * (np.abs(av) @ np.abs(bv).T))


def packed_scales(scales):
    """Returns a matrix of scales (rows, blocks) in the layout nv_128x4, as an array of shape (1,
    rows/128, blocks/4, 2, 256)."""
    R, C = scales.shape
    return np.ascontiguousarray(scales.reshape(R // 128, 4, 32, C // 4, 4).transpose(0, 3, 2, 1, 4)).reshape(1, R // 128, C // 4, 2, 256)


def operand(rng, rows, K_, kind, block, scale):
    codes = (rng.integers(0, 16, (rows, K_)) if kind == "e2m1" else F.encode(rng.standard_normal((rows, K_)), kind)).astype(np.uint8)
    values = F.decode(codes, kind)
    if scale == "e8m0":
        s = rng.integers(120, 134, (rows, K_ // block)).astype(np.uint8)
        sv = 2.0 ** (s.astype(np.float64) - 127)
    else:
        s = F.encode(rng.uniform(0.1, 4, (rows, K_ // block)), "e4m3").astype(np.uint8)
        sv = F.decode(s, "e4m3")
    return F.pack4(codes) if kind == "e2m1" else codes, packed_scales(s), values * np.repeat(sv, block, axis=1)


def run_scaled(device, arch, name, fa, fb, block, scale):
    rng = np.random.default_rng(2)
    M, N, KK, BM, BN, BK = 128, 256, 512, 128, 128, 256
    a, sa, av = operand(rng, M, KK, fa, block, scale)
    b, sb, bv = operand(rng, N, KK, fb, block, scale)
    pa, pb = 1 + (fa == "e2m1"), 1 + (fb == "e2m1")
    kinds = [{"e2m1": "u8", "e4m3": "fp8e4nv", "e5m2": "fp8e5"}[f] for f in (fa, fb)]
    scale_kind = "u8" if scale == "e8m0" else "fp8e4nv"
    box = f"[1,1,{BK // block // 4},2,256]"
    types = [f"tensordesc<{kinds[0]}[{BM},{BK // pa}]>", f"tensordesc<{scale_kind}{box}>", f"tensordesc<{kinds[1]}[{BN},{BK // pb}]>",
             f"tensordesc<{scale_kind}{box}>", f"tensordesc<fp32[{BM},{BN}]>", "i32"]
    built = compile_kernel(arch, K.dot_scaled, types, dict(FA=fa, FB=fb, PA=pa, PB=pb, BM=BM, BN=BN, BK=BK, V=block))
    tensors = [(a, kinds[0]), (sa, scale_kind), (b, kinds[1]), (sb, scale_kind), (np.zeros((M, N), np.float32), "fp32")]
    got = launch(device, built, (M // BM, N // BN), tensors, [KK])
    return compare(f"dot_scaled {name}", got, av @ bv.T, KK * 2.0 ** -23 * (np.abs(av) @ np.abs(bv).T))


# COMBINED lists reductions of TMA: (operation, element type, NumPy's function). min and max are
# missing, because Triton compiles them only on a machine with a GPU.
COMBINED = [("add", "fp32", np.add), ("add", "fp16", np.add), ("add", "i32", np.add), ("add", "u32", np.add),
            ("and", "i32", np.bitwise_and), ("or", "i32", np.bitwise_or), ("xor", "i32", np.bitwise_xor)]


def run_combine(device, arch, operation, kind, function):
    rng = np.random.default_rng(4)
    M, N, BM, BN = 72, 48, 32, 32
    numbers = {"fp32": np.float32, "fp16": np.float16, "i32": np.int32, "u32": np.uint32}[kind]
    if kind[0] == "f":
        a, c = (rng.standard_normal((M, N)).astype(numbers) for _ in range(2))
    else:
        a, c = (rng.integers(0, 2 ** 32, (M, N), np.uint64).astype(np.uint32).view(numbers) for _ in range(2))
    types = [f"tensordesc<{kind}[{BM},{BN}]>"] * 2
    built = compile_kernel(arch, K.combine, types, dict(OP=operation, BM=BM, BN=BN))
    if "cp.reduce.async.bulk.tensor" not in built.asm["ptx"]:
        print(f"{operation} {kind}: Triton does not use TMA's reduction")
        return True
    got = launch(device, built, (3, 2), [(a, kind), (c, kind)], [])
    return compare(f"{operation} of {kind} by TMA", got.astype(np.float64), function(c, a).astype(np.float64), 0)


SCALED = [("mxfp8", "e4m3", "e4m3", 32, "e8m0"), ("mxfp8_e5m2", "e5m2", "e4m3", 32, "e8m0"), ("mxfp4", "e2m1", "e2m1", 32, "e8m0"),
          ("nvfp4", "e2m1", "e2m1", 16, "e4m3"), ("mixed", "e4m3", "e2m1", 32, "e8m0")]

# EARLY gives the number of kernels that read results of tcgen05.ld before the wait.
EARLY = {"sm_100a": 9}


def main():
    arch = sys.argv[1]
    device = driver.TritonDevice(arch)
    failed = [run_dot(device, arch, kind, warps) for kind in ("fp16", "fp8e4nv") for warps in (4, 8)]
    failed += [run_combine(device, arch, *row) for row in COMBINED]
    if arch.startswith("sm_100"):
        failed += [run_scaled(device, arch, *row) for row in SCALED]
    print(f"{arch}: {len(failed)} kernels with tensor maps, {sum(failed)} failed, {device.steps()} instructions")
    print(f"{device.early} of them read results of tcgen05.ld before the wait")
    sys.exit(any(failed) or device.early != EARLY.get(arch, 0))


if __name__ == "__main__":
    main()
