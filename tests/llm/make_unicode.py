# SPDX-License-Identifier: Apache-2.0
"""Writes examples/llm/unicode.h: the kind of each code point, as the package tokenizers sees it.

    python3 -m venv v && v/bin/pip install tokenizers==0.21.4
    v/bin/python tests/llm/make_unicode.py > examples/llm/unicode.h"""
from tokenizers import Regex
from tokenizers.pre_tokenizers import Split

KINDS = {"l": r"\p{L}", "n": r"\p{N}", "s": r"\s"}
DIGITS = {kind: str.maketrans("0123456789", digits) for kind, digits in
          {"o": "0123456789", "l": "abcdefghij", "n": "ABCDEFGHIJ", "s": "KLMNOPQRST"}.items()}


def lines_of(words, width):
    lines = [""]
    for word in words:
        if len(lines[-1]) + len(word) > width:
            lines.append("")
        lines[-1] += word
    return lines


def main():
    points = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
    text = "".join(map(chr, points))
    kind = ["o"] * 0x110000
    for letter, pattern in KINDS.items():
        for _, (first, end) in Split(Regex(pattern), "removed", invert=True).pre_tokenize_str(text):
            for i in range(first, end):
                kind[points[i]] = letter
    runs, start = [], 0
    for c in range(1, len(kind) + 1):
        if c == len(kind) or kind[c] != kind[start]:
            runs.append(str(c - start).translate(DIGITS[kind[start]]))
            start = c
    table = "\n".join(f'    "{line}",' for line in lines_of(runs, 93))
    print(f"""/* `unicode_runs` holds the kinds of Unicode's code points that the pre-tokenizer distinguishes, as
 * runs of code points of one kind, in order from 0. The length of a run is a decimal number. Its
 * digits are a to j for letters, A to J for numbers, K to T for spaces, and 0 to 9 for others.
 * tests/llm/make_unicode.py wrote this file. */
static const char *const unicode_runs[] = {{
{table}
}};""")


if __name__ == "__main__":
    main()
