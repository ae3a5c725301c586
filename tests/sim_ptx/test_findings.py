"""Tests that a kernel with one mistake stops, with a message that names the mistake, the kernel, the
lines and the thread, and that a kernel without mistakes that resembles one of these ends without an
error. usage: test_findings.py ARCH"""
import os
import re
import sys

import driver
import numpy as np

HEAD = """.version 8.7
.target {target}
.address_size 64
.file 1 "fault.cu"
.visible .entry kernel(.param .u64 a) {{
 .reg .pred %p<6>;
 .reg .b32 %r<12>;
 .reg .f32 %f<68>;
 .reg .b64 %rd<8>;
 .shared .align 1024 .b8 tile[4112];
 ld.param.u64 %rd1, [a];
 mov.u32 %r1, %tid.x;
 mul.wide.u32 %rd2, %r1, 4;
 add.s64 %rd3, %rd1, %rd2;
 mov.u32 %r2, tile;
 shl.b32 %r3, %r1, 2;
 add.s32 %r3, %r3, %r2;
 setp.eq.u32 %p1, %r1, 0;
 .loc 1 42 7
"""

# These are parts of kernels with asynchronous operations on shared memory. The mbarrier is at %r2 +
# 3072.
STORE = "@%p1 cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r2], {bytes}; @%p1 cp.async.bulk.commit_group; "
STORED = "@%p1 cp.async.bulk.wait_group.read 0; "
INIT = "@%p1 mbarrier.init.shared::cta.b64 [%r2+3072], 1; bar.sync 0; "
LOAD = ("@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2+3072], 128; "
        "@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%rd1], 128, [%r2+3072]; ")
LOADED = "$A: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r2+3072], {parity}; @!%p2 bra $A; "
# SLOW delays warp 0 by a loop, so that the other warps execute the following code first. It does
# not synchronize warps, so it does not hide a race.
SLOW = "mov.u32 %r9, 0; setp.lt.u32 %p3, %r1, 32; @!%p3 bra $S; $R: add.u32 %r9, %r9, 1; setp.lt.u32 %p4, %r9, 9000; @%p4 bra $R; $S: "
FILL = "mov.u32 %r5, 0; mov.u32 %r10, %ntid.x; shl.b32 %r10, %r10, 2; $F: add.u32 %r6, %r3, %r5; st.shared.u32 [%r6], %r5; add.u32 %r5, %r5, %r10; setp.lt.u32 %p3, %r5, 2048; @%p3 bra $F; "
# WGMMA is a product of 64 x 8 x 16 elements by one warpgroup. The operands fill the first 2048
# bytes of the tile.
WGMMA = ("shr.u32 %r7, %r2, 4; cvt.u64.u32 %rd4, %r7; or.b64 %rd4, %rd4, {descriptor}; setp.ne.u32 %p4, 0, 0; wgmma.fence.sync.aligned; "
         "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {{%f0, %f1, %f2, %f3}}, %rd4, %rd4, %p4, 1, 1, 0, 0; wgmma.commit_group.sync.aligned; "
         ).format(descriptor=8 << 16 | 16 << 32)
WAITED = "wgmma.wait_group.sync.aligned 0; "
# These are the parts of a product of 128 x 16 x 16 elements by tcgen05. The operands fill the tile
# except for its last bytes.
ALLOC = "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r2+4096], 32; bar.sync 0; ld.shared.u32 %r8, [%r2+4096]; "
MMA = ("shr.u32 %r7, %r2, 4; cvt.u64.u32 %rd4, %r7; or.b64 %rd4, %rd4, {descriptor}; setp.ne.u32 %p4, 0, 0; "
       "@%p1 tcgen05.mma.cta_group::1.kind::f16 [%r8], %rd4, %rd4, {form}, %p4; "
       ).format(descriptor=1 << 46 | 8 << 16 | 16 << 32, form=1 << 4 | 2 << 17 | 8 << 24)
COMMIT = "@%p1 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r2+4104]; "
# TMEM writes two columns of tensor memory, and reads one of them.
TMEM = ("tcgen05.st.sync.aligned.32x32b.x2.b32 [%r8], {%r1, %r1}; tcgen05.wait::st.sync.aligned; "
        "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r4}, [%r8]; ")
