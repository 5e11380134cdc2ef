"""Decide which files of a unit are joined, so that the others stay as they are (steps/concat_exchange.py).

Pure.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Container, Dict, List, Mapping, Optional, Sequence, Tuple

from hivekeeper import names
from hivekeeper.config.settings import Settings
from hivekeeper.model import Block, FileInfo, UnitFooters
from hivekeeper.names import RunId
from hivekeeper.plan import sizing
from hivekeeper.plan.compaction import Candidate, Rewrite, fill_blocks, refuse_candidate
from hivekeeper.runlog.manifests import ManifestFile
from hivekeeper.runlog.run_files import Join


def choose_bins(candidate: Candidate, rewrite: Rewrite, settings: Settings) -> List[Tuple[FileInfo, ...]]:
    """The small files of a unit, of one form each, in as few sets as fit into a block each. Sets of few files are left out: a reader that
    opens all files in parallel meets one that is gone the more surely, the more there are.
    """
    if candidate.is_rowless or refuse_candidate(candidate, rewrite) is not None:
        return []
    of_path = {path: group.form for group in candidate.footers.groups for path in group.rows}
    small = sizing.threshold_bytes(settings.block_bytes, settings.ratio_threshold)
    alike: Dict[object, List[FileInfo]] = {}
    for file in candidate.analysis.files:
        form = of_path.get(file.path)
        if form is not None and not form.single and not file.is_open and file.length < small:
            alike.setdefault((form.identity, rewrite.codec_for(form), form.blooms), []).append(file)
    bins = [files for each in alike.values() for files in fill_blocks(each, settings.block_bytes)]
    return [files for files in bins if len(files) >= settings.fewest_joined]


def make_candidate(
    candidate: Candidate,
    files: Sequence[FileInfo],
    footers: UnitFooters,
    blocks: Mapping[str, Tuple[Block, ...]],
    run: RunId,
    nth: int,
    block_bytes: int,
) -> Optional[Candidate]:
    """The candidate with only these files, the run's nth set; `footers` are theirs, `blocks` those of all files in live. None if they
    cannot be joined: no name is between theirs, or one is not there any more.
    """
    analysis = candidate.analysis
    chosen = sorted(files, key=lambda file: file.name)
    taken: Container[str] = {entry.name for entry in analysis.snapshot.entries}
    name = names.joined_name([file.name for file in chosen], taken, run, nth)
    if name is None or any(sum(block.length for block in blocks.get(file.name, ())) != file.length for file in chosen):
        return None
    few = replace(
        analysis,
        snapshot=replace(analysis.snapshot, entries=tuple(chosen)),
        sizes=sizing.measure([file.length for file in chosen], block_bytes),
        target_files=1,
    )
    join = Join(name, names.join_tail(run, nth), tuple(blocks[ManifestFile.of(file).name] for file in chosen))
    return replace(candidate, analysis=few, footers=footers, join=join)
