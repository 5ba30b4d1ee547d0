"""Which files an input names, and what their suffixes say of them."""

from __future__ import annotations

import bz2
import gzip
import os
import re
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pytest

from inferlake.errors import InputError
from inferlake.input.files import CHANGE_FORMATS, FORMATS, InputFile, discover, examined
from inferlake.terms.shape import SCOPE_LENGTH, SCOPE_PATTERN, SHARED_SCOPE

LINE = "<http://example.org/s> <http://example.org/p> <http://example.org/o> .\n"


def made(folder: Path, *names: str) -> None:
    for name in names:
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(bz2.compress(LINE.encode()) if name.endswith(".bz2") else LINE.encode())


def names(files: Iterable[InputFile], folder: Path) -> list[str]:
    return [os.path.relpath(file.address, folder) for file in files]


@pytest.mark.parametrize(("suffix", "format"), FORMATS.items())
@pytest.mark.parametrize(
    ("packed", "compression"),
    [("", None), (".gz", "gzip"), (".bz2", "bz2"), (".zst", "zstd"), (".GZ", "gzip")],
)
def test_the_suffix_says_format_and_compression(
    suffix: str, format: str, packed: str, compression: str | None, tmp_path: Path
) -> None:
    made(tmp_path, f"a.b{suffix}{packed}")
    (found,) = discover([tmp_path / f"a.b{suffix}{packed}"])
    assert (found.format, found.compression) == (format, compression)
    assert found.size == (tmp_path / f"a.b{suffix}{packed}").stat().st_size


@pytest.mark.parametrize("name", ["a.txt", "a", "a.gz", "nt", ".nt", "a.nt.zip"])
def test_a_named_file_with_an_unknown_suffix_is_refused(name: str, tmp_path: Path) -> None:
    made(tmp_path, name)
    with pytest.raises(InputError, match=r"unknown suffix; known are \.nt .*--format"):
        discover([tmp_path / name])


@pytest.mark.parametrize("name", ["mine.dl", "mine.dlog"])
def test_rules_among_inputs_are_told_where_to_go(name: str, tmp_path: Path) -> None:
    made(tmp_path, name)
    with pytest.raises(InputError, match=r"looks like rules .* give it with --rules"):
        discover([tmp_path / name])


def test_a_format_that_is_told_goes_before_the_suffix(tmp_path: Path) -> None:
    made(tmp_path, "a.txt", "b.ttl.gz")
    found = discover([tmp_path / "a.txt", tmp_path / "b.ttl.gz"], format="nt")
    assert [(file.format, file.compression) for file in found] == [("nt", None), ("nt", "gzip")]


def test_an_unknown_format_is_refused_with_those_there_are(tmp_path: Path) -> None:
    made(tmp_path, "a.nt")
    with pytest.raises(InputError, match="no format 'pdf': choose one of jsonld, n3, nq, nt"):
        discover([tmp_path / "a.nt"], format="pdf")


def test_a_folder_is_searched_to_any_depth_for_known_suffixes(tmp_path: Path) -> None:
    made(tmp_path, "b.nt", "a/deep/er.ttl", "a/z.nq.gz", "README.md", "a/notes.txt")
    assert names(discover([tmp_path]), tmp_path) == ["a/deep/er.ttl", "a/z.nq.gz", "b.nt"]


def test_hidden_files_and_folders_are_passed_over_unless_named(tmp_path: Path) -> None:
    made(tmp_path, "a.nt", ".b.nt", "_c.nt", ".d/e.nt", "_f/g.nt", "_temporary/0/h.nt")
    assert names(discover([tmp_path]), tmp_path) == ["a.nt"]
    assert names(discover([tmp_path / "_c.nt"]), tmp_path) == ["_c.nt"]
    assert names(discover([tmp_path / "_f"]), tmp_path) == ["_f/g.nt"]


def test_a_told_format_takes_every_file_of_a_folder(tmp_path: Path) -> None:
    made(tmp_path, "a.txt", "b.data", ".c")
    assert names(discover([tmp_path], format="nt"), tmp_path) == ["a.txt", "b.data"]


@pytest.mark.parametrize(
    ("pattern", "matched"),
    [
        ("*.nt", ["a.nt", "b.nt"]),
        ("[a]*", ["a.nt"]),
        ("?.nt", ["a.nt", "b.nt"]),
        ("**/*.nt", ["a.nt", "b.nt", "sub/c.nt"]),
        ("s*", ["sub/c.nt"]),
    ],
)
def test_globs_match_files_and_folders(pattern: str, matched: list[str], tmp_path: Path) -> None:
    made(tmp_path, "a.nt", "b.nt", "sub/c.nt")
    assert names(discover([tmp_path / pattern]), tmp_path) == matched


