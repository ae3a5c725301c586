"""Runs AMD's pseudocode of an instruction, which is in AMD's manuals, for one lane. The texts come
from the PyPI package tinygrad. Each text is translated to Python once."""
import re

import numpy as np

from pseudocode_values import ENV, FLOATS, Bits, Infinity, NotANumber, concat, set_arch, to_bits, view

__all__ = ["FLOATS", "Bits", "compile_text", "set_arch"]

TOKEN = re.compile(r"\s*(\d+'[UIFB]|\d+'\d+\.\d+|\d+'\d+[UIF]?|\d+'0x[0-9a-fA-F]+|0x[0-9a-fA-F]+U?L*|\d+\.\d*(?:[eE][-+]?\d+)?[FL]?|\d+[UL]*|[A-Za-z_]\w*|"
                   r"\*\*|<<|>>|<=|>=|==|!=|<>|&&|\|\||\+=|-=|\*=|[-+*/%&|^~!<>=?:.(){}\[\],])")
TYPE = re.compile(r"^(bf|fp|[uifb])(\d+)$")


class Parser:
    def __init__(self, text):
        self.t, at = [], 0
        text = text.strip()
        while at < len(text):
            m = TOKEN.match(text, at)
            if not m:
                raise SyntaxError(text[at:at + 20])
            self.t.append(m.group(1))
            at = m.end()
        self.k = 0

    def peek(self):
        return self.t[self.k] if self.k < len(self.t) else None

    def next(self):
        self.k += 1
        return self.t[self.k - 1]

    def expect(self, x):
        if self.next() != x:
            raise SyntaxError(f"no {x} in {self.t}")

    LEVELS = [["||"], ["&&"], ["|"], ["^"], ["&"], ["==", "!=", "<>"], ["<", ">", "<=", ">="], ["<<", ">>"], ["+", "-"], ["*", "/", "%"]]
    PYTHON = {"||": "or", "&&": "and", "<>": "!="}

    def expression(self):
        c = self.binary(0)
        if self.peek() == "?":
            self.next()
            a = self.expression()
            self.expect(":")
            return f"({a} if {c} else {self.expression()})"
        return c

    def binary(self, level):
        if level == len(self.LEVELS):
            return self.unary()
        a = self.binary(level + 1)
        while self.peek() in self.LEVELS[level]:
            op = self.next()
            b = self.binary(level + 1)
            a = f"lesser_or_greater({a}, {b})" if op == "<>" else f"op({op!r}, {a}, {b})" if op in "+ - * / % << >> & | ^".split() else f"({a} {self.PYTHON.get(op, op)} {b})"
        return a

    def unary(self):
        t = self.peek()
        if t in ("-", "~", "!", "+"):
            self.next()
            v = self.unary()
            return {"-": f"(-{v})", "~": f"inv({v})", "!": f"(not {v})", "+": v}[t]
        v = self.postfix()
        if self.peek() == "**":
            self.next()
            return f"pow({v}, {self.unary()})"
        return v

    def literal(self, t):
        if "'" in t:
            width, rest = t.split("'")
            if rest in ("U", "I", "F", "B"):
                self.expect("(")
                # A literal such as 0x3f800000F gives the bits of a float, not its value.
                if rest == "F" and self.peek().startswith("0x"):
                    v = f"view({self.next()}, 'f', {width})"
                    self.expect(")")
                    return v
                v = self.expression()
                self.expect(")")
                return f"cast({width}, {rest!r}, {v})"
            if "." in rest:
                return f"np.float{width}({rest})"
            return str(int(rest.rstrip("UIF"), 0))
        if t.startswith("0x"):
            return str(int(t.rstrip("UL"), 16))
        if "." in t:
            return f"np.float32({t.rstrip('FL')})" if t.endswith("F") else f"np.float64({t.rstrip('FL')})"
        return t.rstrip("UL")

    def postfix(self):
        t = self.next()
        if t == "(":
            v = f"({self.expression()})"
            self.expect(")")
        elif t == "{":
            items = [self.expression()]
            while self.peek() == ",":
                self.next()
                items.append(self.expression())
            self.expect("}")
            widths = [re.search(r", (\d+)\)$", i) or re.match(r"cast\((\d+)", i) for i in items]
            if not all(widths):
                ranges = [re.match(r"get\(\w+, (\d+), (\d+), None, None\)$", i) for i in items]
                widths = [w.group(1) if w else str(int(r.group(1)) - int(r.group(2)) + 1) if r else "16" if i == "0" else None for w, r, i in zip(widths, ranges, items)]
            else:
                widths = [w.group(1) for w in widths]
            return "concat(" + ", ".join(f"({i}, {w})" for i, w in zip(items, widths)) + ")"
        elif t[0].isdigit():
            return self.literal(t)
        elif self.peek() == "(":
            self.next()
            args = []
            while self.peek() != ")":
                args.append(self.expression())
                if self.peek() == ",":
                    self.next()
            self.next()
            return f"{t}({', '.join(args)})"
        else:
            v = t
        return self.access(v)

    def access(self, v):
        """Parses what may follow a name: a range of bits [hi : lo], a .type, or both."""
        hi = lo = kind = width = None
        while self.peek() in (".", "["):
            if self.next() == ".":
                m = TYPE.match(self.next())
                if not m:
                    raise SyntaxError("member")
                if kind is not None:
                    v, hi = f"get({v}, {hi}, {lo}, {kind!r}, {width})", None
                kind, width = {"bf": "u", "fp": "u"}.get(m.group(1), m.group(1)), int(m.group(2))
                continue
            if kind is not None or hi is not None:
                v, kind, width = f"get({v}, {hi}, {lo}, {kind!r}, {width})", None, None
            hi = lo = self.expression()
            if self.peek() == ":":
                self.next()
                lo = self.expression()
            self.expect("]")
        return f"get({v}, {hi}, {lo}, {kind!r}, {width})"

    def target(self):
        """Parses the left side of an assignment and returns its name, hi, lo, kind and width."""
        name = self.next()
        hi = lo = None
        kind, width = None, None
        while self.peek() in (".", "["):
            if self.next() == ".":
                m = TYPE.match(self.next())
                kind, width = {"bf": "u", "fp": "u"}.get(m.group(1), m.group(1)), int(m.group(2))
            else:
                hi = lo = self.expression()
                if self.peek() == ":":
                    self.next()
                    lo = self.expression()
                self.expect("]")
        return name, hi, lo, kind, width