WAIT_LD = "tcgen05.wait::ld.sync.aligned; "
DEALLOC = "bar.sync 0; tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r8, 32; "
FILL_ALL = FILL.replace("2048", "4096")
INIT_MMA, COMMITTED = INIT.replace("3072", "4104"), LOADED.replace("3072", "4104")
FENCE = "fence.proxy.async.shared::cta; "

# FAULTS maps a name to (kernel body with a mistake, number of threads, text that the message must
# contain).
FAULTS = {
    "beyond an allocation": ("st.global.u32 [%rd3+4], %r1; ret; }", 32, "lane 31: 4 bytes at .* outside its allocation of 128 bytes"),
    "freed or wild": ("mov.b64 %rd4, 4096; ld.global.u32 %r4, [%rd4]; ret; }", 32, "outside every allocation"),
    "misaligned": ("ld.global.u32 %r4, [%rd3+2]; ret; }", 32, "misaligned for 4 bytes"),
    "beyond shared memory": ("st.shared.u32 [%r3+8192], %r1; ret; }", 32, "the block has 0x400 to 0x1480"),
    "shared memory never written": ("ld.shared.u32 %r4, [%r3]; ret; }", 32, "shared memory 0x400 was never written"),
    "a register never written": ("st.global.u32 [%rd3], %r9; ret; }", 32, "the register of the value was never written"),
    "a barrier that some miss": ("@%p1 bra $L; bar.sync 0, 64; $L: ret; }", 32, "deadlock: .* wait at barrier 0"),
    "a shuffle with a lane too few": ("@%p1 bra $L; shfl.sync.idx.b32 %r4, %r1, 0, 31, -1; $L: ret; }", 32, "reads lane 0, which takes no part|executes this"),
    "an endless loop": ("$L: bra $L; }", 32, "endless loop"),
    "an unknown instruction": ("frobnicate.sync.u32 %r4, %r1; ret; }", 32, "no row of the tables has frobnicate.sync.u32"),
    "an mbarrier that nobody completes": (
        "@%p1 mbarrier.init.shared::cta.b64 [%r2], 1; bar.sync 0; $L: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r2], 0; @!%p2 bra $L; ret; }",
        32, "wait for an mbarrier's phase"),
    "a read of what another warp writes": (
        "setp.lt.u32 %p2, %r1, 32; @%p2 st.shared.u32 [%r3], %r3; @!%p2 ld.shared.u32 %r4, [%r3+-128]; ret; }", 64,
        "lane 0 reads shared memory 0x40., which warp 0 of block rank 0 has written, and no barrier orders the two"),
    "a write of what another warp reads": (
        "st.shared.u32 [%r3], %r3; bar.sync 0; setp.lt.u32 %p2, %r1, 32; @!%p2 ld.shared.u32 %r4, [%r3+-128]; "
        "@%p2 st.shared.u32 [%r3], %r1; ret; }", 64,
        "lane 0 writes shared memory 0x40., which warp 1 of block rank 0 has read, and no barrier orders the two"),
    "two warps that write": (
        "st.shared.u32 [%r2], %r1; ret; }", 64, "lane .* writes shared memory 0x40., which warp 0 of block rank 0 has written"),
    "an mbarrier that the reader does not wait for": (
        "@%p1 mbarrier.init.shared::cta.b64 [%r2+2048], 32; st.shared.u32 [%r3], %r3; bar.sync 0; setp.lt.u32 %p2, %r1, 32; "
        "@%p2 st.shared.u32 [%r3], %r1; @%p2 mbarrier.arrive.shared::cta.b64 _, [%r2+2048]; @!%p2 ld.shared.u32 %r4, [%r3+-128]; "
        "ret; }", 64, "lane 0 writes shared memory 0x40., which warp 1 of block rank 0 has read"),
    "a result of tcgen05.ld without a wait": (
        ALLOC + TMEM + "add.u32 %r5, %r4, 1; " + DEALLOC + "ret; }", 32, "a register that PTX line [0-9]+ loads is read before tcgen05.wait::ld"),
    "a result of the second tcgen05.ld without a wait": (
        ALLOC + TMEM + WAIT_LD + "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r5}, [%r8+1]; st.global.u32 [%rd3], %r4; st.global.v2.u32 [%rd1], {%r4, %r5}; " + DEALLOC +
        "ret; }", 32, "a register that PTX line [0-9]+ loads is read before tcgen05.wait::ld"),
    "a copy of a result of tcgen05.ld without a wait": (
        ALLOC + TMEM + "mov.b32 %r5, %r4; mov.b64 %rd5, {%r5, %r1}; tcgen05.wait::st.sync.aligned; ld.global.u32 %r6, [%rd5]; " + DEALLOC + "ret; }", 32,
        "a register that PTX line [0-9]+ loads is read before tcgen05.wait::ld"),
    "another block's tensor memory": ("tcgen05.st.sync.aligned.32x32b.x1.b32 [%r3], {%r1}; ret; }", 32, "tensor memory: lane 0, column 1024 is not allocated"),
    "a copy of bytes without a fence": (
        "st.shared.u32 [%r3], %r1; bar.sync 0; @!%p1 bra $L; cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r2], 128; "
        "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; $L: ret; }",
        32, "shared memory 0x400 was written by a thread, without fence.proxy.async"),
    "a copy of bytes without the fence of one of two warps": (
        SLOW + "st.shared.u32 [%r3], %r1; setp.lt.u32 %p3, %r1, 32; @%p3 fence.proxy.async.shared::cta; bar.sync 0; " + STORE.format(bytes=128 + 16) + STORED + "ret; }", 64,
        "the async proxy reads shared memory 0x480, which warp 1 of block rank 0 has written, and no fence.proxy.async lies between the two"),
    "a copy of bytes that another warp may write later": (
        SLOW + "st.shared.u32 [%r3], %r1; " + FENCE + STORE.format(bytes=256) + STORED + "ret; }", 64,
        "the async proxy reads shared memory 0x480, which warp 1 of block rank 0 has written, and no barrier orders the two"),
    "a write before a copy of bytes has read them": (
        "st.shared.u32 [%r3], %r1; " + FENCE + STORE.format(bytes=128) + "st.shared.u32 [%r3], %r3; ret; }", 32,
        "the async proxy reads shared memory 0x40., which warp 0 of block rank 0 has written|was written by a thread, without fence.proxy.async"),
    "a fenced write before a copy of bytes has read them": (
        "st.shared.u32 [%r3], %r1; " + FENCE + STORE.format(bytes=128) + "st.shared.u32 [%r3], %r3; " + FENCE + STORED + "ret; }", 32,
        "the async proxy reads shared memory 0x40., which warp 0 of block rank 0 has written, and no barrier orders the two"),
    "a write of another warp after a copy of bytes": (
        "st.shared.u32 [%r3], %r1; " + FENCE + "bar.sync 0; " + STORE.format(bytes=256) + STORED + SLOW.replace("@!%p3", "@%p3") +
        "setp.ge.u32 %p3, %r1, 32; @%p3 st.shared.u32 [%r3], %r3; ret; }", 64,
        "lane 0 writes shared memory 0x480, which an asynchronous operation has read, and no barrier orders the two"),
    "a load by TMA over bytes that another warp reads": (
        INIT + SLOW + "setp.ge.u32 %p5, %r1, 32; @%p5 st.shared.u32 [%r3+-128], %r1; @%p5 ld.shared.u32 %r4, [%r3+-128]; " + LOAD + "@%p5 ret; " + LOADED.format(parity=0) + "ret; }", 64,
        "the async proxy writes shared memory 0x400, which warp 1 of block rank 0 has (written|read), and no barrier orders the two"),
    "a read of what TMA loads without a wait": (
        INIT + LOAD + SLOW.replace("@!%p3", "@%p3") + "@%p1 bra $A; setp.lt.u32 %p3, %r1, 32; @%p3 ret; ld.shared.u32 %r4, [%r3+-128]; ret; " + LOADED.format(parity=0) + "ret; }", 64,
        "lane 0 reads shared memory 0x400, which an asynchronous operation has written, and no barrier|shared memory 0x400 was never written"),
    "wgmma without the fence of one of its warps": (
        FILL + SLOW + "setp.lt.u32 %p3, %r1, 32; @%p3 fence.proxy.async.shared::cta; bar.sync 0; " + WGMMA + WAITED + "ret; }", 128,
        "the async proxy reads shared memory .*, which warp [123] of block rank 0 has written, and no fence.proxy.async lies between the two"),
    "a write to an operand of wgmma before a wait": (
        FILL + FENCE + "bar.sync 0; " + WGMMA + "st.shared.u32 [%r3], %r2; " + FENCE + WAITED + "ret; }", 128,
        "the async proxy reads shared memory 0x4.., which warp . of block rank 0 has written, and no barrier orders the two|"
        "lane 0 writes shared memory 0x4.., which an asynchronous operation has read, and no barrier orders the two"),
    "a write to an operand of tcgen05.mma before a wait": (
        ALLOC + FILL_ALL + INIT_MMA + FENCE + "bar.sync 0; " + MMA + "st.shared.u32 [%r3], %r2; " + FENCE + COMMIT + COMMITTED.format(parity=0) + DEALLOC + "ret; }", 32,
        "the async proxy reads shared memory 0x40., which warp 0 of block rank 0 has written, and no barrier orders the two"),
    "tcgen05.mma of what TMA loads without a wait": (
        ALLOC + FILL_ALL + INIT + INIT_MMA + FENCE + "bar.sync 0; " + LOAD + MMA + COMMIT + COMMITTED.format(parity=0) + DEALLOC + "ret; }", 32,
        "the async proxy (reads|writes) shared memory 0x4.., which an asynchronous operation has (written|read), and no barrier orders the two"),
    "a pair in a cluster of one block": (
        "tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%r2], 32; ret; }", 32, "cta_group::2 wants clusters of an even number of blocks"),
    # The simulator refuses an instruction if neither a kernel of another project nor a document
    # shows its meaning.
    "tcgen05.shift": ("tcgen05.shift.cta_group::1.down [%r2]; ret; }", 32, "no row of the tables has tcgen05.shift"),
    "tcgen05.mma.ws": (
        "tcgen05.mma.ws.cta_group::1.kind::f16 [%r2], %rd4, %rd4, %r3, %p1; ret; }", 32, "no row of the tables has tcgen05.mma.ws"),
    "tensor memory that stays": ("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r3, 32; ret; }", 32, "are not what one tcgen05.alloc gave"),
}

