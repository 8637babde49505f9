"""Files, functions and models of the user's own as targets."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from ridgepole.errors import BadInput  # noqa: E402
from ridgepole.work import target  # noqa: E402
from ridgepole.work.op import Program  # noqa: E402

PROGRAM = """
import torch
from torch import nn
import neighbour

device = "cuda" if torch.cuda.is_available() else "cpu"
assert device == "cuda"
model = nn.Sequential(nn.Linear(1 << 15, 1 << 15), nn.ReLU()).to(device).bfloat16()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 4)

    def forward(self, x):
        return self.layer(x)


class NeedsWidth(nn.Module):
    def __init__(self, width):
        super().__init__()


def step():
    print("stepping")
    x = torch.randn(4, 1 << 15, dtype=torch.bfloat16, device=device)
    model(x).sum().backward()
    optimizer.step()


def scaled(x, by=2):
    return neighbour.double(x) * by


def broken(x):
    y = x.reshape(7)
    return y


number = 5
"""


@pytest.fixture
def program(tmp_path: Path) -> Iterator[str]:
    (tmp_path / "user_program.py").write_text(PROGRAM)
    (tmp_path / "neighbour.py").write_text("def double(x):\n    return x + x\n")
    yield str(tmp_path / "user_program.py")
    sys.modules.pop("neighbour", None)
    sys.modules.pop("user_program", None)
    while str(tmp_path) in sys.path:
        sys.path.remove(str(tmp_path))


def names(program: Program) -> list[str]:
    return [op.operator for op in program.ops]


def test_a_function_of_a_file_is_captured_with_the_file_s_own_models(
    program: str, capsys: pytest.CaptureFixture[str]
) -> None:
    captured = target.load(f"{program}:step").capture()
    assert captured.name == "user_program.py:step"
    assert captured.parameters == (2**30 + 2**15) * 2
    assert captured.ops[-1].where.phase == "optimizer"
    assert captured.ops[1].where.source.startswith("user_program.py:")
    out = capsys.readouterr()
    assert out.out == ""
    assert "stepping" in out.err


def test_a_function_s_parameters_come_from_the_inputs(program: str) -> None:
    captured = target.load(f"{program}:scaled", ["x=8:f32", "by=3"]).capture()
    assert names(captured) == ["aten::add", "aten::mul"]
    assert captured.ops[1].call.args[1] == 3


@pytest.mark.parametrize("name", ["Net", "model"])
def test_a_model_or_its_class_is_a_target(program: str, name: str) -> None:
    x = "x=2x8:f32" if name == "Net" else "input=2x32768:bf16"
    assert "aten::addmm" in names(target.load(f"{program}:{name}", [x]).capture())


def test_a_function_of_a_module_is_a_target(program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(program).parent)
    monkeypatch.syspath_prepend(str(Path(program).parent))
    assert names(target.load("neighbour:double", ["x=8:f32"]).capture()) == ["aten::add"]


@pytest.mark.parametrize(
    ("suffix", "inputs", "said"),
    [
        (":nothing", [], "has no nothing: it has model, Net"),
        (":scaled", [], "needs x: give -i x="),
        (":scaled", ["x=8:f32", "z=1"], "has no parameter z: it takes by, x"),
        (":broken", ["x=8:f32"], "RuntimeError"),
        (":number", [], "is int, not a function or a model"),
        (":NeedsWidth", [], "cannot be built without arguments"),
        ("", [], "name the function too"),
    ],
)
def test_what_is_wrong_with_a_target_is_one_line(program: str, suffix: str, inputs: list[str], said: str) -> None:
    with pytest.raises(BadInput) as caught:
        target.load(program + suffix, inputs).capture()
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_error_names_the_line_of_the_user_s_file(program: str) -> None:
    line = PROGRAM.splitlines().index("    y = x.reshape(7)") + 1
    with pytest.raises(BadInput, match=f"at user_program.py:{line}$"):
        target.load(f"{program}:broken", ["x=8:f32"]).capture()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("nowhere.py:step", "there is no file nowhere.py"),
        ("nowhere.json", "there is no file nowhere.json"),
        ("no_such_module_here:step", "there is no module no_such_module_here here"),
        ("trace.json.gz", "cannot be priced"),
    ],
)
def test_a_target_that_is_not_there_is_told(text: str, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        target.load(text).capture()


def test_a_file_with_a_syntax_error_is_told_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "wrong.py"
    path.write_text("x = 1\ndef f(:\n")
    with pytest.raises(BadInput, match=r"wrong\.py, line 2"):
        target.load(f"{path}:f").capture()


@pytest.mark.parametrize("options", [{"batch": 0}, {"context": -1}, {"step": "infer"}])
def test_options_out_of_range_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(BadInput):
        target.load("x", ["x=4:f32"], **options)  # type: ignore[arg-type]


def test_a_step_is_for_a_config(program: str) -> None:
    with pytest.raises(BadInput, match="--step is for a Hugging Face config"):
        target.load(f"{program}:step", step="decode")


def test_a_lambda_in_an_expression_is_no_module() -> None:
    assert names(target.load("(lambda y: y + 1)(x)", ["x=4:f32"]).capture()) == ["aten::add"]
