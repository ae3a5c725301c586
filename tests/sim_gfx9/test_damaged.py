"""Tests that a damaged code object gives an error, or a module whose kernels run or stop, but never
a crash. usage: test_damaged.py ARCH"""
import ctypes
import os
import random
import sys

import numpy as np

import assemble
import hip

BODY = """s_load_dwordx4 s[4:7], s[0:1], 0
v_lshlrev_b32 v1, 2, v0
s_waitcnt lgkmcnt(0)
global_load_dword v2, v1, s[4:5]
s_waitcnt vmcnt(0)
v_cvt_f32_u32_e32 v2, v2
v_mul_f32_e64 v2, |v2|, 2.0 clamp
ds_write_b32 v1, v2
ds_read_b32 v2, v1
s_waitcnt lgkmcnt(0)
global_store_dword v1, v2, s[6:7]
"""


def damage(rng, code):
    """Returns the code object with a few bytes changed, or with its end cut off."""
    out = bytearray(code)
    kind = rng.randrange(4)
    if kind == 0:
        return bytes(out[:rng.randrange(len(out))])
    for _ in range(rng.randrange(1, 6)):
        at = rng.randrange(64 if kind == 1 else len(out))
        out[at] = rng.choice([0, 255, rng.randrange(256), out[at] ^ 1 << rng.randrange(8)])
    return bytes(out)


def main():
    arch = sys.argv[1]
    os.environ["BSMM_SIM_LIMIT"] = "20000"
    code = assemble.assembly(arch, {"first": BODY, "second": BODY}, lds=1024)
    device = hip.Device(arch)
    rng = random.Random(7)
    loaded = ran = 0
    source, target = device.upload(np.zeros(64, np.uint32)), device.upload(np.zeros(64, np.uint32))
    for _ in range(int(os.environ.get("SIM_ROUNDS", "400"))):
        broken = damage(rng, code)
        module = ctypes.c_void_p()
        with open(f"/dev/shm/sim_damaged_{os.getpid()}", "wb") as f:
            f.write(broken)
        try:
            device.call("hipModuleLoad", ctypes.byref(module), f.name.encode())
        except hip.Error:
            continue
        loaded += 1
        try:
            device.launch(device.function(module, "first"), (1,), (64,), 0, [source, target])
            ran += 1
        except hip.Error:
            pass
        device.unload(module)
    os.unlink(f.name)
    print(f"{arch}: {loaded} damaged code objects were loaded, {ran} of them ran to the end; no crash")


if __name__ == "__main__":
    main()