def test_a_file_named_like_a_glob_is_itself(tmp_path: Path) -> None:
    made(tmp_path, "a[1].nt", "a1.nt")
    (found,) = discover([tmp_path / "a[1].nt"])
    assert names([found], tmp_path) == ["a[1].nt"]
    assert not found.split_by_engine


def test_a_file_named_twice_is_found_once_and_the_order_is_stable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(tmp_path, "b.nt", "a.nt")
    monkeypatch.chdir(tmp_path)
    found = discover(["b.nt", tmp_path, "*.nt", tmp_path / "a.nt", f"file://{tmp_path}/b.nt"])
    assert names(found, tmp_path) == ["a.nt", "b.nt"]


def test_what_is_not_there_is_refused_by_name(tmp_path: Path) -> None:
    made(tmp_path, "a.txt")
    with pytest.raises(InputError, match=r"no such file or folder: .*/b\.nt"):
        discover([tmp_path / "b.nt"])
    with pytest.raises(InputError, match=r"no file matches .*\*\.nt"):
        discover([tmp_path / "*.nt"])
    with pytest.raises(InputError, match=r"no RDF file in .*known suffixes are \.nt"):
        discover([tmp_path])


# --- files of changes ---------------------------------------------------------------------------


@pytest.mark.parametrize(("suffix", "format"), CHANGE_FORMATS.items())
@pytest.mark.parametrize(("packed", "compression"), [("", None), (".gz", "gzip"), (".bz2", "bz2")])
def test_files_of_changes_are_told_by_their_suffix(
    suffix: str, format: str, packed: str, compression: str | None, tmp_path: Path
) -> None:
    made(tmp_path, f"a{suffix}{packed}")
    (found,) = discover([tmp_path / f"a{suffix}{packed}"], changes=True)
    assert (found.format, found.compression) == (format, compression)
    assert found.has_changes
    assert not found.split_by_engine


def test_changes_keep_the_order_they_are_given_in(tmp_path: Path) -> None:
    made(tmp_path, "c.rdfp", "b.ru", "sub/z.rdfp", "sub/y.ru", "sub/x.nt", "a.rdfp.gz")
    given = [tmp_path / "c.rdfp", tmp_path / "sub", tmp_path / "[ab].*"]
    found = names(discover(given, changes=True), tmp_path)
    assert found == ["c.rdfp", "sub/y.ru", "sub/z.rdfp", "a.rdfp.gz", "b.ru"]
    again = names(discover([*given, tmp_path / "c.rdfp"], changes=True), tmp_path)
    assert again == [*found[1:], "c.rdfp"]


def test_triples_and_changes_are_not_taken_for_each_other(tmp_path: Path) -> None:
    made(tmp_path, "a.nt", "b.rdfp", "c.ru.gz", "d.txt", "e.rq", "triples/a.nt", "none/x.txt")
    for name in ("b.rdfp", "c.ru.gz"):
        with pytest.raises(InputError, match=f"{name}: holds changes .* with --patch"):
            discover([tmp_path / name])
    with pytest.raises(InputError, match=r"a\.nt: holds triples .* with --add or --remove"):
        discover([tmp_path / "a.nt"], changes=True)
    for name in ("d.txt", "e.rq"):
        with pytest.raises(InputError, match=r"unknown suffix; known are \.rdfp \.ru, each also"):
            discover([tmp_path / name], changes=True)
    with pytest.raises(InputError, match=r"no patch in .*: known suffixes are \.rdfp \.ru, each"):
        discover([tmp_path / "triples"], changes=True)
    assert names(discover([tmp_path / "triples", tmp_path / "a.nt"]), tmp_path) == [
        "a.nt",
        "triples/a.nt",
    ]


def test_a_told_format_goes_to_the_files_it_is_meant_for(tmp_path: Path) -> None:
    made(tmp_path, "a.txt", "b.rdfp", "c.nt")

    def format(name: str, told: str, *, changes: bool) -> str:
        return discover([tmp_path / name], told, changes=changes)[0].format

    assert format("a.txt", "rdfp", changes=True) == "rdfp"
    assert format("a.txt", "ru", changes=True) == "ru"
    assert format("b.rdfp", "ru", changes=True) == "rdfp"
    assert format("b.rdfp", "nt", changes=True) == "rdfp"
    assert format("c.nt", "rdfp", changes=False) == "nt"
    with pytest.raises(InputError, match="holds changes rather than triples"):
        discover([tmp_path / "a.txt"], "rdfp")
    with pytest.raises(InputError, match=r"unknown suffix; known are \.rdfp"):
        discover([tmp_path / "a.txt"], "nt", changes=True)


def test_blank_nodes_of_patches_share_a_scope_and_those_of_updates_do_not(tmp_path: Path) -> None:
    made(tmp_path, "a.rdfp", "b.rdfp", "c.ru", "d.ru")
    a, b, c, d = discover([tmp_path], changes=True)
    assert a.scope == b.scope == SHARED_SCOPE
    assert len({a.scope, c.scope, d.scope}) == 3


