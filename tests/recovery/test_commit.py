"""A commit that was written counts, whatever is said of it afterwards."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError

from inferlake.errors import StoreError
from inferlake.kb import KnowledgeBase
from inferlake.store import table

LINE = "<http://example.org/a> <http://example.org/p> <http://example.org/b> .\n"


@pytest.fixture
def loaded(tmp_path: Path) -> KnowledgeBase:
    kb = KnowledgeBase(tmp_path / "kb", engine="sail")
    (tmp_path / "one.nt").write_text(LINE)
    kb.load(tmp_path / "one.nt")
    return kb


def test_an_answer_that_is_lost_does_not_undo_the_commit(
    loaded: KnowledgeBase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = DeltaTable.create_write_transaction

    def lost(*arguments, **options) -> None:
        written(*arguments, **options)
        raise CommitFailedError("the answer got lost")

    monkeypatch.setattr(DeltaTable, "create_write_transaction", lost)
    (tmp_path / "two.nt").write_text(LINE.replace("/b>", "/c>"))
    report = loaded.load(tmp_path / "two.nt", transaction=("app", 1))
    assert (report.version, report.added, report.repeated) == (2, 1, False)
    assert loaded.facts().count() == 2


@pytest.mark.parametrize("later", [1, 3])
def test_nor_if_others_commit_before_that_is_known(
    loaded: KnowledgeBase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, later: int
) -> None:
    written = DeltaTable.create_write_transaction
    other = KnowledgeBase(loaded.path, engine="sail")

    def lost(table: DeltaTable, *arguments, **options) -> None:
        written(table, *arguments, **options)
        monkeypatch.undo()
        for number in range(later):
            (tmp_path / "other.nt").write_text(LINE.replace("/b>", f"/b{number}>"))
            other.load(tmp_path / "other.nt")
        raise CommitFailedError("the answer got lost")

    # All its terms are there: so the facts are the first to be committed.
    (tmp_path / "two.nt").write_text(LINE.replace("/b>", "/p>"))
    monkeypatch.setattr(DeltaTable, "create_write_transaction", lost)
    # As another process would: what one process knows of the log, its threads share.
    monkeypatch.setattr(table, "_FOLLOWING", nullcontext())
    report = loaded.load(tmp_path / "two.nt", transaction=("app", 1))
    assert (report.version, report.added, report.repeated) == (2, 1, False)
    assert (loaded.version, loaded.facts().count()) == (2 + later, 2 + later)


def test_what_commits_said_is_told_of_the_right_version(
    loaded: KnowledgeBase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """deltalake numbers commits down from the version it knows, and lists later ones, too."""
    listed = DeltaTable.history
    other = KnowledgeBase(loaded.path, engine="sail")
    snapshot = loaded._snapshot()

    def outrun(known: DeltaTable, most: int | None = None) -> list[dict]:
        monkeypatch.undo()
        other.change_rules(add="owl-horst", remove="rdfs")
        return listed(known, most)

    monkeypatch.setattr(DeltaTable, "history", outrun)
    monkeypatch.setattr(table, "_FOLLOWING", nullcontext())
    facts = loaded._store.facts.table
    fresh = DeltaTable(f"{loaded.path}/facts")
    monkeypatch.setattr(table.Table, "_newest", lambda _: replace(snapshot, _table=fresh))
    assert facts.history(1)[0]["version"] == 2
    assert [one.version for one in loaded.history()] == [2, 1, 0]


def test_what_may_be_committed_is_not_deleted(
    loaded: KnowledgeBase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The entry is there, but nobody can tell whose it is: for a moment the log is unreadable."""
    written = DeltaTable.create_write_transaction

    def unreadable(*_) -> None:
        raise CommitFailedError("not now")

    def lost(*arguments, **options) -> None:
        written(*arguments, **options)
        moment.setattr(DeltaTable, "history", unreadable)
        raise CommitFailedError("the answer got lost")

    # All its terms are there: so the facts are the first to be committed.
    (tmp_path / "two.nt").write_text(LINE.replace("/b>", "/p>"))
    with (
        monkeypatch.context() as moment,
        pytest.raises(StoreError, match="cannot be read: not now"),
    ):
        moment.setattr(DeltaTable, "create_write_transaction", lost)
        loaded.load(tmp_path / "two.nt")
    assert (loaded.version, loaded.facts().count()) == (2, 2)


def test_a_commit_that_was_not_written_changes_nothing(
    loaded: KnowledgeBase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*arguments, **options) -> None:
        raise CommitFailedError("the disk said no")

    monkeypatch.setattr(DeltaTable, "create_write_transaction", refused)
    (tmp_path / "two.nt").write_text(LINE.replace("/b>", "/c>"))
    with pytest.raises(StoreError, match="the commit failed: the disk said no"):
        loaded.load(tmp_path / "two.nt")
    assert (loaded.version, loaded.facts().count()) == (1, 1)


def test_neither_a_checkpoint_nor_clean_up_can_fail_a_load(
    loaded: KnowledgeBase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from inferlake.paths import Place

    def fails(*_) -> None:
        raise OSError("no")

    monkeypatch.setattr(table, "_CHECKPOINT_EVERY", 1)
    monkeypatch.setattr(DeltaTable, "create_checkpoint", fails)
    monkeypatch.setattr(Place, "remove", fails)
    (tmp_path / "two.nt").write_text(LINE.replace("/b>", "/c>"))
    assert loaded.load(tmp_path / "two.nt").version == 2
    assert loaded.facts().count() == 2


def test_the_log_keeps_versions_until_our_own_vacuum(loaded: KnowledgeBase) -> None:
    for name in ("facts", "terms"):
        kept = DeltaTable(f"{loaded.path}/{name}").metadata().configuration
        assert kept["delta.enableExpiredLogCleanup"] == "false"
        assert kept["delta.deletedFileRetentionDuration"] == "interval 36500 days"
