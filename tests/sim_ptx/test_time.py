"""Tests the time model of the simulator of PTX with kernels whose cycles can be computed by hand. usage:
test_time.py ARCH FOLDER"""
import ctypes
import os
import sys

import numpy as np

import driver

NAMES = "seconds cycles replayed rounds groups launched sms warps instructions matrix_busy shared_busy shared_conflicts l1 l2 l3 hbm memory shared barrier matrix issue matrix_loop".split()
CAUSES = NAMES[-6:-1]
# DEVICES has the constants of time_devices.def that determine the expected values: the clock in
# MHz, the bytes per second of HBM, the number of SMs, and the latencies of L2 and HBM in cycles.
DEVICES = {"sm_100a": (1850, 7.2e12, 148, 277, 479), "sm_90a": (1755, 4.5e12, 132, 263, 479)}
LAUNCH, SHARED_LATENCY, TMA_LATENCY, ALU_LATENCY = 0.7e-6, 29, 170, 4
HEAD = """.visible .entry {name}(.param .u64 from, .param .u64 to) .reqntid {threads}
{{
.reg .b32 %r<64>; .reg .b64 %d<16>; .reg .f32 %f<128>; .reg .pred %p<8>;
.shared .align 1024 .b8 area[65536];
.shared .align 8 .b64 bar; .shared .align 4 .b32 slot;
ld.param.u64 %d0, [from]; ld.param.u64 %d1, [to]; mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; mov.u32 %r2, area; mov.f32 %f0, 0f3f800000;
{body}
ret;
}}
"""
ONE = "setp.ne.u32 %p0, %r0, 0; @%p0 bra END;\n"
INIT = "mov.u32 %r3, bar; mbarrier.init.shared.b64 [%r3], 1;\n"
WAIT = "WAIT{n}: mbarrier.try_wait.parity.shared.b64 %p1, [%r3], {parity}; @!%p1 bra WAIT{n};\n"


def shared_loads(stride, count):
    return f"mul.lo.u32 %r4, %r0, {stride}; add.u32 %r4, %r4, %r2;\n" + "ld.shared.u32 %r5, [%r4]; add.u32 %r6, %r5, 0;\n" * count


def chased(count):
    """Returns `count` dependent loads. Each load reads the address for the next one, which is in
    another cache line."""
    return "ld.global.u64 %d0, [%d0];\n" * count + "st.global.u64 [%d1], %d0;\n"


def summed(count, between=""):
    """Returns `count` loads of different cache lines. An addition of the loaded value follows each load."""
    return "".join(f"ld.global.f32 %f{k + 1}, [%d0+{256 * k}]; add.f32 %f0, %f0, %f{k + 1}; {between}\n" for k in range(count)) + "st.global.f32 [%d1], %f0;\n"


def bulk(count):
    text = ONE + INIT
    for n in range(count):
        text += f"mbarrier.arrive.expect_tx.shared.b64 _, [%r3], 1024; cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%d0], 1024, [%r3];\n"
        text += WAIT.format(n=n, parity=n % 2) + "add.u64 %d0, %d0, 4096;\n"
    return text + "END:\n"


def apart(barrier, count):
    """Returns the PTX of a warp whose two halves reach the same barrier by different instructions.
    The upper half first executes `count` dependent additions, so the lower half waits for it."""
    return f"setp.ge.u32 %p0, %r0, 16; @%p0 bra UPPER;\n{barrier}\nbra END;\nUPPER:\n" + "add.f32 %f0, %f0, %f0;\n" * count + f"{barrier}\nEND:\n"


# CANCEL is a kernel whose first cluster cancels the second one. The time model then has no records
# of the second cluster.
CANCEL = INIT + "mbarrier.arrive.expect_tx.shared.b64 _, [%r3], 16;\nclusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%r2], [%r3];\n"
CANCEL = ONE + CANCEL + WAIT.format(n=0, parity=0) + "END:\n"
BARRIERS = {"bar": "barrier.sync 0;", "cluster": "barrier.cluster.arrive; barrier.cluster.wait;"}


