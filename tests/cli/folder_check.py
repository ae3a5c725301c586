"""Checks folders that bsmm wrote. usage: folder_check.py CHECK FOLDER..."""
import json
import pathlib
import struct
import sys

import model_values


def tensors_of(path):
    data = path.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    return {n: (t["dtype"], t["shape"], data[8 + size + t["data_offsets"][0]:8 + size + t["data_offsets"][1]])
            for n, t in header.items() if n != "__metadata__"}


def read(folder):
    """Returns the tensors of a folder, after checking that the index names exactly these."""
    shards = sorted(folder.glob("*.safetensors"))
    found = {}
    for shard in shards:
        found.update({n: (shard.name, *t) for n, t in tensors_of(shard).items()})
    if len(shards) > 1:
        index = json.loads((folder / "model.safetensors.index.json").read_text())
        assert index["weight_map"] == {n: t[0] for n, t in found.items()}, "index"
        assert index["metadata"]["total_size"] == sum(len(t[3]) for t in found.values()), "total_size"
        assert [s.name for s in shards] == [f"model-{i + 1:05}-of-{len(shards):05}.safetensors" for i in range(len(shards))]
    else:
        assert [s.name for s in shards] == ["model.safetensors"] and not (folder / "model.safetensors.index.json").exists()
    return {n: t[1:] for n, t in found.items()}


def config_of(folder):
    return json.loads((folder / "config.json").read_text())


def check_weights(scheme):
    """Checks the numbers of a scheme that follow from its format."""
    bits, group, block = {"nvfp4-pack-quantized": (4, 16, None), "mxfp4-pack-quantized": (4, 32, None),
                          "mxfp6-pack-quantized": (6, 32, None), "mxfp8-quantized": (8, 32, None),
                          "float-quantized": (8, None, [128, 128])}[scheme["format"]]
    weights = scheme["weights"]
    block = block if weights["strategy"] == "block" else None
    assert (weights["num_bits"], weights.get("group_size"), weights.get("block_structure")) == (bits, group, block), weights


def check_compressed(folder, source):
    """Checks a folder of compressed-tensors with weights in nvfp4, except down_proj in mxfp8.
    Fused weights must share their global scale."""
    got, before = read(folder), tensors_of(source / "model.safetensors")
    config = config_of(folder)
    quantization = config.pop("quantization_config")
    assert str(config) == str(config_of(source)), "config.json changed elsewhere"
    assert quantization["quant_method"] == "compressed-tensors" and quantization["format"] == "mixed-precision"
    assert quantization["ignore"] == ["lm_head"]
    groups = {g["format"]: g for g in quantization["config_groups"].values()}
    assert groups["mxfp8-quantized"]["targets"] == [f"model.layers.{i}.mlp.down_proj" for i in range(2)]
    assert len(groups["nvfp4-pack-quantized"]["targets"]) == 12
    for scheme in groups.values():
        check_weights(scheme)
    scale = lambda name: got[f"model.layers.1.{name}.weight_global_scale"][2]
    assert scale("self_attn.q_proj") == scale("self_attn.k_proj") == scale("self_attn.v_proj") != scale("self_attn.o_proj")
    assert scale("mlp.gate_proj") == scale("mlp.up_proj")
    for name in ("model.embed_tokens.weight", "lm_head.weight", "model.norm.weight"):
        assert got[name] == before[name], name
    assert (folder / "tokenizer.json").read_text() == (source / "tokenizer.json").read_text()
    assert {p.name for p in folder.iterdir() if p.suffix != ".safetensors"} == {
        "config.json", "tokenizer.json", "model.safetensors.index.json"}


def check_alone(path):
    """Checks that weights which an engine fuses have different global scales. The command does not
    share scales in a single file."""
    got = tensors_of(path)
    names = [f"model.layers.0.self_attn.{name}_proj.weight_global_scale" for name in "qkv"]
    assert len({got[name][2] for name in names}) == 3, names


def check_method(folder, method):
    read(folder)
    assert config_of(folder)["quantization_config"]["quant_method"] == str(method), config_of(folder)


