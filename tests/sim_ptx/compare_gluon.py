"""Compares bsmm's kernel for block-scaled products on Blackwell with the Gluon kernel of kernels_specialized.py, under the time
model of a B200. Prints the TFLOP/s of both for four pairs of formats, their ratio, and the share of each launch in which the tensor
cores multiply ("busy"). "In loop" is this share from an SM's first product to the end of its last one. Only the launch that multiplies counts: both kernels read scales in the layout nv_128x4. usage: compare_gluon.py BSMM
[M N K]. $SIM_LIBRARY names the simulator's library."""
import ctypes
import json
import re
import subprocess
import sys

import driver
import kernels_specialized as K
import numpy as np
from triton.experimental.gluon import language as gl
from triton.experimental.gluon._runtime import GluonASTSource
from triton_ptx import compile_ptx

TILE_M, TILE_N, STAGES, BAND = 128, 256, 3, 8
SECONDS, REPLAYED, SMS, BUSY, LOOP, FIELDS = 0, 2, 6, 9, 21, 22
FORMATS = [("mxfp8", "mxfp8"), ("mxfp4", "mxfp4"), ("mxfp8", "mxfp4"), ("nvfp4", "nvfp4")]
ELEMENTS = {"mxfp8": "e4m3", "mxfp4": "e2m1", "nvfp4": "e2m1"}


def descriptor(dtype, block, layout):
    return f"tensordesc<{dtype}[{','.join(map(str, block))}],{layout!r}>"


