"""Whether a store is whole and can be changed: told before any work, by files alone."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any, cast

import pytest

from inferlake.errors import StoreError
from inferlake.session import Engine
from inferlake.store import Store
from inferlake.store.table import Commit

SAIL = Engine("sail", cast("Any", None))


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """A store with a version of its dictionary and one of its facts."""
    made = Store.at(str(tmp_path / "kb"))
    made.create()
    for table in (made.terms.table, made.facts.table):
        table.commit(table.snapshot(), Commit({"operation": "load"}))
    return made


def closed(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Forbid this user to write into one folder."""
    allowed = os.access
    monkeypatch.setattr(os, "access", lambda at, mode: at != folder and allowed(at, mode))


def test_a_whole_store_can_be_changed(store: Store, tmp_path: Path) -> None:
    store.require_changeable()
    Store.at(str(tmp_path / "new")).require_changeable()
    assert not (tmp_path / "new").exists()


def test_a_store_without_its_dictionary_cannot_be_changed(store: Store) -> None:
    shutil.rmtree(store.terms.table.place.path)
    with pytest.raises(StoreError, match=r"/kb/terms: no table there, though the rest .* restore"):
        store.require_changeable()


def test_a_store_without_its_facts_is_not_taken_for_a_new_one(store: Store) -> None:
    shutil.rmtree(store.facts.table.place.path)
    for look in (store.exists, store.require_changeable):
        with pytest.raises(StoreError, match="/kb/facts: no table there, though the rest"):
            look()


def test_an_empty_dictionary_alone_is_a_first_load_that_died(tmp_path: Path) -> None:
    store = Store.at(str(tmp_path / "kb"))
    store.terms.table.create('{"inferlake": {"format": 1}}')
    store.require_changeable()
    assert not store.exists()
    store.create()
    assert store.exists()


@pytest.mark.parametrize("name", ["", "terms", "facts/_delta_log"])
def test_a_store_that_may_not_be_written_cannot_be_changed(
    name: str, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Path(store.place.path, name)
    closed(monkeypatch, folder)
    with pytest.raises(StoreError, match=rf"{folder}: cannot be written \(.*Permission denied\)"):
        store.require_changeable()
    assert store.require().snapshot().version == 1


def test_readers_work_in_the_store_if_they_may(store: Store) -> None:
    with store.scratch(SAIL) as folder:
        assert folder.address.startswith(f"{store.place.address}/_staging/")


def test_readers_who_may_not_write_work_elsewhere(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed(monkeypatch, Path(store.place.path))
    with store.scratch(SAIL) as folder:
        assert not folder.address.startswith(store.place.address)
        made = Path(folder.path).parent
        assert made.is_dir()
    assert not made.exists()


def test_the_workers_of_a_cluster_do_not_see_a_temporary_folder(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed(monkeypatch, Path(store.place.path))
    monkeypatch.setattr(Engine, "is_here", False)
    with pytest.raises(StoreError, match="_staging: cannot be written"), store.scratch(SAIL):
        pass