def check_quark(folder, dtype):
    """Checks how Quark's quantization_config describes the weights of all layers."""
    entry = config_of(folder)["quantization_config"]["global_quant_config"]
    assert entry["weight"] == {"dtype": str(dtype), "qscheme": "per_group", "group_size": 32, "scale_format": "e8m0",
                               "is_dynamic": False}, entry


def check_scheme(folder, name, strategy, scale):
    """Checks that one scheme quantizes the weights of all layers and none of the inputs. `scale` is
    the expected (dtype, shape) of up_proj's scale."""
    quantization = config_of(folder)["quantization_config"]
    (group,) = quantization["config_groups"].values()
    assert quantization["format"] == group["format"] == str(name) and group["targets"] == ["Linear"], quantization
    assert group["weights"]["strategy"] == str(strategy) and group["input_activations"] is None, group
    check_weights(group)
    dtype, shape, _ = read(folder)["model.layers.0.mlp.up_proj.weight_scale"]
    assert f"{dtype}:{'x'.join(map(str, shape))}" == str(scale), (dtype, shape)


def check_shared(folder, source):
    """Checks fp8_tensor. Fused weights must have the same scale, the largest magnitude of all of
    them / 448 in fp32. Their codes must be the values divided by this scale, rounded."""
    got, before = read(folder), tensors_of(source / "model.safetensors")
    values = lambda name: model_values.plain(before[name][0], before[name][2])
    for layer in range(2):
        for group in (("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"), ("mlp.gate_proj", "mlp.up_proj"),
                      ("self_attn.o_proj",), ("mlp.down_proj",)):
            names = [f"model.layers.{layer}.{name}.weight" for name in group]
            amax = max(abs(x) for name in names for x in values(name))
            for name in names:
                scale = struct.unpack("<f", got[name + "_scale"][2])[0]
                assert scale == f32(f32(amax) / 448), (name, scale, amax)
                codes = [model_values.e4m3(code) for code in got[name][2]]
                assert len(codes) == len(values(name)), name
                for code, x in zip(codes, values(name)):
                    assert abs(code * scale - x) <= max(abs(x) / 16, scale * 2.0**-10) * (1 + 1e-6), (name, code, x)


