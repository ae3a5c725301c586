#!/bin/sh
# Tests what tools/check-amdgpu-loops.py and tools/check-amdgpu-names.py find, on made-up kernels.
set -eu
export PYTHONDONTWRITEBYTECODE=1
tools=$(cd "$(dirname "$0")/../../tools" && pwd)
TOOLS=$tools python3 - <<'END'
import importlib.util
import os


def load(name):
    spec = importlib.util.spec_from_file_location("tool", f"{os.environ['TOOLS']}/{name}.py")
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    return tool


def expect(messages, *parts):
    messages = list(messages)
    assert len(messages) == len(parts) and all(p in m for p, m in zip(parts, messages)), (messages, parts)


loops = load("check-amdgpu-loops")
MULTIPLY, LOAD, BARRIER = "v_mfma_scale_f32_16x16x128_f8f6f4 v[0:3]", "buffer_load_dwordx4 v1, s[0:3], s4 offen lds", "s_barrier"
step = [MULTIPLY, LOAD] * 8 + [MULTIPLY] * 24 + [BARRIER]
# The third step is that of the loop for other steps, which may branch.
loop = step * 2 + ["s_cbranch_scc1 1", MULTIPLY, "s_cbranch_vccz 2", BARRIER, MULTIPLY]


def pairs(lines):
    return loops.check_pairs("scaled_e4m3.gfx950.image", "large_e4m3", lines)


expect(pairs(loop))
for branch in ("s_cbranch_vccnz 7", "s_branch 7"):
    for at in (3, 25, len(step) + 3):
        expect(pairs(loop[:at] + [branch] + loop[at:]), "has 0 pairs of steps without branches; must be 1")
for number in range(2):
    at = number * len(step)
    crowded = loop[:at] + [MULTIPLY] + [LOAD] * 3 + [MULTIPLY] * 31 + [BARRIER] + loop[at + len(step):]
    expect(pairs(crowded), f"ahead of 2 loads to LDS in step {number} of a pair")
expect(loops.check_pairs("scaled_e2m1.gfx950.image", "large_e2m1", loop), "has 0 pairs of steps without branches; must be 2")

names = load("check-amdgpu-names")
named = {("cdna/words", "store"), ("cdna/groupwise", "small_e4m3fnuz"), ("gfx950/scaled", "large")}
built = {("cdna/words", "store", "gfx942"), ("cdna/words", "store", "gfx950"),
         ("cdna/groupwise", "small_e4m3fnuz", "gfx942"), ("gfx950/scaled", "large", "gfx950")}
expect(names.compare(named, built))
for kernel in sorted(built):
    expect(names.compare(named, built - {kernel}), f"{kernel[1]}: named by the host code, but not built for {kernel[2]}")
for pair in sorted(named):
    expect(names.compare(named - {pair}, built),
           *[f"{pair[1]}: built for {processor}, but not named" for processor in names.processors(*pair)])
text = 'x = {.module = "cdna/words", .name = "store" "_words"}, {{"gfx950/scaled_" "e2m1", "large" "_" "e4m3", 4}};'
assert [(names.joined(a), names.joined(b)) for a, b in names.PAIR.findall(text)] == [
    ("cdna/words", "store_words"), ("gfx950/scaled_e2m1", "large_e4m3")]
END
