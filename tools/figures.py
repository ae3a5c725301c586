"""Draws the tables and charts of docs/figures.json, which holds every measurement of README.md and
docs/PERFORMANCE.md once.

A row of the JSON file is [product, shape, our result, unit of the peak, peak, peer, the peer's
result]. A peer is another library that computes the same product. null means that no value was
found. `version` is bsmm's version, and `date` is the day of `commit`."""
import json
import textwrap
from html import escape
from pathlib import Path

FIGURES = Path(__file__).resolve().parent.parent / "docs" / "figures.json"
LEFT, BAR, LINE, TOP = 330, 420, 26, 62  # These are the lengths of the chart's parts, in pixels.


def load(machine):
    return json.loads(FIGURES.read_text(encoding="utf-8"))[machine]


def ratio(machine, ours, other):
    """Returns the ratio of our result to the other one, i.e. how many times as fast ours is, or
    None if there is no other result."""
    if other is None:
        return None
    return ours / other if machine["better"] == "higher" else other / ours


def cell(value):
    return "-" if value is None else f"{value:.2f}"


def table(name):
    m = load(name)
    head = ["product", "shape", f"bsmm, {m['unit']}", "peak", "of the peak", "best peer", "times the peer"]
    lines = [head, ["---"] * len(head)]
    for product, shape, ours, unit, peak, peer, theirs in m["rows"]:
        other = f"{peer} {theirs:g}" if peer else "none found"
        lines.append([product, shape, f"{ours:g}", f"{unit} {peak:g}", cell(ratio(m, ours, peak)), other,
                      cell(ratio(m, ours, theirs))])
    text = "".join(f"| {' | '.join(line)} |\n" for line in lines)
    about = f"**{m['title']}.** bsmm's commit was {m['commit']}. {m['note']}"
    return f"{textwrap.fill(about, 130, break_on_hyphens=False, break_long_words=False)}\n\n{text}"


def bar(y, label, value, longest, text):
    width = BAR * value / longest
    # The text must not overlap the vertical line at 1.
    end = max(width, BAR / longest) if value > 0.7 else width
    return (f'<text x="{LEFT - 8}" y="{y + 16}" text-anchor="end">{escape(label)}</text>'
            f'<rect x="{LEFT}" y="{y + 4}" width="{width:.1f}" height="{LINE - 8}" fill="#4477aa"/>'
            f'<text x="{LEFT + end + 6:.1f}" y="{y + 16}">{escape(text)}</text>')


def measured(machines):
    """Returns the version of bsmm that was measured, with the commit and its day."""
    versions = sorted({m["version"] for m in machines})
    commits = sorted({(m["date"], m["commit"]) for m in machines})
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
    rows = [(f"{row[0]}, {row[1]}", ratio(m, row[2], row[4]), f"{row[2]:g} {m['unit']}") for row in m["rows"]]
    return chart(rows, m["title"], measured([m]), "share of the peak")


def peer_chart(picks):
    """Draws a chart of our speed relative to that of the best peers, i.e. other libraries. Each
    element of picks is "MACHINE INDEX" and selects a row of docs/figures.json that has a peer."""
    rows, machines = [], []
    for pick in picks:
        name, index = pick.split()
        m = load(name)
        machines.append(m)
        product, shape, ours, _, _, peer, theirs = m["rows"][int(index)]
        machine = m["title"].split(",")[0].replace("Two cores of an ", "").replace("One NVIDIA ", "")
        rows.append((f"{product}, {shape} ({machine.split(' (')[-1].rstrip(')')})", ratio(m, ours, theirs),
                     f"{ours:g} {m['unit']}; {peer} {theirs:g}"))
    return chart(rows, "Speed of bsmm beside the best peer that was found", measured(machines),
                 "times the peer's speed")
