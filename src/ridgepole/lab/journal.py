"""Rows written down as they are measured, so that even a killed experiment leaves what it knew."""

from __future__ import annotations

import json
import os
from datetime import datetime, timezone
from pathlib import Path

from ridgepole.lab.experiment import Row


class Journal:
    """A file of JSON lines, made with the first row. Where it cannot be written no row is kept, and `path` is None."""

    def __init__(self, folder: Path, experiment: str) -> None:
        when = datetime.now(timezone.utc).strftime("%Y%m%d-%H%M%S")
        self.path: Path | None = folder / f"{experiment}-{when}-{os.getpid()}.jsonl"

    def keep(self, row: Row) -> None:
        """Append one row, and have it on disk before returning."""
        if self.path is None:
            return
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
        except OSError:
            self.path = None
