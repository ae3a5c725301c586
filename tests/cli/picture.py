"""Checks drawings of a matrix: those of tools/layout_picture.py and of `bsmm mfma --svg`.

usage: picture.py AXES FILE.svg...
A drawing must have AXES titles of horizontal axes and at least as many of vertical axes, indices along
them, a legend with samples of color and a unit, and text that is readable where the drawing is 900
pixels wide. "-" reads a drawing from the standard input."""
import re
import sys
import xml.etree.ElementTree as tree

SVG = "{http://www.w3.org/2000/svg}"
WIDEST, SMALLEST = 900, 11  # These are the largest width of a drawing and the smallest size of text, in pixels.
GLYPH = 0.602  # GLYPH is the width of a character of the monospace font divided by the font's size.


def size_of(element, inherited):
    return float(element.get("font-size", inherited))


def check_text(root, width, height):
    """Checks that each text is large enough and lies inside the drawing."""
    for text in root.iter(f"{SVG}text"):
        size = size_of(text, root.get("font-size"))
        length, x, y = GLYPH * size * len(text.text), float(text.get("x")), float(text.get("y"))
        assert size >= SMALLEST, (text.text, size)
        low, limit = (y - length / 2, height) if text.get("transform") else (x, width)
        if not text.get("transform"):
            low -= length * {"start": 0, "middle": 0.5, "end": 1}[text.get("text-anchor", "middle")]
        assert low >= 0 and low + length <= limit, f"{text.text} is cut off"


def check_cells(root):
    """Checks that the text of each cell fits into the cell, and that all viewers know the colors."""
    cells = []
    for parent in root.iter():
        children = list(parent)
        for shape, text in zip(children, children[1:]):
            if shape.tag not in (f"{SVG}rect", f"{SVG}path") or text.tag != f"{SVG}text" or text.get("font-size"):
                continue
            width = shape.get("width") or re.search(r"h([\d.]+)", shape.get("d"))[1]
            if not shape.get("fill").startswith("#"):
                assert shape.get("fill") in ("none", "white"), shape.get("fill")
                continue
            length = GLYPH * float(root.get("font-size")) * len(text.text)
            assert length <= float(width), f"{text.text} is wider than its cell"
            cells.append(text.text)
    assert cells, "no cells"


def check_legend(root):
    legend = next((group for group in root.iter(f"{SVG}g") if group.get("id") == "legend"), None)
    assert legend is not None, "no legend"
    samples = [shape for shape in legend if shape.get("fill", "").startswith("#")]
    words = " ".join(text.text for text in legend.iter(f"{SVG}text"))
    assert len(samples) >= 2, "no samples of color"
    for word in "Hue:", "Lightness:", "number":
        assert word in words, f"the legend lacks {word}"
    assert re.search(r"\b(bytes|bits)\b", words), f"no unit in the legend: {words}"


def check_axes(root, axes):
    texts = list(root.iter(f"{SVG}text"))
    titles = [text for text in texts if text.get("class") == "axis-title" and text.text]
    turned = [text for text in titles if (text.get("transform") or "").startswith("rotate(-90")]
    assert len(turned) >= axes and len(titles) - len(turned) >= axes, f"axis titles: {[t.text for t in titles]}"
    indices = [text for text in texts if text.get("class") == "index"]
    assert len(indices) >= 2 * axes, "no indices"


def check(path, axes):
    root = tree.parse(sys.stdin if path == "-" else path).getroot()
    _, _, width, height = map(float, root.get("viewBox").split())
    assert width <= WIDEST and (float(root.get("width")), float(root.get("height"))) == (width, height), path
    check_text(root, width, height)
    check_cells(root)
    check_legend(root)
    check_axes(root, axes)


for argument in sys.argv[2:]:
    try:
        check(argument, int(sys.argv[1]))
    except AssertionError as error:
        sys.exit(f"{argument}: {error}")