# RIGHT maps a name to (kernel body without mistakes, number of threads).
RIGHT = {
    # Lane 0 waits for a copy, and all other lanes wait for lane 0. Both wait by testing an mbarrier
    # in a loop.
    "lanes of a warp that wait for different mbarriers": (
        "@%p1 mbarrier.init.shared::cta.b64 [%r2], 1; @%p1 mbarrier.init.shared::cta.b64 [%r2+8], 1; bar.sync 0; @!%p1 bra $B; "
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 128; "
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2+1024], [%rd1], 128, [%r2]; "
        "$A: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r2], 0; @!%p2 bra $A; mbarrier.arrive.shared::cta.b64 _, [%r2+8]; "
        "$B: mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r2+8], 0; @!%p3 bra $B; ret; }", 32),
    "a barrier between a write and a read": (
        "setp.lt.u32 %p2, %r1, 32; @%p2 st.shared.u32 [%r3], %r3; bar.sync 0; @!%p2 ld.shared.u32 %r4, [%r3+-128]; bar.sync 0; "
        "@%p2 st.shared.u32 [%r3], %r1; ret; }", 64),
    "an mbarrier between a write and a read": (
        "@%p1 mbarrier.init.shared::cta.b64 [%r2+2048], 32; bar.sync 0; setp.lt.u32 %p2, %r1, 32; @%p2 st.shared.u32 [%r3], %r3; "
        "@%p2 mbarrier.arrive.shared::cta.b64 _, [%r2+2048]; @%p2 ret; "
        "$A: mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r2+2048], 0; @!%p3 bra $A; ld.shared.u32 %r4, [%r3+-128]; ret; }", 64),
    "a copy of bytes after a fence of the thread that copies": (
        SLOW + "st.shared.u32 [%r3], %r1; bar.sync 0; @%p1 fence.proxy.async.shared::cta; " + STORE.format(bytes=256) + STORED + "bar.sync 0; st.shared.u32 [%r3], %r3; ret; }", 64),
    "a copy of bytes after fences of all writers": (
        SLOW + "st.shared.u32 [%r3], %r1; " + FENCE + "bar.sync 0; " + STORE.format(bytes=256) + STORED + "bar.sync 0; st.shared.u32 [%r3], %r3; ret; }", 64),
    "a load by TMA between two barriers": (
        INIT + SLOW + "st.shared.u32 [%r3], %r1; ld.shared.u32 %r4, [%r3]; bar.sync 0; " + LOAD + LOADED.format(parity=0) + "ld.shared.u32 %r4, [%r3]; "
        "bar.sync 0; st.shared.u32 [%r3], %r3; ret; }", 64),
    "wgmma between fences and a wait": (
        FILL + FENCE + "bar.sync 0; " + WGMMA + WAITED + "bar.sync 0; st.shared.u32 [%r3], %r2; ret; }", 128),
    "tcgen05.mma between a load and a wait": (
        ALLOC + FILL_ALL + INIT + INIT_MMA + FENCE + "bar.sync 0; " + LOAD + LOADED.format(parity=0) + MMA + COMMIT + COMMITTED.format(parity=0).replace("$A", "$B") +
        "st.shared.u32 [%r3], %r2; " + DEALLOC + "ret; }", 32),
    "results of tcgen05.ld after a wait": (
        ALLOC + TMEM + "mov.b32 %r5, %r4; mov.u32 %r4, %r1; st.global.u32 [%rd3], %r4; " + WAIT_LD + "st.global.u32 [%rd3], %r5; " + DEALLOC + "ret; }", 32),
    "two warps that write the same value": ("st.shared.u32 [%r2], %r2; ret; }", 64),
    "two warps that add to shared memory": ("@%p1 st.shared.u32 [%r2], %r1; bar.sync 0; red.shared.add.u32 [%r2], %r2; ret; }", 64),
}


