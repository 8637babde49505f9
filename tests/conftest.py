"""What every test may ask for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SHARED = ROOT.parent / "shared"


@pytest.fixture
def shared() -> Callable[[str], Path]:
    """A file that lies beside the checkout; the test is skipped where it does not."""

    def find(name: str) -> Path:
        path = SHARED / name
        if not path.exists():
            pytest.skip(f"{name} is not beside this checkout")
        return path

    return find


@pytest.fixture(autouse=True)
def own_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Runs and machine files of a test stay its own."""
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("RIDGEPOLE_HOME", str(home))
    return home
