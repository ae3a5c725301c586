"""Tests that damaged PTX gives an error, or a module whose kernels run or stop, but never a crash.
usage: test_damaged.py ARCH"""
import ctypes
import os
import random
import sys

import driver
import numpy as np

TEXT = """.version 8.0
.target sm_80
.address_size 64
.file 1 "damaged.cu"
.global .align 4 .b32 table[4] = {1, 2, 0x10, -1};
.extern .shared .align 16 .b8 dynamic[];
.func (.param .b32 result) twice(.param .b32 value) {
 .reg .b32 %r<3>;
 ld.param.b32 %r1, [value];
 shl.b32 %r2, %r1, 1;
 st.param.b32 [result], %r2;
 ret;
}
.visible .entry kernel(.param .u64 a, .param .align 8 .b8 c[16]) .reqntid 32 {
 .reg .pred %p<3>;
 .reg .b16 %h<4>;
 .reg .b32 %r<12>;
 .reg .f32 %f<4>;
 .reg .b64 %rd<6>;
 .shared .align 16 .b8 tile[256];
 .loc 1 7 3
 ld.param.u64 %rd1, [a];
 cvta.to.global.u64 %rd2, %rd1;
 mov.u32 %r1, %tid.x;
 mul.wide.u32 %rd3, %r1, 4;
 add.s64 %rd4, %rd2, %rd3;
 ld.global.u32 %r2, [%rd4+0];
 mov.u32 %r3, tile;
 shl.b32 %r4, %r1, 2;
 add.s32 %r3, %r3, %r4;
 st.shared.u32 [%r3], %r2;
 bar.sync 0;
 setp.lt.u32 %p1|%p2, %r1, 16;
 @%p1 bra $L1;
 add.rn.f32 %f1, 0f3F800000, 1.5;
 bra.uni $L2;
$L1:
 mov.f32 %f1, 0f40000000;
$L2:
 cvt.rzi.u32.f32 %r5, %f1;
 shfl.sync.bfly.b32 %r6|%p2, %r2, 1, 31, -1;
 { .param .b32 p0; .param .b32 r0;
 st.param.b32 [p0], %r6;
 call.uni (r0), twice, (p0);
 ld.param.b32 %r7, [r0]; }
 mov.b32 {%h1, %h2}, %r7;
 mov.b32 %r8, {%h2, %h1};
 prmt.b32 %r8, %r8, %r5, 0x5432;
 st.global.u32 [%rd4], %r8;
 ret;
}
"""


def damage(rng, text):
    """Returns the PTX text with some characters or words changed, moved or left out, or with its
    end cut off."""
    out = bytearray(text.encode())
    kind = rng.randrange(5)
    if kind == 0:
        return bytes(out[:rng.randrange(len(out))])
    if kind == 1:
        words = text.split(" ")
        for _ in range(rng.randrange(1, 4)):
            words[rng.randrange(len(words))] = words[rng.randrange(len(words))]
        return " ".join(words).encode()
    if kind == 2:
        lines = text.split("\n")
        for _ in range(rng.randrange(1, 3)):
            lines[rng.randrange(4, len(lines))] = lines[rng.randrange(len(lines))]
        return "\n".join(lines).encode()
    for _ in range(rng.randrange(1, 5)):
        at = rng.randrange(len(out))
        out[at] = rng.choice(b"0987654321{}[]()<>;,.%$@!|+-_:rpxub\xff\t\n")
    return bytes(out)


def main():
    arch = sys.argv[1]
    os.environ["BSMM_SIM_LIMIT"] = "20000"
    device = driver.Device(arch)
    rng = random.Random(7)
    data = device.upload(np.arange(32, dtype=np.uint32))
    args = [data, (ctypes.c_uint8 * 16)()]
    module = device.load(TEXT)
    device.launch(device.function(module, "kernel"), (1,), (32,), 0, args)
    expect = (2 * (np.arange(32) ^ 1) | 2 << 16).astype(np.uint32)
    got = device.download(data, np.zeros(32, np.uint32))
    assert (got == expect).all(), (got, expect)
    device.unload(module)
    loaded = ran = 0
    for _ in range(int(os.environ.get("SIM_ROUNDS", "4000"))):
        try:
            module = device.load(damage(rng, TEXT).replace(b"\0", b" "))
        except driver.Error:
            continue
        loaded += 1
        try:
            device.launch(device.function(module, "kernel"), (1,), (32,), 64, args)
            ran += 1
        except driver.Error:
            pass
        device.unload(module)
    print(f"{arch}: {loaded} damaged modules were loaded, {ran} of them ran to the end; no crash")


if __name__ == "__main__":
    main()
