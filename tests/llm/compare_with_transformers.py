# SPDX-License-Identifier: Apache-2.0
"""Compares examples/llm with transformers on a real model: the tokens of 10,000 strings, the logits
of a text, and the answers to a few prompts.

usage: compare_with_transformers.py PROGRAM MODEL.gguf"""
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch

import oracle
import strings

TEXT = Path(__file__).parent.parent.parent / "examples/llm/alice.txt"
PROMPTS = ("What is the capital of France?", "Write a short poem about the sea.", "Why is the sky blue?")
TOKENS = 48


def run(program, *arguments, text=b""):
    return subprocess.run([program, *map(str, arguments)], input=text, capture_output=True, check=True).stdout


def compare_tokens(program, model, tokenizer):
    texts = strings.make(10000) + [TEXT.read_text(encoding="utf-8")]
    out = run(program, "--tokenize", model, text=b"".join(text.encode() + b"\0" for text in texts))
    lines = [[int(word) for word in line.split()] for line in out.decode().split("\n")[:-1]]
    wrong = [text for text, ids in zip(texts, lines, strict=True) if ids != oracle.encode(tokenizer, text)]
    print(f"tokens: {len(texts) - len(wrong)} of {len(texts)} strings equal", *map(repr, wrong[:5]), sep="\n  ")
    return not wrong


def compare_logits(program, model, tokenizer, loaded):
    """Compares the logits of both programs, which add in f32 in different orders. The tolerance is
    derived from the difference of transformers' f32 and f64 logits."""
    text = TEXT.read_text(encoding="utf-8")[600:1400]
    narrow, wide = oracle.logits(loaded, oracle.encode(tokenizer, text))
    with tempfile.TemporaryDirectory() as folder:
        run(program, "--raw", f"--logits={folder}/logits.npy", model, text)
        got = np.load(f"{folder}/logits.npy")
    ours, theirs = np.abs(got - wide).max(), np.abs(narrow - wide).max()
    print(f"logits of {len(wide)} tokens, up to {np.abs(wide).max():.3g}: largest error {ours:.3g}; "
          f"transformers in f32: {theirs:.3g}")
    return ours <= 4 * theirs


def compare_answers(program, model, tokenizer, loaded):
    equal = 0
    for prompt in PROMPTS:
        ids = tokenizer.apply_chat_template([{"role": "user", "content": prompt}], add_generation_prompt=True)
        with torch.no_grad():
            out = loaded.generate(torch.tensor([ids]), attention_mask=torch.ones(1, len(ids)), do_sample=False,
                                  max_new_tokens=TOKENS, repetition_penalty=1.0)
        expected = tokenizer.decode(out[0][len(ids):], skip_special_tokens=True, clean_up_tokenization_spaces=False)
        got = run(program, f"--tokens={TOKENS}", model, prompt).decode()[:-1]
        equal += got == expected
        if got != expected:
            print(f"answer to {prompt!r}: {got!r}, expected {expected!r}")
    print(f"answers: {equal} of {len(PROMPTS)} equal")
    return equal == len(PROMPTS)


def main():
    program, model = sys.argv[1:3]
    tokenizer, loaded = oracle.tokenizer(model), oracle.model(model)
    results = (compare_tokens(program, model, tokenizer), compare_logits(program, model, tokenizer, loaded),
               compare_answers(program, model, tokenizer, loaded))
    print(f"{sum(results)} passed, {len(results) - sum(results)} failed")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
