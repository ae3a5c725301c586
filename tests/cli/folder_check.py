"""Checks folders that bsmm wrote. usage: folder_check.py CHECK FOLDER..."""
import json
import pathlib
import struct
import sys


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


def check_compressed(folder, source):
    """compressed-tensors: nvfp4, but mxfp8 for down_proj; fused weights share their global scale."""
    got, before = read(folder), tensors_of(source / "model.safetensors")
    config = config_of(folder)
    quantization = config.pop("quantization_config")
    assert str(config) == str(config_of(source)), "config.json changed elsewhere"
    assert quantization["quant_method"] == "compressed-tensors" and quantization["format"] == "mixed-precision"
    assert quantization["ignore"] == ["lm_head"]
    groups = {g["format"]: g for g in quantization["config_groups"].values()}
    assert groups["mxfp8-quantized"]["targets"] == [f"model.layers.{i}.mlp.down_proj" for i in range(2)]
    assert len(groups["nvfp4-pack-quantized"]["targets"]) == 12
    scale = lambda name: got[f"model.layers.1.{name}.weight_global_scale"][2]
    assert scale("self_attn.q_proj") == scale("self_attn.k_proj") == scale("self_attn.v_proj") != scale("self_attn.o_proj")
    assert scale("mlp.gate_proj") == scale("mlp.up_proj")
    for name in ("model.embed_tokens.weight", "lm_head.weight", "model.norm.weight"):
        assert got[name] == before[name], name
    assert (folder / "tokenizer.json").read_text() == (source / "tokenizer.json").read_text()
    assert {p.name for p in folder.iterdir() if p.suffix != ".safetensors"} == {
        "config.json", "tokenizer.json", "model.safetensors.index.json"}


def check_method(folder, method):
    read(folder)
    assert config_of(folder)["quantization_config"]["quant_method"] == str(method), config_of(folder)


def check_ignores(folder, *names):
    quantization = config_of(folder)["quantization_config"]
    assert quantization.get("ignore", quantization.get("exclude")) == [str(n) for n in names], quantization


def check_plain(folder, source):
    assert str(config_of(folder)) == str(config_of(source)), "config.json"
    assert all(t[0] == "F32" for t in read(folder).values())


def check_poison(path):
    """Gives the k_proj of layer 0 a NaN, which is no check but needs the same header."""
    data = bytearray(path.read_bytes())
    size = struct.unpack("<Q", data[:8])[0]
    begin = json.loads(data[8:8 + size])["model.layers.0.self_attn.k_proj.weight"]["data_offsets"][0]
    data[8 + size + begin:12 + size + begin] = struct.pack("<f", float("nan"))
    path.write_bytes(data)


def main():
    globals()["check_" + sys.argv[1]](*map(pathlib.Path, sys.argv[2:]))


if __name__ == "__main__":
    main()
