"""Checks that bsmm writes the same tensors as ModelOpt's and Quark's own exporters: the same names,
types, shapes and bytes."""
import copy
import json

import modelopt.torch.quantization as mtq
import pytest
import torch
from modelopt.torch.export import export_hf_checkpoint
from quark.torch import ModelQuantizer
from quark.torch.export.api import export_safetensors
from quark.torch.quantization.config import config as quark
from safetensors import safe_open


def tensors_of(folder):
    with safe_open(folder / "model.safetensors", "pt") as file:
        return {name: file.get_tensor(name) for name in file.keys()}


def same_tensors(folder, other):
    ours, theirs = tensors_of(folder), tensors_of(other)
    assert set(ours) == set(theirs), set(ours) ^ set(theirs)
    for name, tensor in ours.items():
        assert (tensor.dtype, tensor.shape) == (theirs[name].dtype, theirs[name].shape), name
        bytes_of = [t.contiguous().reshape(-1).view(torch.uint8) for t in (tensor, theirs[name])]
        assert torch.equal(*bytes_of), f"{name}: {(bytes_of[0] != bytes_of[1]).sum()} of {len(bytes_of[0])} bytes"
    return ours


def export_modelopt(model, config, words, folder):
    """Calibrates and exports a model. Returns the largest magnitudes that calibration saw in the inputs of layers."""
    model = mtq.quantize(model, copy.deepcopy(config), lambda m: m(words))
    quantizers = {name: getattr(module, "input_quantizer", None) for name, module in model.named_modules()}
    amax = {name: float(q.amax) for name, q in quantizers.items() if q is not None and getattr(q, "amax", None) is not None}
    export_hf_checkpoint(model, dtype=torch.bfloat16, export_dir=folder)
    return amax


def configs_of(folder):
    second = json.loads((folder / "hf_quant_config.json").read_text())["quantization"]
    return json.loads((folder / "config.json").read_text())["quantization_config"], second


@pytest.mark.parametrize("algorithm", ["NVFP4", "W4A16_NVFP4"])
def test_modelopt(bsmm, folder, llama, words, tmp_path, algorithm):
    config = mtq.NVFP4_DEFAULT_CFG if algorithm == "NVFP4" else mtq.W4A16_NVFP4_CFG
    amax = export_modelopt(llama, config, words, tmp_path / "theirs")
    options = []
    if algorithm == "NVFP4":
        assert len(amax) == 14
        (tmp_path / "amax.json").write_text(json.dumps(amax))
        options = ["--input-scales", tmp_path / "amax.json"]
    bsmm("quantize", folder, "-o", tmp_path / "ours", "--family", "modelopt", "--format", "nvfp4", *options)
    tensors = same_tensors(tmp_path / "ours", tmp_path / "theirs")
    assert sum(name.endswith("weight_scale_2") for name in tensors) == 14
    ours, theirs = configs_of(tmp_path / "ours"), configs_of(tmp_path / "theirs")
    for key in ("config_groups", "quant_algo", "quant_method"):
        assert ours[0][key] == theirs[0][key]
    for key in ("quant_algo", "group_size", "kv_cache_quant_algo"):
        assert ours[1][key] == theirs[1][key]


QUARK = {"mxfp4": quark.FP4PerGroupSpec, "mxfp6_e2m3": quark.FP6E2M3PerGroupSpec, "mxfp6_e3m2": quark.FP6E3M2PerGroupSpec}


@pytest.mark.parametrize("scheme", QUARK)
def test_quark(bsmm, folder, llama, tmp_path, scheme):
    spec = QUARK[scheme](ch_axis=-1, group_size=32, scale_format="e8m0", scale_calculation_mode="even", is_dynamic=False)
    layers = quark.QLayerConfig(weight=spec.to_quantization_spec())
    quantizer = ModelQuantizer(quark.QConfig(global_quant_config=layers, exclude=["lm_head"]))
    model = quantizer.freeze(quantizer.quantize_model(llama))
    with torch.no_grad():
        export_safetensors(model, tmp_path / "theirs")
    bsmm("quantize", folder, "-o", tmp_path / "ours", "--family", "quark", "--format", scheme)
    tensors = same_tensors(tmp_path / "ours", tmp_path / "theirs")
    assert sum(name.endswith("weight_scale") for name in tensors) == 14
