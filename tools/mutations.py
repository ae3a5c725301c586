"""Makes the changes of a line of C that tools/mutate.py tries."""
import re

# Matches strings, character constants and comments, which are not changed.
HIDDEN = re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|/\*.*?\*/|//.*|/\*.*')
COMMENT = re.compile(r"\s*(?:/\*.*|//.*)$")

# Lists operators with their replacements. The patterns rely on clang-format's spaces to skip unary
# operators such as signs and address-of.
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
    """Returns the line with strings and comments replaced by as many characters that no pattern
    matches."""
    return HIDDEN.sub(lambda m: "@" * len(m.group()), line)


def code_lines(text):
    """Yields (index, line) of each line of code. Comments, preprocessor directives and macro bodies
    are left out."""
    comment = macro = False
    for index, line in enumerate(text.split("\n")):
        bare = line.strip()
        continues = macro and line.endswith("\\")
        in_macro = macro or bare.startswith("#")
        macro = continues or (bare.startswith("#") and line.endswith("\\"))
        if comment or bare.startswith("/*"):
            comment = "*/" not in bare
            continue
        code = COMMENT.sub("", line)
        if bare and not in_macro and (bare.startswith("return") or not ONLY_DECLARES.match(code)):
            yield index, line


def changes(line):
    """Returns all versions of this line that differ from it in one change, in a fixed order and
    without repetitions."""
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
    """Returns the line with if (condition) changed to if (!(condition)), or None if the condition
    does not end on this line."""
    start = match.end()
    depth = 1
    for i in range(start, len(seen)):
        depth += {"(": 1, ")": -1}.get(seen[i], 0)
        if depth == 0:
            return f"{line[:start]}!({line[start:i]}){line[i:]}"
    return None
