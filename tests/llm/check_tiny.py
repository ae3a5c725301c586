# SPDX-License-Identifier: Apache-2.0
"""Compares the program examples/llm with the results of transformers that make_fixture.py stored.

usage: check_tiny.py PROGRAM"""
import json
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
MODEL = HERE / "tiny.gguf"
TEXT = HERE.parent.parent / "examples/llm/alice.txt"
failures = []


def expect(condition, message):
    if not condition:
        failures.append(message)


def run(program, *arguments, text=b""):
    return subprocess.run([program, *map(str, arguments)], input=text, capture_output=True, check=False)


def read_npy(path):
    """Returns the shape and the values of a .npy file of f32 in version 1.0."""
    data = Path(path).read_bytes()
    length = struct.unpack("<H", data[8:10])[0]
    header = eval(data[10:10 + length], {"__builtins__": {}})  # a literal, written by this program
    body = data[10 + length:]
    return header["shape"], struct.unpack(f"<{len(body) // 4}f", body)


def check_tokens(program, rows):
    texts = b"".join(text.encode() + b"\0" for text, _ in rows)
    lines = run(program, "--tokenize", MODEL, text=texts).stdout.decode().split("\n")[:-1]
    expect(len(lines) == len(rows), f"{len(lines)} lines of tokens, expected {len(rows)}")
    for line, (text, ids) in zip(lines, rows):
        got = [int(word) for word in line.split()]
        expect(got == ids, f"tokens of {text!r}: {got}, expected {ids}")


def check_logits(program, prompt, f32_error, limit, *options):
    expected_shape, expected = read_npy(HERE / "logits.npy")
    with tempfile.TemporaryDirectory() as folder:
        done = run(program, f"--logits={folder}/logits.npy", "--raw", *options, MODEL, prompt)
        expect(done.returncode == 0, f"--logits {options}: {done.stderr.decode()}")
        if done.returncode != 0:
            return
        shape, got = read_npy(f"{folder}/logits.npy")
    error = max(abs(a - b) for a, b in zip(got, expected))
    expect(shape == expected_shape, f"logits {options}: shape {shape}, expected {expected_shape}")
    expect(error <= limit, f"logits {options}: error {error}, at most {limit}; transformers in f32: {f32_error}")


def check_table(program, perplexity):
    """All rows pass. The first one is the reference, and its perplexity is that of transformers."""
    with tempfile.TemporaryDirectory() as folder:
        text = f"{folder}/text"
        Path(text).write_text(TEXT.read_text(encoding="utf-8")[:6000], encoding="utf-8")
        done = run(f"{program}_table", MODEL, text)
        short = run(f"{program}_table", MODEL, HERE / "requirements.txt")
    lines = [line.split() for line in done.stdout.decode().splitlines()]
    rows = [[float(word) for word in line[2:]] for line in lines if len(line) == 9 and line[2][0].isdigit()]
    expect(done.returncode == 0 and lines[-1:] and lines[-1][0] == "passed:", f"table: {done}")
    expect(len(rows) == 12, f"table: {len(rows)} rows, expected 12")
    expect(rows and abs(rows[0][1] - perplexity) < 1e-3 and rows[0][2] == 0, f"table: {rows[:1]}, not {perplexity}")
    expect(all(0 < row[6] <= 1 for row in rows), f"table: errors {[row[6] for row in rows]}")
    expect(short.returncode == 1 and "at least 512 tokens" in short.stderr.decode(), f"table of a short text: {short}")


def check_failures(program):
    for arguments, mentions in (
            ((), "usage: llm"), (("--weights=f7", MODEL, "a"), "f7"), (("--tokens=x", MODEL, "a"), "--tokens: value is x"),
            (("--packed=loose", MODEL, "a"), "--packed: value is loose"), ((HERE / "absent.gguf", "a"), "absent.gguf"),
            (("--tokens=2000", MODEL, "a"), "context of 1024"), (("--raw", MODEL, ""), "PROMPT: has no tokens"),
            ((HERE / "tokens.json", "a"), "tokens.json")):
        done = run(program, *arguments)
        expect(done.returncode not in (0, -6, -11) and mentions in done.stderr.decode(),
               f"{arguments}: status {done.returncode}, {done.stderr.decode()!r}; must mention {mentions}")


def check_answers(program):
    """The same seed gives the same answer, and a batch gives the answer of single tokens."""
    first, again, other = (run(program, "--tokens=20", "--temperature=1", f"--seed={seed}", MODEL, "the").stdout
                           for seed in (1, 1, 2))
    expect(first == again, f"one seed, two answers: {first!r}, {again!r}")
    expect(first != other, f"two seeds, one answer: {first!r}")


def main():
    program = sys.argv[1]
    stored = json.loads((HERE / "tokens.json").read_text(encoding="utf-8"))
    error = stored["f32_error"]
    check_tokens(program, stored["rows"])
    # Both implementations round to f32 after each step, in a different order. The stored logits are
    # those of transformers in f64, and its own f32 logits differ from them by `error`.
    check_logits(program, stored["prompt"], error, 4 * error)
    check_logits(program, stored["prompt"], error, 4 * error, "--packed=compact", "--threads=1")
    check_answers(program)
    check_table(program, stored["perplexity"])
    check_failures(program)
    print(*failures, sep="\n")
    print(f"llm: {'all passed' if not failures else f'{len(failures)} failed'}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
