"""Runs some hundred commands in the current folder and compares digests of what they print and write.

    golden_commands.py BSMM FIXTURES FILE

A line of FILE has the arguments of a command, a tab and a digest of its exit status, its standard
output and error, and the file or folder "out" that it writes. With BSMM_TEST_WRITE in the environment
the file is written again, and with BSMM_TEST_SAMPLE=n only every n-th command runs. The current folder
must be empty. The commands choose their cases by
counting, so that every value of an option stands beside many values of the others."""
import concurrent.futures
import hashlib
import itertools
import json
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

bsmm, fixtures, stored = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve(), Path(sys.argv[3]).resolve()
HERE = Path(__file__).resolve().parent
ENVIRONMENT = {**os.environ, "LC_ALL": "C", "COLUMNS": "80", "OMP_NUM_THREADS": "2"}
PRESETS = ["mxfp8", "mxfp8_e5m2", "mxfp6_e2m3", "mxfp6_e3m2", "mxfp4", "nvfp4", "fp8_group128", "fp8_block128",
           "fp8_group128_fnuz", "fp8_block128_fnuz"]
ELEMS = ["f32", "f16", "bf16", "e4m3", "e4m3fnuz", "e5m2", "e5m2fnuz", "e3m2", "e2m3", "e2m1", "e8m0"]
RECIPES = ["ocp", "rceil", "ceil", "even", "quark", "torchao", "te", "modelopt", "compressed-tensors", "ggml", "deepgemm",
           "deepseek", "cast"]
FAMILIES = ["plain", "deepseek", "deepseek-v4", "gpt-oss", "gpt-oss-hf", "modelopt", "compressed-tensors", "quark", "gguf",
            "bsmm"]
LAYOUTS = ["row_major", "col_major", "tile_contiguous", "nv_128x4", "nv_8x4", "cdna4_mfma16", "cdna4_mfma32",
           "cublas_vec128", "cublas_blk128"]
COMMANDS = ["formats", "decode", "encode", "layouts", "recipes", "families", "inspect", "quantize", "dequantize", "convert",
            "compare", "matmul", "explain", "bench", "sol", "mfma", "devices"]


def tables():
    yield from ([name, "--json"] for name in ("formats", "layouts", "recipes", "families", "mfma"))
    yield from ([name] for name in ("formats", "layouts", "recipes", "families", "mfma"))
    for elem in ELEMS:
        yield ["decode", elem, "0", "1", "0x7", "0b11", "15", "--json"]
        yield ["decode", elem, "0x7f", "0x80", "0xff", "0x3c00", "0x80000000"]
        yield ["encode", elem, "0.1", "-0", "3.3", "-1e9", "nan", "inf", "448.5", "1e-9"]
        yield ["encode", elem, "7", "-28.5", "65520", "1e-40", "--json", "--no-saturate"]
    for i, layout in enumerate(LAYOUTS):
        yield ["layouts", layout, "--rows", str(20 + 37 * i), "--cols", str(3 + i)]
        yield ["layouts", layout, "--rows", "9", "--cols", "5", "--all", "--tile-rows", "4", "--tile-cols", "3"]
        yield ["layouts", layout, "--json", "--rows", "5"]


