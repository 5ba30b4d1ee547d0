"""Input that is odd, broken or not there: what loads, what is refused, and what is said about it.

Tests that take the fixture `kb` run on both engines. A load takes Spark a second or more, so those
put many files into one load.
"""

from __future__ import annotations

import bz2
import gzip
import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from inferlake.cli.app import main
from inferlake.errors import (
    InferlakeError,
    InputError,
    NewerFormat,
    NotAStore,
    RuleError,
    StoreError,
)
from inferlake.kb import KnowledgeBase
from inferlake.session import Engine
from inferlake.store import Commit
from inferlake.store.table import Snapshot, Table

BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def triple(subject: object, value: object = "o") -> str:
    return f'<http://example.org/{subject}> <http://example.org/p> "{value}" .'


def text(*triples: str, end: str = "\n") -> bytes:
    return "".join(f"{one}{end}" for one in triples).encode()


def zstd(data: bytes) -> bytes:
    return pa.Codec("zstd").compress(data, asbytes=True)


def put(folder: Path, files: dict[str, bytes]) -> list[Path]:
    """Write files of these names and return their paths."""
    folder.mkdir(exist_ok=True)
    for name, data in files.items():
        (folder / name).write_bytes(data)
    return [folder / name for name in files]


def facts(kb: KnowledgeBase) -> list[str]:
    rows = kb.facts().collect()
    return sorted(f"{row.subject} {row.predicate} {row.object} ." for row in rows)


@pytest.fixture
def sail(tmp_path: Path) -> KnowledgeBase:
    """A knowledge base on Sail, for what does not depend on the engine."""
    return KnowledgeBase(tmp_path / "kb", engine="sail")


# --- odd, and valid -----------------------------------------------------------------------------

_TWO = ("{0}-1", "{0}-2")


def _both(name: str, wrap: Callable[[bytes], bytes] = bytes, end: str = "\n") -> bytes:
    return wrap(text(*(triple(one.format(name)) for one in _TWO), end=end))


def _members(name: str, wrap: Callable[[bytes], bytes]) -> bytes:
    return b"".join(wrap(text(triple(one.format(name)))) for one in _TWO)


# Each of these files holds two triples of its own; the subjects are named as the key here.
ODD = {
    "crlf": ("crlf.nt", _both("crlf", end="\r\n")),
    "cr": ("cr.nt", _both("cr", end="\r")),
    "unended": ("unended.nt", _both("unended").rstrip()),
    "mark": ("mark.nt", BYTE_ORDER_MARK + _both("mark")),
    "mark-q": ("mark.nq", BYTE_ORDER_MARK + b"# a comment\r\n" + _both("mark-q", end="\r\n")),
    "mark-ttl": ("mark.ttl", BYTE_ORDER_MARK + _both("mark-ttl")),
    "mark-gz": ("mark.nt.gz", gzip.compress(BYTE_ORDER_MARK + _both("mark-gz"))),
    "mark-zst": ("mark.nt.zst", zstd(BYTE_ORDER_MARK + _both("mark-zst"))),
    "spaces": (
        "spaces.nt",
        b'  \t<http://example.org/spaces-1>\t<http://example.org/p>  "o"  .  # a comment\n\n \n\t\n'
        b"# a comment\n  # and another\n\r\n"
        b'<http://example.org/spaces-2><http://example.org/p>"o".',
    ),
    "gz": ("some.nt.gz", _both("gz", gzip.compress)),
    "bz2": ("some.nt.bz2", _both("bz2", bz2.compress)),
    "zst": ("some.nt.zst", _both("zst", zstd)),
    "ttl-gz": ("some.ttl.gz", _both("ttl-gz", gzip.compress)),
    "ttl-bz2": ("some.ttl.bz2", _both("ttl-bz2", bz2.compress)),
    "ttl-zst": ("some.ttl.zst", _both("ttl-zst", zstd)),
    # As tools that compress in parallel write them.
    "gz-gz": ("members.nt.gz", _members("gz-gz", gzip.compress)),
    "bz2-bz2": ("members.nt.bz2", _members("bz2-bz2", bz2.compress)),
    "zst-zst": ("members.nt.zst", _members("zst-zst", zstd)),
    "ttl-gz-gz": ("members.ttl.gz", _members("ttl-gz-gz", gzip.compress)),
    "upper": ("UPPER.NT", _both("upper")),
    "upper-gz": ("UPPER.NT.GZ", _both("upper-gz", gzip.compress)),
    "space": ("with  space .nt", _both("space")),
    "brackets": ("brackets[1].nt", _both("brackets")),
    "braces": ("braces{a,b}.nt", _both("braces")),
    "star": ("star*?.nt", _both("star")),
    "unicode": ("ünï-日本.nt", _both("unicode")),
    "percent": ("percent%20.nt", _both("percent")),
    "percent-ttl": ("percent%20.ttl", _both("percent-ttl")),
    "hash": ("hash#1.nt", _both("hash")),
    "colon": ("colon:1.nt", _both("colon")),
    "comma": ("comma,x=1&y.nt", _both("comma")),
    "quotes": ("quotes'\".nt", _both("quotes")),
    "backslash": ("back\\slash.nt", _both("backslash")),
    "underscore": ("_underscore.nt", _both("underscore")),
    "dot": (".dot.nt", _both("dot")),
}
EMPTY = {
    "empty.nt": b"",
    "comments.nt": b"# nothing\n\n",
    "empty.ttl": b"",
    "empty.nt.gz": gzip.compress(b""),
    "zero.nt.gz": b"",
    "empty.nt.bz2": bz2.compress(b""),
    "zero.ttl.gz": b"",
}


