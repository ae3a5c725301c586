"""The picture of a scale layout: the matrix of scales on the left, the buffer on the right, 16 scales
a line; a scale has the same colour on both sides, padding is grey."""
import colorsys

HEIGHT = 768  # pixels, at most
GAP = 6  # cells between the two sides
LINE = 16  # scales in a line of the buffer


def colour(row, col, rows, cols):
    """Hue by row, lightness by column."""
    hue = 0.85 * row / rows
    red, green, blue = colorsys.hls_to_rgb(hue, 0.75 - 0.4 * col / cols, 0.75)
    return "#" + "".join(f"{round(15 * part):x}" for part in (red, green, blue))


def square(x, y, fill):
    return f'<path fill="{fill}" d="M{x} {y}h1v1h-1z"/>'


def draw(name, cells):
    """cells: the JSON objects of `bsmm layouts NAME --all --json`."""
    rows = max(cell["row"] for cell in cells) + 1
    cols = max(cell["col"] for cell in cells) + 1
    right = cols + GAP
    lines = -(-(max(cell["offset"] for cell in cells) + 1) // LINE)
    squares = []
    for cell in cells:
        fill = "#ddd" if cell["padding"] else colour(cell["row"], cell["col"], rows, cols)
        line, column = divmod(cell["offset"], LINE)
        squares += [square(cell["col"], cell["row"], fill), square(right + column, line, fill)]
    width, height = right + LINE, max(rows, lines)
    pixels = min(12, HEIGHT // height)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width * pixels}" height="{height * pixels}" '
        f'viewBox="0 0 {width} {height}" shape-rendering="crispEdges">\n'
        f"<title>{name}: {rows} x {cols} scales, and their buffer, {LINE} a line</title>\n"
        + "\n".join(squares)
        + "\n</svg>\n"
    )