def is_for(body, arch):
    """Says whether a device has all instructions of a kernel."""
    if ("mbarrier" in body or "bulk" in body) and int(arch[3:].rstrip("a")) < 90:
        return False
    if "wgmma" in body and arch != "sm_90a":
        return False
    return "tcgen05" not in body or arch.startswith("sm_100")


def run(device, arch, body, threads):
    """Runs a kernel and returns the error message, or None if there is none."""
    data = device.upload(np.zeros(32 if threads <= 32 else 64, np.uint32))
    module = device.load(HEAD.format(target=arch) + " " + body + "\n")
    message = None
    try:
        device.launch(device.function(module, "kernel"), (1,), (threads,), 0, [data])
    except driver.Error as error:
        message = str(error)
    device.unload(module)
    device.free(data)
    return message


def main():
    arch = sys.argv[1]
    os.environ["BSMM_SIM_LIMIT"] = "100000"
    device = driver.Device(arch)
    failed = 0
    for name, (body, threads, expect) in FAULTS.items():
        if not is_for(body, arch):
            continue
        message = run(device, arch, body, threads) or "no message"
        line = HEAD.count("\n") + 1
        good = re.search(expect, message) and f"kernel kernel, PTX line {line} (fault.cu:42), block 0 0 0, warp" in message
        if not good:
            failed += 1
            print(f"{name}: {message}")
    for name, (body, threads) in RIGHT.items():
        message = is_for(body, arch) and run(device, arch, body, threads)
        if message:
            failed += 1
            print(f"{name}: {message}")
    for image, expect in ((b"\x7fELF" + bytes(60), "a cubin"), (b"\x50\xed\x55\xba" + bytes(60), "a fat binary"), (b"hello", "begins with .version")):
        try:
            device.load(image)
            failed += 1
        except driver.Error as error:
            failed += expect not in str(error)
    try:
        device.load(".version 8.7\n.target sm_121a\n.address_size 64\n")
        failed += 1
    except driver.Error as error:
        failed += "the PTX is for sm_121a" not in str(error)
    print(f"{arch}: {len(FAULTS)} faults, {failed} not found")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