def test_odd_files_load_as_what_they_say(kb: KnowledgeBase, tmp_path: Path) -> None:
    odd = put(tmp_path / "odd", dict(ODD.values()))
    empty = put(tmp_path / "empty", EMPTY)
    report = kb.load(*odd, *empty)
    assert facts(kb) == sorted(triple(one.format(name)) for name in ODD for one in _TWO)
    assert (report.files, report.bad_count) == (len(ODD) + len(EMPTY), 0)
    assert report.read == report.added == 2 * len(ODD)


def test_empty_input_makes_an_empty_version(kb: KnowledgeBase, tmp_path: Path) -> None:
    report = kb.load(*put(tmp_path / "empty", EMPTY))
    assert (report.version, report.read, report.added) == (1, 0, 0)
    stats = kb.stats()
    assert (stats.version, stats.asserted, stats.terms) == (1, 0, 0)


def test_a_folder_is_searched_for_what_is_not_hidden(sail: KnowledgeBase, tmp_path: Path) -> None:
    (tmp_path / "folder" / "deep").mkdir(parents=True)
    files = {"a.nt": "a", "deep/b.nt": "b", "_c.nt": "c", ".d.nt": "d", "notes.txt": "e"}
    put(tmp_path / "folder", {name: text(triple(one)) for name, one in files.items()})
    assert sail.load(tmp_path / "folder").files == 2
    assert sail.load(f"{tmp_path}/folder/*.nt", f"{tmp_path}/folder/a.nt").files == 2
    assert facts(sail) == [triple("a"), triple("b"), triple("c")]
    sail.load(tmp_path / "folder", format="nt")
    assert triple("e") in facts(sail)


def test_very_long_terms_are_terms_like_others(kb: KnowledgeBase, tmp_path: Path) -> None:
    """Writers of Parquet leave out the statistics of long values, and a load reads statistics."""
    chance = random.Random(1)
    lines = [triple(n, chance.randbytes(size).hex()) for n, size in enumerate((2_000, 200_000))]
    lines.append(triple("iri").replace('"o"', f"<http://example.org/{'x' * 5_000}>"))
    quad = triple("quad", "y" * 5_000).replace(" .", f" <http://example.org/{'g' * 5_000}> .")
    nt, nq = put(tmp_path / "long", {"long.nt": text(*lines), "long.nq": text(quad)})
    report = kb.load(nt, nq)
    assert (report.read, report.graphs_dropped) == (4, 1)
    assert facts(kb) == sorted([*lines, triple("quad", "y" * 5_000)])


def test_a_format_that_is_named_goes_before_the_suffix(sail: KnowledgeBase, tmp_path: Path) -> None:
    turtle = b"@prefix : <http://example.org/> . :a :p 'o' ."
    for file in put(tmp_path / "named", {"x.nt": turtle, "x": turtle}):
        with pytest.raises(InputError):
            sail.load(file)
    report = sail.load(
        *put(tmp_path / "named", {"x": turtle, "x.gz": gzip.compress(turtle)}), format="ttl"
    )
    assert (report.read, report.added) == (2, 1)
    assert facts(sail) == [triple("a")]
    with pytest.raises(InputError, match=r"no format 'csv': choose one of .*ttl"):
        sail.load(tmp_path / "named", format="csv")


# --- equal in meaning ---------------------------------------------------------------------------


