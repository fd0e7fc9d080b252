"""The page: what is in it, and what a real browser makes of it."""

from __future__ import annotations

import html.parser
import json
import re
import shutil
import struct
import subprocess
import zlib

import plum
import pytest

import plum_freeze
from plum_freeze import _html, _picture

CHROMIUM = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
)
needs_chromium = pytest.mark.skipif(
    CHROMIUM is None, reason="chromium is not installed (Debian: apt-get install chromium)"
)


class A: ...


class B: ...


@pytest.fixture(scope="module")
def data():
    dispatch = plum.Dispatcher()

    @dispatch
    def alpha(x: A, y):
        return 1

    @dispatch
    def alpha(x, y: A):
        return 2

    @dispatch
    def beta(x: "list[int]", tag="<b>&\"'"):
        return 1

    @dispatch
    def beta(x: B):
        print("x")

    report = plum_freeze.freeze(alpha, beta, on_late="accept")

    @alpha.dispatch
    def alpha(x: B, y: B):
        return 3

    found = report.as_dict()
    found["unseen_modules"] = []
    found["import"] = {"packages": ["x"], "seconds": 1.5, "plain_seconds": 1.25}
    found["timeline"] = [["x", 0.0, 1.5, 0], ["x.a", 0.1, 0.9, 1], ["x.b", 0.9, 1.4, 1]]
    return json.loads(json.dumps(found))


class Tags(html.parser.HTMLParser):
    """Checks that tags are closed in order, and collects what refers to other files."""

    VOID = {"meta", "input", "br", "rect", "line"}

    def __init__(self):
        super().__init__()
        self.open, self.references, self.seen = [], [], []

    def handle_starttag(self, tag, attrs):
        self.seen.append(tag)
        self.references += [v for k, v in attrs if k in ("src", "href", "xlink:href", "action")]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.seen.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_page_is_whole_and_needs_nothing_else(data):
    text = _html.page(data)
    tags = Tags()
    tags.feed(text)
    assert not tags.open
    assert not tags.references
    assert "http" not in re.sub("http-equiv", "", text)
    assert "@import" not in text
    assert "url(" not in text
    assert tags.seen.count("svg") == 2
    assert tags.seen.count("table") == 3


def test_the_page_says_what_the_report_says(data):
    text = _html.page(data)
    for words in (
        "<b>2</b> functions", "<b>1</b> ambiguous pairs", "<b>1</b> slow hints", "<b>1</b> late",
        "1.50 s", "1.25 s without the recorder", "looks inside each value", "calls print",
    ):  # fmt: skip
        assert words in text, words


def test_names_are_escaped(data):
    text = _html.page(data)
    assert "&lt;locals&gt;" in text
    assert "<locals>" not in text


def test_the_picture_groups_what_does_not_fit_by_package():
    rows = [
        {"module": f"p.m{i}", "function": f"{'q' if i % 2 else 'p'}.f{i}", "defined_in": "p"}
        for i in range(80)
    ]
    text = _picture.registrations(rows, ["p"])
    assert "p: 52 others" in text
    assert re.search(r"q: \d+ others", text)
    bands = re.findall(r"<title>\S.*? registers (\d+) on", text)
    assert sum(map(int, bands)) == 80


def test_pictures_of_nothing():
    from collections import Counter

    assert "No registration" in _picture.registrations([], [])
    assert "was not timed" in _picture.timeline([], Counter())
    assert "None." in _html.page(plum_freeze.Report([]).as_dict())


# -- in a browser --------------------------------------------------------------------------------

FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip


def browse(tmp_path, page, *flags):
    """Open the page in a fresh browser; what it writes to stdout."""
    file = tmp_path / "page.html"
    file.write_text(page)
    done = subprocess.run(
        [CHROMIUM, *FLAGS, f"--user-data-dir={tmp_path / 'profile'}", *flags, file.as_uri()],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def pixels(path):
    """Width, height and rows of a PNG as Chromium writes them: 8 bits, RGB or RGBA, not interlaced."""
    raw = path.read_bytes()
    width, height, depth, kind = struct.unpack(">IIBB", raw[16:26])
    assert depth == 8
    assert kind in (2, 6)
    size, at, packed = (3 if kind == 2 else 4), 8, b""
    while at < len(raw):
        (length,) = struct.unpack(">I", raw[at : at + 4])
        if raw[at + 4 : at + 8] == b"IDAT":
            packed += raw[at + 8 : at + 8 + length]
        at += length + 12
    data, stride, before, rows = zlib.decompress(packed), width * size, bytearray(width * size), []
    for y in range(height):
        start = y * (stride + 1)
        row, how = bytearray(data[start + 1 : start + 1 + stride]), data[start]
        for i in range(stride):
            left, up = (row[i - size] if i >= size else 0), before[i]
            corner = before[i - size] if i >= size else 0
            guess = left + up - corner
            nearest = min((left, up, corner), key=lambda v: abs(guess - v))
            row[i] = (row[i] + (0, left, up, (left + up) // 2, nearest)[how]) & 255
        rows.append([tuple(row[i : i + 3]) for i in range(0, stride, size)])
        before = row
    return width, height, rows


def share(rows, colour, tolerance=40):
    """The share of the pixels that are about this colour."""
    close = sum(
        all(abs(a - b) <= tolerance for a, b in zip(pixel, colour, strict=True))
        for row in rows
        for pixel in row
    )
    return close / sum(map(len, rows))


@needs_chromium
@pytest.mark.parametrize(
    ("flags", "ground"),
    [([], (251, 251, 253)), (["--blink-settings=preferredColorScheme=0"], (18, 21, 28))],
    ids=["light", "dark"],
)
def test_the_page_is_drawn_in_light_and_dark(data, tmp_path, flags, ground):
    shot = tmp_path / "shot.png"
    browse(tmp_path, _html.page(data), *flags, "--window-size=700,600", f"--screenshot={shot}")
    width, height, rows = pixels(shot)
    assert (width, height) == (700, 600)
    assert share(rows, ground, 12) > 0.3  # the ground of the page
    blue = (111, 155, 240) if flags else (61, 111, 209)
    assert share(rows, blue, 30) > 0.0005  # the nodes of the picture
    assert len({pixel for row in rows for pixel in row}) > 50  # bands, text: something is drawn


@needs_chromium
def test_search_and_sort_and_picking_work(data, tmp_path):
    probe = """
<script>
const out = {}, table = document.getElementById("methods");
const column = i => [...table.tBodies[0].rows].filter(r => !r.hidden).map(r => r.cells[i].textContent);
out.all = column(0).length;
const head = table.querySelectorAll("th button")[0];
head.click(); out.up = column(0); head.click(); out.down = column(0);
const input = document.querySelector('input[data-table="methods"]');
input.value = "BETA print"; input.dispatchEvent(new Event("input"));
out.found = column(0); out.shown = document.querySelector('[data-for="methods"]').textContent;
const node = document.querySelector('g.node[data-right]');
node.dispatchEvent(new Event("mouseenter"));
out.lit = document.querySelectorAll(".band.lit").length;
node.dispatchEvent(new Event("mouseleave"));
out.after = document.querySelectorAll(".band.lit").length;
document.title = JSON.stringify(out);
</script></body>"""
    page = _html.page(data).replace("</body>", probe)
    dom = browse(tmp_path, page, "--dump-dom")
    out = json.loads(html.unescape(re.search(r"<title>(\{.*?\})</title>", dom).group(1)))
    assert out["all"] == 5
    assert out["up"] == sorted(out["up"])
    assert out["down"] == out["up"][::-1]
    assert len(out["found"]) == 1
    assert out["shown"] == "1 of 5 rows"
    assert out["lit"] >= 1
    assert out["after"] == 0
