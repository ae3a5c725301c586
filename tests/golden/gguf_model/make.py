#!/usr/bin/env python3
"""Writes the folder llama/, a small model of the Llama family as transformers stores it, and llama_cpp.gguf, the file
that llama.cpp's convert_hf_to_gguf.py makes of it.

usage: make.py LLAMA_CPP   (the folder of llama.cpp's sources; needs torch, transformers and tokenizers)"""
import importlib
import pathlib
import sys

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

HERE = pathlib.Path(__file__).resolve().parent
SPECIALS = ["<|begin|>", "<|end|>", "<pad>"]


def make_tokenizer(text):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)])
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator([text], trainers.BpeTrainer(
        vocab_size=300, special_tokens=SPECIALS, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    tokenizer.add_tokens(["rabbit hole"])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<|begin|> $A", pair="<|begin|> $A <|begin|> $B", special_tokens=[("<|begin|>", 0)])
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<|begin|>", eos_token="<|end|>",
                                   pad_token="<pad>", chat_template="{{ messages }}")


def make_model():
    torch.manual_seed(7)
    # vocab_size exceeds the tokenizer's vocabulary by two tokens, which have no text.
    config = LlamaConfig(hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
                         num_key_value_heads=2, head_dim=16, vocab_size=303, max_position_embeddings=256,
                         tie_word_embeddings=True, attention_bias=True, rms_norm_eps=1e-5,
                         rope_parameters={"rope_type": "llama3", "rope_theta": 5000.0, "factor": 8.0,
                                          "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                                          "original_max_position_embeddings": 64})
    model = LlamaForCausalLM(config).to(torch.bfloat16)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn_like(parameter))
    return model


def convert(llama_cpp, folder, out):
    sys.path[:0] = [str(llama_cpp), str(llama_cpp / "gguf-py")]
    base = importlib.import_module("conversion.base")
    # llama.cpp recognizes a tokenizer's rule by the tokens of a fixed text. They depend on the
    # vocabulary, so this small vocabulary would not be recognized.
    base.TextModel.get_vocab_base_pre = lambda self, tokenizer: "smollm"
    program = importlib.import_module("convert_hf_to_gguf")
    sys.argv = ["convert_hf_to_gguf.py", str(folder), "--outfile", str(out), "--outtype", "bf16"]
    program.main()


def main():
    folder = HERE / "llama"
    make_tokenizer((HERE / "../../../examples/llm/alice.txt").read_text()).save_pretrained(folder)
    make_model().save_pretrained(folder)
    convert(pathlib.Path(sys.argv[1]).resolve(), folder, HERE / "llama_cpp.gguf")


main()