def products(n, count):
    """Returns the PTX of `count` f16 products of 128 x n x 16. A and B are the same bytes of shared
    memory."""
    form = 1 << 4 | n // 8 << 17 | 8 << 24
    text = "mov.u32 %r4, slot; tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r4], 512; bar.sync 0; ld.shared.u32 %r7, [%r4];\n"
    text += INIT + ONE.replace("END", "OUT") + f"shr.u32 %r5, %r2, 4; cvt.u64.u32 %d2, %r5; or.b64 %d2, %d2, {1 << 46 | 8 << 16 | 16 << 32}; setp.ne.u32 %p2, 1, 0;\n"
    text += f"tcgen05.mma.cta_group::1.kind::f16 [%r7], %d2, %d2, {form}, %p2;\n" * count
    text += "cvt.u64.u32 %d3, %r3; tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r3];\n"
    text += "OUT:\n" + WAIT.format(n=0, parity=0) + "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r7, 512;\n"
    return text


# Each thread copies 16 bytes 8 times. The threads of a block copy neighboring addresses.
COPY = "shl.b32 %r4, %r1, 14; shl.b32 %r5, %r0, 4; add.u32 %r4, %r4, %r5; cvt.u64.u32 %d2, %r4; add.u64 %d3, %d0, %d2; add.u64 %d4, %d1, %d2;\n"
COPY += "".join(f"ld.global.v4.f32 {{%f{4 * k}, %f{4 * k + 1}, %f{4 * k + 2}, %f{4 * k + 3}}}, [%d3+{2048 * k}];\n" for k in range(8))
COPY += "".join(f"st.global.v4.f32 [%d4+{2048 * k}], {{%f{4 * k}, %f{4 * k + 1}, %f{4 * k + 2}, %f{4 * k + 3}}};\n" for k in range(8))
BARRIER = "setp.ge.u32 %p0, %r0, 32; @%p0 bra END;\n" + "add.f32 %f0, %f0, %f0;\n" * 100 + "END: bar.sync 0;\n"

KERNELS = {f"chain_{n}": (32, "add.f32 %f0, %f0, %f0;\n" * n) for n in (10, 110)}
KERNELS |= {f"free_{warps}_{n}": (32 * warps, "add.f32 %f1, %f0, %f0;\n" * n) for warps in (1, 4, 8) for n in (10, 110)}
KERNELS |= {f"integer_{n}": (32, "add.u32 %r4, %r0, %r0;\n" * n) for n in (10, 110)}
KERNELS |= {f"shared_{stride}_{n}": (32, shared_loads(stride, n)) for stride in (4, 8, 128) for n in (1, 11)}
KERNELS |= {f"chased_{n}": (32, ONE + chased(n) + "END:\n") for n in (1, 11)}
KERNELS |= {f"summed_{n}": (32, ONE + summed(n) + "END:\n") for n in (1, 11)}
KERNELS |= {f"fenced_{n}": (32, ONE + summed(n, "fence.acq_rel.gpu;") + "END:\n") for n in (1, 11)}
KERNELS |= {f"bulk_{n}": (32, bulk(n)) for n in (1, 5)}
KERNELS |= {f"apart_{kind}_{n}": (32, apart(text, n)) for kind, text in BARRIERS.items() for n in (10, 110)}
KERNELS |= {"copy": (128, COPY), "barrier": (64, BARRIER)}
TENSOR_KERNELS = {f"products_{n}_{count}": (32, products(n, count)) for n in (64, 256) for count in (1, 9)}
TENSOR_KERNELS["cancel"] = (32, CANCEL)


