"""Tests the tokenizers of GGUF files that the command makes of folders. usage: gguf_vocab_check.py BSMM FOLDER

The folder has a byte-level tokenizer. The test gives copies of it other tokenizers, and compares the GGUF file's
metadata with the rules of llama.cpp (convert_hf_to_gguf.py, gguf-py's SpecialVocab)."""
import copy
import json
import pathlib
import shutil
import struct
import subprocess
import sys

from model_values import Gguf

BSMM, ORIGIN = sys.argv[1], pathlib.Path(sys.argv[2])
COUNT = 303
NORMAL, UNKNOWN, CONTROL, USER, UNUSED, BYTE = range(1, 7)
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|"
          r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
FORMATS = {4: ("I", 4), 5: ("i", 4), 6: ("f", 4), 7: ("?", 1)}


def value_at(kind, data, at):
    """Reads a value of GGUF. Returns it and the place behind it."""
    if kind == 8:
        length = struct.unpack_from("<Q", data, at)[0]
        return data[at + 8 : at + 8 + length].decode(), at + 8 + length
    if kind == 9:
        kind, count = struct.unpack_from("<IQ", data, at)
        values, at = [], at + 12
        for _ in range(count):
            value, at = value_at(kind, data, at)
            values.append(value)
        return values, at
    code, size = FORMATS[kind]
    return struct.unpack_from("<" + code, data, at)[0], at + size


def convert(tokenizer, settings=None, config=None):
    """Makes a GGUF file of the folder with this tokenizer. Returns the process and the entries of the
    metadata about the tokenizer, or None if there is no file."""
    folder, made = pathlib.Path("folder"), pathlib.Path("made.gguf")
    shutil.rmtree(folder, ignore_errors=True)
    made.unlink(missing_ok=True)
    shutil.copytree(ORIGIN, folder)
    known = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(known | (config or {})))
    (folder / "tokenizer.json").write_text(tokenizer if isinstance(tokenizer, str) else json.dumps(tokenizer))
    (folder / "tokenizer_config.json").write_text(json.dumps(settings or {}))
    process = subprocess.run([BSMM, "dequantize", folder, "-o", made], capture_output=True, text=True)
    if not made.exists():
        return process, None
    pairs = {key.removeprefix("tokenizer.ggml."): value_at(struct.unpack_from("<I", data)[0], data, 4)[0]
             for key, data in Gguf(made).pairs.items() if key.startswith("tokenizer.ggml.")}
    return process, pairs


def accept(tokenizer, settings=None, config=None):
    process, pairs = convert(tokenizer, settings, config)
    assert process.returncode == 0 and not process.stderr, process.stderr
    return pairs


def refuse(message, tokenizer):
    process, pairs = convert(tokenizer)
    assert process.returncode == 1 and pairs is None and message in process.stderr, (message, process.stderr)


def changed(tokenizer, **members):
    """Returns a copy of a tokenizer with other members. Members of the model begin with model_."""
    made = copy.deepcopy(tokenizer)
    for key, value in members.items():
        part, key = (made["model"], key[6:]) if key.startswith("model_") else (made, key)
        part[key] = value
    return made


def sentencepiece():
    texts = ["<unk>", "<s>", "</s>", *(f"<0x{i:02X}>" for i in range(256)), "\u2581", "a", "b", "\u2581a", "ab",
             "<0x0A", "x0x0A>", "<0x0Ab", "<0x000>"]
    added = [(1, "<s>", True), (2, "</s>", True), (270, "<|x|>", False), (271, "user", False), (272, "<|y", False)]
    return {"added_tokens": [{"id": i, "content": text, "special": special} for i, text, special in added],
            "normalizer": None, "pre_tokenizer": None,
            "model": {"type": "BPE", "unk_token": "<unk>", "byte_fallback": True,
                      "vocab": {text: i for i, text in enumerate(texts)},
                      # Older files have a merge as one text. No token is "b b".
                      "merges": [["\u2581", "a"], "a b", ["b", "b"]]}}


def check_sentencepiece():
    tokenizer = sentencepiece()
    texts = [*tokenizer["model"]["vocab"], *(f"[PAD{i}]" for i in (268, 269)), "<|x|>", "user", "<|y",
             *(f"[PAD{i}]" for i in range(273, COUNT))]
    types = ([UNKNOWN, CONTROL, CONTROL] + 256 * [BYTE] + 9 * [NORMAL] + 2 * [UNUSED] + [CONTROL, USER, USER] +
             (COUNT - 273) * [UNUSED])
    scores = COUNT * [-4.0]
    scores[262], scores[263] = 0, -1
    pairs = accept(tokenizer, {"bos_token": {"content": "<s>"}, "unk_token": "<unk>"},
                   {"bos_token_id": 7, "eos_token_id": [2, 9], "pad_token_id": COUNT - 1})
    wanted = {"model": "llama", "pre": "default", "tokens": texts, "token_type": types, "scores": scores,
              "add_space_prefix": False, "add_bos_token": False, "bos_token_id": 1, "eos_token_id": 2,
              "unknown_token_id": 0, "padding_token_id": COUNT - 1}
    assert pairs == wanted, {key for key in pairs.keys() | wanted.keys() if pairs.get(key) != wanted.get(key)}
    assert accept(changed(tokenizer, model_unk_token=None))["token_type"][0] == NORMAL
    spaces = [({"pre_tokenizer": {"type": "Metaspace", "prepend_scheme": "first"}}, True),
              ({"pre_tokenizer": {"type": "Metaspace", "prepend_scheme": "never"}}, False),
              ({"normalizer": {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "\u2581"}]}}, True),
              ({"normalizer": {"type": "Sequence", "normalizers": []}}, False)]
    for members, prepends in spaces:
        assert accept(changed(tokenizer, **members))["add_space_prefix"] == prepends, members
    for broken in (["a"], "ab", [1, "b"], ["a", 1], ["a", "b", "c"], 5):
        refuse("tokenizer.json: merges: must be pairs of texts", changed(tokenizer, model_merges=[["b", "b"], broken]))


