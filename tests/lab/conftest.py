"""One open device for the whole room: OpenCL on the CPU. Without it nothing here can be tried."""

from __future__ import annotations

from pathlib import Path

import pytest

from ridgepole.errors import Missing
from ridgepole.kernels.device import Device, open_device
from ridgepole.lab.bench import Bench


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
