"""Runs are kept whole, numbered, and never lost to each other."""

from __future__ import annotations

import gzip
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ridgepole import session
from ridgepole.errors import BadInput
from tests.report import made


def test_a_saved_run_comes_back_equal() -> None:
    run = made.run()
    number = session.save(run)
    assert session.load(str(number)) == run
    assert session.load("last") == run


def test_runs_count_up() -> None:
    assert [session.save(made.run()) for _ in range(3)] == [1, 2, 3]


def test_tools_saving_at_once_never_share_a_number() -> None:
    with ThreadPoolExecutor(8) as pool:
        numbers = list(pool.map(lambda _: session.save(made.run()), range(24)))
    assert sorted(numbers) == list(range(1, 25))


def test_a_run_that_is_not_there_says_which_are() -> None:
    session.save(made.run())
    with pytest.raises(BadInput, match="only run 1 is saved"):
        session.load("7")


@pytest.mark.parametrize("content", [b"", b"not gzip", gzip.compress(b"{}"), gzip.compress(b'{"of": "run", "run": 3}')])
def test_a_damaged_run_is_one_clear_line(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "1.json.gz"
    path.write_bytes(content)
    with pytest.raises(BadInput, match="not a run that this version can read"):
        session.load(str(path))
