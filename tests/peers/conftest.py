"""Fixtures of the tests that compare bsmm's checkpoints with other projects' packages (tools/test-peers.sh)."""
import os
import pathlib
import subprocess

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM


@pytest.fixture(scope="session")
def bsmm():
    """Returns a function that runs the command bsmm."""
    command = pathlib.Path(os.environ["BSMM"]).resolve()
    return lambda *words: subprocess.run([command, *map(str, words)], check=True, stdout=subprocess.DEVNULL)


@pytest.fixture(scope="session")
def words():
    return torch.arange(4 * 40).reshape(4, 40) * 7 % 320


def make_llama(dtype):
    torch.manual_seed(1)
    config = LlamaConfig(hidden_size=128, intermediate_size=256, num_hidden_layers=2, num_attention_heads=4,
                         num_key_value_heads=2, vocab_size=320, max_position_embeddings=128,
                         tie_word_embeddings=False, dtype=dtype)
    config.architectures = ["LlamaForCausalLM"]  # ModelOpt reads the field architectures, which transformers sets only in a file.
    return LlamaForCausalLM(config).to(dtype)


@pytest.fixture
def llama():
    """Returns a model whose weights are bf16, as in most checkpoints."""
    return make_llama(torch.bfloat16)


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """Returns a folder to which transformers has written the bf16 model."""
    path = tmp_path_factory.mktemp("llama") / "model"
    make_llama(torch.bfloat16).save_pretrained(path)
    return path
