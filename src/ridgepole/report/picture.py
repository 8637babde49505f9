"""A Picture drawn by matplotlib, which is loaded only here and only when asked for: SVG, PNG or PDF by the ending."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from ridgepole import units
from ridgepole.errors import BadInput, Missing
from ridgepole.lab.experiment import Axis, Picture

ENDINGS = (".svg", ".png", ".pdf")
SIZE = (8.0, 4.5)
"""Inches."""
INK = ("#1f5fa8", "#c8501e", "#2f7d4f", "#7b4fa3", "#8a6d1a", "#3d8f99", "#a8324a", "#555555")


def check() -> None:
    """Raises Missing without matplotlib."""
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError as error:
        raise Missing(f"a picture needs matplotlib ({error}): pip install 'ridgepole[lab]'") from None


def draw(picture: Picture, path: Path) -> None:
    """Write `picture` to `path`. Raises Missing without matplotlib, BadInput where the file cannot be written."""
    check()
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    # The same picture gives the same bytes: no date, no random identifiers.
    with rc_context({"svg.hashsalt": "ridgepole", "svg.fonttype": "none", "font.size": 10}):
        figure = Figure(figsize=SIZE, layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.add_subplot()
        _axes(axes, picture)
        metadata = {"Date": None} if path.suffix.lower() == ".svg" else None
        try:
            figure.savefig(path, metadata=metadata)
        except OSError as error:
            raise BadInput(f"{path} cannot be written: {error.strerror}") from None


def _axes(axes: Any, picture: Picture) -> None:
    bars = [series for series in picture.series if series.style == "bars"]
    for index, series in enumerate(picture.series):
        ink = INK[index % len(INK)]
        if series.style == "bars":
            _bars(axes, series, bars.index(series), len(bars), ink)
        elif series.style == "points":
            axes.plot(series.x, series.y, "o", color=ink, label=series.label, markersize=5)
        elif series.style == "steps":
            axes.step(series.x, series.y, where="post", color=ink, label=series.label)
        else:
            axes.plot(series.x, series.y, "-", color=ink, label=series.label)
        for name, x, y in zip(series.names, series.x, series.y, strict=False):
            axes.annotate(name, (x, y), xytext=(4, -3), textcoords="offset points", fontsize=7, color=ink, va="top")
    for name, x in picture.marks:
        axes.axvline(x, color="#999999", linewidth=0.8, linestyle="--")
        axes.annotate(name, (x, 1.0), xycoords=("data", "axes fraction"), fontsize=8, color="#666666",
                      rotation=90, va="top", ha="right")  # fmt: skip
    axes.set_title(picture.title, loc="left")
    for scale, axis, label in (
        (axes.set_xscale, axes.xaxis, axes.set_xlabel),
        (axes.set_yscale, axes.yaxis, axes.set_ylabel),
    ):
        of = picture.x if axis is axes.xaxis else picture.y
        _axis(scale, axis, label, of)
    if not picture.y.log and all(value >= 0 for series in picture.series for value in series.y):
        axes.set_ylim(bottom=0)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(True, axis="y", color="#e5e5e5", linewidth=0.7)
    axes.set_axisbelow(True)
    if len(picture.series) > 1:
        # Under the plot: over it, a legend hides bars.
        axes.figure.legend(loc="outside lower center", ncols=4, frameon=False, fontsize=9)


def _bars(axes: Any, series: Any, index: int, many: int, ink: str) -> None:
    wide = 0.8 / many
    places = [i + (index - (many - 1) / 2) * wide for i in range(len(series.x))]
    axes.bar(places, series.y, wide, color=ink, label=series.label)
    axes.set_xticks(range(len(series.x)), [str(name) for name in series.x], rotation=20, ha="right")


def _axis(scale: Callable[..., object], axis: Any, label: Callable[..., object], of: Axis) -> None:
    from matplotlib.ticker import FuncFormatter

    if of.log:
        scale("log", base=of.log)
    write = _WRITE.get(of.unit)
    if write is not None:
        axis.set_major_formatter(FuncFormatter(lambda value, _: write(value)))
    if of.label:
        label(of.label)


_WRITE: dict[str, Callable[[float], str]] = {
    "s": units.seconds,
    "B": units.nbytes,
    "B/s": units.rate_bytes,
    "FLOP/s": units.rate_flops,
    "Hz": units.hertz,
    "share": units.percent,
    "cycles": lambda value: f"{value:,.0f}",
    "count": lambda value: f"{value:,.0f}",
    "FLOP/B": lambda value: f"{value:g}",
    "ratio": lambda value: f"{value:g}x",
}
