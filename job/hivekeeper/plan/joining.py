"""Decide which files of a unit are joined, so that the others stay as they are (steps/concat_exchange.py).

Pure.
"""

from __future__ import annotations

from dataclasses import replace
from math import ceil
from typing import Container, Dict, List, Mapping, Optional, Sequence, Tuple

from hivekeeper import names
from hivekeeper.config.settings import Settings
from hivekeeper.model import Block, FileInfo, UnitFooters
from hivekeeper.names import RunId
from hivekeeper.plan import sizing
from hivekeeper.plan.analysis import UnitAnalysis
from hivekeeper.plan.compaction import Candidate, Rewrite, fill_blocks, refuse_candidate
from hivekeeper.runlog.joins import Join
from hivekeeper.runlog.manifests import ManifestFile

# Of a file that is joined: the new one takes its blocks over, and must have as large ones and as many copies of them.
MOST_BLOCK_BYTES, MOST_COPIES = 2**30, sizing.MOST_COPIES
# The NameNode does nothing else during a concat: 6 ms for 1,000 files, 106 for 5,000 (HDFS 3.3.6, two cores).
MOST_SOURCES = 2000


def narrow(unit: UnitAnalysis, settings: Settings, leave_out: Container[str] = ()) -> UnitAnalysis:
    """The unit with only its small files; the others need not be read, nor is there room needed for them. `leave_out`: the names of files
    that must stay, such as one that still holds what an earlier join replaced.
    """
    small = tuple(file for file in unit.files if _is_small(file, settings) and file.name not in leave_out)
    sizes = sizing.measure([file.length for file in small], settings.block_bytes)
    target = min(sizing.target_files(sizes.total_bytes, settings.block_bytes), sizes.files)
    return replace(unit, snapshot=replace(unit.snapshot, entries=small), sizes=sizes, target_files=target, joined=sizes)


def _is_small(file: FileInfo, settings: Settings) -> bool:
    is_common = file.block_size <= MOST_BLOCK_BYTES and file.replication <= MOST_COPIES
    return not file.is_open and is_common and file.length < small_bytes(settings)


def small_bytes(settings: Settings) -> int:
    """Small files have less than this."""
    return ceil(sizing.threshold_bytes(settings.block_bytes, settings.ratio_threshold))


def guess_bins(unit: UnitAnalysis, settings: Settings) -> List[Tuple[FileInfo, ...]]:
    """What `choose_bins` gives for a narrowed unit if all its files have rows and one form, as they mostly do: footers that are read in
    these sets need not be read again.
    """
    return _fill([file for file in unit.files if file.length > 0], settings)


def choose_bins(candidate: Candidate, rewrite: Rewrite, settings: Settings, leave_out: Container[str] = ()) -> List[Tuple[FileInfo, ...]]:
    """The small files of a unit, of one form each, in as few sets as fit into a block each. Sets of few files are left out: a reader that
    opens all files in parallel meets one that is gone the more surely, the more there are. `leave_out` is as in `narrow`.
    """
    if candidate.is_rowless or refuse_candidate(candidate, rewrite) is not None:
        return []
    of_path = {path: group.form for group in candidate.footers.groups for path in group.rows}
    alike: Dict[object, List[FileInfo]] = {}
    for file in candidate.analysis.files:
        form = of_path.get(file.path)
        if form is not None and not form.single and _is_small(file, settings) and file.name not in leave_out:
            alike.setdefault((form.identity, form.layout, rewrite.codec_for(form), form.blooms), []).append(file)
    bins = [some for each in alike.values() for some in _fill(each, settings)]
    return [files for files in bins if len(files) >= settings.fewest_joined]


def _fill(files: Sequence[FileInfo], settings: Settings) -> List[Tuple[FileInfo, ...]]:
    return [some for full in fill_blocks(files, settings.block_bytes) for some in _divide(full)]


def _divide(files: Sequence[FileInfo]) -> List[Tuple[FileInfo, ...]]:
    """As few parts of about the same number as there may be sources of one join."""
    parts = -(-len(files) // MOST_SOURCES)
    edges = [len(files) * nth // parts for nth in range(parts + 1)]
    return [tuple(files[begin:end]) for begin, end in zip(edges, edges[1:])]


def make_candidate(
    candidate: Candidate,
    files: Sequence[FileInfo],
    footers: UnitFooters,
    blocks: Mapping[str, Tuple[Block, ...]],
    run: RunId,
    nth: int,
    block_bytes: int,
) -> Optional[Candidate]:
    """The candidate with only these files, the run's nth set; `footers` are theirs, `blocks` those of the small files in live. None if they
    cannot be joined: no name is between theirs, or one is not there any more.
    """
    analysis = candidate.analysis
    chosen = sorted(files, key=lambda file: file.name)
    taken: Container[str] = {*blocks, *(entry.name for entry in analysis.snapshot.entries)}
    name = names.joined_name([file.name for file in chosen], taken, run, nth)
    if name is None or any(sum(block.length for block in blocks.get(file.name, ())) != file.length for file in chosen):
        return None
    few = replace(
        analysis,
        snapshot=replace(analysis.snapshot, entries=tuple(chosen)),
        sizes=sizing.measure([file.length for file in chosen], block_bytes),
        target_files=1,
        joined=None,
    )
    join = Join(name, names.join_tail(run, nth), tuple(blocks[ManifestFile.of(file).name] for file in chosen))
    # Sets of which the footers are read again have no row groups, so none has.
    return replace(candidate, analysis=few, footers=replace(footers, row_groups=()), join=join)