def check_experts(folder, source):
    """Checks that fused experts are in mxfp4, with values near those of the source, and that the router is
    unchanged."""
    got, before = read(folder), tensors_of(source / "model.safetensors")
    assert got["model.layers.0.mlp.gate.weight"] == before["model.layers.0.mlp.gate.weight"], "the router"
    assert got["model.layers.0.mlp.experts.gate_up_proj_bias"][0] == "F32", "the bias"
    for name in ("gate_up_proj", "down_proj"):
        name = f"model.layers.0.mlp.experts.{name}"
        _, shape, data = before[name]
        values = model_values.plain("F32", data)
        codes, scales = (got[name + end] for end in ("_blocks", "_scales"))
        assert (codes[1], scales[1]) == ([*shape[:2], shape[2] // 32, 16], [*shape[:2], shape[2] // 32]), codes[:2]
        for i, (code, x) in enumerate(zip(model_values.nibbles(codes[2]), values)):
            scale = model_values.e8m0(scales[2][i // 32])
            largest = max(map(abs, values[i // 32 * 32:i // 32 * 32 + 32]))
            assert largest / 8 < scale <= largest / 4, (name, i, scale)
            assert abs(code * scale - x) <= max(abs(x) / 4, scale / 4, abs(x) - 6 * scale) * (1 + 1e-6), (name, i)


def check_groups(folder, name, *groups):
    quantization = config_of(folder)["quantization_config"]
    got = [f"{g['weights']['strategy']}:{len(g['targets'])}" for g in quantization["config_groups"].values()]
    assert quantization["format"] == str(name) and got == [str(g) for g in groups], quantization


def check_magnitudes(path, out):
    """Writes a file with an invented largest magnitude for the input of each layer. q_proj, k_proj
    and v_proj have the same input but get different numbers, of which bsmm must take the
    largest."""
    layers = [n.removesuffix(".weight") for n in tensors_of(path) if "_proj" in n]
    pathlib.Path(out).write_text(json.dumps({n: 1.7 + 0.3 * i for i, n in enumerate(layers)}))


def expected_amax(amax, layer):
    for fused in (("q_proj", "k_proj", "v_proj"), ("gate_proj", "up_proj")):
        if layer.endswith(fused):
            stem = layer.rsplit(".", 1)[0]
            return max(amax[f"{stem}.{f}"] for f in fused)
    return amax[layer]


def f32(value):
    return struct.unpack("<f", struct.pack("<f", value))[0]


def check_inputs(folder, calibration):
    amax, got = json.loads(calibration.read_text()), read(folder)
    for layer in amax:
        wide = layer.endswith("o_proj")
        suffix, full = ("input_scale", 448) if wide else ("input_global_scale", 2688)
        dtype, shape, data = got[f"{layer}.{suffix}"]
        largest = f32(expected_amax(amax, layer))
        wanted = f32(largest / full) if wide else f32(full / largest)
        assert (dtype, shape) == ("F32", [1]) and struct.unpack("<f", data)[0] == wanted, layer
    groups = config_of(folder)["quantization_config"]["config_groups"].values()
    assert all(g["weights"]["dynamic"] is False and g["weights"]["symmetric"] is True for g in groups), groups
    groups = {g["format"]: g["input_activations"] for g in groups}
    assert groups["nvfp4-pack-quantized"]["dynamic"] == "local" and groups["float-quantized"]["dynamic"] is False, groups


def check_modelopt(folder, calibration, algorithm):
    got, config = read(folder), config_of(folder)["quantization_config"]
    second = json.loads((folder / "hf_quant_config.json").read_text())["quantization"]
    assert config["quant_algo"] == second["quant_algo"] == str(algorithm), (config, second)
    assert config["ignore"] == second["exclude_modules"] == ["lm_head"]
    inputs = {n: t for n, t in got.items() if n.endswith(".input_scale")}
    if str(calibration) == "none":
        assert not inputs and "input_activations" not in config["config_groups"]["group_0"]
        return
    amax = json.loads(calibration.read_text())
    assert {n.removesuffix(".input_scale") for n in inputs} == set(amax)
    for name, (dtype, shape, data) in inputs.items():
        layer = name.removesuffix(".input_scale")
        fp8 = got[f"{layer}.weight"][0] == "F8_E4M3"
        largest = f32(expected_amax(amax, layer))
        assert (dtype, shape) == ("F32", []) and struct.unpack("<f", data)[0] == f32(largest / (448 if fp8 else 2688)), name
        if str(algorithm) == "MIXED_PRECISION":
            wanted = {"quant_algo": "FP8"} if fp8 else {"quant_algo": "NVFP4", "group_size": 16}
            assert config["quantized_layers"][layer] == second["quantized_layers"][layer] == wanted, layer
            assert got[f"{layer}.weight_scale"][1] == [] or not fp8


def check_reciprocals(folder, source):
    got, before = read(folder), read(source)
    names = [n for n in before if n.endswith(".input_scale")]
    assert len(names) == 14 and not any(n.endswith(".input_scale") for n in got)
    for name in names:
        (old,), (new,) = (struct.unpack("<f", t[2]) for t in (before[name], got[name.replace("input_", "input_global_")]))
        assert new == f32(1 / old), name


def check_ignores(folder, *names):
    quantization = config_of(folder)["quantization_config"]
    assert quantization.get("ignore", quantization.get("exclude")) == [str(n) for n in names], quantization


def check_plain(folder, source):
    assert str(config_of(folder)) == str(config_of(source)), "config.json"
    assert all(t[0] == "F32" for t in read(folder).values())


def check_poison(path):
    """Writes a NaN into the weight k_proj of layer 0 of a model. This is a preparation and checks
    nothing."""
    data = bytearray(path.read_bytes())
    size = struct.unpack("<Q", data[:8])[0]
    begin = json.loads(data[8:8 + size])["model.layers.0.self_attn.k_proj.weight"]["data_offsets"][0]
    data[8 + size + begin:12 + size + begin] = struct.pack("<f", float("nan"))
    path.write_bytes(data)


def main():
    globals()["check_" + sys.argv[1]](*map(pathlib.Path, sys.argv[2:]))


if __name__ == "__main__":
    main()
