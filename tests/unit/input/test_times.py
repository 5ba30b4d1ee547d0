"""The times of events: put on lines, read by SQL, and taken off what could not be read."""

from __future__ import annotations

import pytest

from inferlake.errors import InputError
from inferlake.input import Bad, as_it_came, milliseconds_sql, stamped, time_sql
from inferlake.session import Engine

_S = "<e:s> <e:p> <e:o>"

# A line, and the same with a time.
STAMPED = {
    f"{_S} .": f"{_S} <inferlake:at:-7> .",
    f"{_S}.": f"{_S} <inferlake:at:-7>.",
    f"{_S} <e:g?a#b> .": f"{_S} <inferlake:at:-7?e:g?a#b> .",
    f"A {_S}   _:g . # <inferlake:at:3>": f"A {_S}   <inferlake:at:-7/_:g> . # <inferlake:at:3>",
    "A <_:s> <e:p> <_:o>": "A <_:s> <e:p> <_:o> <inferlake:at:-7>",
    "A <_:s> <e:p> <_:o> <_:g> .": "A <_:s> <e:p> <_:o> <inferlake:at:-7?_:g> .",
    f"{_S} <inferlake:at:5> .": f"{_S} <inferlake:at:-7?inferlake:at:5> .",
    'D _:s e:p "a <inferlake:at:5> \\" b"@en .': 'D _:s e:p "a <inferlake:at:5> \\" b"@en'
    " <inferlake:at:-7> .",
}
OTHERS = ["# a comment", "PA e <e:>", "TX .", "oops <inferlake:at:5>", f"{_S} <e:g> <e:h> .", "D"]


def _came(text: str) -> Bad:
    return as_it_came(Bad("a file", 1, 1, text, "bad"))


@pytest.mark.parametrize("line", STAMPED)
def test_a_time_is_put_on_and_taken_off(line: str):
    assert stamped(line.encode(), -7).decode() == STAMPED[line]
    assert _came(STAMPED[line]).text == line


@pytest.mark.parametrize("line", OTHERS)
def test_what_says_nothing_of_a_triple_stays_what_it_is(line: str):
    for time in (5, None):
        assert stamped(line.encode(), time).decode() == line
    assert _came(line) == Bad("a file", 1, 1, line, "bad")


def test_a_line_without_spaces_is_a_line_too():
    assert stamped(b"<e:s><e:p><e:o>.", 5) == f"{_S} <inferlake:at:5> .".encode()


def test_what_has_no_time_is_marked_unless_it_deletes():
    text = stamped(f"{_S} .".encode(), None).decode()
    assert _came(text).text == f"{_S} ." and "it is null" in _came(text).message
    assert stamped(f"D {_S} .".encode(), None) == f"D {_S} .".encode()


@pytest.mark.parametrize("engine", ["sail"], indirect=True)
def test_the_time_that_a_graph_stands_for(engine: Engine):
    graphs = ["<inferlake:at:-7>", "<inferlake:at:12?e:g?a#b>", "<inferlake:at:13/_:g>", None]
    frame = engine.session.createDataFrame([(g,) for g in graphs], "g STRING")
    found = [row.at for row in frame.selectExpr(f"{time_sql('g')} AS at").collect()]
    assert found == [-7, 12, 13, None]


def test_which_columns_are_times():
    kinds = {"a": "timestamp", "b": "bigint", "c": "string"}
    assert milliseconds_sql("a", kinds) == "unix_millis(`a`)"
    assert milliseconds_sql("b", kinds) == "BIGINT(`b`)"
    with pytest.raises(InputError, match="is string, not a time"):
        milliseconds_sql("c", kinds)
    with pytest.raises(InputError, match="has no column d"):
        milliseconds_sql("d", kinds)
