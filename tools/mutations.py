"""Single changes of a line of C, as tools/mutate.py makes them."""
import re

# What stands between quotes, and comments, is left alone.
HIDDEN = re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|/\*.*?\*/|//.*|/\*.*')

# Operators, each with what takes its place. A sign or an address is no operator: it has no operand
# and a space before it, which clang-format sees to.
SWAPS = [
    (r" < ", " <= "), (r" <= ", " < "), (r" > ", " >= "), (r" >= ", " > "),
    (r" == ", " != "), (r" != ", " == "),
    (r"(?<=[\w\)\]]) \+ ", " - "), (r"(?<=[\w\)\]]) - ", " + "),
    (r"(?<=[\w\)\]]) \* ", " / "), (r"(?<=[\w\)\]]) / ", " * "), (r" % ", " / "),
    (r"(?<=[\w\)\]]) & ", " | "), (r" \| ", " & "), (r" && ", " || "), (r" \|\| ", " && "),
    (r" << ", " >> "), (r" >> ", " << "),
    (r" \+= ", " -= "), (r" -= ", " += "), (r" \|= ", " = "),
    (r"\btrue\b", "false"), (r"\bfalse\b", "true"),
    (r"\bif \((?!!)", "if (!"),
]
NUMBER = re.compile(r"(?<![\w.])(\d+)(?![\w.])")
RETURN = re.compile(r"\breturn [^;]+;")
ASSIGNS = r"[\w.\->\[\]*+() ]+ (?:[-+*/|&^]|<<|>>)?= .*;"
COUNTS = r"[\w.\->\[\]]+(?:\+\+|--);"
CALLS = r"\w+\(.*\);"
STATEMENT = re.compile(rf"^\s+(?:if \(.*\) )?(?:{ASSIGNS}|{COUNTS}|{CALLS})$")
ONLY_DECLARES = re.compile(
    r"^\s*(?:extern\b.*|(?:static |const |unsigned |struct )*\w+ [\w*, \[\]+]*(?:\[.*\])?;)$")
DECLARES = re.compile(r"^\s+(?:(?:static|const|struct|enum|unsigned)\b|\w+ \*?\w+ = |\w+ \*?\w+\[)")


def blank_hidden(line):
    """The line with what is hidden replaced by as many characters that no pattern matches."""
    return HIDDEN.sub(lambda m: "@" * len(m.group()), line)


def code_lines(text):
    """Yields (index, line) of lines of code: no comment, directive or part of a macro."""
    comment = macro = False
    for index, line in enumerate(text.split("\n")):
        bare = line.strip()
        continues = macro and line.endswith("\\")
        in_macro = macro or bare.startswith("#")
        macro = continues or (bare.startswith("#") and line.endswith("\\"))
        if comment or bare.startswith("/*"):
            comment = "*/" not in bare
            continue
        if bare and not in_macro and (bare.startswith("return") or not ONLY_DECLARES.match(line)):
            yield index, line


def changes(line):
    """Every line that a single change makes of this one, in a fixed order, without repeats."""
    seen = blank_hidden(line)
    made = []
    for pattern, new in SWAPS:
        for m in re.finditer(pattern, seen):
            end = m.end()
            changed = line[:m.start()] + new + line[end:]
            if new == "if (!":
                changed = negate(line, seen, m)
            if changed:
                made.append(changed)
    for m in NUMBER.finditer(seen):
        made.append(line[:m.start()] + str(int(m.group()) + 1) + line[m.end():])
    for m in RETURN.finditer(seen):
        if m.group() != "return 0;":
            made.append(line[:m.start()] + "return 0;" + line[m.end():])
    if STATEMENT.match(seen) and not DECLARES.match(seen) and seen.count("(") == seen.count(")"):
        made.append("")
    return [change for change in dict.fromkeys(made) if change != line]


def negate(line, seen, match):
    """if (condition) -> if (!(condition)), if the condition ends on this line."""
    start = match.end()
    depth = 1
    for i in range(start, len(seen)):
        depth += {"(": 1, ")": -1}.get(seen[i], 0)
        if depth == 0:
            return f"{line[:start]}!({line[start:i]}){line[i:]}"
    return None
