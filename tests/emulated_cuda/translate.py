#!/usr/bin/env python3
"""Translates a preprocessed .cu to C++: each block gets its own shared memory, and kernels are
registered with the emulator.

    translate.py PREPROCESSED SOURCE
"""
import re
import sys

text = open(sys.argv[1]).read()
names = re.findall(r'extern "C" EMULATED_GLOBAL void\s+(\w+)\s*\(', text)
text = text.replace('extern "C" EMULATED_GLOBAL', "static")
# This replaces the declarations of shared memory. Dynamic shared memory becomes a pointer to memory
# whose size the launch sets. Static shared memory becomes an array with one entry for each thread
# block of a cluster.
text = re.sub(r"extern EMULATED_SHARED\s+(?:alignas\(\d+\)\s*)?(\w+)\s+(\w+)\[\];",
              r"\n#define \2 ((\1 *)emulated_shared())\n", text)
text = re.sub(r"EMULATED_SHARED\s+(?:alignas\((\d+)\)\s*)?(\w+)\s+(\w+)((?:\[[^\]]*\])*);",
              r"alignas(64) static \2 \3_of[16]\4; auto &\3 = \3_of[emulated_rank()];", text)
assert names and "EMULATED_GLOBAL" not in text and "EMULATED_SHARED" not in text
for name in names:
    text += (f"static void call_{name}(void **arguments) {{ emulated_call({name}, arguments); }}\n"
             f'static const emulated_registration register_{name}("{name}", call_{name});\n')
open(sys.argv[2], "w").write(text)
