"""Large arrays are checked in runs, and what a kernel leaves out or gets wrong is seen."""

from __future__ import annotations

from itertools import pairwise

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ridgepole.kernels.device import Device, Refused
from ridgepole.lab import arrays


@given(st.integers(1, 1 << 31))
def test_runs_lie_within_the_array_and_take_in_both_ends(n: int) -> None:
    found = arrays.runs(n)
    assert found[0][0] == 0 and found[-1][1] == n
    assert all(0 <= start < stop <= n for start, stop in found)
    assert all(a[1] <= b[0] for a, b in pairwise(found))
    assert sum(stop - start for start, stop in found) <= arrays.RUN * arrays.RUNS


@given(st.integers(1, arrays.RUN * arrays.RUNS))
def test_all_of_a_small_array_is_checked(n: int) -> None:
    assert sum(stop - start for start, stop in arrays.runs(n)) == n


def test_a_kernel_is_ready_with_the_arrays_own_sum(device: Device) -> None:
    shared = arrays.make(device, 5000)
    ready = arrays.ready(shared, "add_stream", (1003,), arrays.elementwise("add_stream"))
    assert ready.bytes == 60_000 and ready.error.relative < 1e-6
    numpy.testing.assert_allclose(ready.output(), shared.inputs[0] + shared.inputs[1], rtol=1e-6)


def test_a_wrong_result_is_not_timed(device: Device) -> None:
    shared = arrays.make(device, 5000, 1)
    with pytest.raises(Refused, match="wrong result in elements 0 to 5,000"):
        arrays.ready(shared, "copy", (1003,), lambda inputs, start, stop: inputs[0][start:stop] + 1.0)


def test_a_size_the_kernel_does_not_take_is_refused(device: Device) -> None:
    shared = arrays.make(device, 5000, 1)
    with pytest.raises(Refused, match="power of two"):
        arrays.ready(shared, "strided_copy", (1024, 3), arrays.elementwise("copy"), 3)