def check_specials():
    """Tests the numbers of special tokens, and whether texts begin and end with them."""
    tokenizer = sentencepiece()
    pairs = accept(tokenizer, {"add_bos_token": True, "add_eos_token": False, "bos_token": "none", "eos_token": "</s>"},
                   {"bos_token_id": 5, "eos_token_id": 6, "pad_token_id": COUNT})
    found = {key: value for key, value in pairs.items() if key.endswith("_id") or key.startswith("add_")}
    assert found == {"bos_token_id": 5, "eos_token_id": 2, "add_bos_token": True, "add_eos_token": False,
                     "add_space_prefix": False}, found
    begin = [{"SpecialToken": {"id": "<s>"}}, {"Sequence": {"id": "A"}}]
    rows = [({"single": begin}, True), ({"single": begin[::-1]}, False),
            ({"single": [{"SpecialToken": {"id": "</s>"}}]}, False), (None, False),
            ({"processors": [{"type": "ByteLevel"}, {"single": begin}, {"single": []}]}, True)]
    for processor, begins in rows:
        made = changed(tokenizer, post_processor=processor)
        assert accept(made, {"bos_token": "<s>"})["add_bos_token"] == begins, processor
        assert accept(made, {"bos_token": "<s>", "add_bos_token": False})["add_bos_token"] is False, processor
    assert "add_eos_token" not in accept(tokenizer)


def split(regex, behavior="Isolated", **byte_level):
    steps = [{"type": "Split", "pattern": {"Regex": regex}, "behavior": behavior, "invert": False},
             {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False} | byte_level]
    return {"type": "Sequence", "pretokenizers": steps}


def check_byte_level():
    tokenizer = json.loads((ORIGIN / "tokenizer.json").read_text())
    qwen2 = LLAMA3.replace("{1,3}", "")
    plain = {"type": "ByteLevel", "add_prefix_space": False}
    names = [(plain, "gpt-2"), ({"type": "Sequence", "pretokenizers": [plain]}, "gpt-2"),
             (split(LLAMA3), "llama-bpe"), (split(qwen2), "qwen2")]
    for splitter, name in names:
        assert accept(changed(tokenizer, pre_tokenizer=splitter))["pre"] == name, name
    three = split(LLAMA3)
    three["pretokenizers"].insert(0, {"type": "Digits", "individual_digits": True})
    refused = [None, {"type": "Metaspace"}, plain | {"add_prefix_space": True}, plain | {"use_regex": False}, three,
               split(LLAMA3, "Removed"), split(LLAMA3 + "|x"), split(LLAMA3, use_regex=True),
               {"type": "Sequence", "pretokenizers": []},
               {"type": "Sequence", "pretokenizers": [{"type": "Punctuation"}, plain]}]
    for splitter in refused:
        refuse("pre_tokenizer: must be that of gpt-2, smollm, llama-bpe or qwen2",
               changed(tokenizer, pre_tokenizer=splitter))
    accept(changed(tokenizer, normalizer={"type": "NFC"}))
    refuse("tokenizer.json: normalizer: must be null or NFC", changed(tokenizer, normalizer={"type": "NFKC"}))
    refuse("tokenizer.json: merges: must be pairs of texts", changed(tokenizer, model_merges=[["a"]]))
    old = changed(tokenizer, model_merges=[" ".join(pair) for pair in tokenizer["model"]["merges"]])
    assert accept(old) == accept(tokenizer) and accept(old)["merges"] == old["model"]["merges"]


def check_models():
    tokenizer = sentencepiece()
    for broken in (changed(tokenizer, model_type="WordPiece"), changed(tokenizer, model_merges=None),
                   changed(tokenizer, model=None)):
        refuse("tokenizer.json: model: must be of type BPE", broken)
    accept(changed(tokenizer, model_type=None))
    for number in (-1, COUNT):
        refuse(f'the token "a" has the number {number}; must be 0 to vocab_size - 1 ({COUNT - 1})',
               changed(tokenizer, model_vocab={"a": number}))
    refuse('the token "" has the number 3;', changed(tokenizer, added_tokens=[{"id": 3}]))
    process, pairs = convert("{")
    assert process.returncode == 0 and pairs == {"model": "none"}, pairs
    assert "folder/tokenizer.json: is no JSON; the command ignores it" in process.stderr, process.stderr


for check in (check_sentencepiece, check_specials, check_byte_level, check_models):
    check()
