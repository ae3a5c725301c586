# SPDX-License-Identifier: Apache-2.0
"""Compares the program examples/llm with the results of transformers that make_fixture.py stored.

With names of simulated devices, it compares the results on these devices only.

usage: check_tiny.py PROGRAM [DEVICE...]"""
import json
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
MODEL = HERE / "tiny.gguf"
TEXT = HERE.parent.parent / "examples/llm/alice.txt"
SHORT = 2600  # Characters of TEXT, which are one window of tokens.
failures = []


def expect(condition, message):
    if not condition:
        failures.append(message)


def run(program, *arguments, text=b""):
    return subprocess.run([program, *map(str, arguments)], input=text, capture_output=True, check=False)


def read_npy(path):
    """Returns the shape and the values of a .npy file of f32 (format version 1.0)."""
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


def read_logits(program, prompt, *options):
    """Runs the program and returns the shape and the values of the logits that it writes."""
    with tempfile.TemporaryDirectory() as folder:
        done = run(program, f"--logits={folder}/logits.npy", "--raw", *options, MODEL, prompt)
        expect(done.returncode == 0, f"--logits {options}: {done.stderr.decode()}")
        return read_npy(f"{folder}/logits.npy") if done.returncode == 0 else ((), ())


def check_logits(program, stored, *options):
    """Compares logits of examples/llm with the f64 logits of transformers. The f32 logits of transformers
    differ from the f64 logits by `f32_error`. Both programs round to f32 after each step, in different
    orders."""
    expected_shape, expected = read_npy(HERE / "logits.npy")
    shape, got = read_logits(program, stored["prompt"], *options)
    limit = 4 * stored["f32_error"]
    error = max((abs(a - b) for a, b in zip(got, expected)), default=None)
    expect(shape == expected_shape, f"logits {options}: shape {shape}, expected {expected_shape}")
    expect(error is None or error <= limit, f"logits {options}: error {error}, at most {limit}")
    return got


def check_embedding(program, prompt):
    """Checks that --embedding quantizes the embedding and nothing else. The logits must differ from
    those of the file's own values by the rounding of the embedding. A wrong row or scale would
    change them by as much as their own size."""
    _, plain = read_logits(program, prompt)
    for name, limit in (("bf16", 0.02), ("mxfp8", 0.2), ("fp8_block128", 0.2), ("mxfp4", 0.6), ("nvfp4", 0.5)):
        _, got = read_logits(program, prompt, f"--embedding={name}")
        error = (sum((a - b) ** 2 for a, b in zip(got, plain)) / sum(b * b for b in plain)) ** 0.5
        expect(len(got) == len(plain) and 0 < error < limit, f"--embedding={name}: error {error}, at most {limit}")


def run_table(program, characters, *device):
    """Runs the program that prints the table. Returns its result and the numbers of the rows. All
    rows must pass."""
    with tempfile.TemporaryDirectory() as folder:
        text = f"{folder}/text"
        Path(text).write_text(TEXT.read_text(encoding="utf-8")[:characters], encoding="utf-8")
        done = run(f"{program}_table", MODEL, text, *device)
    lines = [line.split() for line in done.stdout.decode().splitlines()]
    rows = {tuple(line[:2]): [float(word) for word in line[2:]]
            for line in lines if len(line) == 9 and line[2][0].isdigit()}
    expect(done.returncode == 0 and lines[-1:] and lines[-1][0] == "passed:", f"table: {done}")
    expect(len(rows) == 12, f"table: {len(rows)} rows, expected 12")
    expect(all(0 < row[6] <= 1 for row in rows.values()), f"table: errors {rows}")
    return rows


def check_table(program, perplexity):
    """Checks the row f32, with which the table compares the others. Its perplexity must equal that
    of transformers."""
    first = run_table(program, 6000).get(("f32", "f32"), [])
    short = run(f"{program}_table", MODEL, HERE / "requirements.txt")
    expect(first and abs(first[1] - perplexity) < 1e-3 and first[2] == 0, f"table: {first}, not {perplexity}")
    expect(short.returncode == 1 and "at least 512 tokens" in short.stderr.decode(), f"table of a short text: {short}")


