"""Writes a folder with a small model in the form of Llama: model.safetensors, config.json and a
tokenizer. usage: folder_model.py FOLDER"""
import json
import pathlib
import random
import struct
import sys

HIDDEN, INNER, WORDS, LAYERS, KEYS = 64, 128, 96, 2, 32
MATRICES = {
    "self_attn.q_proj": (HIDDEN, HIDDEN), "self_attn.k_proj": (KEYS, HIDDEN), "self_attn.v_proj": (KEYS, HIDDEN),
    "self_attn.o_proj": (HIDDEN, HIDDEN), "mlp.gate_proj": (INNER, HIDDEN), "mlp.up_proj": (INNER, HIDDEN),
    "mlp.down_proj": (HIDDEN, INNER)}
# NaN is not valid JSON. Python's json module writes it, so bsmm must be able to copy it.
CONFIG = """{
  "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 64, "intermediate_size": 128,
  "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "vocab_size": 96,
  "rms_norm_eps": 1e-05, "max_position_embeddings": 128, "tie_word_embeddings": false, "torch_dtype": "float32",
  "text": "a brace } and a quote \\" in a string", "odd": NaN%s
}
"""


def shapes():
    yield "model.embed_tokens", (WORDS, HIDDEN)
    for layer in range(LAYERS):
        for name, shape in MATRICES.items():
            yield f"model.layers.{layer}.{name}", shape
        yield f"model.layers.{layer}.input_layernorm", (HIDDEN,)
        yield f"model.layers.{layer}.post_attention_layernorm", (HIDDEN,)
    yield "model.norm", (HIDDEN,)
    yield "lm_head", (WORDS, HIDDEN)


def main():
    folder, random_values = pathlib.Path(sys.argv[1]), random.Random(7)
    folder.mkdir()
    header, data = {"__metadata__": {"format": "pt"}}, bytearray()
    for name, shape in shapes():
        count = shape[0] * (shape[1] if len(shape) > 1 else 1)
        values = [1.0 if len(shape) == 1 else random_values.gauss(0, 0.05) for _ in range(count)]
        header[name + ".weight"] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + 4 * count]}
        data += struct.pack(f"<{count}f", *values)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)
    (folder / "config.json").write_text(CONFIG % "")
    (folder / "tokenizer.json").write_text('{"model": "none"}\n')
    (folder / "pytorch_model.bin").write_text("weights in another form")


if __name__ == "__main__":
    main()
