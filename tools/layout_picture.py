"""Draws a scale layout as SVG. The upper part shows the matrix of scales, cut into panels that
stand side by side. A cell of it contains the offset of its scale in the buffer. The lower part
shows the buffer, with 16 scales in a line. A cell of it contains the row and column of its scale in
the matrix. A scale has the same color in both parts.

Elements have classes and ids that tests/cli/picture.py reads: the class `axis-title`, the class
`index` for the labels of rows, columns and lines, and the id `legend`."""
import colorsys
from html import escape

WIDTH = 900  # WIDTH is the width of a picture, in pixels. All other lengths are in pixels too.
FONT, HIGH = 12, 18  # FONT is the size of the text, and HIGH is the height of a cell.
LINE = 16  # LINE is the number of scales in a line of the drawn buffer.
TITLE = 20  # TITLE is the width of the vertical axis title at the left.
INDEX = 36  # INDEX is the width of the labels of the rows of a panel, or of the lines of the buffer.
GAP = 14  # GAP is the distance between two panels.
NARROWEST, SHORTEST = 36, 16  # These are the smallest width of a cell and height of a panel, in rows.


def panel_count(rows, cols):
    """Returns into how many panels the matrix is cut. It is the largest power of two with which the
    panels fit side by side and are not too short."""
    count = 1
    while rows / (2 * count) >= SHORTEST and cell_width(2 * count, cols) >= NARROWEST:
        count *= 2
    return count


def cell_width(panels, cols):
    return int(((WIDTH - TITLE) / panels - INDEX - GAP) / cols)


def color(row, col, rows, cols):
    """Returns a color whose hue depends on the row and whose lightness depends on the column."""
    red, green, blue = colorsys.hls_to_rgb(0.85 * row / rows, 0.9 - 0.3 * col / cols, 0.75)
    return "#" + "".join(f"{round(15 * part):x}" for part in (red, green, blue))


def text(x, y, content, anchor="middle", more=""):
    anchor = "" if anchor == "middle" else f' text-anchor="{anchor}"'
    return f'<text x="{x:g}" y="{y:g}"{anchor}{more}>{escape(str(content))}</text>'


def index(x, y, content, anchor="middle"):
    return text(x, y, content, anchor, ' class="index"')


def axis_title(x, y, content, turned=False):
    turn = f' transform="rotate(-90 {x:g} {y:g})"' if turned else ""
    return text(x, y, content, "middle", f' class="axis-title" font-style="italic"{turn}')


def rectangle(x, y, width, height, fill, stroke):
    return f'<path fill="{fill}" stroke="{stroke}" d="M{x:g} {y:g}h{width:g}v{height:g}h-{width:g}z"/>'


def square(x, y, width, fill, content):
    return rectangle(x, y, width, HIGH, fill, "#fff") + text(x + width / 2, y + 13, content)


def fill_of(cell, rows, cols):
    return "#ddd" if cell["padding"] else color(cell["row"], cell["col"], rows, cols)


