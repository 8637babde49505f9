"""Every kernel on a real NVIDIA GPU against float64, and the driver's word on what fits. Skipped without one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ridgepole.errors import Missing
from ridgepole.kernels.cuda.device import CUDA
from ridgepole.kernels.device import Refused, open_device
from ridgepole.kernels.kernel import Kernel, kernels
from ridgepole.kernels.prepare import prepare
from ridgepole.machine import detect
from ridgepole.machine.geometry import occupancy

SIZES: dict[str, tuple[tuple[int, ...], ...]] = {
    "strided_copy": ((1, 1), (1 << 16, 33), (1 << 20, 1025)),
    "matmul": ((1, 1, 1), (65, 63, 257), (100, 7, 33), (256, 256, 256)),
    "chase": ((1024, 32, 1000), (4096, 1, 5000)),
    "chase_registers": ((1,), (12_345,)),
    "shared_probe": ((128, 4), (58_112, 8)),
    "empty": ((),),
    "spin": ((1, 1), (1000, 100)),
    "attention": ((1, 1), (2, 100), (3, 257)),
    "hungry": ((128,), (128 * 777,)),
}
PLAIN = ((1,), (63,), (1000,), (1 << 20,))


def sizes(kernel: Kernel) -> tuple[tuple[int, ...], ...]:
    stem = kernel.name.split("_")[0].rstrip("0123456789")
    return SIZES.get(kernel.name) or SIZES.get(stem) or PLAIN


@pytest.fixture(scope="module")
def device() -> Iterator[CUDA]:
    try:
        found = open_device("cuda")
    except Missing as error:
        pytest.skip(str(error))
    assert isinstance(found, CUDA)
    yield found


@pytest.mark.parametrize("name", sorted(kernels.all()))
def test_it_gives_the_float64_result(name: str, device: CUDA) -> None:
    for each in sizes(kernels.all()[name]):
        assert prepare(device, name, *each).error.relative <= kernels.all()[name].tolerance


@pytest.mark.parametrize("name", sorted(kernels.all()))
def test_blocks_on_an_sm_are_as_the_driver_counts(name: str, device: CUDA) -> None:
    ready = prepare(device, name, *sizes(kernels.all()[name])[-1])
    shared = (ready.program.shared or 0) + ready.launch.shared
    mine = occupancy(detect.local(), ready.launch.threads, ready.program.registers or 1, shared)
    assert mine.blocks == device.occupancy(ready.program, ready.launch.threads, ready.launch.shared)


def test_a_graph_replays_what_was_queued(device: CUDA) -> None:
    ready = prepare(device, "add", 1 << 16)
    replay = device.graph(ready.run, 3)
    assert replay is not None
    replay()
    device.synchronize()
    assert ready.output().shape == (1 << 16,)


def test_more_shared_memory_than_there_is_is_refused(device: CUDA) -> None:
    with pytest.raises(Refused, match="shared memory a block"):
        prepare(device, "shared_probe", device.limits.shared_per_block // 4 + 1, 4)


def test_no_room_is_one_line(device: CUDA) -> None:
    import numpy

    class Huge:
        nbytes = device.limits.memory * 2

    with pytest.raises(Refused, match="has no room for"):
        device.upload(Huge())
    assert device.upload(numpy.zeros(4, "float32")).nbytes == 16
