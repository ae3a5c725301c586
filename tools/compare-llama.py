#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares bsmm's language model (examples/llm) with llama.cpp on this machine: perplexity, prefill of
512 tokens (pp512) and decoding of 128 tokens (tg128), at equal bits of all weights.

bsmm writes the MXFP4 and NVFP4 files, and llama-quantize writes Q4_0 and Q8_0 with --pure
--allow-requantize. All weights of a file, with its embedding, have the file's type. Both programs run
alternately, because other programs may use the machine, and the table has medians. The perplexity is
that of llama-perplexity: windows of 512 tokens, of which the second half counts.

For a file that bsmm wrote, bsmm also measures the perplexity of the file's values in f32. The exit
status is 1 if llama.cpp's perplexity of such a file differs by more than 1%. llama.cpp rounds inputs
of layers to 8 bits.

LLAMA is a folder with llama-bench, llama-perplexity and llama-quantize. Their source is the folder
vendor/llama.cpp in the source distribution of PyPI's llama-cpp-python:

    cmake -S vendor/llama.cpp -B BUILD -DCMAKE_BUILD_TYPE=Release -DGGML_NATIVE=ON -DLLAMA_CURL=OFF
    cmake --build BUILD --target llama-bench llama-perplexity llama-quantize    # in BUILD/bin"""
import argparse
import json
import re
import shlex
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TEXT = ROOT / "examples/llm/alice.txt"
# Each row has bsmm's formats of weights, of inputs of layers and of the embedding, llama.cpp's type, and
# the bits of a weight of a layer in both programs. llama.cpp reads no second-level scale of the
# embedding, so the embedding of the NVFP4 file is in MXFP4.
ROWS = (("mxfp4", "bf16", "mxfp4", "MXFP4", 4.25, 4.25), ("nvfp4", "bf16", "mxfp4", "NVFP4", 4.5, 4.5),
        ("nvfp4", "bf16", "nvfp4", "Q4_0", 4.5, 4.5), ("nvfp4", "mxfp6", "nvfp4", "Q4_0", 4.5, 4.5),
        ("mxfp8", "bf16", "mxfp8", "Q8_0", 8.25, 8.5))


def run(*words):
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, words))}: status {done.returncode}\n{done.stderr[-2000:]}")
    return done.stdout + done.stderr


def is_ours(weights, kind):
    """Tells whether bsmm writes the file of a row."""
    return kind == weights.upper()


def make_files(o, work):
    """Writes a file for each of llama.cpp's types. Returns their paths."""
    files = {}
    for weights, _, embedding, kind, _, _ in ROWS:
        if kind in files:
            continue
        path = files[kind] = work / f"{kind}.gguf"
        if is_ours(weights, kind):
            run(o.build / "bsmm", "quantize", o.model, "-o", path, "--format", weights, "--tensor", f"token_embd.weight={embedding}")
        else:
            run(o.llama / "llama-quantize", "--pure", "--allow-requantize", o.model, path, kind)
    return files


def our_program(o, row, files, threads, rounds, values=False):
    """Runs bsmm's program. It reads the same file as llama.cpp if bsmm wrote this file. With `values`, it
    computes with the file's values in f32."""
    weights, activations, embedding, kind = row[:4]
    file = files[kind] if is_ours(weights, kind) else o.model
    formats = ("f32",) * 3 if values else (weights, activations, embedding)
    return run(*o.prefix, o.build / "bsmm_llm_speed", file, TEXT, *formats, threads, rounds)


def our_speed(o, row, files, threads):
    words = our_program(o, row, files, threads, 1).split()
    return float(words[1]), float(words[3])


def their_speed(o, path, threads):
    out = run(*o.prefix, o.llama / "llama-bench", "-m", path, "-p", 512, "-n", 128, "-t", threads, "-r", 1, "-o", "json")
    tests = json.loads(out[out.index("["):out.rindex("]") + 1])
    return tuple(next(t["avg_ts"] for t in tests if bool(t["n_prompt"]) == is_prompt) for is_prompt in (True, False))


def perplexities(o, row, files, known):
    ours = float(our_program(o, row, files, 0, 0).split()[1])
    values = float(our_program(o, row, files, 0, 0, True).split()[1]) if is_ours(row[0], row[3]) else None
    if row[3] not in known:
        out = run(*o.prefix, o.llama / "llama-perplexity", "-m", files[row[3]], "-f", TEXT, "-c", 512, "-b", 512)
        known[row[3]] = float(re.search(r"Final estimate: PPL = ([0-9.]+)", out)[1])
    return ours, known[row[3]], values


def name_of(row):
    return " ".join(f"{word:6}" for word in row[:4]).ljust(28)


def print_speeds(o, row, files, threads):
    rounds = [(our_speed(o, row, files, threads), their_speed(o, files[row[3]], threads)) for _ in range(o.rounds)]
    for which, name in enumerate(("pp512", "tg128")):
        ours, theirs = ([pair[side][which] for pair in rounds] for side in (0, 1))
        ratio = statistics.median(a / b for a, b in zip(ours, theirs))
        print(f"{name_of(row)} {threads:7} {name:6} {statistics.median(ours):9.1f} "
              f"{statistics.median(theirs):9.1f} {ratio:6.2f}   {min(ours):.1f} to {max(ours):.1f}, "
              f"{min(theirs):.1f} to {max(theirs):.1f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("llama", type=Path)
    parser.add_argument("--model", type=Path, default=ROOT / ".cache/llm/model.gguf")
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rows", default="", help="only rows whose formats contain this text, such as nvfp4:bf16:nvfp4:Q4_0")
    parser.add_argument("--prefix", type=shlex.split, default=[], help="a command before each measured program, such as 'chrt -f 50'")
    o = parser.parse_args()
    failed = 0
    rows = [row for row in ROWS if o.rows in ":".join(row[:4])]
    with tempfile.TemporaryDirectory() as work:
        files = make_files(o, Path(work))
        known = {}
        print("bsmm's weights, inputs and embedding, llama.cpp's type: bits a weight and perplexity of both")
        for row in rows:
            ours, theirs, values = perplexities(o, row, files, known)
            print(f"{name_of(row)} {row[4]:5} {row[5]:5} {ours:9.3f} {theirs:9.3f}",
                  f"{values:9.3f} in f32" if values else "", flush=True)
            failed += values is not None and abs(theirs / values - 1) > 0.01
        print(f"{'':28} threads  test      bsmm llama.cpp  ratio   ranges (tokens/s)")
        for threads in o.threads if o.rounds else ():
            for row in rows:
                print_speeds(o, row, files, threads)
    print(f"{'failed' if failed else 'passed'}: for {failed} files of bsmm, llama.cpp's perplexity differs by more than 1%")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
