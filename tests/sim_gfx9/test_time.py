"""Tests the simulator's time model with kernels whose cycles can be computed by hand. usage:
test_time.py ARCH"""
import ctypes
import os
import sys

import numpy as np

import assemble
import hip

NAMES = "seconds cycles replayed rounds groups launched cus waves instructions matrix_busy lds_busy lds_conflicts l1 l2 mall hbm vmem lgkm barrier matrix issue".split()
POINTERS = "s_load_dwordx4 s[4:7], s[0:1], 0\ns_waitcnt lgkmcnt(0)\n"
# DEVICES has the constants of devices.def that determine the expected values: the clock in MHz, the
# bytes per second of HBM, the cost of a launch in seconds, the number of compute units, and the
# cycles of a 128-bit LDS read by 64 lanes.
DEVICES = {"gfx942": (2100, 4.177285e12, 3.74e-6, 304, 8), "gfx950": (2400, 6.305336e12, 3.74e-6, 256, 4)}
L2_NS, HBM_NS = 85.3, 352.7
# MATRIX maps a matrix instruction to the number of registers of A and of B, the number of registers
# of D, and the cycles of its execution in AMD's documents.
MATRIX = {"v_mfma_f32_16x16x16_f16": (2, 4, 16), "v_mfma_f32_32x32x8_f16": (2, 16, 32), "v_mfma_f32_16x16x32_fp8_fp8": (2, 4, 16), "v_mfma_f32_16x16x4_f32": (1, 4, 32)}
# Each thread copies 16 bytes 8 times. The threads of a workgroup copy neighboring addresses.
COPY = POINTERS + """s_lshl_b32 s8, s2, 15
v_lshlrev_b32 v1, 4, v0
v_add_u32 v1, s8, v1
""" + "".join(f"global_load_dwordx4 v[{8 + 4 * k}:{11 + 4 * k}], v1, s[4:5]\nv_add_u32 v1, 0x1000, v1\n" for k in range(8)) + \
    "v_subrev_u32 v1, 0x8000, v1\ns_waitcnt vmcnt(0)\n" + "".join(f"global_store_dwordx4 v1, v[{8 + 4 * k}:{11 + 4 * k}], s[6:7]\nv_add_u32 v1, 0x1000, v1\n" for k in range(8))


def span(first, count):
    return f"v{first}" if count == 1 else f"v[{first}:{first + count - 1}]"


def matrix(name, count, chain):
    """Returns `count` matrix instructions. If `chain` is set, each adds to the result of the
    previous one."""
    ab, d, _ = MATRIX[name]
    text = "".join(f"v_mov_b32 v{r}, 0\n" for r in range(8, 12)) + "".join(f"v_mov_b32 v{r}, 0\n" for r in range(16, 48)) + "s_nop 7\n"
    for k in range(count):
        to = 16 if chain else 16 + 16 * (k % 2)
        text += f"{name} {span(to, d)}, {span(8, ab)}, {span(10, ab)}, {span(to, d)}\n"
    return text


def lds(kind, registers, stride, count):
    return f"v_and_b32 v1, 63, v0\nv_mul_u32_u24 v1, {stride}, v1\n" + f"ds_read_{kind} {span(4, registers)}, v1\ns_waitcnt lgkmcnt(0)\n" * count


LOADS = POINTERS + "v_mov_b32 v1, 0\n" + "global_load_dword v2, v1, s[4:5]\ns_waitcnt vmcnt(0)\n"
KERNELS = {f"{name}_{count}_{kind}": matrix(name, count, kind == "chain") for name in MATRIX for count in (8, 40) for kind in ("chain", "free")}
KERNELS |= {f"valu_{n}": "v_add_u32 v1, 1, v0\n" * n for n in (10, 110)}
KERNELS |= {f"lds_{kind}_{stride}_{n}": lds(kind, registers, stride, n) for kind, registers, strides in (("b32", 1, (4, 8, 16, 256)), ("b64", 2, (8, 16)), ("b128", 4, (16, 32)))
            for stride in strides for n in (1, 11)}
KERNELS |= {"no_load": POINTERS + "v_mov_b32 v1, 0\n", "load": LOADS, "load_twice": LOADS + LOADS, "copy": COPY}
KERNELS |= {"barrier": "v_readfirstlane_b32 s8, v0\ns_cmp_lg_u32 s8, 0\ns_cbranch_scc1 1f\n" + "v_add_u32 v1, 1, v0\n" * 100 + "1: s_barrier\n"}