def draw_matrix(cells, tile, top):
    """Draws the matrix of scales below the line `top`. `tile` has the rows and columns of a tile.
    Returns the shapes and the height of the part."""
    rows, cols = size_of(cells)
    panels = panel_count(rows, cols)
    width, count = cell_width(panels, cols), -(-rows // panels)
    first_row = top + 44
    lefts = [TITLE + INDEX + panel * (INDEX + cols * width + GAP) for panel in range(panels)]
    repeated = f", repeated in each of the {panels} panels" if panels > 1 else ""
    shapes = [axis_title(WIDTH / 2, top + 16, f"c: column of the matrix, one block along K{repeated}"),
              axis_title(13, first_row + count * HIGH / 2, "r: row of the matrix, along M or N", turned=True)]
    for panel, left in enumerate(lefts):
        shapes.append(index(left - 8, first_row - 6, "r\\c", "end"))
        shapes += [index(left + (col + 0.5) * width, first_row - 6, col) for col in range(cols)]
        shapes += [index(left - 8, first_row + i * HIGH + 13, panel * count + i, "end")
                   for i in range(min(count, rows - panel * count))]
    for cell in cells:
        panel, row = divmod(cell["row"], count)
        shapes.append(square(lefts[panel] + cell["col"] * width, first_row + row * HIGH, width,
                             fill_of(cell, rows, cols), cell["offset"]))
    for row in range(0, rows, min(tile[0], count)):
        for col in range(0, cols, tile[1]):
            shapes.append(rectangle(lefts[row // count] + col * width, first_row + row % count * HIGH,
                                    tile[1] * width, min(tile[0], count) * HIGH, "none", "#000"))
    return shapes, 44 + count * HIGH


def draw_buffer(cells, tile, top):
    """Draws the buffer below the line `top`, like draw_matrix."""
    rows, cols = size_of(cells)
    lines = -(-len(cells) // LINE)
    left, first_line = TITLE + INDEX, top + 44
    width = (WIDTH - left - 4) // LINE
    shapes = [axis_title(WIDTH / 2, top + 16, "offset from the first scale of the line, in bytes"),
              axis_title(13, first_line + lines * HIGH / 2, "offset of the line's start, in bytes", turned=True)]
    shapes += [index(left + (i + 0.5) * width, first_line - 6, f"+{i}") for i in range(LINE)]
    shapes += [index(left - 8, first_line + i * HIGH + 13, i * LINE, "end") for i in range(lines)]
    for cell in cells:
        line, column = divmod(cell["offset"], LINE)
        content = "pad" if cell["padding"] else f'{cell["row"]},{cell["col"]}'
        shapes.append(square(left + column * width, first_line + line * HIGH, width, fill_of(cell, rows, cols), content))
    high = tile[0] * tile[1] // LINE  # A tile is contiguous, and each layout's tile has whole lines.
    shapes += [rectangle(left, first_line + i * HIGH, LINE * width, high * HIGH, "none", "#000") for i in range(0, lines, high)]
    return shapes, 44 + lines * HIGH


def size_of(cells):
    return max(cell["row"] for cell in cells) + 1, max(cell["col"] for cell in cells) + 1


def samples(x, y, label, colors):
    """Draws a label and, to its right, small rectangles with a number in each. `colors` has pairs of
    a fill and a number."""
    shapes, x = [text(x, y + 13, label, "start")], x + 7.3 * len(label) + 8
    for i, (fill, number) in enumerate(colors):
        shapes.append(square(x + 32 * i, y, 32, fill, number))
    return shapes


def draw_legend(cells, tile, top):
    """Draws the legend below the line `top`, like draw_matrix."""
    rows, cols = size_of(cells)
    panels = panel_count(rows, cols)
    frame = "A black frame is a tile" if tile[0] <= -(-rows // panels) else f"The {panels} panels together are a tile"
    notes = ["A number in the matrix is the scale's offset in the buffer, in bytes: an e8m0 or e4m3 scale is one byte.",
             "A pair of numbers in the buffer is the row and the column of the scale in the matrix.",
             f"{frame} of the layout: {tile[0]} rows x {tile[1]} columns of scales, contiguous in the buffer."]
    if any(cell["padding"] for cell in cells):
        notes.append("A gray cell is padding.")
    step = max(1, rows // 8)
    shapes = samples(8, top, "Hue: row", [(color(row, 0, rows, cols), row) for row in range(0, rows, step)])
    shapes += samples(400, top, "Lightness: column", [(color(0, col, rows, cols), col) for col in range(cols)])
    shapes += [text(8, top + 38 + 18 * i, note, "start") for i, note in enumerate(notes)]
    return ['<g id="legend">', *shapes, "</g>"], 20 + 18 * len(notes)


def draw(name, cells, tile):
    """Draws the layout. `cells` are the JSON objects of `bsmm layouts NAME --all --json`, and `tile` has
    the number of rows and columns of a tile."""
    rows, cols = size_of(cells)
    shapes, top = [], 34
    for part in (draw_legend, draw_matrix, draw_buffer):
        drawn, height = part(cells, tile, top)
        shapes, top = shapes + drawn, top + height + 12
    title = f"{name}: a matrix of {rows} x {cols} scales, and below it the buffer that holds them"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{top}" viewBox="0 0 {WIDTH} {top}" '
        f'font-family="monospace" font-size="{FONT}" text-anchor="middle">\n'
        f'<rect width="100%" height="100%" fill="white"/>\n<title>{title}</title>\n'
        + text(8, 20, title, "start", ' font-size="14" font-weight="bold"') + "\n"
        + "\n".join(shapes) + "\n</svg>\n"
    )
