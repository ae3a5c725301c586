"""Tests that the package gguf reads GGUF files that bsmm made of a folder. Also tests that transformers computes the
same logits, bit for bit, from the GGUF file and from the folder."""
import gguf
import pytest
import torch
from transformers import AutoModelForCausalLM


def logits(words, *place, **options):
    model = AutoModelForCausalLM.from_pretrained(*place, dtype=torch.float32, **options)
    with torch.no_grad():
        return model(words).logits


@pytest.mark.parametrize("dtype", ["F32", "F16", "BF16"])
def test_plain(bsmm, folder, tmp_path, words, dtype):
    bsmm("dequantize", folder, "-o", tmp_path / "plain", "--dtype", dtype.lower(), "--include", "*.weight")
    bsmm("dequantize", folder, "-o", tmp_path / "m.gguf", "--dtype", dtype.lower(), "--include", "*.weight")
    types = {tensor.name: tensor.tensor_type.name for tensor in gguf.GGUFReader(tmp_path / "m.gguf").tensors}
    assert types["blk.1.attn_q.weight"] == dtype and types["output_norm.weight"] == "F32"
    assert torch.equal(logits(words, tmp_path, gguf_file="m.gguf"), logits(words, tmp_path / "plain"))


def test_mxfp4(bsmm, folder, tmp_path, words):
    bsmm("quantize", folder, "-o", tmp_path / "quantized", "--format", "mxfp4", "--recipe", "ggml",
         "--family", "compressed-tensors")
    bsmm("dequantize", tmp_path / "quantized", "-o", tmp_path / "plain", "--dtype", "f32")
    bsmm("quantize", folder, "-o", tmp_path / "m.gguf", "--format", "mxfp4")
    tensors = {tensor.name: tensor for tensor in gguf.GGUFReader(tmp_path / "m.gguf").tensors}
    assert tensors["blk.0.attn_k.weight"].tensor_type.name == "MXFP4"
    assert torch.equal(logits(words, tmp_path, gguf_file="m.gguf"), logits(words, tmp_path / "plain"))
    plain = AutoModelForCausalLM.from_pretrained(tmp_path / "plain", dtype=torch.float32)
    tensor = tensors["blk.0.ffn_down.weight"]
    values = torch.from_numpy(gguf.dequantize(tensor.data, tensor.tensor_type))
    assert torch.equal(values, plain.get_submodule("model.layers.0.mlp.down_proj").weight)