def op(o, a, b):
    a = a.value if isinstance(a, Bits) else a
    b = b.value if isinstance(b, Bits) else b
    fa, fb = isinstance(a, np.floating), isinstance(b, np.floating)
    if fa and not fb: b = type(a)(b)
    if fb and not fa: a = type(b)(a)
    if fa and fb and type(a) is not type(b):
        wide = max(type(a), type(b), key=lambda t: t(0).itemsize)
        a, b = wide(a), wide(b)
    if o == "+": return a + b
    if o == "-": return a - b
    if o == "*": return a * b
    if o == "/": return a / b if isinstance(a, np.floating) else a // b
    if o == "%": return a % b
    if o == "<<": return int(a) << int(b)
    if o == ">>": return int(a) >> int(b)
    return int(a) & int(b) if o == "&" else int(a) | int(b) if o == "|" else int(a) ^ int(b)


def get(v, hi, lo, kind, width):
    if isinstance(v, Infinity):
        return FLOATS[width][0](np.inf) if kind == "f" else v
    if isinstance(v, NotANumber):
        return FLOATS[width][0](np.nan)
    if isinstance(v, Bits):
        return v.get(hi, lo, kind, width)
    if hi is None and kind is None:
        return v
    if isinstance(v, np.floating):
        if kind == "f" and hi is None:
            return FLOATS[width][0](v)
        v = to_bits(v, "f", v.dtype.itemsize * 8)
    if hi is None and kind in "ui":
        return view(int(v), kind, width)
    return Bits(int(v) & ((1 << 128) - 1), 128).get(hi, lo, kind, width)


