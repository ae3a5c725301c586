# SPDX-License-Identifier: Apache-2.0
"""Loads the tokenizer and the model of a GGUF file with transformers."""
import os

import torch
from tokenizers.pre_tokenizers import ByteLevel, Digits, Sequence
from transformers import AutoModelForCausalLM, AutoTokenizer, logging

logging.set_verbosity_error()
logging.disable_progress_bar()


def tokenizer(path):
    """Returns the tokenizer of a GGUF file. transformers does not read tokenizer.ggml.pre and
    always splits texts by GPT-2's rules. These models have the rule "smollm", which also splits
    digits (tokenizer.json of SmolLM2-135M-Instruct), so the function sets it."""
    folder, file = os.path.split(os.path.abspath(path))
    loaded = AutoTokenizer.from_pretrained(folder, gguf_file=file)
    loaded.backend_tokenizer.pre_tokenizer = Sequence(
        [Digits(individual_digits=True), ByteLevel(add_prefix_space=False, use_regex=True)])
    return loaded


def encode(loaded, text):
    return loaded(text, add_special_tokens=False).input_ids


def model(path):
    folder, file = os.path.split(os.path.abspath(path))
    return AutoModelForCausalLM.from_pretrained(folder, gguf_file=file, torch_dtype=torch.float32)


def logits(loaded, ids):
    """Returns the logits in f32 and in f64."""
    with torch.no_grad():
        narrow = loaded.float()(torch.tensor([ids])).logits[0].numpy()
        wide = loaded.double()(torch.tensor([ids])).logits[0].numpy()
    loaded.float()
    return narrow, wide