def instructions():
    rows = subprocess.run([bsmm, "mfma", "--json"], capture_output=True, check=True).stdout.decode().splitlines()
    names = [next(v for v in json.loads(row).values() if str(v).startswith("v_")) for row in rows]
    operands = ["A", "B", "C", "D", "scale_a", "scale_b"]
    for i, name in enumerate(sorted(set(names))):
        yield ["mfma", name, "--operand", operands[i % 4]]
        if i % 5 == 0:
            yield ["mfma", name, "--operand", operands[i // 5 % 6], "--json"]
        if i % 9 == 0:
            yield ["mfma", name, "--svg", "--operand", operands[i // 9 % 6]]
    for i in range(1, 6):
        yield ["mfma", "--cdna", str(i)]


def estimates():
    shapes = [(1, 4096, 4096), (17, 1536, 7168), (8192, 8192, 8192)]
    pairs = PRESETS + ELEMS[:10] + ["mixed", "fp8_groupwise", "bf16:mxfp4", "bf16:nvfp4", "mxfp8:mxfp4", "f16:e4m3"]
    for i, pair in enumerate(pairs):
        m, n, k = shapes[i % 3]
        yield ["sol", "-d", "all", "-f", pair, "-M", str(m), "-N", str(n), "-K", str(k)]
        yield ["sol", "-d", "all", "-f", pair, "-M", str(k), "-N", str(n), "-K", str(m * 128), "--json", "--out", ELEMS[i % 3]]


def transfers():
    inputs = ["model.safetensors", "x.npy", "sharded", "spared.safetensors", "wide_model.safetensors"]
    for i, (target, recipe) in enumerate(itertools.product(PRESETS, RECIPES)):
        if i % 2 == 0 or recipe in ("ocp", "modelopt"):
            more = [["--report"], ["--pow2"], ["--one-level"], ["--json"], []][i % 5]
            yield ["quantize", inputs[i % 5], "-f", target, "-r", recipe, *more]
    for i, (target, family) in enumerate(itertools.product(PRESETS + ["fp8_channel", "fp8_tensor", "e4m3"], FAMILIES)):
        if i % 3 == 0:
            yield ["quantize", inputs[(i + 1) % 5], "-f", target, "--family", family, "--threads", str(1 + i % 3)]
    for i, (target, layout) in enumerate(itertools.product(PRESETS, LAYOUTS)):
        if i % 3 == 0:
            yield ["quantize", "wide_model.safetensors", "-f", target, "--layout", layout]
    models = ["mxfp4.safetensors", "nvfp4.safetensors", "pow2.safetensors", "broken.safetensors", "mxfp4.gguf",
              "model.safetensors", "wide.safetensors"]
    for i, (model, family) in enumerate(itertools.product(models, FAMILIES)):
        more = [[], ["--round-global"], ["--layout", LAYOUTS[i % 9]], ["--to", ["nvfp4", "fp8_block128"][i % 2]]][i // 3 % 4]
        yield ["convert", model, "--family", family, *more]
    for i, model in enumerate(models + sorted(f"fixtures/{p.name}" for p in fixtures.iterdir()
                                              if p.suffix in (".safetensors", ".gguf"))):
        yield ["dequantize", model, "--dtype", ["f32", "bf16", "f16"][i % 3], *([["--strict"], []][i % 2])]
        yield ["compare", model, models[i % 7], *([["--json"], []][i % 2])]


def products():
    for i, kernel in enumerate(["ref", "cpu_f32"] * 4):
        more = [["--alpha", "0.5"], ["--dtype", "bf16"], ["--check"], ["--c", "c.npy", "--beta", "-2"]][i % 4]
        yield ["matmul", "x.npy", ["model.safetensors:layers.0.fc.weight", "mxfp4.safetensors:fc"][i // 4], "--kernel", kernel,
               *more]
    yield ["matmul", "x.npy", "model.safetensors:experts.up[1]"]
    yield ["matmul", "x.npy", "model.safetensors"]
    yield ["matmul", "x.npy", "model.safetensors:nothing"]


def wrong():
    for i, command in enumerate(COMMANDS):
        yield [command, "--help"]
        yield [command, "--usage"]
        yield [command, "--nonsense"]
        yield [command, "a", "b", "c", "d"]
        yield [command[:-1] + "x"]
        for j, option in enumerate(("-M", "--threads", "-f", "--layout", "--cols")):
            yield [command, option]
            if command not in ("bench", "devices"):
                yield [command, option, ["-1", "0", "x", "99999999999", "1e3", ""][(i + j) % 6]]
    yield []
    yield ["--version"]
    yield ["--help"]


def files():
    """Lists all fixtures, and copies of some of which bytes were changed or the end was cut."""
    paths = sorted(p for p in fixtures.rglob("*") if p.suffix in (".safetensors", ".gguf", ".npy"))
    for i, path in enumerate(paths):
        yield ["inspect", f"fixtures/{path.relative_to(fixtures)}", *([[], ["--json"]][i % 2])]
    chance = random.Random(1)
    whole = [p for p in paths if p.parent.name not in ("hostile", "npy") and p.stat().st_size < 60000]
    Path("damaged").mkdir()
    for i, path in enumerate(chance.choices(whole, k=150)):
        content = bytearray(path.read_bytes())
        head = min(len(content), 1200)
        for _ in range(1 + i % 3):
            content[chance.randrange(head)] = chance.choice([0, 1, 9, 32, 34, 44, 58, 91, 125, 127, 255, chance.randrange(256)])
        if i % 10 == 0:
            del content[chance.randrange(len(content)):]
        name = f"damaged/{i}{path.suffix}"
        Path(name).write_bytes(content)
        yield ["inspect", name, *([["--json"], []][i % 2])]
        if i % 3 == 0:
            yield ["dequantize", name]


def add_tree(digest, path):
    for part in sorted(path.rglob("*")) if path.is_dir() else [path]:
        digest.update(str(part.relative_to(path)).encode())
        if part.is_file():
            digest.update(part.read_bytes())


def digest_of(number, arguments):
    """Runs a command. The output is a file or, for every fourth command, a folder."""
    writes = arguments[:1] and arguments[0] in ("quantize", "dequantize", "convert", "matmul") and len(arguments) > 2 \
        and "--help" not in arguments
    out = f"out/{number}" + ("/" if number % 4 == 3 and arguments[0] != "matmul" else ".gguf" if number % 4 == 2 else
                             ".npy" if arguments[:1] == ["matmul"] else ".safetensors")
    more = ["-o", out] if writes else []
    result = subprocess.run([bsmm, *arguments, *more], capture_output=True, stdin=subprocess.DEVNULL, env=ENVIRONMENT,
                            timeout=60)
    digest = hashlib.sha256(str(result.returncode).encode())
    # A product that ran prints its time.
    printed = [] if arguments[:1] == ["matmul"] and result.returncode == 0 else [result.stdout]
    for text in printed + [result.stderr]:
        digest.update(text.replace(f"out/{number}".encode(), b"OUT"))
    if Path(out).exists():
        add_tree(digest, Path(out))
    return digest.hexdigest()[:8]


def main():
    Path("fixtures").symlink_to(fixtures)
    Path("out").mkdir()
    write_model(random.Random(2))
    commands = [c for part in (tables, instructions, estimates, transfers, products, wrong, files) for c in part()]
    writes = os.environ.get("BSMM_TEST_WRITE")
    step = 1 if writes else int(os.environ.get("BSMM_TEST_SAMPLE", "1"))
    numbers = range(0, len(commands), step)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        digests = list(pool.map(lambda i: digest_of(i, commands[i]), numbers))
    lines = [f"{' '.join(commands[i])}\t{d}" for i, d in zip(numbers, digests)]
    if writes:
        stored.write_text("\n".join(lines) + "\n")
        return 0
    wanted = stored.read_text().splitlines()
    assert len(wanted) == len(commands), f"{len(commands)} commands; {stored} has {len(wanted)} lines"
    differ = [(now, then) for now, then in zip(lines, wanted[::step]) if now != then]
    for now, then in differ[:20]:
        print(f"found {now!r}; the file has {then!r}")
    return 1 if differ else 0


def write_model(chance):
    """Writes a model whose matrices have several blocks of 128 x 128, ordinary and extreme values."""
    import inputs  # inputs.py writes the small files of the transcripts when it is imported.
    header = {}
    for name, shape in (("a.weight", [130, 256]), ("b.weight", [64, 384]), ("c.weight", [3, 128])):
        values = b"".join(inputs.struct.pack("<f", chance.gauss(0, 1) * 2.0 ** chance.choice([0, 0, 0, -3, 5, -40, 30]))[2:]
                          for _ in range(shape[0] * shape[1]))
        header[name] = ("BF16", shape, values)
    inputs.safetensors("wide_model.safetensors", header)
    inputs.npy("c.npy", (4, 8), inputs.f32(32))


sys.exit(main())