class Operand:
    """Holds what the kernel and the tensor maps need to know about A or B."""

    def __init__(self, device, format, mixed, rows, cols, tile_rows, block_k):
        four = format != "mxfp8"
        per_byte, self.padded = (2 if four else 1), mixed and four
        block = 16 if format == "nvfp4" else 32
        kind = gl.uint8 if four else gl.float8e4nv
        self.box = [tile_rows, block_k // per_byte]
        layout = gl.NVMMASharedLayout.get_default_for(self.box, kind, fp4_padded=self.padded)
        self.type = descriptor("u8" if four else "fp8e4nv", self.box, layout)
        self.shape = [rows, cols // per_byte]
        self.scale_box = [1, tile_rows // 128, block_k // block // 4, 2, 256]
        plain = gl.NVMMASharedLayout(swizzle_byte_width=0, element_bitwidth=8, rank=5)
        self.scale_type = descriptor("fp8e4nv" if format == "nvfp4" else "u8", self.scale_box, plain)
        self.scale_shape = [1, rows // 128, cols // block // 4, 2, 256]
        # All elements are 1, and all scales of row r are 2^(r % 3).
        self.at = device.upload(np.full(self.shape, 0x22 if four else 0x38, np.uint8))
        scales = np.zeros((rows, cols // block), np.uint8) + (np.array([0x38, 0x40, 0x48], np.uint8) if format == "nvfp4" else np.array(
            [127, 128, 129], np.uint8))[np.arange(rows) % 3, None]
        self.scales_at = device.upload(scales.reshape(rows // 128, 4, 32, -1, 4).transpose(0, 3, 2, 1, 4))


def tensor_arguments(device, number, size, at, shape, box, swizzle, spread=1):
    """Returns the arguments of a tensor: its tensor map, its shape and its strides. If `spread` is 2, TMA spreads elements of 4
    bits to a byte each."""
    strides = [int(np.prod(shape[i + 1:])) for i in range(len(shape))]
    extents = shape[::-1]
    made = driver.tensor_map(device, number, at, [extents[0] * spread, *extents[1:]], [s * size for s in strides[-2::-1]],
                             [box[-1] * spread, *box[-2::-1]], swizzle)
    return [made, *map(ctypes.c_int32, shape), *map(ctypes.c_int64, strides)]


def gluon(device, formats, m, n, k):
    """Runs the Gluon kernel. Returns the seconds of the launch, the busy shares of the tensor cores, and D."""
    mixed = formats[0] != formats[1]
    block_k = 128 if "mxfp8" in formats else 256
    a, b = (Operand(device, f, mixed, rows, k, tile, block_k) for f, rows, tile in zip(formats, (m, n), (TILE_M, TILE_N)))
    box = [TILE_M, TILE_N]
    layout = gl.NVMMASharedLayout.get_default_for(box, gl.float16)
    types = [a.type, b.type, descriptor("fp16", box, layout), a.scale_type, b.scale_type]
    names = K.specialized.arg_names
    signature = dict(zip(names, types + ["constexpr"] * 4))
    constants = dict(zip(((i,) for i in range(5, 9)), (ELEMENTS[formats[0]], ELEMENTS[formats[1]], STAGES, BAND)))
    built = compile_ptx(GluonASTSource(K.specialized, signature, constants, {}), device.arch, {"num_warps": 4, "num_ctas": 1})
    text = built.asm["ptx"]
    threads = int(re.search(r"\.(?:reqntid|maxntid) (\d+)", text).group(1))
    d = device.upload(np.zeros((m, n), np.float16))
    elements = [tensor_arguments(device, 14 if o.padded else 0, 1, o.at, o.shape, o.box, 3, 2 if o.padded else 1) for o in (a, b)]
    scales = [tensor_arguments(device, 0, 1, o.scales_at, o.scale_shape, o.scale_box, 0) for o in (a, b)]
    result = tensor_arguments(device, 6, 2, d, [m, n], [TILE_M, 64], 3)
    arguments = [x for part in (*elements, result, *scales) for x in part] + [ctypes.c_uint64(0), ctypes.c_uint64(0)]
    module = device.load(text)
    function = device.function(module, built.metadata.name, built.metadata.shared)
    blocks = min(148, -(-m // TILE_M) * -(-n // TILE_N))
    device.launch(function, (blocks,), (threads,), built.metadata.shared, arguments)
    device.call("cuCtxSynchronize")
    times = (ctypes.c_double * FIELDS)()
    device.lib.bsmm_sim_times(0, None, 0, times, FIELDS)
    result = device.download(d, np.zeros((m, n), np.float16))
    for at in (a.at, a.scales_at, b.at, b.scales_at, d):
        device.free(at)
    device.unload(module)
    return times[SECONDS], (times[BUSY] / (times[REPLAYED] * times[SMS]), times[BUSY] / times[LOOP]), result


def ours(bsmm, formats, m, n, k):
    """Returns the seconds and the busy shares for bsmm. The launch that multiplies is the longest one."""
    command = [bsmm, "bench", "--device", "sim:sm_100", "-f", ":".join(formats), "-M", str(m), "-N", str(n), "-K", str(k), "--out", "f16"]
    text = subprocess.run([*command, "--sampled", "--counters", "--json"], check=True, capture_output=True, text=True).stdout
    launch = max(json.loads(text.splitlines()[0])["counters"], key=lambda c: c["seconds"])
    return launch["seconds"], (launch["matrix_busy"], launch["matrix_loop"])


def check(device):
    """Compares the results of the Gluon kernel with exact ones, for a product of several tiles."""
    m, n, k = 256, 512, 1024
    powers = [2.0 ** (np.arange(rows) % 3) for rows in (m, n)]
    for formats in FORMATS:
        if not np.array_equal(gluon(device, formats, m, n, k)[2], k * np.outer(*powers)):
            sys.exit(f"{formats}: the Gluon kernel is wrong")


def main():
    m, n, k = map(int, sys.argv[2:5]) if len(sys.argv) > 2 else (8192,) * 3
    device = driver.Device("sm_100a")
    device.lib.bsmm_sim_time(1)
    check(device)
    device.lib.bsmm_sim_time(2)
    print(f"{m} x {n} x {k}, model     bsmm TFLOP/s   busy   in loop   Gluon TFLOP/s   busy   in loop   ratio")
    for formats in FORMATS:
        (mine, my_busy), (peer, peer_busy, _) = ours(sys.argv[1], formats, m, n, k), gluon(device, formats, m, n, k)
        rates = [2e-12 * m * n * k / seconds for seconds in (mine, peer)]
        print(f"{' x '.join(formats):<26}{rates[0]:12.0f}{my_busy[0]:7.2f}{my_busy[1]:10.2f}{rates[1]:16.0f}"
              f"{peer_busy[0]:7.2f}{peer_busy[1]:10.2f}{peer / mine:8.2f}", flush=True)


main()