def check_failing_table(program):
    """Checks that the table says which measure failed. A NaN in the weight of the last norm makes
    all logits NaN."""
    model = bytearray(MODEL.read_bytes())
    # In a GGUF file, a tensor's description has its name, the number of dimensions (4 bytes), the
    # dimensions (8 bytes each), the type (4 bytes) and the offset of its data (8 bytes). The data
    # follow the last description.
    last, norm = model.rindex(b".weight") + 7, model.index(b"output_norm.weight") + 18
    data = (last + 4 + 8 * struct.unpack_from("<I", model, last)[0] + 4 + 8 + 31) // 32 * 32
    at = data + struct.unpack_from("<Q", model, norm + 4 + 8 + 4)[0]
    model[at:at + 4] = struct.pack("<f", float("nan"))
    with tempfile.TemporaryDirectory() as folder:
        broken, text = Path(folder, "broken.gguf"), Path(folder, "text")
        broken.write_bytes(model)
        text.write_text(TEXT.read_text(encoding="utf-8")[:SHORT], encoding="utf-8")
        done = run(f"{program}_table", broken, text)
    lines = done.stdout.decode().splitlines()
    expect(done.returncode == 1 and lines[-1:] == ["failed: 12 of 12 rows"], f"table without finite logits: {done}")
    expect(sum("failed: a logit is not finite" in line for line in lines) == 12, f"table without finite logits: {lines}")


def check_device(program, device, stored, on_cpu):
    """Checks that the device computes the products of the first layer, with errors within the
    bounds of the kernels, for each pair of formats. If no activation is rounded to 8 bits or
    less, the perplexity must be near that of the CPU. With rounded activations, a small error
    may change the rounded input of a later layer. With bf16 activations, another order of the
    sums in attention changed the perplexity by up to 5e-5 of its value."""
    done = run(program, "--tokens=1", f"--device={device}", MODEL, "the")
    if b"built without" in done.stderr:
        print(f"skipped: no kernels for {device}")
        return
    expect(done.returncode == 0, f"{device}: {done}")
    # The device adds in another order than the CPU, so different logits show that the device
    # computed a product.
    expect(check_logits(program, stored, f"--device={device}") != on_cpu["logits"], f"{device}: the CPU's bits")
    there, here = run_table(program, SHORT, device), on_cpu["rows"]
    for formats in here.keys() & there.keys():
        near = abs(there[formats][1] / here[formats][1] - 1) < (1e-4 if formats[1] == "f32" else 3e-4)
        expect(near or formats[1] not in ("f32", "bf16"),
               f"{device}, {formats}: perplexity {there[formats][1]}, on the CPU {here[formats][1]}")


def check_failures(program):
    for arguments, mentions in (
            ((), "usage: llm"), (("--weights=f7", MODEL, "a"), "f7"), (("--embedding=f9", MODEL, "a"), "f9"),
            (("--tokens=x", MODEL, "a"), "--tokens: value is x"),
            ((HERE / "absent.gguf", "a"), "absent.gguf"),
            (("--tokens=2000", MODEL, "a"), "context of 1024"), (("--raw", MODEL, ""), "PROMPT: has no tokens"),
            ((HERE / "tokens.json", "a"), "tokens.json")):
        done = run(program, *arguments)
        expect(done.returncode not in (0, -6, -11) and mentions in done.stderr.decode(),
               f"{arguments}: status {done.returncode}, {done.stderr.decode()!r}; must mention {mentions}")


def check_answers(program):
    """Checks that the same seed gives the same answer, and that a batch of tokens gives the same
    answer as single tokens."""
    first, again, other = (run(program, "--tokens=20", "--temperature=1", f"--seed={seed}", MODEL, "the").stdout
                           for seed in (1, 1, 2))
    expect(first == again, f"one seed, two answers: {first!r}, {again!r}")
    expect(first != other, f"two seeds, one answer: {first!r}")


def check_all(program, stored):
    check_tokens(program, stored["rows"])
    check_logits(program, stored)
    check_logits(program, stored, "--threads=1")
    check_embedding(program, stored["prompt"])
    check_answers(program)
    check_table(program, stored["perplexity"])
    check_failing_table(program)
    check_failures(program)


def main():
    program, *devices = sys.argv[1:]
    stored = json.loads((HERE / "tokens.json").read_text(encoding="utf-8"))
    if devices:
        on_cpu = {"rows": run_table(program, SHORT), "logits": check_logits(program, stored)}
    for device in devices:
        check_device(program, device, stored, on_cpu)
    if not devices:
        check_all(program, stored)
    print(*failures, sep="\n")
    print(f"llm: {'all passed' if not failures else f'{len(failures)} failed'}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
