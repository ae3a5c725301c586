"""Finds for tools/mutate.py which tests execute the functions that it is going to change.

A test that does not execute a function cannot notice a change of it. To find out, the functions
are marked: the first execution of a marked function creates a file whose name is a number, in the
folder that the environment variable MUTATE_REACHED names. Each test then runs once with a folder of
its own."""
import re

# While functions are marked, REPORTER_TEXT is at the end of the source file REPORTER. The function
# leaves errno as it was and allocates no memory, because some tests check these.
REPORTER = "src/base/status.c"
REPORTER_TEXT = r"""
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void mutate_reached(int number);
void mutate_reached(int number) {
    char path[4096];
    const char *folder = getenv("MUTATE_REACHED");
    if (!folder) return;
    int before = errno;
    snprintf(path, sizeof path, "%s/%d", folder, number);
    int file = open(path, O_CREAT | O_WRONLY, 0600);
    if (file >= 0) close(file);
    errno = before;
}
"""
# Headers in these folders are not part of GPU kernels, which are not built again.
HOST = ("src/cpu/", "src/quantize/", "src/ref/", "src/io/", "src/sol/", "cli/")
LOCAL = re.compile(r"static\b|enum\b|typedef\b|struct \w+ \{")


def head_of(lines, index):
    """Returns the index of the line with which the definition around a line begins."""
    while index > 0 and (not lines[index] or lines[index][0] in " \t}#/"):
        index -= 1
    return index


def brace_of(lines, head):
    """Returns the index of the line that ends with the opening brace of a function, or None if the
    definition that begins at `head` is no function."""
    for index in range(head, min(head + 12, len(lines))):
        line = lines[index].split("//")[0].rstrip()
        if line.endswith("{"):
            text = " ".join(lines[head:index + 1])
            return index if re.match(r"[^=;]*\)[^=;()]*\{$", text) else None
        if line.endswith((";", "}")):
            return None
    return None


def functions(lines):
    """Returns the index of the opening brace's line of each function."""
    heads = [i for i, line in enumerate(lines) if line and line[0] not in " \t}#/"]
    return sorted({brace for brace in (brace_of(lines, head) for head in heads) if brace is not None})


def places(name, lines, index):
    """Returns the functions that execute whenever a change of this line has an effect, by the
    indices of the lines with their opening braces. Returns None if they are not known."""
    if not name.endswith(".c") and not name.startswith(HOST):
        return None
    head = head_of(lines, index)
    brace = brace_of(lines, head)
    if brace is not None and brace < index:
        return [brace]
    # The definition may be used by every function of the file, and by no other one if it is local.
    return functions(lines) or None if name.endswith(".c") and LOCAL.match(lines[head]) else None


def marked(lines, numbers):
    """Returns the text of a file in which functions are marked. `numbers` maps the indices of the
    lines with the opening braces to lists of numbers."""
    made = list(lines)
    for index, these in numbers.items():
        calls = " ".join(f"mutate_reached({n});" for n in these)
        first = f"mutate_reached && !mutate_{index}"
        made[index] += f" {{ static int mutate_{index}; if ({first}) {{ mutate_{index} = 1; {calls} }} }}"
    # The function is missing in programs of the build that contain a marked file, but not REPORTER.
    return "__attribute__((weak)) void mutate_reached(int number);\n" + "\n".join(made)


def mark(changes, read):
    """Returns ({file: marked text}, {number: (file, index of a line)}) for the lines of `changes`.
    `read` returns the text of a file. A line whose functions are not known has no number."""
    lines_of = dict.fromkeys((name, index) for name, index, _ in changes)
    texts, numbered, files = {}, {}, {}
    for number, (name, index) in enumerate(lines_of):
        lines = texts.setdefault(name, read(name).split("\n"))
        braces = places(name, lines, index)
        if braces is None:
            continue
        numbered[number] = (name, index)
        for brace in braces:
            files.setdefault(name, {}).setdefault(brace, []).append(number)
    return {name: marked(texts[name], numbers) for name, numbers in files.items()}, numbered
