# SPDX-License-Identifier: Apache-2.0
"""Makes strings that are hard for a tokenizer. The same seed gives the same strings."""
import random

SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<reponame>", "<repo_name>", "<|im_start|", "<filename")
PARTS = (
    "'s", "'t", "'re", "'ve", "'m", "'ll", "'d", "'S", "'LL", "it's", "'", "''", " '", "’s", "the", "The", " the",
    "Hello", "world", "ing", "tion", "a", "e", " ", "  ", "   ", "\t", "\n", "\n\n", "\r\n", " \n", "\n ", "\u00a0",
    "\u2003", "\u3000", "\u200b", "\ufeff", "\u2028", "\x85", "\x0b", "\x1c", "0", "7", "42", "1234567890", "3.14",
    "²", "½", "Ⅷ", "٣", "一", "①", "!", "?!", "...", "—", "“", "”", "$", "%", "__", "==", "=>", "/*", "//", "é", "e\u0301",
    "ß", "İ", "ı", "ﬁ", "Ωmega", "привет", "שלום", "مرحبا", "हिन्दी", "ไทย", "中文", "日本語", "한국어", "👩‍👩‍👧", "🇩🇪", "🙂",
    "\U0001d54f", "\U000e0041", "\ufffd", "\uffff", "\x01", "\x04", "\x06", "\x13", "\x7f", "\x80", "\xad")


def some_point(rng):
    point = rng.choice((rng.randrange(1, 0x80), rng.randrange(1, 0x3000), rng.randrange(1, 0x110000)))
    return chr(point) if not 0xD800 <= point < 0xE000 else "\ufffd"


def some_part(rng):
    kind = rng.randrange(10)
    if kind < 6:
        return rng.choice(PARTS)
    if kind < 7:
        return rng.choice(SPECIAL)
    if kind < 8:
        return rng.choice((" ", "\n", "a", "0", "ab", "é", "\x04")) * rng.randrange(1, 20)
    return "".join(some_point(rng) for _ in range(rng.randrange(1, 5)))


def make(count, seed=20):
    """Returns `count` strings without NUL. The empty string and single characters or words come
    first."""
    rng = random.Random(seed)
    strings = ["", *PARTS, *SPECIAL]
    while len(strings) < count:
        strings.append("".join(some_part(rng) for _ in range(rng.randrange(1, 12))))
    return strings[:count]
