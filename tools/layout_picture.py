"""Draws a scale layout. The upper part shows the matrix of scales, in panels of 32 rows, and each
cell contains the scale's offset in the buffer. The lower part shows the buffer, with 16 scales
per line, and each cell contains the scale's row and column. A scale has the same colour in both
parts."""
import colorsys

PANEL = 32  # PANEL is the number of rows of the matrix in a panel. Panels are drawn side by side.
LINE = 16  # LINE is the number of scales in a line of the drawn buffer.
# These are sizes in pixels: the width of a cell of the matrix and of the buffer, the height of a
# cell, the width of the row labels, and the gap between panels.
CELL, WIDE, HIGH, MARGIN, GAP = 36, 56, 17, 52, 26


def colour(row, col, rows, cols):
    """Returns a colour whose hue depends on the row and whose lightness depends on the column."""
    hue = 0.85 * row / rows
    red, green, blue = colorsys.hls_to_rgb(hue, 0.85 - 0.3 * col / cols, 0.75)
    return "#" + "".join(f"{round(15 * part):x}" for part in (red, green, blue))


def square(x, y, width, fill, text):
    return (f'<path fill="{fill}" stroke="#fff" d="M{x} {y}h{width}v{HIGH}h-{width}z"/>'
            f'<text x="{x + width / 2:g}" y="{y + 12}" text-anchor="middle">{text}</text>')


def label(x, y, text, anchor="middle", weight="normal"):
    return f'<text x="{x:g}" y="{y}" text-anchor="{anchor}" font-weight="{weight}" fill="#333">{text}</text>'


def fill_of(cell, rows, cols):
    return "#ddd" if cell["padding"] else colour(cell["row"], cell["col"], rows, cols)


def draw_matrix(cells, rows, cols, top):
    shapes = []
    for panel in range(-(-rows // PANEL)):
        left = MARGIN + panel * (cols * CELL + MARGIN + GAP)
        shapes.append(label(left - 8, top - 6, "row", "end"))
        shapes += [label(left + col * CELL + CELL / 2, top - 6, col) for col in range(cols)]
        first = panel * PANEL
        shapes += [label(left - 8, top + (row - first) * HIGH + 12, row, "end")
                   for row in range(first, min(first + PANEL, rows))]
    for cell in cells:
        panel, row = divmod(cell["row"], PANEL)
        x = MARGIN + panel * (cols * CELL + MARGIN + GAP) + cell["col"] * CELL
        shapes.append(square(x, top + row * HIGH, CELL, fill_of(cell, rows, cols), cell["offset"]))
    return shapes


def draw_buffer(cells, rows, cols, top):
    lines = -(-(max(cell["offset"] for cell in cells) + 1) // LINE)
    shapes = [label(MARGIN - 8, top - 6, "offset", "end")]
    shapes += [label(MARGIN + i * WIDE + WIDE / 2, top - 6, f"+{i}") for i in range(LINE)]
    shapes += [label(MARGIN - 8, top + i * HIGH + 12, i * LINE, "end") for i in range(lines)]
    for cell in cells:
        line, column = divmod(cell["offset"], LINE)
        text = "pad" if cell["padding"] else f'{cell["row"]},{cell["col"]}'
        shapes.append(square(MARGIN + column * WIDE, top + line * HIGH, WIDE, fill_of(cell, rows, cols), text))
    return shapes, lines


def draw(name, cells):
    """Draws the layout. cells are the JSON objects of `bsmm layouts NAME --all --json`."""
    rows = max(cell["row"] for cell in cells) + 1
    cols = max(cell["col"] for cell in cells) + 1
    panels = -(-rows // PANEL)
    matrix_top, buffer_top = 66, 66 + min(rows, PANEL) * HIGH + 66
    buffer, lines = draw_buffer(cells, rows, cols, buffer_top)
    width = max(panels * (cols * CELL + MARGIN + GAP), MARGIN + LINE * WIDE) + 12
    height = buffer_top + lines * HIGH + 14
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        'font-family="monospace" font-size="10">\n<rect width="100%" height="100%" fill="white"/>\n'
        f"<title>{name}: {rows} x {cols} scales, and their buffer</title>\n"
        + label(8, 20, f"{name}: {rows} x {cols} scales. A scale has one colour in both parts; grey is padding.",
                "start", "bold") + "\n"
        + label(8, 42, "The matrix of scales: column above, row at the left, offset in the cell", "start") + "\n"
        + "\n".join(draw_matrix(cells, rows, cols, matrix_top)) + "\n"
        + label(8, buffer_top - 24, f"The buffer, {LINE} scales a line: row,column in the cell", "start") + "\n"
        + "\n".join(buffer) + "\n</svg>\n"
    )
