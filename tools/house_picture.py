"""Draws the rooms of the source tree as a house. A room is a folder with include rules in
check-rooms.py. Each room is a box with the names of its subfolders. It stands one floor above
the highest room that it may include."""
import importlib.util
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# These are the lengths of the picture's parts, in pixels.
WIDTH, LINE, BOX, GAP, FLOOR = 1000, 15, 150, 12, 44
# These rooms are not drawn, because they may include everything or only the public header.
HIDDEN = ("tests/", "fuzz/", "tests/consumer/", "examples/", "examples/blackwell/", "python/")


def load_rules():
    """Maps each room to the rooms whose headers it may include."""
    spec = importlib.util.spec_from_file_location("check_rooms", ROOT / "tools" / "check-rooms.py")
    rules = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(rules)
    rooms = [room for room in rules.MAY_SEE if room not in HIDDEN]
    return {room: sorted({rules.room_of(seen) for seen in rules.MAY_SEE[room]} & set(rooms) - {room})
            for room in rooms}


def floors_of(sees):
    """Maps each room to its floor, one above the highest room that it may include. cli and bench
    include each other and get the same floor."""
    floors = {}

    def floor(room, above):
        if room not in floors:
            below = [floor(seen, above | {room}) for seen in sees[room] if seen not in above]
            floors[room] = 1 + max(below, default=-1)
        return floors[room]

    for room in sees:
        floor(room, {room})
    return floors


def folders_of(room):
    path = ROOT / room
    return sorted(child.name for child in path.iterdir() if child.is_dir()
                  and any(child.rglob("*.[ch]")) or child.is_dir() and any(child.rglob("*.cu")))


def box(room, x, y, height):
    lines = [f'<text x="{x + 8}" y="{y + 16}" font-weight="bold">{escape(room)}</text>']
    lines += [f'<text x="{x + 16}" y="{y + 16 + LINE * (i + 1)}">{escape(name)}/</text>'
              for i, name in enumerate(folders_of(room))]
    return (f'<rect x="{x}" y="{y}" width="{BOX}" height="{height}" rx="4" fill="#f4f6fa" '
            'stroke="#456"/>' + "".join(lines))


def draw():
    sees = load_rules()
    floors = floors_of(sees)
    # A room is a folder with include rules. An arrow to a room is omitted if other arrows already
    # lead there.
    def reaches(room, seen=None):
        found = set()
        for step in sees[room]:
            if step != seen and floors[step] < floors[room]:
                found |= {step} | reaches(step)
        return found

    places, y, shapes = {}, 10, []
    for floor in range(max(floors.values()), -1, -1):
        rooms = [room for room in sees if floors[room] == floor]
        height = 24 + LINE * max(len(folders_of(room)) for room in rooms)
        left = (WIDTH - len(rooms) * (BOX + GAP)) // 2
        for i, room in enumerate(rooms):
            x = left + i * (BOX + GAP)
            places[room] = (x + BOX // 2, y, y + height)
            shapes.append(box(room, x, y, height))
        y += height + FLOOR
    arrows = []
    for room, seen in ((room, seen) for room in sees for seen in sees[room]):
        if floors[seen] >= floors[room] or any(seen in reaches(other) for other in sees[room]
                                               if other != seen and floors[other] < floors[room]):
            continue
        (x0, _, y0), (x1, y1, _) = places[room], places[seen]
        arrows.append(f'<path d="M{x0} {y0}L{x1} {y1 - 5}" stroke="#456" marker-end="url(#head)"/>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{y - FLOOR + 10}" '
        'font-family="monospace" font-size="12">\n'
        "<title>The rooms of bsmm. An arrow leads from a room to one that it may include; arrows that a longer "
        "way implies are left out.</title>\n"
        '<defs><marker id="head" orient="auto" markerWidth="7" markerHeight="7" refX="5" refY="3">'
        '<path d="M0 0L6 3L0 6z" fill="#456"/></marker></defs>\n'
        '<rect width="100%" height="100%" fill="white"/>\n' + "\n".join(arrows + shapes) + "\n</svg>\n"
    )
