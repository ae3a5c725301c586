"""Checks the product of quantized inputs. transformers with compressed-tensors quantizes the input
of a layer by a calibrated scale, which bsmm has written. The layer's result must equal bsmm's
product, within the rounding of sums in f32. The first test uses fp8_tensor. In the second test,
compressed-tensors decodes the 4-bit weights of nvfp4 to bf16 and quantizes inputs in bf16, so
the test allows for these roundings."""
import json

import numpy as np
import torch
import torch.nn.functional as F
from transformers import AutoModelForCausalLM

LAYER = "model.layers.0.self_attn.k_proj"  # No quantized layer is before it, so its input is that of the plain model.


def run(folder, words):
    """Returns the inputs and outputs of all linear layers."""
    model, seen = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32), {}
    for name, module in model.named_modules():
        if isinstance(module, torch.nn.Linear):
            module.register_forward_hook(
                lambda _, inputs, output, name=name: seen.__setitem__(name, (inputs[0].clone(), output.clone())))
    with torch.no_grad():
        model(words)
    return {name: tuple(part.reshape(-1, part.shape[-1]).numpy() for part in parts) for name, parts in seen.items()}


def test_activations(bsmm, folder, tmp_path, words):
    plain = run(folder, words)
    amax = {name: float(np.abs(x).max()) for name, (x, _) in plain.items() if name != "lm_head"}
    (tmp_path / "amax.json").write_text(json.dumps(amax))
    quantized = tmp_path / "quantized"
    bsmm("quantize", folder, "-o", quantized, "--family", "compressed-tensors", "--format", "fp8_tensor",
         "--input-scales", tmp_path / "amax.json")
    x, theirs = run(quantized, words)[LAYER]
    assert np.array_equal(x, plain[LAYER][0]), "the input of the first layer changed"
    np.save(tmp_path / "x.npy", x)
    bsmm("quantize", tmp_path / "x.npy", "-o", tmp_path / "x.safetensors", "--format", "fp8_tensor",
         "--recipe", "deepseek", "--family", "bsmm")
    bsmm("matmul", tmp_path / "x.safetensors", f"{quantized}/model.safetensors:{LAYER}.weight",
         "-o", tmp_path / "d.npy", "--check")
    bsmm("dequantize", quantized, "-o", tmp_path / "plain", "--dtype", "f32")
    bsmm("dequantize", tmp_path / "x.safetensors", "-o", tmp_path / "xq.npy", "--dtype", "f32")
    model = AutoModelForCausalLM.from_pretrained(tmp_path / "plain", dtype=torch.float64)
    w = model.get_submodule(LAYER).weight.detach().numpy()
    limit = 2 * x.shape[1] * 2.0**-24 * (np.abs(np.load(tmp_path / "xq.npy").astype(np.float64)) @ np.abs(w).T)
    ours = np.load(tmp_path / "d.npy").astype(np.float64)
    assert (np.abs(ours - theirs) <= limit).all(), np.abs((ours - theirs) / limit).max()
    assert (np.abs(x.astype(np.float64) @ w.T - theirs) > limit).any(), "the input was not quantized"


def run_linear(folder, words):
    """Runs a model in bf16. Returns for each linear layer its input, its quantized input and
    weight, and its result."""
    model, seen, names, linear = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16), {}, [], F.linear

    def begin(name, x):
        names.append(name)
        seen[name] = [x.clone()]

    def product(x, weight, bias=None):
        result = linear(x, weight, bias)
        seen[names[-1]] += [x.clone(), weight.clone(), result.clone()]
        return result

    for name, module in model.named_modules():
        if isinstance(module, torch.nn.Linear):
            module.register_forward_pre_hook(
                lambda _, inputs, name=name: begin(name, inputs[0]))
    F.linear = product
    try:
        with torch.no_grad():
            model(words)
    finally:
        F.linear = linear
    return {name: [part.float().reshape(-1, part.shape[-1]).numpy() for part in parts] for name, parts in seen.items()}


def test_nvfp4(bsmm, folder, tmp_path, words):
    """Checks nvfp4. compressed-tensors computes the scales and codes of a bf16 input in bf16. Most
    quantized values are therefore those of bsmm, rounded to bf16; the others are next to a
    boundary between two codes or two scales. The layer's result must be the product of its
    quantized input and bsmm's weights, within the rounding of both factors and of the result to
    bf16."""
    amax = {name: float(np.abs(parts[0]).max()) for name, parts in run_linear(folder, words).items() if name != "lm_head"}
    (tmp_path / "amax.json").write_text(json.dumps(amax))
    quantized = tmp_path / "quantized"
    bsmm("quantize", folder, "-o", quantized, "--family", "compressed-tensors", "--format", "nvfp4",
         "--input-scales", tmp_path / "amax.json")
    x, inside, _, theirs = run_linear(quantized, words)[LAYER]
    assert float(np.abs(x).max()) == amax[LAYER], "the global scale of the input is not that of x alone"
    np.save(tmp_path / "x.npy", x)
    bsmm("quantize", tmp_path / "x.npy", "-o", tmp_path / "x.safetensors", "--format", "nvfp4",
         "--recipe", "compressed-tensors", "--family", "compressed-tensors")
    bsmm("dequantize", tmp_path / "x.safetensors", "-o", tmp_path / "xq.npy", "--dtype", "f32")
    ours = np.load(tmp_path / "xq.npy")
    equal = torch.from_numpy(ours).bfloat16().float().numpy() == inside
    assert equal.mean() > 0.95, equal.mean()
    largest = np.repeat(np.abs(x).reshape(len(x), -1, 16).max(2), 16, 1)
    assert (np.abs(ours - inside) <= largest * (2 / 6) * 1.1).all(), "a value differs by more than a step between codes"
    assert (x != inside).mean() > 0.5, "the input was not quantized"
    np.save(tmp_path / "inside.npy", inside)
    bsmm("matmul", tmp_path / "inside.npy", f"{quantized}/model.safetensors:{LAYER}.weight", "-o", tmp_path / "d.npy",
         "--check")
    bsmm("dequantize", quantized, "-o", tmp_path / "plain", "--dtype", "f32")
    model = AutoModelForCausalLM.from_pretrained(tmp_path / "plain", dtype=torch.float64)
    w = model.get_submodule(LAYER).weight.detach().numpy()
    limit = 2.0**-8 * (np.abs(inside.astype(np.float64)) @ np.abs(w).T) + 2.0**-8 * np.abs(theirs)
    difference = np.abs(np.load(tmp_path / "d.npy").astype(np.float64) - theirs)
    assert (difference <= limit).all(), (difference / limit).max()