def test_remote_folders_and_globs(monkeypatch: pytest.MonkeyPatch) -> None:
    """pyarrow's file system in memory stands for a cloud."""
    from inferlake.paths import place

    at = place("mock:///bucket")
    for name in ("x/a.nt", "x/b.ttl", "x/.hidden.nt", "y/c.nt"):
        at.filesystem.create_dir(f"{at.path}/{name}".rsplit("/", 1)[0], recursive=True)
        with at.filesystem.open_output_stream(f"{at.path}/{name}") as sink:
            sink.write(LINE.encode())
    monkeypatch.setattr(
        "inferlake.input.files.place",
        lambda address: type(at)(address, at.filesystem, address.removeprefix("mock:///")),
    )
    found = discover(["mock:///bucket/x"])
    assert [file.address for file in found] == ["mock:///bucket/x/a.nt", "mock:///bucket/x/b.ttl"]
    found = discover(["mock:///bucket/*/*.nt"])
    assert [file.address for file in found] == ["mock:///bucket/x/a.nt", "mock:///bucket/y/c.nt"]
    assert found[0].open().read() == LINE.encode()


@pytest.mark.parametrize(
    ("name", "by_engine"),
    [
        ("a.nt", True),
        ("a.nq.gz", True),
        ("a.nt.bz2", True),
        ("a.nt.zst", False),
        ("a.ttl", False),
        ("a{b}.nt", False),
        ("a?.nt", False),
    ],
)
def test_the_engine_splits_lines_it_can_read(name: str, by_engine: bool, tmp_path: Path) -> None:
    made(tmp_path, name)
    (found,) = discover([tmp_path / name])
    assert found.split_by_engine == by_engine


def test_the_text_of_a_compressed_file_is_larger_than_the_file() -> None:
    plain = InputFile("/a.nt", "nt", None, 100, 0)
    packed = InputFile("/a.nt.gz", "nt", "gzip", 100, 0)
    assert plain.text_size == 100 < packed.text_size


def test_the_scope_changes_with_path_size_and_time_alone() -> None:
    scope = InputFile("/a.nt", "nt", None, 10, 1).scope
    assert scope == InputFile("/a.nt", "nq", "gzip", 10, 1).scope
    others = [
        InputFile("/b.nt", "nt", None, 10, 1),
        InputFile("/a.nt", "nt", None, 11, 1),
        InputFile("/a.nt", "nt", None, 10, 2),
    ]
    assert len({scope, *(file.scope for file in others)}) == 4


def test_a_scope_has_the_form_that_the_pattern_of_terms_expects() -> None:
    for scope in (InputFile("/a.nt", "nt", None, 10, 1).scope, SHARED_SCOPE):
        assert re.fullmatch(SCOPE_PATTERN, scope)
        assert len(scope) == SCOPE_LENGTH


@pytest.mark.parametrize(
    ("suffix", "pack"),
    [
        ("", bytes),
        (".gz", gzip.compress),
        (".bz2", bz2.compress),
        (".zst", lambda data: pa.compress(data, "zstd", asbytes=True)),
    ],
)
def test_a_file_opens_decompressed(suffix: str, pack, tmp_path: Path) -> None:
    (tmp_path / f"a.nt{suffix}").write_bytes(pack(LINE.encode()))
    (found,) = discover([tmp_path / f"a.nt{suffix}"])
    with found.open() as stream:
        assert stream.readlines() == [LINE.encode()]


def test_files_that_are_not_text_are_marked_for_the_parser(tmp_path: Path) -> None:
    (tmp_path / "a.nt").write_text(LINE)
    (tmp_path / "b.nt").write_bytes(LINE.encode() + b"<a:b> \xff")
    (tmp_path / "c.ttl").write_bytes(b"\xff")
    files = discover([tmp_path])
    marked = examined(files)
    assert [file.for_parser for file in marked] == [False, True, False]
    assert [file.split_by_engine for file in marked] == [True, False, False]
    assert [file.scope for file in marked] == [file.scope for file in files]


def test_a_file_cut_short_is_told(tmp_path: Path) -> None:
    packed = gzip.compress(LINE.encode() * 1000)
    (tmp_path / "a.nt.gz").write_bytes(packed[: len(packed) // 2])
    with pytest.raises(InputError, match=r"a\.nt\.gz: cannot be read \("):
        examined(discover([tmp_path]))


def test_bzip2_is_known_by_its_first_bytes(tmp_path: Path) -> None:
    (tmp_path / "a.nt.bz2").write_text(LINE)
    with pytest.raises(InputError, match=r"a\.nt\.bz2: not bzip2 data"):
        discover([tmp_path / "a.nt.bz2"])