class Model:
    def __init__(self, arch):
        self.arch, self.device, self.failed = arch, hip.Device(arch), []
        self.megahertz, self.hbm, self.launch, self.cus, self.wide = DEVICES[arch]
        # These kernels read LDS without having written it, so LDS is large enough for all their
        # addresses.
        self.module = self.device.load(assemble.assembly(arch, KERNELS, lds=20480))
        self.buffers = [self.device.upload(np.arange(1 << 20, dtype=np.uint32)) for _ in range(2)]

    def time(self, name, waves=1, groups=1, buffers=None):
        """Launches a kernel and returns its times."""
        self.device.launch(self.device.function(self.module, name), (groups,), (64 * waves,), 0, buffers or self.buffers)
        values = (ctypes.c_double * len(NAMES))()
        assert self.device.lib.bsmm_sim_times(ctypes.c_uint(0), None, ctypes.c_size_t(0), values, ctypes.c_size_t(len(NAMES)))
        return dict(zip(NAMES, values))

    def more(self, many, few, waves=1, what="cycles"):
        """Runs the kernels `many` and `few`. Returns the difference of their times of the kind
        `what`."""
        return self.time(many, waves)[what] - self.time(few, waves)[what]

    def expect(self, name, value, least, most=None):
        good = least <= value <= (least if most is None else most)
        if not good:
            self.failed.append(f"{name}: {value} is not in [{least}, {most}]")

    def test_matrix(self):
        for name, (_, _, cycles) in MATRIX.items():
            for kind in ("chain", "free"):
                self.expect(f"{name} {kind}", self.more(f"{name}_40_{kind}", f"{name}_8_{kind}"), 32 * cycles)
            self.expect(f"{name} on four SIMDs", self.more(f"{name}_40_free", f"{name}_8_free", 4), 32 * cycles)
            self.expect(f"{name}, two waves a SIMD", self.more(f"{name}_40_free", f"{name}_8_free", 8), 64 * cycles)
            times = self.time(f"{name}_40_free", 8)
            self.expect(f"{name}, busy", times["matrix_busy"], 8 * 40 * cycles)

    def test_issue(self):
        for waves, cycles in ((1, 4), (4, 4), (8, 8), (16, 16)):
            self.expect(f"{waves} waves", self.more("valu_110", "valu_10", waves), 100 * cycles)
        # Wave 0 takes 4 cycles for its branch and then executes 100 additions of 4 cycles. Wave 1
        # takes 32 cycles for its branch and then waits.
        self.expect("barrier", self.time("barrier", 2)["barrier"], 4 + 100 * 4 - 32)

    def test_lds(self):
        phases = 1 if self.arch == "gfx950" else 2
        for kind, stride, cycles in (("b32", 4, phases), ("b32", 8, 2 * phases), ("b32", 16, 4 * phases), ("b32", 256, 64),
                                     ("b64", 8, 2 * phases), ("b64", 16, 4 * phases), ("b128", 16, self.wide), ("b128", 32, 2 * self.wide)):
            many, few = f"lds_{kind}_{stride}_11", f"lds_{kind}_{stride}_1"
            self.expect(f"{kind} at stride {stride}", self.more(many, few, what="lds_busy"), 10 * cycles)
            self.expect(f"conflicts of {kind} at stride {stride}", self.more(many, few, what="lds_conflicts"), 10 * (cycles - {"b32": phases, "b64": 2 * phases, "b128": self.wide}[kind]))
            self.expect(f"time of {kind} at stride {stride}", self.more(many, few), 10 * (cycles + 40), 10 * (cycles + 40 + 8))

    def test_memory(self):
        clock = self.megahertz * 1e-3
        self.expect("a load from HBM", self.more("load", "no_load"), HBM_NS * clock, HBM_NS * clock + 16)
        again = self.more("load_twice", "load") - self.more("no_load", "valu_10")
        self.expect("a load of a line that is there", again, L2_NS * clock - 80, L2_NS * clock + 80)
        groups, size = 16 * self.cus, 16 * self.cus << 15
        source, target = self.device.upload(np.arange(size // 4, dtype=np.uint32)), self.device.upload(np.zeros(size // 4, np.uint32))
        times = self.time("copy", 4, groups, [source, target])
        # Workgroups run in rounds of about 9000 cycles. The latency of the first load of a round is
        # 10% of that, so the rate of the copy is lower than that of HBM.
        self.expect("rate of a copy", 2 * size / (times["seconds"] - self.launch) / self.hbm, 0.85, 1.0)
        self.expect("bytes of a copy", times["hbm"], 2 * 32768 * times["groups"])
        copied = self.device.download(target, np.zeros(size // 4, np.uint32))
        self.expect("wrong words", np.count_nonzero(copied != np.arange(size // 4, dtype=np.uint32)), 0)
        return times

    def test_threads(self, times):
        """Checks that the times do not depend on the number of host threads, and that the time
        between two events is the time of the launch."""
        for threads in "1", "3":
            os.environ["BSMM_SIM_THREADS"] = threads
            source = self.device.upload(np.arange(1 << 18, dtype=np.uint32))
            values = [self.time("copy", 4, 32, [source, self.buffers[1]]) for _ in range(2)]
            self.expect(f"repeated with {threads} threads", values[0] == values[1], True)
            self.first = getattr(self, "first", values[0])
            self.expect(f"{threads} threads", values[0] == self.first, True)
        del os.environ["BSMM_SIM_THREADS"]
        events, ms = [ctypes.c_void_p(), ctypes.c_void_p()], ctypes.c_float()
        for event in events:
            self.device.call("hipEventCreate", ctypes.byref(event))
        self.device.call("hipEventRecord", events[0], None)
        seconds = self.time("load")["seconds"]
        self.device.call("hipEventRecord", events[1], None)
        self.device.call("hipEventElapsedTime", ctypes.byref(ms), *events)
        self.expect("events", abs(ms.value * 1e-3 / seconds - 1), 0, 1e-5)

    def lines(self, name, module, waves):
        """Launches a kernel. Returns the cycles in which waves wait, by source line and cause."""
        self.device.launch(self.device.function(module, name), (1,), (64 * waves,), 0, self.buffers)
        place, cycles, found = ctypes.create_string_buffer(64), (ctypes.c_double * 5)(), {}
        while self.device.lib.bsmm_sim_stalls(ctypes.c_uint(0), ctypes.c_uint(len(found)), place, ctypes.c_size_t(64), cycles, ctypes.c_size_t(5)):
            found[place.value.decode()] = dict(zip(NAMES[-5:], cycles))
        return found

    def test_lines(self):
        """Checks that the time model assigns waits to the source lines of the instructions that
        wait."""
        text = assemble.assembly_text(KERNELS, lds=20480)
        rows = text.splitlines()
        with_lines = self.device.load(assemble.clang(self.arch, text, "assembler", "-gdwarf-5"))
        for name, waves, cause, instruction in (("barrier", 2, "barrier", "1: s_barrier"), ("load", 1, "vmem", "s_waitcnt vmcnt(0)")):
            times, lines = self.time(name, waves), self.lines(name, with_lines, waves)
            number = next(k for k in range(rows.index(name + ":"), len(rows)) if rows[k] == instruction) + 1
            self.expect(f"{cause} of {name} by line", lines.get(f"k.src:{number}", {}).get(cause), times[cause])
            self.expect(f"all waits of {name}", abs(sum(sum(row.values()) for row in lines.values()) - sum(times[c] for c in NAMES[-5:])), 0, 1e-6)
            plain = self.lines(name, self.module, waves)
            self.expect(f"{cause} of {name} without lines", [row[cause] for place, row in plain.items() if place.endswith(instruction.split(": ")[-1])], [times[cause]])

    def test_sample(self):
        """Checks that a launch has the same time if it executes only the workgroups that the time
        model needs."""
        size = 16 * self.cus << 15
        source, target = self.device.upload(np.arange(size // 4, dtype=np.uint32)), self.device.upload(np.zeros(size // 4, np.uint32))
        times = []
        for mode in (1, 2):
            self.device.lib.bsmm_sim_time(mode)
            times.append(self.time("copy", 4, 16 * self.cus, [source, target]))
        self.expect("sample", times[0] == times[1], True)
        self.device.lib.bsmm_sim_time(1)


def main():
    os.environ["BSMM_SIM_CHECKS"], os.environ["BSMM_SIM_TIME"] = "0", "1"
    model = Model(sys.argv[1])
    model.test_matrix()
    model.test_issue()
    model.test_lds()
    model.test_threads(model.test_memory())
    model.test_sample()
    model.test_lines()
    print("\n".join(model.failed) or "time: all kernels take the cycles that they should")
    return bool(model.failed)


if __name__ == "__main__":
    sys.exit(main())
