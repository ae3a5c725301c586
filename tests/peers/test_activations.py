"""transformers with compressed-tensors quantizes the input of a layer by a calibrated scale of a folder that bsmm wrote.
The result of the layer equals the product of the input that bsmm quantized, within the rounding of sums in f32. The
scheme is fp8_tensor, because compressed-tensors decodes 4-bit weights to bf16 and then quantizes inputs in bf16."""
import json

import numpy as np
import torch
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