def test_ways_to_write_a_term_give_one_id(kb: KnowledgeBase, tmp_path: Path) -> None:
    xsd = "http://www.w3.org/2001/XMLSchema#"
    name = "<http://example.org/{}>".format
    lines = [
        *(f"{name('s')} {name('text')} {o} ." for o in ('"é"', r'"\u00e9"', r'"\U000000E9"')),
        f'{name("s")} {name("text")} "é"^^<{xsd}string> .',
        *(f'{name("s")} {name("tag")} "x"@{tag} .' for tag in ("en-gb", "EN-GB", "en-GB")),
        *(f"{name(s)} {name('iri')} {name('o')} ." for s in ("é", r"\u00E9", r"\U000000e9")),
        # Other literals, though equal as numbers: RDF does not compare values.
        *(f'{name("s")} {name("n")} "{n}"^^<{xsd}integer> .' for n in ("1", "01")),
    ]
    report = kb.load(*put(tmp_path / "ways", {"ways.nt": text(*lines), "ways.ttl": text(*lines)}))
    assert (report.read, report.added) == (2 * len(lines), 5)
    assert facts(kb) == sorted(
        [
            f'{name("s")} {name("text")} "é" .',
            f'{name("s")} {name("tag")} "x"@en-gb .',
            f"{name('é')} {name('iri')} {name('o')} .",
            f'{name("s")} {name("n")} "1"^^<{xsd}integer> .',
            f'{name("s")} {name("n")} "01"^^<{xsd}integer> .',
        ]
    )
    assert kb.stats().terms == 11


def test_blank_nodes_are_of_their_file(kb: KnowledgeBase, tmp_path: Path) -> None:
    p = "<http://example.org/p>"
    linked = f"_:x {p} _:y .\n_:y {p} _:x .\n".encode()
    files = put(
        tmp_path / "blank", {"1.nt": linked, "2.nt": linked, "3.ttl": linked, "4[].nt": linked}
    )
    assert kb.load(*files).added == 8
    rows = kb.facts().collect()
    assert len({row.subject for row in rows}) == 8
    assert {(row.subject, row.object) for row in rows} == {
        (row.object, row.subject) for row in rows
    }
    assert kb.load(*files).added == 0


def test_a_label_in_a_file_that_has_changed_is_another_node(
    sail: KnowledgeBase, tmp_path: Path
) -> None:
    one = text("_:x <http://example.org/p> _:y .")
    for data in (one, one + text(triple("a"))):
        sail.load(*put(tmp_path / "blank", {"1.nt": data}))
    assert len(facts(sail)) == 3


def test_names_of_graphs_are_dropped_and_counted(kb: KnowledgeBase, tmp_path: Path) -> None:
    spo, other = triple("a")[:-2], triple("b")[:-2]
    quads = f"{spo} .\n{spo} <http://g/1> .\n{spo} <http://g/2> .\n{other} _:g .\n"
    trig = f"<http://g/2> {{ {spo} . }} <http://g/3> {{ {other} . }} {triple('c')}"
    report = kb.load(*put(tmp_path / "graphs", {"q.nq": quads.encode(), "t.trig": trig.encode()}))
    assert (report.read, report.added, report.graphs_dropped) == (7, 3, 4)
    assert facts(kb) == [triple("a"), triple("b"), triple("c")]
    assert "4 graphs" in str(report)


# --- broken -------------------------------------------------------------------------------------

_UNCLOSED = '<http://example.org/x> <http://example.org/p> "never closed .'
_NO_PREDICATE = "<http://example.org/x> <http://example.org/y> ."
_NO_PREFIX = "<http://example.org/x> <http://example.org/p> nobody:knows ."
_LATIN_1 = triple("x", "caf\xe9").encode("latin-1")


