"""The benchmark runs, and writes what it found. What it finds is not tested: that is no count."""

import json
import xml.etree.ElementTree as ET

import pytest

pytest.importorskip("equinox")
pytest.importorskip("jaxtyping")

import jax

from tests.benchmarks import __main__, chart, columns, measure, once, parts, rows, table
from tests.benchmarks.columns import FLOOR, FROZEN, HAND, PLAIN, Absent
from tests.benchmarks.measure import Figure


def test_two_rows_with_tiny_rounds(tmp_path, capsys):
    data, picture = tmp_path / "figures.json", tmp_path / "figures.svg"
    arguments = ["--tiny", "--json", str(data), "--svg", str(picture), "int -> int", "array method"]
    assert __main__.main(arguments) == 0
    printed = capsys.readouterr().out
    assert "int -> int" in printed
    assert "array method: plum / frozen" in printed
    found = json.loads(data.read_text("utf-8"))
    assert [row["name"] for row in found["rows"]] == ["array method", "int -> int"]
    for row in found["rows"]:
        assert set(row["cells"]) == set(columns.COLUMNS)
        for name in (PLAIN, FROZEN, HAND):
            assert row["cells"][name]["value"] > 0
            assert row["cells"][name]["unit"] == "s"
        assert row["ratios"]["plum / frozen"] > 0
    reasons = found["rows"][1]["cells"]
    assert reasons["jit over"] == {"absent": "jit turns the argument into an array"}
    root = ET.fromstring(picture.read_text("utf-8"))
    assert root.tag.endswith("svg")
    assert "int -> int: frozen is" in root.attrib["aria-label"]
    texts = "".join(root.itertext())
    assert "array method" in texts
    assert "prefers-color-scheme: dark" in texts


def test_every_column_that_can_express_a_row_gives_the_same_answer():
    found = rows.arrays.array().columns()
    ways = {name for name, way in found.items() if not isinstance(way, Absent)}
    assert ways >= {PLAIN, FROZEN, HAND, "jit over", "jit under", "invoke", "filter_jit"}
    for name in {"ovld", "multipledispatch"} - ways:
        assert found[name].why.endswith("is not installed")


def test_a_column_that_gives_another_answer_is_empty():
    program = columns.Program(
        lambda dispatch: {"f": dispatch(_three)}, "f(5)", lambda: {"f": lambda x: 4}, dict
    )
    found = program.columns()
    assert found[HAND] == Absent("gives int 4, not int 3")
    assert found["invoke"] == Absent("a handle is for one method, called by position")


def _three(x: int):
    return 3


@pytest.mark.parametrize("column", [PLAIN, FLOOR])
def test_plain_plum_is_measured_with_its_own_cache(column):
    way = rows.scalars.int_to_int().columns()[column]
    assert type(way.names["f"]._cache) is dict
    jax.make_jaxpr(lambda x: x * 2)(1.0)  # has plum_freeze watch every function that it knows
    way.result()
    assert type(way.names["f"]._cache) is dict


def test_the_floor_is_the_method_by_hand_in_the_cache_of_plum():
    found = rows.objects.bound(annotated=True)().columns()
    (function,) = [vars(found[FLOOR].names["Counter"])["add"]]
    ((method, _),) = function._cache.values()
    assert method.__qualname__.startswith("bound.<locals>.build.<locals>.hand.")


@pytest.mark.parametrize("ways", [parts.ways_of_one, parts.ways_of_six])
def test_every_part_of_a_call_gives_the_same_answer(ways):
    answers = {name: str(way.result()) for name, way in ways().items()}
    assert len(answers) >= 6
    assert len(set(answers.values())) == 1


def test_the_parts_are_printed(capsys):
    parts.main(["--tiny"])
    assert capsys.readouterr().out.count("jitted by hand") == 4


def test_what_is_counted_is_counted():
    nothing = once.late(measure.TINY, changes=False, clear=False)
    assert [(late.traces, late.compilations) for late in nothing] == [(0, 0)]
    something = once.late(measure.TINY, changes=True, clear=False)
    assert something[0].traces > 0
    assert something[0].compilations > 0


def test_a_word_that_is_in_no_row_is_an_error(capsys):
    with pytest.raises(SystemExit):
        __main__.main(["--tiny", "no such row"])
    assert "no row contains" in capsys.readouterr().err


def test_missed_and_met_targets():
    row = rows.Row("array method", {FROZEN: Figure(3.0), HAND: Figure(2.0), PLAIN: Figure(9.0)})
    found = dict(rows.verdicts([row]))
    assert found["array method: frozen / by hand = 1.50, at most 1.25"] is False
    assert found["array method: plum / frozen = 3.00, at least 1"] is True


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(2.0, "2.00 s"), (0.0123, "12.3 ms"), (4.5e-6, "4.50 µs"), (3.2e-8, "32 ns")],
)
def test_durations(seconds, expected):
    assert table.duration(seconds) == expected


def test_a_chart_of_rows_that_lack_columns():
    figures = {FROZEN: Figure(1e-3), PLAIN: Figure(2e-3)}
    call = rows.Row("a <tiny> call", {**figures, HAND: Figure(1e-4)})
    picture = chart.chart([call, rows.Row("freeze 100 methods", figures)])
    assert "a &lt;tiny&gt; call" in picture
    assert "2.0× faster" in picture
    assert "freeze" not in picture.replace("frozen", "")  # it is no call: nothing is done by hand
    ET.fromstring(picture)
