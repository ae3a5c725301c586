"""Checks the drawings of bsmm bench --plot.

usage: plot.py WHERE ONE.svg SWEEP.svg
ONE.svg is the drawing of a single shape, and SWEEP.svg is the drawing of several shapes. WHERE is the
beginning of the second title, which ends with today's date."""

import datetime
import re
import sys
import xml.etree.ElementTree as tree

SVG = "{http://www.w3.org/2000/svg}"


def plotted(root):
    """Reads the curves of the left panel. Returns a map of names to (points of paths, corners of
    filled shapes), in pixels. The first path and the first shape of a curve are its sample in
    the legend."""
    curves = {}
    for group in root.iter(f"{SVG}g"):
        name = group.find(f"{SVG}title")
        if not re.fullmatch(r"gnuplot_plot_\d+a", group.get("id", "")) or name is None:
            continue
        paths = [p.get("d") for p in group.iter(f"{SVG}path")]
        shapes = [p.get("points") for p in group.iter(f"{SVG}polygon")]
        assert name.text not in curves, f"{name.text} is drawn twice"
        curves[name.text] = paths, shapes
    return curves


def points(text):
    return [tuple(map(float, p)) for p in re.findall(r"([\d.]+),([\d.]+)", text)]


def check_titles(root, where):
    # Yesterday's date is accepted too, because the test may run past midnight.
    days = [datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(days=d) for d in (0, 1)]
    texts = [t.text for t in root.iter(f"{SVG}text")]
    assert any(f"{where}{day:%Y-%m-%d}" in texts for day in days), (where, texts)
    assert any(t and t.startswith("bsmm bench: mxfp4, N=16, M=16") for t in texts), texts


def check_ceiling(curves):
    """Checks that a ceiling of all shapes is drawn as one horizontal line across the whole
    panel."""
    names = [name for name in curves if name.startswith("ceiling: ")]
    assert len(names) == 1, list(curves)
    line = points(" ".join(curves[names[0]][0]))[2:]  # without the sample in the legend
    assert len(line) >= 2 and len({y for _, y in line}) == 1, line
    assert line[-1][0] - line[0][0] > 300, line


def kernels(curves):
    return {name: curve for name, curve in curves.items() if not name.startswith("ceiling: ")}


def main():
    where = sys.argv[1]
    one, sweep = (tree.parse(path).getroot() for path in sys.argv[2:])
    for root in one, sweep:
        check_titles(root, where)
        check_ceiling(plotted(root))
    for name, (_, shapes) in kernels(plotted(one)).items():
        bar = points(shapes[-1])
        assert len(shapes) == 2 and len(bar) == 4, (name, shapes)
        assert max(x for x, _ in bar) - min(x for x, _ in bar) > 50, (name, bar)
    for name, (paths, shapes) in kernels(plotted(sweep)).items():
        assert not shapes and paths, (name, shapes)


main()