def test_bad_statements_stop_a_load_or_are_skipped(kb: KnowledgeBase, tmp_path: Path) -> None:
    good = text(triple("a"), triple("b"))
    kb.load(*put(tmp_path / "good", {"good.nt": text(triple("z"))}))
    latin = good + _LATIN_1 + b"\n" + text(triple("c"))
    bad = {
        "1.nt": (good + text(_UNCLOSED, triple("d")), "3:47", _UNCLOSED),
        "2.nq": (text(_NO_PREDICATE) + good, "1:47", _NO_PREDICATE),
        "3.ttl": (good + text(_NO_PREFIX, triple("e")), "3:47", _NO_PREFIX),
        "4.nt": (latin, "3:51", triple("x", "caf\ufffd")),
        "5.nt": (b"\r\n" + text("rubbish", triple("f"), end="\r\n"), "2:1", "rubbish"),
        "6.nt.zst": (zstd(good + text(_NO_PREDICATE)), "3:47", _NO_PREDICATE),
    }
    files = put(tmp_path / "bad", {name: data for name, (data, _, _) in bad.items()})

    with pytest.raises(InputError) as caught:
        kb.load(*files)
    message = str(caught.value)
    assert message.startswith(f"{files[0]}:3:47: ")
    assert f"\n    {_UNCLOSED}\n" in message
    assert "(5 more bad statements)" in message
    assert "--on-error skip" in message
    assert (kb.version, facts(kb)) == (1, [triple("z")])

    report = kb.load(*files, on_error="skip")
    assert facts(kb) == [triple(one) for one in "abcdefz"]
    assert (report.version, report.bad_count) == (2, len(bad))
    shown = [(f"{one.address}:{one.line}:{one.column}", one.text) for one in report.bad]
    places = [
        (f"{file}:{place}", line)
        for file, (_, place, line) in zip(files, bad.values(), strict=True)
    ]
    assert shown == places[:5]
    assert kb.history()[0].info["bad"] == len(bad)


# Files that cannot be read to the end, whatever is to be done with bad statements.
_MANY = text(*(triple(n, random.Random(n).randbytes(30).hex()) for n in range(3000)))
DAMAGED = {
    "cut.nt.gz": gzip.compress(_MANY)[:-1000],
    "cut-in-trailer.nt.gz": gzip.compress(_MANY)[:-4],
    "cut.nt.bz2": bz2.compress(_MANY)[:-1000],
    "cut.nt.zst": zstd(_MANY)[:-1000],
    "cut.ttl.gz": gzip.compress(_MANY)[:-1000],
    "checksum.nt.gz": gzip.compress(_MANY)[:-8] + bytes(8),
    "not-gzip.nt.gz": _MANY,
    "not-bzip2.nt.bz2": _MANY,
    "header-only.nt.bz2": b"BZh9" + random.Random(2).randbytes(500),
    "not-zstd.nt.zst": _MANY,
    "not-gzip.ttl.gz": _MANY,
    "cut-and-small.ttl.gz": gzip.compress(_MANY[:5_000])[:-1000],
    "cut-and-small.nt.gz": gzip.compress(_MANY[:5_000])[:-1000],
}


def test_damaged_files_are_refused_by_name(
    kb: KnowledgeBase, engine: Engine, tmp_path: Path
) -> None:
    kb.load(put(tmp_path / "good", {"good.nt": text(triple("a"))})[0])
    for file in put(tmp_path / "damaged", DAMAGED):
        # Bad statements can be skipped; what is lost of a file may be any number of them.
        for on_error in ("fail", "skip") if engine.name == "sail" else ("fail",):
            with pytest.raises(InputError) as caught:
                kb.load(file, on_error=on_error)
            assert str(file) in str(caught.value)
    assert (kb.version, facts(kb)) == (1, [triple("a")])


def test_bytes_that_are_no_text_are_refused(kb: KnowledgeBase, tmp_path: Path) -> None:
    noise = random.Random(3).randbytes(5000)
    names = ("noise.nt", "noise.ttl", "noise.rdf", "noise.jsonld")
    for file in put(tmp_path / "noise", dict.fromkeys(names, noise)):
        with pytest.raises(InputError) as caught:
            kb.load(file)
        assert str(caught.value).startswith(str(file))
    assert not Path(kb.path).exists(), "a first load that fails leaves no store behind"


@pytest.mark.parametrize(
    "name,data,reason",
    [
        ("rule.n3", ":a :p 'o' . { ?x :p ?y } => { ?y :q ?x } .", "a variable of N3"),
        ("ground.n3", ":a :p 'o' . { :x :p :y } => { :y :q :x } .", "a formula"),
        ("empty.n3", ":a :p 'o' . {} => {} .", "a rule"),
        ("quoted.n3", ":a :p 'o' . :a :says { :x :p :y } .", "a formula"),
        ("variable.n3", ":a :p 'o' . ?x :p :y .", "a variable of N3"),
        ("term.ttl", ":a :p 'o' . :x :p <<( :a :b :c )>> .", "a triple inside a triple"),
        ("reified.ttl", ":a :p 'o' . :x :p << :a :b :c >> .", "a triple inside a triple"),
        ("annotated.trig", ":a :p 'o' {| :q :r |} .", "a triple inside a triple"),
    ],
)
def test_what_rdf_1_1_does_not_have_is_refused(
    name: str, data: str, reason: str, sail: KnowledgeBase, tmp_path: Path
) -> None:
    prefixed = f"@prefix : <http://example.org/> .\n{data}\n"
    (file,) = put(tmp_path / "beyond", {name: prefixed.encode()})
    with pytest.raises(InputError, match=reason) as caught:
        sail.load(file)
    assert str(caught.value).startswith(str(file))
    assert not Path(sail.path).exists()
    assert sail.load(file, on_error="skip").bad_count >= 1
    assert triple("a") in facts(sail)
    assert not [fact for fact in facts(sail) if "implies" in fact]


