"""The in-memory fake of `cluster/row_files.py`: a file holds its columns and rows; each file is written in one step."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Iterable, Iterator, List, Mapping, Sequence, Tuple

from hivekeeper.ports import FilesUnavailable, Row
from support.fakes.files import FakeFiles


@dataclass(frozen=True)
class RowFile:
    """The content of a file of rows."""

    columns: Tuple[str, ...]
    rows: Tuple[Row, ...]

    def __len__(self) -> int:
        return 100 + 10 * len(self.rows)


class FakeRowFiles:
    """`ports.RowFiles` in memory."""

    def __init__(self, files: FakeFiles) -> None:
        self.files = files

    def write(
        self,
        path: str,
        columns: Mapping[str, str],
        rows: Iterable[Row],
        source: str = "",
        keys: Sequence[str] = (),
        without: Iterable[Sequence[str]] = (),
    ) -> int:
        places, left = [list(columns).index(key) for key in keys], {tuple(each) for each in without}
        found: List[Row] = []
        for row in self.read(source, columns) if source else ():
            begins = tuple(row[place] for place in places)
            if not any(begins[:length] in left for length in range(1, len(begins) + 1)):
                found.append(tuple(row))
        found.extend(tuple(row) for row in rows)
        self.files.put(path, RowFile(tuple(columns), tuple(found)))
        return len(found)

    def read(self, path: str, columns: Mapping[str, str], only: Mapping[str, str] = MappingProxyType({})) -> Iterator[Row]:
        file = self.files.content(path)
        if not isinstance(file, RowFile):
            raise FilesUnavailable(f"{path} is not a Parquet file")
        for row in file.rows:
            cells = dict(zip(file.columns, row))
            if all(cells.get(column) == text for column, text in only.items()):
                yield tuple(cells.get(column) for column in columns)
