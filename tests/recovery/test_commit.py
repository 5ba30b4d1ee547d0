"""A commit that was written counts, whatever is said of it afterwards."""

from __future__ import annotations

from pathlib import Path

import pytest
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError

from inferlake.errors import StoreError
from inferlake.kb import KnowledgeBase

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
    from inferlake.store import table

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