def test_triples_inside_triples_are_refused_in_lines(sail: KnowledgeBase, tmp_path: Path) -> None:
    inside = "<http://example.org/a> <http://example.org/b> <http://example.org/c>"
    line = f"<http://example.org/x> <http://example.org/p> <<( {inside} )>> ."
    (file,) = put(tmp_path / "lines", {"term.nt": text(triple("a"), line)})
    with pytest.raises(InputError, match=r"term\.nt:2: a triple inside a triple \(RDF 1\.2\)"):
        sail.load(file)


def test_n3_without_formulas_loads(sail: KnowledgeBase, tmp_path: Path) -> None:
    data = b"@prefix : <http://example.org/> . :a :p 'o' ; = :b . :c is :p of :d . :e :p ( 1 ) ."
    assert sail.load(*put(tmp_path / "n3", {"plain.n3": data})).read == 6
    assert triple("a") in facts(sail)


# --- not there ----------------------------------------------------------------------------------


def test_inputs_that_name_no_file_are_refused(sail: KnowledgeBase, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    put(tmp_path / "other", {"notes.txt": b"some notes", "data.nt": b""})
    for given, reason in {
        "missing.nt": "no such file or folder: .*/missing.nt",
        "*.nt": r"no file matches .*/\*.nt",
        "empty": "no RDF file in .*/empty",
        "other/notes.txt": "notes.txt: unknown suffix; known are .nt .* or say --format",
        "other/data.nt/deeper.nt": "no such file or folder",
    }.items():
        with pytest.raises(InputError, match=reason):
            sail.load(tmp_path / "other" / "data.nt", tmp_path / given)
    assert not Path(sail.path).exists()


# --- the store ----------------------------------------------------------------------------------


def stranger(folder: Path) -> None:
    put(folder, {"thesis.tex": b"chapter one"})


def plain_file(path: Path) -> None:
    path.write_bytes(b"chapter one")


def delta_table(folder: Path) -> None:
    write_deltalake(str(folder), pa.table({"a": [1]}))


def delta_tables_named_like_ours(folder: Path) -> None:
    for name in ("facts", "terms"):
        write_deltalake(str(folder / name), pa.table({"s": [1]}))


def nothing(folder: Path) -> None: ...


COMMANDS = {
    "stats": [],
    "export": [],
    "history": [],
    "compact": [],
    "vacuum": ["--older-than", "0"],
    "load": ["input.nt"],
}


def run(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *args: str):
    """Run the command line in this process; return its exit code, standard output and error."""
    monkeypatch.setattr(sys, "argv", ["inferlake", "--engine", "sail", "--quiet", *args])
    code: object = 0
    try:
        main()
    except SystemExit as exc:
        code = exc.code
    out, err = capfd.readouterr()
    return code, out, err


def contents(path: Path) -> dict[str, bytes]:
    return {str(file): file.read_bytes() for file in [path, *path.rglob("*")] if file.is_file()}


@pytest.mark.parametrize(
    "make", [stranger, plain_file, delta_table, delta_tables_named_like_ours, nothing]
)
def test_commands_refuse_and_keep_what_is_no_store(
    make: Callable[[Path], None],
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    put(tmp_path, {"input.nt": text(triple("a"))})
    place = tmp_path / "thing"
    make(place)
    before = contents(place)
    for command, options in COMMANDS.items():
        if command == "load" and make is nothing:
            continue
        code, out, err = run(capfd, monkeypatch, command, "thing", *options)
        assert (code, out) == (NotAStore.exit_code, ""), command
        assert err.startswith(f"inferlake: {place}: "), command
        assert len(err.splitlines()) == 1
    assert contents(place) == before


def test_commands_refuse_a_store_of_a_later_release(
    sail: KnowledgeBase,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    (file,) = put(tmp_path, {"input.nt": text(triple("a"))})
    with monkeypatch.context() as later:
        later.setattr("inferlake.store.store.FORMAT", 2)
        sail.load(file)
    before = contents(Path(sail.path))
    for command, options in COMMANDS.items():
        code, out, err = run(capfd, monkeypatch, command, "kb", *options)
        assert (code, out) == (NewerFormat.exit_code, ""), command
        assert "written in format 2, and this release reads up to 1; upgrade" in err, command
        assert len(err.splitlines()) == 1
    assert contents(Path(sail.path)) == before


def test_a_store_with_a_file_missing_is_told_in_a_message(
    sail: KnowledgeBase,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    sail.load(*put(tmp_path, {"input.nt": text(triple("a"))}))
    (lost,) = Path(sail.path, "facts").rglob("*.parquet")
    lost.unlink()
    for command in ("stats", "export", "compact", "load"):
        code, out, err = run(capfd, monkeypatch, command, "kb", *COMMANDS[command])
        assert code in (3, 4), command
        assert (out, "Traceback" in err) == ("", False), command
        assert lost.name in err, command


@pytest.mark.parametrize(
    "name", ["with  space", "ünï-日本", "100%", "%2 %", "&=+!'\"`", ":;,.~@$()<>"]
)
def test_stores_in_folders_of_any_name(name: str, tmp_path: Path) -> None:
    kb = KnowledgeBase(tmp_path / name, engine="sail")
    (file,) = put(tmp_path, {"input.nt": text(triple("a"))})
    kb.load(file)
    put(tmp_path, {"input.nt": text(triple("a"), triple("b"))})
    assert kb.load(file).added == 1
    kb.compact()
    kb.vacuum()
    kb.export(tmp_path / "out.nt")
    assert sorted((tmp_path / "out.nt").read_text().splitlines()) == [triple("a"), triple("b")]
    assert {path.name for path in tmp_path.iterdir()} == {name, "input.nt", "out.nt"}
    assert kb.version == 4


def test_either_engine_writes_stores_in_folders_of_any_name(engine: Engine, tmp_path: Path) -> None:
    kb = KnowledgeBase(tmp_path / "a b% ünï&=+'\"@", engine=engine.name)
    (file,) = put(tmp_path, {"input.nt": text(triple("a"))})
    kb.load(file)
    assert kb.load(file).added == 0
    assert facts(kb) == [triple("a")]


@pytest.mark.parametrize("part", [*"*?[]{}\\#^|", "%20"])
def test_a_folder_that_some_library_would_misread_is_refused(part: str, tmp_path: Path) -> None:
    (file,) = put(tmp_path, {"input.nt": text(triple("a"))})
    folder = tmp_path / f"a{part}b"
    for _ in range(2):
        kb = KnowledgeBase(folder / "kb", engine="sail")
        for attempt in (lambda kb=kb: kb.load(file), kb.stats, kb.history):
            with pytest.raises(StoreError, match="in its path; name another"):
                attempt()
        folder.mkdir(exist_ok=True)
    assert not list(folder.iterdir())


# --- disks --------------------------------------------------------------------------------------


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    """A function that mounts a small disk in memory, or mounts it anew with other options."""
    at = tmp_path / "disk"
    at.mkdir()

    def mount(options: str) -> Path:
        command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(at)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            pytest.skip(f"mounting a small disk is not allowed here: {done.stderr.strip()}")
        return at

    yield mount
    # Lazily: an engine may keep a file open a little longer.
    subprocess.run(["umount", "--lazy", str(at)], capture_output=True)


@contextmanager
def full(disk: Path) -> Iterator[None]:
    """Fill the disk to the last byte for a while."""
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as file:
        for size in (1 << 20, 1 << 12, 1):
            try:
                while file.write(bytes(size)):
                    pass
            except OSError:
                continue
    try:
        yield
    finally:
        ballast.unlink()


def test_a_disk_too_small_for_the_work_stops_a_load(
    engine: Engine, tmp_path: Path, disk: Callable[[str], Path]
) -> None:
    kb = KnowledgeBase(disk("size=20m") / "kb", engine=engine.name)
    (small,) = put(tmp_path, {"small.nt": text(triple("a"))})
    kb.load(small)
    chance = random.Random(4)
    lines = (triple(n, chance.randbytes(1000).hex()) for n in range(15_000))
    (large,) = put(tmp_path, {"large.nt": text(*lines)})
    with pytest.raises(
        StoreError, match=r"the disk is full.*; nothing was loaded; free some space"
    ):
        kb.load(large)
    assert (kb.version, facts(kb)) == (1, [triple("a")])
    put(tmp_path, {"small.nt": text(triple("a"), triple("b"))})
    assert kb.load(small).added == 1


@pytest.mark.parametrize("table", ["terms", "facts"])
def test_a_disk_that_is_full_at_the_commit_stops_a_load(
    table: str, tmp_path: Path, disk: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    at = disk("size=20m")
    kb = KnowledgeBase(at / "kb", engine="sail", rules="none")
    (file,) = put(tmp_path, {"input.nt": text(triple("a"))})
    kb.load(file)
    put(tmp_path, {"input.nt": text(triple("a"), triple("b"))})
    original = Table.commit

    def commit(self: Table, base: Snapshot, wanted: Commit) -> int:
        if self.place.path.endswith(table):
            with full(at):
                return original(self, base, wanted)
        return original(self, base, wanted)

    with monkeypatch.context() as failing, pytest.raises(StoreError, match="disk is full"):
        failing.setattr(Table, "commit", commit)
        kb.load(file)
    assert (kb.version, facts(kb)) == (1, [triple("a")])
    assert kb.load(file).added == 1
    assert facts(kb) == [triple("a"), triple("b")]
    assert kb.stats().terms == 4

    with full(at), pytest.raises(StoreError, match="disk is full"):
        kb.export(tmp_path / "out.nt")
    with full(at), pytest.raises(InferlakeError, match="disk is full"):
        KnowledgeBase(kb.path, engine="sail").compact()
    assert not (tmp_path / "out.nt").exists()
    assert facts(kb) == [triple("a"), triple("b")]


def test_a_store_that_is_read_only_can_be_read_and_not_written(
    tmp_path: Path,
    disk: Callable[[str], Path],
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    at = disk("size=20m")
    (file,) = put(tmp_path, {"input.nt": text(triple("a"))})
    kb = KnowledgeBase(at / "kb", engine="sail", rules="none")
    kb.load(file)
    disk("remount,ro")
    assert kb.stats().asserted == 1
    assert facts(kb) == [triple("a")]
    assert len(kb.history()) == 2
    assert kb.export(tmp_path / "out.nt").triples == 1
    assert kb.export_changes(tmp_path / "out.rdfp").triples == 1
    assert kb.verify().ok
    for command in ("load", "compact", "vacuum"):
        for store in ("disk/kb", "disk/new")[: 2 if command == "load" else 1]:
            code, out, err = run(capfd, monkeypatch, command, store, *COMMANDS[command])
            assert (code, out) == (StoreError.exit_code, ""), (command, err)
            assert len(err.splitlines()) == 1, command
            assert "cannot be written" in err and "Read-only file system" in err, command
    assert (kb.version, facts(kb)) == (1, [triple("a")])


# --- rights -------------------------------------------------------------------------------------


@pytest.fixture
def inferlake(tmp_path: Path) -> Callable[..., tuple[int, str]]:
    """A function that runs the command as one who has no more rights than files give.

    It returns the exit code and what was said.
    """
    powerless = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"] if os.geteuid() == 0 else []
    if powerless and subprocess.run([*powerless, "true"], capture_output=True).returncode:
        pytest.skip("root cannot give up its rights here")
    (script,) = Path(sys.executable).parent.glob("inferlake")

    def run(*args: object) -> tuple[int, str]:
        command = [*powerless, str(script), "--engine", "sail", "--quiet", *map(str, args)]
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
        return done.returncode, done.stderr

    return run


@pytest.fixture
def closed() -> Iterator[Callable[[Path, int], Path]]:
    """A function that takes rights from a file or folder until the end."""
    before: dict[Path, int] = {}

    def close(path: Path, mode: int) -> Path:
        before[path] = path.stat().st_mode
        path.chmod(mode)
        return path

    yield close
    for path, mode in before.items():
        path.chmod(mode)


def test_what_may_not_be_read_is_told_in_a_message(
    inferlake: Callable[..., tuple[int, str]],
    closed: Callable[[Path, int], Path],
    tmp_path: Path,
) -> None:
    put(tmp_path / "folder", {"input.nt": text(triple("a"))})
    (rules,) = put(tmp_path, {"rules.dl": b"p(1) ."})
    folder = closed(tmp_path / "folder", 0)
    closed(rules, 0)
    for code, args in (
        (InputError.exit_code, ("load", "kb", folder)),
        (InputError.exit_code, ("load", "kb", folder / "input.nt")),
        (RuleError.exit_code, ("check", rules)),
        (StoreError.exit_code, ("stats", folder)),
    ):
        found, err = inferlake(*args)
        assert (found, len(err.splitlines())) == (code, 1), err
        assert err.startswith(f"inferlake: {args[-1]}: cannot be read (")
        assert "Permission denied); give this user the right to read it" in err
    assert not (tmp_path / "kb").exists()


def test_what_may_not_be_written_is_told_in_a_message(
    inferlake: Callable[..., tuple[int, str]],
    closed: Callable[[Path, int], Path],
    sail: KnowledgeBase,
    tmp_path: Path,
) -> None:
    sail.load(*put(tmp_path, {"input.nt": text(triple("a"))}))
    put(tmp_path, {"input.nt": text(triple("a"), triple("b"))})
    store, folder = closed(Path(sail.path), 0o555), tmp_path / "folder"
    folder.mkdir()
    closed(folder, 0o555)
    before = contents(store)
    for code, args in (
        (StoreError.exit_code, ("load", store, "input.nt")),
        (StoreError.exit_code, ("load", folder / "kb", "input.nt")),
        (StoreError.exit_code, ("compact", store)),
        (InputError.exit_code, ("export", store, "-o", folder / "x.nt")),
        (InputError.exit_code, ("generate", "lubm", "--universities", 1, "-o", folder / "lubm")),
    ):
        found, err = inferlake(*args)
        assert (found, len(err.splitlines())) == (code, 1), err
        assert "cannot be written (" in err
        assert "Permission denied); nothing was changed; give this user the right" in err
    assert contents(store) == before
    assert inferlake("export", store, "-o", "x.nt") == (0, "")
    assert (tmp_path / "x.nt").read_text() == f"{triple('a')}\n"


# --- the command in a process of its own --------------------------------------------------------


def test_the_command_ends_with_a_message_and_an_exit_code(tmp_path: Path) -> None:
    good, bad = put(
        tmp_path, {"good.nt": text(triple("a")), "bad.nt": text(_UNCLOSED, triple("b"))}
    )
    (script,) = Path(sys.executable).parent.glob("inferlake")

    def inferlake(*args: object) -> subprocess.CompletedProcess[str]:
        command = [str(script), "--engine", "sail", *map(str, args)]
        return subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)

    missing = inferlake("load", "kb", "missing.nt")
    assert (missing.returncode, missing.stdout) == (2, "")
    assert (
        missing.stderr
        == f"inferlake: no such file or folder: {tmp_path}/missing.nt; check the path\n"
    )

    refused = inferlake("load", "kb", good, bad)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert f"inferlake: {bad}:1:47: " in refused.stderr
    assert "Traceback" not in refused.stderr

    skipped = inferlake("load", "--on-error", "skip", "kb", good, bad)
    assert (skipped.returncode, skipped.stdout) == (0, "")
    assert f"skipped {bad}:1:47: " in skipped.stderr
    assert "skipped 1 bad statement" in skipped.stderr.splitlines()[-1]

    elsewhere = inferlake("stats", tmp_path)
    assert (elsewhere.returncode, elsewhere.stdout) == (3, "")
    assert elsewhere.stderr.startswith(f"inferlake: {tmp_path}: not an Inferlake store")


def test_an_export_that_nobody_reads_ends_as_sigpipe_would(
    sail: KnowledgeBase, tmp_path: Path
) -> None:
    sail.load(*put(tmp_path, {"input.nt": text(triple("a"))}))
    (script,) = Path(sys.executable).parent.glob("inferlake")
    for command in ("export", "changes"):
        reader, writer = os.pipe()
        os.close(reader)
        told = [str(script), "--engine", "sail", "--quiet", command, sail.path]
        done = subprocess.run(told, stdout=writer, stderr=subprocess.PIPE, text=True)
        os.close(writer)
        assert (done.returncode, done.stderr) == (128 + signal.SIGPIPE, ""), command
    assert not Path(sail.path, "_staging").exists()


@pytest.mark.parametrize("table", ["terms", "facts"])
def test_a_store_that_lost_a_table_is_not_changed(
    table: str,
    sail: KnowledgeBase,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    sail.load(*put(tmp_path, {"input.nt": text(triple("a"))}))
    put(tmp_path, {"input.nt": text(triple("b"))})
    shutil.rmtree(Path(sail.path, table))
    before = contents(Path(sail.path))
    for command in ("stats", "load", "compact", "vacuum"):
        code, out, err = run(capfd, monkeypatch, command, "kb", *COMMANDS[command])
        assert (code, out) == (StoreError.exit_code, ""), command
        assert f"{sail.path}/{table}: no table there, though the rest of the store is" in err
    assert contents(Path(sail.path)) == before
