"""Loads a folder that `bsmm quantize --family compressed-tensors` wrote with transformers, and the folder
that `bsmm dequantize --dtype f32` made of it, and compares their logits bit for bit in bfloat16. It
needs transformers, compressed-tensors and accelerate from PyPI, which are too large for CI.

usage: compare_transformers.py QUANTIZED DEQUANTIZED"""
import sys

import torch
from transformers import AutoModelForCausalLM


def logits_of(folder):
    model = AutoModelForCausalLM.from_pretrained(folder, torch_dtype=torch.bfloat16)
    words = torch.arange(4 * 40).reshape(4, 40) * 7 % model.config.vocab_size
    with torch.no_grad():
        return model(words).logits


def main():
    quantized, plain = map(logits_of, sys.argv[1:3])
    different = int((quantized != plain).sum())
    print(f"{different} of {plain.numel()} logits differ; largest {plain.abs().max().item():.3g}")
    sys.exit(different != 0 or not torch.isfinite(plain).all())


if __name__ == "__main__":
    main()
