# SPDX-License-Identifier: Apache-2.0
"""Writes the fixture of test_llm.sh: tiny.gguf, a model with random weights and a tokenizer that was
trained on examples/llm/alice.txt; logits.npy, its logits by transformers in f64; and tokens.json,
strings with their tokens by transformers.

    python3 -m venv v && v/bin/pip install -r tests/llm/requirements.txt
    v/bin/python tests/llm/make_fixture.py"""
import json
from pathlib import Path

import gguf
import numpy as np
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

import oracle
import strings

HERE = Path(__file__).parent
TEXT = HERE.parent.parent / "examples/llm/alice.txt"
HIDDEN, HEADS, KV_HEADS, FEED_FORWARD, LAYERS, CONTEXT = 32, 4, 2, 64, 2, 1024
PROMPT = "Alice's 42 cats:\n  <|im_start|>said the Hare \u00e9"
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<repo_name>", "<reponame>"]
LACKING = "\u0104\u0106\u00c0"  # The vocabulary lacks the bytes 4, 6 and 0xC0, as SmolLM's does.


def train():
    """Returns a tokenizer's tokens and merges, which make a small vocabulary."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)])
    alphabet = [c for c in pre_tokenizers.ByteLevel.alphabet() if c not in LACKING]
    tokenizer.train([str(TEXT)], trainers.BpeTrainer(
        vocab_size=600, special_tokens=SPECIAL, initial_alphabet=sorted(alphabet), show_progress=False))
    model = json.loads(tokenizer.to_str())["model"]
    merges = [merge if isinstance(merge, str) else " ".join(merge) for merge in model["merges"]]
    return sorted(model["vocab"], key=model["vocab"].get), merges


def add_weights(writer, words, rng):
    def add(name, kind, *shape):
        values = rng.normal(1 if len(shape) == 1 else 0, 0.3, shape).astype(np.float32)
        writer.add_tensor(name, gguf.quants.quantize(values, kind), raw_dtype=kind)

    kinds, kv = gguf.GGMLQuantizationType, HIDDEN // HEADS * KV_HEADS
    add("token_embd.weight", kinds.Q8_0, words, HIDDEN)
    add("output_norm.weight", kinds.F32, HIDDEN)
    for i in range(LAYERS):
        add(f"blk.{i}.attn_norm.weight", kinds.F32, HIDDEN)
        add(f"blk.{i}.ffn_norm.weight", kinds.F32, HIDDEN)
        for name, rows, cols in (
                ("attn_q", HIDDEN, HIDDEN), ("attn_k", kv, HIDDEN), ("attn_v", kv, HIDDEN),
                ("attn_output", HIDDEN, HIDDEN), ("ffn_gate", FEED_FORWARD, HIDDEN),
                ("ffn_up", FEED_FORWARD, HIDDEN), ("ffn_down", HIDDEN, FEED_FORWARD)):
            add(f"blk.{i}.{name}.weight", kinds.Q4_1, rows, cols)


def write_model(path):
    tokens, merges = train()
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("tiny")
    writer.add_block_count(LAYERS)
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(HIDDEN)
    writer.add_feed_forward_length(FEED_FORWARD)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_rope_freq_base(10000.0)
    writer.add_rope_dimension_count(HIDDEN // HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(tokens)
    writer.add_token_types([3 if token in SPECIAL else 1 for token in tokens])
    writer.add_token_merges(merges)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    add_weights(writer, len(tokens), np.random.default_rng(20))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def perplexity(tokenizer, model, text):
    """Returns the perplexity of the model on the text in f64, in windows of 512 tokens as in
    bench/llm."""
    ids = oracle.encode(tokenizer, text)
    losses = []
    for start in range(0, len(ids) // 512 * 512, 512):
        window = ids[start:start + 512]
        wide = oracle.logits(model, window)[1]
        sums = np.log(np.exp(wide).sum(axis=1))
        losses += [sums[i] - wide[i, window[i + 1]] for i in range(511)]
    return float(np.exp(np.mean(losses)))


def main():
    path = HERE / "tiny.gguf"
    write_model(path)
    tokenizer, model = oracle.tokenizer(path), oracle.model(path)
    narrow, wide = oracle.logits(model, oracle.encode(tokenizer, PROMPT))
    np.save(HERE / "logits.npy", wide.astype(np.float32))
    rows = [[text, oracle.encode(tokenizer, text)] for text in strings.make(400)]
    lines = ",\n".join(json.dumps(row, separators=(",", ":")) for row in rows)
    error = float(np.abs(narrow - wide).max())
    (HERE / "tokens.json").write_text(
        f'{{"prompt":{json.dumps(PROMPT)},\n"f32_error":{error:.9g},\n'
        f'"perplexity":{perplexity(tokenizer, model, TEXT.read_text()[:6000]):.9g},\n"rows":[\n{lines}\n]}}\n')


if __name__ == "__main__":
    main()
