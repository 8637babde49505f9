"""One open device for the whole room: OpenCL on the CPU. Without it nothing here can be tried."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ridgepole.errors import Missing
from ridgepole.kernels.device import Device, open_device
from ridgepole.lab.bench import Bench
from ridgepole.lab.conduct import conduct_at, find
from ridgepole.lab.experiment import Result


@pytest.fixture(scope="session")
def device() -> Device:
    try:
        return open_device("cpu")
    except Missing as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def bench(device: Device, tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """A quick bench, whose CPU is measured once for all."""
    home: Path = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RIDGEPOLE_HOME", str(home))
        made = Bench(device, quick=True)
        assert made.machine is not None
    return made


@pytest.fixture(scope="session")
def results() -> dict[str, Result]:
    """What was conducted so far, by name: each experiment runs once for all that is asked of it."""
    return {}


@pytest.fixture(scope="session")
def conducted(bench: Bench, results: dict[str, Result]) -> Callable[[str], Result]:
    """The result of the experiment of a name, on the quick bench."""

    def result(name: str) -> Result:
        if name not in results:
            results[name] = conduct_at(bench, find(name))
        return results[name]

    return result
