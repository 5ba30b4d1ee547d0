"""Which damage to Spark's checkpoint is mended, and which is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from inferlake.errors import InputError
from inferlake.paths import place
from inferlake.stream.mend import last_commit, mend

_PLAN = 'v1\n{"batchWatermarkMs":0}\n{"logOffset":0}'
_DONE = 'v1\n{"nextBatchWatermarkMs":0}'


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """Two batches are done, and a third one is planned."""
    for name in ("offsets", "commits", "sources/0"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "metadata").write_text('{"id":"x"}')
    for n in range(3):
        (tmp_path / "offsets" / str(n)).write_text(_PLAN)
        (tmp_path / "sources" / "0" / str(n)).write_text('v1\n{"path":"file:///a"}')
    for n in range(2):
        (tmp_path / "commits" / str(n)).write_text(_DONE)
    return tmp_path


def test_what_is_whole_stays(checkpoint: Path):
    assert not mend(place(checkpoint), 1)
    assert last_commit(place(checkpoint)) == 1
    assert not mend(place(checkpoint / "absent"), None)


def test_the_plan_of_a_batch_that_was_not_begun(checkpoint: Path):
    (checkpoint / "offsets" / "2").write_text(_PLAN[:-5])
    (checkpoint / "offsets" / ".2.crc").touch()
    assert mend(place(checkpoint), 1)
    assert sorted(p.name for p in (checkpoint / "offsets").iterdir()) == ["0", "1"]


def test_a_list_of_files_that_no_plan_has(checkpoint: Path):
    """Spark lists the files of a batch before it plans it."""
    log = checkpoint / "sources" / "0"
    (log / "3").write_text("")
    (log / ".3.crc").touch()
    (log / "2.compact").write_text('v1\n{"path":"file:///a"}')
    assert mend(place(checkpoint), 1)
    assert sorted(p.name for p in log.iterdir()) == ["0", "1", "2", "2.compact"]
    assert not mend(place(checkpoint), 1)


@pytest.mark.parametrize(("entry", "planned"), [("3", 3), ("3", 4), ("2", 2), ("4.compact", 2)])
def test_a_list_of_files_that_a_plan_has_is_beyond_mending(
    checkpoint: Path, entry: str, planned: int
):
    log = checkpoint / "sources" / "0"
    (log / "3").write_text('v1\n{"path":"file:///a"}')
    (log / entry).write_text("")
    plan = _PLAN.replace('"logOffset":0', f'"logOffset":{planned}')
    (checkpoint / "offsets" / "2").write_text(plan)
    with pytest.raises(InputError, match=f"sources/0/{entry}: damaged"):
        mend(place(checkpoint), 1)


def test_a_commit_that_the_knowledge_base_has(checkpoint: Path):
    (checkpoint / "commits" / "1").write_text("")
    assert mend(place(checkpoint), 1)
    assert last_commit(place(checkpoint)) == 0


@pytest.mark.parametrize(
    ("file", "applied"),
    [("offsets/2", 2), ("offsets/1", 1), ("commits/1", 0), ("commits/0", 1), ("sources/0/1", 1)],
)
def test_damage_that_no_crash_explains(checkpoint: Path, file: str, applied: int):
    (checkpoint / file).write_text("")
    with pytest.raises(InputError, match=f"{file}: damaged"):
        mend(place(checkpoint), applied)
