"""OpenCL's traps, each sprung on purpose: what could kill or hang the process ends in one line instead."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import time
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy
import pytest

from ridgepole.errors import BadInput, Missing
from ridgepole.kernels import probe, watchdog
from ridgepole.kernels.device import Launch, Refused, open_device
from ridgepole.kernels.opencl import host_cpu, pocl
from ridgepole.kernels.opencl.device import OpenCL
from ridgepole.kernels.prepare import prepare

FILL = "kernel void fill(global float *out, uint n) { if (get_global_id(0) < n) out[get_global_id(0)] = 1.0f; }"
OPEN = "from ridgepole.kernels.device import open_device; d = open_device('opencl'); "
PREPARE = "from ridgepole.kernels.prepare import prepare; "


@pytest.fixture(scope="module")
def device() -> OpenCL:
    try:
        opened = open_device("opencl")
    except Missing as error:
        pytest.skip(str(error))
    assert isinstance(opened, OpenCL)
    return opened


@pytest.fixture
def on_pocl(device: OpenCL) -> OpenCL:
    if not device.driver.startswith("PoCL"):
        pytest.skip("a trap of PoCL, and this is another OpenCL")
    return device


def child(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """`code` in a process of its own, with its errors printed as the command line prints them."""
    guarded = f"import sys\nfrom ridgepole.errors import RidgepoleError\ntry:\n    {code}\n" + (
        "except RidgepoleError as error:\n    print(error, file=sys.stderr); sys.exit(error.exit_code)\n"
    )
    return subprocess.run(
        [sys.executable, "-W", "error::UserWarning", "-c", guarded],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
    )


def one_line(done: subprocess.CompletedProcess[str]) -> str:
    said = done.stderr.strip()
    assert said and "\n" not in said, said
    return said


def test_the_device_says_what_it_is(device: OpenCL) -> None:
    assert device.limits.sms >= 1 and device.limits.shared_per_block >= 16 << 10
    assert device.name and device.driver
    with pytest.raises(BadInput, match="no opencl:99"):
        open_device("opencl:99")


@pytest.mark.parametrize(
    ("platform", "said"),
    [
        ("OpenCL 3.0 PoCL 3.0-rc2  Linux, Release, RELOC, LLVM 14.0.6, SLEEF", "PoCL 3.0-rc2 (LLVM 14.0.6)"),
        ("OpenCL 3.0 PoCL 5.0  Linux, Release", "PoCL 5.0"),
        ("OpenCL 1.2", "PoCL of unknown version"),
    ],
)
def test_the_driver_is_called_by_its_versions(platform: str, said: str) -> None:
    assert pocl.version(platform) == said


def test_without_ld_the_user_hears_what_to_install(on_pocl: OpenCL) -> None:
    done = child(OPEN, PATH="")
    assert done.returncode == Missing.exit_code
    assert "install binutils" in one_line(done)


def test_a_home_that_cannot_be_written_stops_nothing(on_pocl: OpenCL) -> None:
    """/dev/null is no folder for anyone, root included."""
    environment = {"HOME": "/dev/null", "XDG_CACHE_HOME": "/dev/null", "POCL_CACHE_DIR": "/dev/null"}
    code = f"import os; {OPEN}{PREPARE}prepare(d, 'add', 100); print(os.environ['POCL_CACHE_DIR'])"
    done = child(code, **environment)
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    assert not Path(done.stdout.strip()).exists(), "the folder ends with the process"


def test_a_kernel_that_never_ends_ends_the_process_with_its_name_and_what_was_saved(device: OpenCL) -> None:
    code = (
        f"from ridgepole.kernels import watchdog; {OPEN}{PREPARE}\n"
        "    with watchdog.saving(lambda: print('rows kept', flush=True)):\n"
        "        prepare(d, 'spin', 512, 4_000_000_000)"
    )
    done = child(code, RIDGEPOLE_KERNEL_TIMEOUT="0.5")
    assert done.returncode == 3
    assert "kernel spin on " in one_line(done) and "within 0.5 s" in done.stderr
    assert done.stdout == "rows kept\n"


def test_what_fails_to_save_keeps_nothing_else_from_being_saved() -> None:
    code = (
        "import time; from ridgepole.kernels import watchdog\n"
        "    with watchdog.saving(lambda: 1 / 0), watchdog.saving(lambda: print('saved', flush=True)):\n"
        "        with watchdog.waiting('a thing', 0.1): time.sleep(20)"
    )
    done = child(code)
    assert (done.returncode, done.stdout) == (3, "saved\n")
    assert "a thing did not finish within 0.1 s" in one_line(done)


def test_a_wait_that_ends_in_time_is_forgotten() -> None:
    with watchdog.waiting("the outer", 0.2), watchdog.waiting("the inner", 0.1):
        pass
    time.sleep(2 * watchdog.POLL)
    assert not watchdog._waits


@pytest.mark.parametrize("said", ["soon", "0", "-1", "nan"])
def test_a_timeout_that_is_no_time_is_refused(said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(watchdog.VARIABLE, said)
    with pytest.raises(BadInput, match="seconds above 0"):
        watchdog.limit()


def test_waiting_costs_next_to_nothing() -> None:
    start = time.perf_counter()
    for _ in range(1000):
        with watchdog.waiting("nothing"):
            pass
    assert time.perf_counter() - start < 0.1, "under 100 us each, on the most crowded machine"


def test_a_compile_error_is_one_line_with_its_place(device: OpenCL, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(Refused) as caught:
        device.compile("kernel void f(global float *out) {\n    out[0] = missing;\n}", "f", {})
    said = str(caught.value)
    assert said.startswith("f does not compile for ") and "line 2: " in said and "missing" in said
    assert "\n" not in said
    assert capfd.readouterr().err == ""


def test_what_a_program_prints_is_not_lost_while_the_compiler_is_quiet(capfd: pytest.CaptureFixture[str]) -> None:
    with pocl.quiet():
        os.write(2, b"2 warnings and 1 error generated.\nsomething else\n1 error generated.\n")
    assert capfd.readouterr().err == "something else\n"


def test_an_entry_that_is_not_there_is_named(device: OpenCL) -> None:
    with pytest.raises(Refused, match="other does not compile"):
        device.compile(FILL, "other", {})


def test_a_compiler_that_only_warns_is_not_heard(device: OpenCL, capfd: pytest.CaptureFixture[str]) -> None:
    text = f"#warning an opinion {time.time_ns()}\n{FILL}"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        program = device.compile(text, "fill", {})
        for _ in range(3):
            buffer = device.upload(numpy.zeros(8, "float32"))
            device.bind(program, Launch((1, 1, 1), (8, 1, 1)), (buffer,), (8,))()
        device.synchronize()
    assert capfd.readouterr().err == ""


def test_local_memory_past_the_limit_is_refused_before_it_kills(device: OpenCL) -> None:
    most = device.limits.shared_per_block
    with pytest.raises(Refused, match=f"{most + 4:,} B of local memory"):
        prepare(device, "shared_probe", 1024, 2, defines={"BYTES": most + 4})
    made = prepare(device, "shared_probe", 1024, 2, defines={"BYTES": 4096})
    assert made.program.shared == 4096


def test_the_probe_finds_the_limit_in_processes_of_its_own(device: OpenCL) -> None:
    most = device.limits.shared_per_block
    fits, over = probe.largest_shared("opencl", (16 << 10, 2 * most))
    assert fits == (16 << 10, True, "accepted")
    assert over[:2] == (2 * most, False) and over[2].startswith("refused: ") and "local memory" in over[2]


def test_the_probe_tells_a_killed_process_from_a_refusal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shell = tmp_path / "python"
    shell.write_text("#!/bin/sh\nkill -SEGV $$\n")
    shell.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(shell))
    assert probe.largest_shared("opencl", (4096,)) == ((4096, False, "killed the process (SIGSEGV)"),)
    shell.write_text("#!/bin/sh\nexec sleep 20\n")
    assert probe.largest_shared("opencl", (4096,), timeout=0.2) == ((4096, False, "did not finish within 0.2 s"),)


def test_a_size_that_cannot_be_probed_is_refused() -> None:
    with pytest.raises(BadInput, match="multiple of 4"):
        probe.largest_shared("opencl", (4096, 4098))


def test_a_block_of_too_many_threads_is_refused(device: OpenCL) -> None:
    program = device.compile(FILL, "fill", {})
    buffer = device.upload(numpy.zeros(8, "float32"))
    threads = device.limits.threads_per_block * 2
    with pytest.raises(Refused, match=f"{threads:,} threads a block"):
        device.bind(program, Launch((1, 1, 1), (threads, 1, 1)), (buffer,), (8,))
    with pytest.raises(Refused, match="empty"):
        device.bind(program, Launch((0, 1, 1), (8, 1, 1)), (buffer,), (8,))


def test_a_launch_with_too_few_arguments_is_refused(device: OpenCL) -> None:
    program = device.compile(FILL, "fill", {})
    with pytest.raises(Refused, match="fill"):
        device.bind(program, Launch((1, 1, 1), (8, 1, 1)), (), (8,))()


def test_more_memory_than_there_is_is_refused_in_one_line(on_pocl: OpenCL) -> None:
    done = child(f"{OPEN}import numpy; d.upload(numpy.empty(1 << 27, 'float32'))", POCL_MEMORY_LIMIT="1")
    assert done.returncode == BadInput.exit_code
    assert "536,870,912 B" in one_line(done)


def test_many_buffers_are_counted_against_the_device_and_forgotten_with_it(on_pocl: OpenCL) -> None:
    """1 GiB in buffers of 192 MiB: the sixth is refused, and has room again once another is let go."""
    code = (
        "import numpy; a = numpy.zeros(48 << 20, 'float32'); held = [d.upload(a) for _ in range(5)]\n"
        "    try: d.upload(a)\n"
        "    except RidgepoleError as error: print(error)\n"
        "    held.pop(); held.append(d.upload(a)); print('room again')"
    )
    done = child(OPEN + code, POCL_MEMORY_LIMIT="1")
    assert done.returncode == 0, done.stderr
    refused, again = done.stdout.splitlines()
    assert "has no room for 201,326,592 B more" in refused and again == "room again"


def test_buffers_of_a_queued_launch_live_without_their_names(device: OpenCL) -> None:
    program = device.compile(FILL, "fill", {})
    calls = [
        device.bind(
            program, Launch((4096, 1, 1), (256, 1, 1)), (device.upload(numpy.zeros(1 << 20, "float32")),), (1 << 20,)
        )
        for _ in range(8)
    ]
    gc.collect()
    for call in calls:
        call()
    device.synchronize()
    held = calls[-1].held[0]  # type: ignore[attr-defined]
    assert (device.download(held, "float32", 1 << 20) == 1.0).all()


def test_an_empty_array_can_be_uploaded(device: OpenCL) -> None:
    held = device.upload(numpy.zeros(0, "float32"))
    assert held.nbytes == 0 and device.download(held, "float32", 0).size == 0


def test_more_calls_take_longer(device: OpenCL) -> None:
    made = prepare(device, "matmul_tiled16", 128, 128, 128)
    few, many = (min(device.elapsed(made.run, count) for _ in range(5)) for count in (2, 40))
    assert 0 < few < many


def test_an_unknown_cpu_gets_the_best_name_its_flags_allow() -> None:
    wide = {"avx512f", "avx512bw", "avx512dq", "avx512cd", "avx512vl", "adx", "clwb"}
    middle = {"avx2", "fma", "bmi1", "bmi2", "f16c", "movbe"}
    assert host_cpu.known_name(wide | middle) == "skylake-avx512"
    assert host_cpu.known_name((wide | middle) - {"avx512vl"}) == "haswell"
    assert host_cpu.known_name(middle - {"fma"}) == "x86-64"
    assert host_cpu.known_name(set()) == "x86-64"


def test_a_cpu_that_pocl_knows_keeps_its_name() -> None:
    """An address that would kill the process if it were read."""
    known = SimpleNamespace(int_ptr=8, version="OpenCL 3.0 PoCL HSTR: pthread-x86_64-pc-linux-gnu-skylake-avx512")
    assert host_cpu.name_it(known) is None


def test_memory_that_is_not_there_is_not_read() -> None:
    assert host_cpu.name_it(SimpleNamespace(int_ptr=8, version="pthread-x86_64-unknown-linux-gnu-generic")) is None


def test_opening_the_device_again_finds_it_as_it_was_left(device: OpenCL) -> None:
    again = open_device("opencl")
    assert again.name == device.name
    assert prepare(again, "add", 100).error.relative < 1e-6
