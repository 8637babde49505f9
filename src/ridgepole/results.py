"""What Python users hold: a run or a price, with what people do to it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from ridgepole.errors import BadInput, Missing
from ridgepole.session import PriceRun, Run


class Explained:
    """A run with what people do to it: print it, write it, put it in a table or a notebook.

    It is empty until the block it explains has ended.
    """

    def __init__(self, run: Run | None = None) -> None:
        self._run = run

    @property
    def run(self) -> Run:
        """The run's data. Raises BadInput while there is none."""
        if self._run is None:
            raise BadInput("nothing is explained yet: leave the `with rp.why()` block (or call the function) first")
        return self._run

    def records(self) -> list[dict[str, Any]]:
        """One plain record an operator, as in the JSON's `ops`."""
        from ridgepole.report import jsondoc

        return cast("list[dict[str, Any]]", jsondoc.document(self.run)["ops"])

    def to_pandas(self) -> Any:
        """The records as a pandas DataFrame. Raises Missing without pandas."""
        return _frame(self.records())

    def save(self) -> int:
        """Keep the run; returns its number for `ridgepole show`."""
        from ridgepole import session

        return session.save(self.run)

    def write(self, path: str | Path) -> None:
        """Write a report; the format is the ending: .html .json .csv .md .trace.json .txt."""
        from ridgepole.report import render

        render.write(self.run, Path(path))

    def __repr__(self) -> str:
        from ridgepole.report import words

        return f"<Explained: {words.verdict(self._run)}>" if self._run is not None else "<Explained: nothing yet>"

    def __str__(self) -> str:
        from ridgepole.report import text

        return text.render(self.run) if self._run is not None else "nothing is explained yet"

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        from ridgepole.report import notebook

        return notebook.mimebundle(self.run) if self._run is not None else {"text/plain": str(self)}


class Price:
    """Prices with what people do to them."""

    def __init__(self, run: PriceRun) -> None:
        self.run = run

    @property
    def seconds(self) -> float:
        """Predicted wall of the first machine and mode, in seconds."""
        return self.run.prices[0].seconds

    def __repr__(self) -> str:
        from ridgepole import units

        said = ", ".join(f"{p.machine} {p.mode} {units.seconds(p.seconds)}" for p in self.run.prices)
        return f"<Price: {said}>"

    def records(self) -> list[dict[str, Any]]:
        """One plain record a machine and mode, as in the JSON's `prices`."""
        from ridgepole.report import jsondoc

        return cast("list[dict[str, Any]]", jsondoc.price_document(self.run)["prices"])

    def to_pandas(self) -> Any:
        """The records as a pandas DataFrame. Raises Missing without pandas."""
        return _frame(self.records())

    def __str__(self) -> str:
        from ridgepole.report import price_text

        return price_text.render(self.run)

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        return {"text/plain": str(self)}


def _frame(records: list[dict[str, Any]]) -> Any:
    try:
        import pandas
    except ImportError:
        raise Missing("a DataFrame needs pandas: pip install 'ridgepole[pandas]'") from None
    return pandas.DataFrame.from_records(records)
