"""Draws the tables and charts of docs/figures.json, which holds every measurement of README.md and
docs/PERFORMANCE.md once.

Each machine has runs, i.e. groups of rows that were measured with one commit of bsmm. A row of a run
is [product, shape, our result, name of the peak, peak, peer, the peer's result]. The results of a run
have the run's `unit`, or that of the machine if the run has none. A peer is another library that
computes the same product. null means that no value was found or measured. `version` is bsmm's version,
and `date` is the day of `commit`. A machine's `note` and `details` say what its figures are."""
import json
import math
import re
import textwrap
from html import escape
from pathlib import Path

FIGURES = Path(__file__).resolve().parent.parent / "docs" / "figures.json"
LEFT, BAR, LINE, TOP = 330, 420, 26, 62  # These are the lengths of the chart's parts, in pixels.


def load(machine):
    return json.loads(FIGURES.read_text(encoding="utf-8"))[machine]


def flops(shape):
    """Returns the number of operations of a product, whose shape is "M x N x K" or "n^3"."""
    cube = re.fullmatch(r"(\d+)\^3", shape)
    return 2 * math.prod(map(int, [cube[1]] * 3 if cube else shape.split(" x ")))


def convert(value, shape, unit, wanted):
    """Converts a throughput in TFLOP/s to a time in us, or returns the value if it has the wanted unit
    already."""
    if value is None or unit == wanted:
        return value
    assert (unit, wanted) == ("TFLOP/s", "us"), (unit, wanted)
    return flops(shape) / (value * 1e6)


def rows_of(machine):
    """Returns a list of (row, run) for all rows of a machine, with results in the machine's unit."""
    rows = []
    for run in machine["runs"]:
        for product, shape, ours, unit, peak, peer, theirs in run["rows"]:
            ours, peak, theirs = (convert(value, shape, run.get("unit", machine["unit"]), machine["unit"])
                                  for value in (ours, peak, theirs))
            rows.append(((product, shape, ours, unit, peak, peer, theirs), run))
    return rows


def ratio(machine, ours, other):
    """Returns the ratio of our result to the other one, i.e. how many times as fast ours is, or
    None if there is no other result."""
    if other is None:
        return None
    return ours / other if machine["better"] == "higher" else other / ours


def cell(value):
    return "-" if value is None else f"{value:.2f}"


def number(value):
    """Returns a result as text: as docs/figures.json gives it, or with four digits if it was
    computed."""
    return f"{value:g}" if round(value, 2) == value else f"{value:.4g}"


def filled(paragraph, indent=""):
    return textwrap.fill(paragraph, 128, subsequent_indent=indent, break_on_hyphens=False, break_long_words=False) + "\n"


def table(name):
    m = load(name)
    head = ["product", "shape", f"bsmm, {m['unit']}", "peak", "of the peak", "best peer", "times the peer", "bsmm's commit"]
    lines = [head, ["---"] * len(head)]
    for (product, shape, ours, unit, peak, peer, theirs), run in rows_of(m):
        lines.append([product, shape, number(ours), f"{unit} {number(peak)}" if peak else "-",
                      cell(ratio(m, ours, peak)), f"{peer} {number(theirs)}" if peer else "none found",
                      cell(ratio(m, ours, theirs)), f"{run['commit']}, {run['date']}"])
    text = "".join(f"| {' | '.join(line)} |\n" for line in lines)
    about = filled(f"**{m['title']}.** {m['note']}")
    about += "".join(filled(f"- {detail}", "  ") for detail in m.get("details", []))
    return f"{about}\n{text}"


def bar(y, label, value, longest, text):
    width = BAR * value / longest
    # The text must not overlap the vertical line at 1.
    end = max(width, BAR / longest) if value > 0.7 else width
    return (f'<text x="{LEFT - 8}" y="{y + 16}" text-anchor="end">{escape(label)}</text>'
            f'<rect x="{LEFT}" y="{y + 4}" width="{width:.1f}" height="{LINE - 8}" fill="#4477aa"/>'
            f'<text x="{LEFT + end + 6:.1f}" y="{y + 16}">{escape(text)}</text>')


def measured(machines):
    """Returns the version of bsmm that was measured, with the commits and their days. `machines` has
    pairs of a machine and a run."""
    versions = sorted({m["version"] for m, _ in machines})
    commits = sorted({(run["date"], run["commit"]) for _, run in machines})
    return f"bsmm {', '.join(versions)}, commit {', '.join(f'{commit} of {date}' for date, commit in commits)}"


def chart(rows, title, subtitle, axis):
    """Draws a bar chart. rows is a list of (label, value, text). Bars begin at 0, and a line marks
    the value 1, i.e. the speed of the peer or the peak."""
    longest = max(1.0, *(value for _, value, _ in rows))
    height = TOP + LINE * len(rows) + 30
    one, bottom = LEFT + BAR / longest, TOP + LINE * len(rows)
    bars = [bar(TOP + LINE * i, *row[:2], longest, row[2]) for i, row in enumerate(rows)]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + BAR + 230}" height="{height}" '
        'font-family="sans-serif" font-size="13">\n<rect width="100%" height="100%" fill="white"/>\n'
        f'<text x="8" y="22" font-size="15" font-weight="bold">{escape(title)}</text>\n'
        f'<text x="8" y="42">{escape(subtitle)}</text>\n'
        + "\n".join(bars)
        + f'\n<path d="M{one:.1f} {TOP - 6}V{bottom + 4}" stroke="#cc3311" stroke-width="1.5"/>\n'
        f'<text x="{one:.1f}" y="{bottom + 20}" text-anchor="middle" fill="#cc3311">1</text>\n'
        f'<text x="{LEFT}" y="{bottom + 20}" text-anchor="middle">0</text>\n'
        f'<text x="8" y="{bottom + 20}">{escape(axis)}</text>\n</svg>\n'
    )


def peak_chart(name):
    m = load(name)
    rows = []
    for (product, shape, ours, _, peak, _, _), _ in rows_of(m):
        share, result = ratio(m, ours, peak), f"{number(ours)} {m['unit']}"
        rows.append((f"{product}, {shape}", share or 0, f"{share:.2f}: {result}" if share else f"no peak measured: {result}"))
    return chart(rows, m["title"], measured([(m, run) for run in m["runs"]]), "share of the peak")


def peer_chart(picks):
    """Draws a chart of our speed relative to that of the best peers, i.e. other libraries. Each
    element of picks is "MACHINE INDEX" and selects a row of docs/figures.json that has a peer."""
    rows, machines = [], []
    for pick in picks:
        name, index = pick.split()
        m = load(name)
        (product, shape, ours, _, _, peer, theirs), run = rows_of(m)[int(index)]
        machines.append((m, run))
        machine = m["title"].split(",")[0].replace("Two cores of an ", "").replace("One NVIDIA ", "")
        rows.append((f"{product}, {shape} ({machine.split(' (')[-1].rstrip(')')})", ratio(m, ours, theirs),
                     f"{number(ours)} {m['unit']}; {peer} {number(theirs)}"))
    return chart(rows, "Speed of bsmm beside the best peer that was found", measured(machines),
                 "times the peer's speed")