class Model:
    def __init__(self, arch):
        os.environ |= {"BSMM_SIM_TIME": "1", "BSMM_SIM_CHECKS": "0"}
        self.arch, self.device, self.failed = arch, driver.Device(arch), []
        self.megahertz, self.hbm, self.sms, self.l2_latency, self.hbm_latency = DEVICES[arch]
        kernels = KERNELS | (TENSOR_KERNELS if arch == "sm_100a" else {})
        self.text = f".version 8.7\n.target {arch}\n.address_size 64\n" + "".join(HEAD.format(name=name, threads=threads, body=body) for name, (threads, body) in kernels.items())
        self.threads = {name: threads for name, (threads, _) in kernels.items()}
        self.module = self.device.load(self.text)
        self.buffers = [self.device.upload(np.zeros(1 << 18, np.uint32)) for _ in range(2)]

    def time(self, name, blocks=1, buffers=None):
        """Launches a kernel and returns its times."""
        self.device.launch(self.device.function(self.module, name), (blocks,), (self.threads[name],), 0, buffers or self.buffers)
        values = (ctypes.c_double * len(NAMES))()
        assert self.device.lib.bsmm_sim_times(ctypes.c_uint(0), None, ctypes.c_size_t(0), values, ctypes.c_size_t(len(NAMES)))
        return dict(zip(NAMES, values))

    def more(self, many, few, what="cycles", buffers=None):
        """Runs the kernels `many` and `few`. Returns the difference of their times of the kind
        `what`."""
        return self.time(many, 1, buffers)[what] - self.time(few, 1, buffers)[what]

    def expect(self, name, value, least, most=None):
        good = least <= value <= (least if most is None else most)
        print(f"{name}: {value:.6g}{'' if good else ' is wrong'}", flush=True)
        if not good:
            self.failed.append(f"{name}: {value} is not in [{least}, {most}]")

    def test_issue(self):
        self.expect("dependent additions", self.more("chain_110", "chain_10"), 100 * ALU_LATENCY)
        for warps, cycles in (1, 1), (4, 1), (8, 2):
            self.expect(f"additions of {warps} warps", self.more(f"free_{warps}_110", f"free_{warps}_10"), 100 * cycles)
        self.expect("additions of integers", self.more("integer_110", "integer_10"), 200)
        # Warp 0 executes 100 additions before the barrier. Warp 1 branches to the barrier and
        # waits. After the last arrival, both warps continue after the latency of shared memory.
        self.expect("waits at a barrier", self.time("barrier")["barrier"], 100 * ALU_LATENCY - 4 + 2 * SHARED_LATENCY)

    def test_apart(self):
        """Checks warps of which some lanes arrive at a barrier earlier than others."""
        for kind in BARRIERS:
            self.expect(f"additions before half of a warp is at {kind}", self.more(f"apart_{kind}_110", f"apart_{kind}_10"), 100 * ALU_LATENCY)

    def lines(self, module, name):
        """Launches a kernel. Returns the cycles in which warps wait, by place and cause."""
        self.device.launch(self.device.function(module, name), (1,), (self.threads[name],), 0, self.buffers)
        place, cycles, found = ctypes.create_string_buffer(64), (ctypes.c_double * 5)(), {}
        while self.device.lib.bsmm_sim_stalls(ctypes.c_uint(0), ctypes.c_uint(len(found)), place, ctypes.c_size_t(64), cycles, ctypes.c_size_t(5)):
            found[place.value.decode()] = dict(zip(CAUSES, cycles))
        return found

    def test_lines(self):
        """Checks that the time model assigns waits to the source lines of the instructions that
        wait."""
        with_lines = self.device.load(self.text.replace("END: bar.sync 0;", ".loc 1 77 0\nEND: bar.sync 0;") + '.file 1 "folder/source.cu"\n')
        for name in ("barrier", "chain_10", "bulk_5", "shared_128_1"):
            times, lines = self.time(name), self.lines(self.module, name)
            totals = [sum(row.values()) for row in lines.values()]
            self.expect(f"lines of {name}, the longest waits first", totals == sorted(totals, reverse=True), True)
            if len(lines) < 16:
                self.expect(f"all waits of {name}", abs(sum(totals) - sum(times[c] for c in CAUSES)), 0, 1e-6)
        barrier = self.time("barrier")["barrier"]
        self.expect("waits at a barrier by line", self.lines(with_lines, "barrier").get("source.cu:77", {}).get("barrier", -1), barrier)
        plain = self.lines(self.module, "barrier")
        self.expect("waits at a barrier without lines", [row["barrier"] for place, row in plain.items() if place.startswith("PTX line ") and place.endswith("bar.sync 0")] == [barrier], True)

    def test_shared(self):
        for stride, cycles in (4, 1), (8, 2), (128, 32):
            many, few = f"shared_{stride}_11", f"shared_{stride}_1"
            self.expect(f"loads at stride {stride}, busy", self.more(many, few, "shared_busy"), 10 * cycles)
            self.expect(f"loads at stride {stride}, conflicts", self.more(many, few, "shared_conflicts"), 10 * (cycles - 1))
            self.expect(f"loads at stride {stride}, cycles", self.more(many, few), 10 * (cycles + SHARED_LATENCY), 10 * (cycles + SHARED_LATENCY + 6))

    def chain(self, step):
        """Returns a buffer for dependent loads: at each multiple of `step` bytes it contains the
        address of the next multiple."""
        at = self.device.upload(np.zeros(1 << 14, np.uint64))
        self.device.call("cuMemcpyHtoD_v2", at, (at.value + step + np.arange(0, 1 << 17, 8, dtype=np.uint64)).ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(1 << 17))
        return at

    def test_latency(self):
        far, near = self.chain(256), self.chain(8)
        self.expect("a load from HBM", self.more("chased_11", "chased_1", buffers=[far, self.buffers[1]]) / 10, self.hbm_latency, self.hbm_latency + 12)
        # Each addition waits for the load before it, but no load waits for an addition. With a
        # fence between them, the loads come one after another.
        self.expect("independent loads from HBM that are summed", self.more("summed_11", "summed_1") / 10, 1, ALU_LATENCY + 4)
        self.expect("loads from HBM with fences between them", self.more("fenced_11", "fenced_1") / 10, self.hbm_latency, self.hbm_latency + 12)
        # All these loads read one line of 128 bytes, which is in L1 after the first load.
        self.expect("a load from L1", self.more("chased_11", "chased_1", buffers=[near, self.buffers[1]]) / 10, 41, 48)
        one = TMA_LATENCY + self.hbm_latency + SHARED_LATENCY
        self.expect("a copy by TMA", self.more("bulk_5", "bulk_1") / 4, one, one + 12)

    def test_copy(self):
        blocks = 16 * self.sms * 4
        size = blocks << 14
        source, target = self.device.upload(np.arange(size // 4, dtype=np.uint32)), self.device.upload(np.zeros(size // 4, np.uint32))
        times = self.time("copy", blocks, [source, target])
        # Thread blocks run in rounds. The model leaves memory idle for the latency of the first
        # load of a round, so the rate of the copy is lower than that of HBM.
        self.expect("rate of a copy / rate of HBM", 2 * size / (times["seconds"] - LAUNCH) / self.hbm, 0.8, 1.0)
        self.expect("bytes of a copy", times["hbm"], 2 * 16384 * times["groups"])
        copied = self.device.download(target, np.zeros(size // 4, np.uint32))
        self.expect("wrong words of the copy", np.count_nonzero(copied != np.arange(size // 4, dtype=np.uint32)), 0)

    def test_tensor(self):
        # A product of 128 x 256 x 16 takes 128 cycles of the tensor core, and shared memory
        # delivers its operands meanwhile. A product with 64 columns takes 32 cycles, but shared
        # memory takes 48 cycles for its 6144 bytes.
        for n, busy, cycles in (256, 128, 128), (64, 32, 48):
            many, few = f"products_{n}_9", f"products_{n}_1"
            self.expect(f"products with {n} columns, busy", self.more(many, few, "matrix_busy"), 8 * busy)
            self.expect(f"products with {n} columns, loop", self.more(many, few, "matrix_loop"), 8 * cycles)
            self.expect(f"products with {n} columns, cycles", self.more(many, few), 8 * cycles - 1, 8 * cycles + 1)

    def test_canceled(self):
        """Checks that a launch fails if the time model cannot time it, and that the message
        contains the reason."""
        os.environ["BSMM_SIM_THREADS"] = "1"
        try:
            self.time("cancel", 2)
            message = "no error"
        except driver.Error as error:
            message = str(error)
        del os.environ["BSMM_SIM_THREADS"]
        if "cancel: the time model has no records of cluster 1, which another cluster has canceled" not in message:
            self.failed.append(f"a canceled cluster: {message}")

    def test_repeats(self):
        """Checks that the times are the same in each run and for any number of host threads, and
        that events report them."""
        first = self.time("copy", 8)
        for threads in "1", "3":
            os.environ["BSMM_SIM_THREADS"] = threads
            self.expect(f"{threads} threads, equal times", self.time("copy", 8) == first, True)
        del os.environ["BSMM_SIM_THREADS"]
        events, ms = [ctypes.c_void_p(), ctypes.c_void_p()], ctypes.c_float()
        for event in events:
            self.device.call("cuEventCreate", ctypes.byref(event), 0)
        self.device.call("cuEventRecord", events[0], None)
        seconds = self.time("copy", 8)["seconds"]
        self.device.call("cuEventRecord", events[1], None)
        self.device.call("cuEventElapsedTime", ctypes.byref(ms), *events)
        self.expect("time of events / time of the launch", ms.value * 1e-3 / seconds, 1 - 1e-5, 1 + 1e-5)


def main():
    model = Model(sys.argv[1])
    model.test_issue()
    model.test_apart()
    model.test_lines()
    model.test_shared()
    model.test_latency()
    model.test_copy()
    model.test_repeats()
    if model.arch == "sm_100a":
        model.test_tensor()
        model.test_canceled()
    print("\n".join(model.failed))
    sys.exit(bool(model.failed))


main()