def translate(text):
    """Returns the source of a Python function that runs the pseudocode, with the names that the
    pseudocode uses as its variables."""
    lines, depth = [], 1
    text = re.sub(r"//[^\n]*", "", text)
    for old, new in (("VGPR[laneId][VDST.u32]", "D0"), ("VGPR[laneId][SRC0.u32]", "S0"), ("WAVE_MODE.IEEE", "0"), ("EXEC.u64[laneId] = D0", "D0"),
                     ("+INF", "INF"), ("+0.0", "0.0"), ("in = S0", "seed = S0"), ("(in ", "(seed "), ("(in[", "(seed["), (".u4[3]", "[3]"), ("-INF.f", "-INF.f")):
        text = text.replace(old, new)
    text = re.sub(r"(S0\.f\d+) \* 2\.0F? \*\* (S1\.i\d+)", r"ldexp(\1, \2)", text)
    text = re.sub(r"\w+ = lambda\(.*?\) \((?:[^()]|\([^()]*\))*\);", "", text, flags=re.S)
    text = re.sub(r"SDWA_SRC0_SEL == (BYTE\d\.b3|WORD\d\.b\d)", "0", text)
    text = re.sub(r"\s*\n(?=\s*[&|+?:*-])", " ", text)
    for line in re.split(r";|\n", text):
        line = line.strip()
        if not line or line.startswith("declare"):
            m = re.match(r"declare (\w+) : (\d+)'[UIFB]$", line)
            if m:
                lines.append("    " * depth + f"{m.group(1)} = Bits(0, {m.group(2)})")
            elif line:
                raise SyntaxError(line)
            continue
        m = re.match(r"(if|elsif) (.*) then$", line)
        if m:
            depth -= m.group(1) == "elsif"
            lines.append("    " * depth + f"{'if' if m.group(1) == 'if' else 'elif'} {Parser(m.group(2)).expression()}:")
            depth += 1
        elif line == "else":
            lines.append("    " * (depth - 1) + "else:")
        elif line in ("endif", "endfor"):
            lines.append("    " * depth + "pass")
            depth -= 1
        elif line == "break":
            lines.append("    " * depth + "break")
        elif m := re.match(r"for (\w+) in (.*?) : (.*) do$", line):
            lines.append("    " * depth + f"for {m.group(1)} in range(int({Parser(m.group(2)).expression()}), int({Parser(m.group(3)).expression()}) + 1):")
            depth += 1
        else:
            lines.append("    " * depth + assignment(line))
    return "def run(env):\n    globals().update(env)\n" + "\n".join(lines) + "\n"


STATE = ("D0", "D1", "SCC", "VCC", "EXEC")


def assignment(line):
    p = Parser(line)
    name, hi, lo, kind, width = p.target()
    o = p.next()
    value = p.expression()
    if p.peek() is not None or o not in ("=", "+=", "-="):
        raise SyntaxError(line)
    if o != "=":
        value = f"op({o[0]!r}, get({name}, {hi}, {lo}, {kind!r}, {width}), {value})"
    if hi is None and name not in STATE and kind is None:
        return f"{name} = assign({name!r}, {value}, globals())"
    if name not in STATE and hi is None:
        return f"{name} = Bits(0, {width}).set({value}, None, None, {kind!r}, {width})"
    return f"{name} = bits({name!r}, globals()).set({value}, {hi}, {lo}, {kind or 'u'!r}, {width})"


def assign(name, value, scope):
    old = scope.get(name)
    return old.set(value) if isinstance(old, Bits) and old.width > 1 and not isinstance(value, np.floating) else value


def bits(name, scope):
    return scope[name] if isinstance(scope.get(name), Bits) else Bits(0, 64)


def compile_text(text):
    source = translate(text).replace("    globals().update(env)\n", "")
    names = sorted(set(re.findall(r"^\s*(?:for )?([A-Za-z_]\w*)(?= =| in )", source, re.M)))
    source = source.replace("def run(env):\n", "def run():\n    global " + ", ".join(names) + "\n" if names else "def run():\n")
    scope = dict(ENV, get=get, op=op, concat=concat, assign=assign, bits=bits)
    exec(compile(source, "pseudocode", "exec"), scope)

    def run(state):
        for n in names:
            scope.pop(n, None)
        scope.update(ENV)
        scope.update(state)
        scope["run"]()
        return {k: scope[k] for k in STATE if k in scope}
    return run
