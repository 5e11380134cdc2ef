"""Decide what one run of compact-swap does to one table.

Pure: observations and settings in, a frozen plan out. `--dry-run` prints the plan, and `plan.json` records
it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

from hivekeeper import names
from hivekeeper.config.codecs import SAME_AS, list_writable
from hivekeeper.config.settings import Settings
from hivekeeper.model import Attributes, Digest, FileInfo, FooterGroup, Form, StageBatch, StageUnit, Table, Unit, UnitFooters
from hivekeeper.names import RunId, RunPaths, UnitNumber
from hivekeeper.plan import eligibility, fidelity, sizing
from hivekeeper.plan.analysis import UnitAnalysis
from hivekeeper.plan.engine import Engine
from hivekeeper.reasons import Code, Reason
from hivekeeper.runlog.manifests import ManifestFile
from hivekeeper.runlog.run_files import COMPACT_SWAP, Certificate, PlannedUnit, RunPlan


@dataclass(frozen=True)
class Left:
    """A unit without room. `is_debt`: it could be written, but backups may take no more."""

    unit: Unit
    reason: Reason
    is_debt: bool = False


@dataclass(frozen=True)
class CompactionPlan:
    """Everything a run will do to a table. `batches` refer to `units` by number.

    `rowless` are units whose files hold no rows: there is nothing to write, so nothing to gain. `left` are for a later run.
    """

    run: RunId
    table: Table
    units: Tuple[PlannedUnit, ...]
    batches: Tuple[StageBatch, ...] = ()
    sources: Mapping[UnitNumber, FooterGroup] = field(default_factory=dict)
    attributes: Mapping[UnitNumber, Attributes] = field(default_factory=dict)
    refused: Tuple[Tuple[Unit, Reason], ...] = ()
    rowless: Tuple[Unit, ...] = ()
    left: Tuple[Left, ...] = ()

    def unit(self, number: UnitNumber) -> PlannedUnit:
        return self.units[number - 1]

    @property
    def outputs(self) -> Mapping[UnitNumber, int]:
        """The number of output files of each unit."""
        return {staged.number: staged.outputs for batch in self.batches for staged in batch.units}


@dataclass(frozen=True)
class Candidate:
    """A unit that passed the metadata checks, with the footers of its files that hold rows.

    `unfit`: why its directory cannot or must not be renamed; its files were not read then.
    """

    analysis: UnitAnalysis
    footers: UnitFooters
    attributes: Attributes
    hazard: Optional[str] = None
    unfit: Optional[Reason] = None

    @classmethod
    def of_unfit(cls, analysis: UnitAnalysis, reason: Reason) -> Candidate:
        return cls(analysis, UnitFooters(), Attributes("", "", 0, 0), unfit=reason)

    @property
    def is_rowless(self) -> bool:
        return not self.footers.groups and not self.footers.unreadable and self.unfit is None


def leave_out_rowless(footers: UnitFooters) -> UnitFooters:
    """Drop the files without rows: they may differ in form from the others, and Spark writes no file without rows."""
    groups = (replace(group, rows={path: rows for path, rows in group.rows.items() if rows}) for group in footers.groups)
    return replace(footers, groups=tuple(group for group in groups if group.rows))


def refuse_candidate(candidate: Candidate, table: Table, engine: Engine) -> Optional[Reason]:
    """Why the files of a unit with rows cannot be rewritten together, or not faithfully; else None."""
    footers, leave_out = candidate.footers, "leave the unit out with --where"
    if candidate.unfit:
        return candidate.unfit
    if footers.unreadable:
        path, why = footers.unreadable[0]
        more = f"{len(footers.unreadable)} files cannot be read" if len(footers.unreadable) > 1 else "a file cannot be read"
        return Reason(
            Code.UNREADABLE_FILE, f"{more} (first: {path.rpartition('/')[2]}: {why})", "repair the files or move them away, then run again"
        )
    if len(footers.groups) > 1:
        return Reason(Code.MIXED_FORMS, f"its files do not share one form: {describe_difference(footers.groups)}", leave_out)
    format = _format(table)
    unfaithful = fidelity.unfaithful(footers.groups[0].form, format, engine.spark_version, engine.time_zone) or candidate.hazard
    return Reason(Code.NOT_FAITHFUL, unfaithful, leave_out) if unfaithful else None


def describe_difference(groups: Sequence[FooterGroup]) -> str:
    """How the first two groups differ, and how many files each has."""
    (first, some), (second, others) = ((group.form, len(group.rows)) for group in groups[:2])
    respects = [name for name in Form.__dataclass_fields__ if getattr(first, name) != getattr(second, name)]
    details = [f"{name} {getattr(first, name)} / {getattr(second, name)}" for name in respects if name != "schema"]
    if "schema" in respects:
        details.append(f"schema {_only_in(first.schema, second.schema)} / {_only_in(second.schema, first.schema)}")
    more = f", and {len(groups) - 2} more forms" if len(groups) > 2 else ""
    return f"{some} and {others} files differ in {', '.join(respects)} ({'; '.join(details)}){more}"


def _only_in(schema: str, other: str) -> str:
    """The first line (or word, in a one-line schema) that is missing from the other schema."""
    words, others = (text.splitlines() if "\n" in text.strip() else text.split(",") for text in (schema, other))
    return next((f"«{word.strip()}»" for word in words if word not in others), "with fewer columns")


def plan_compaction(
    run: RunId, paths: RunPaths, table: Table, candidates: Sequence[Candidate], settings: Settings, engine: Engine
) -> CompactionPlan:
    """Number the units, group those of one form into batches, refuse what cannot be rewritten faithfully."""
    fit = [candidate for candidate in candidates if is_fit(candidate, table, engine)]
    reasons = [(one.analysis.unit, refuse_candidate(one, table, engine)) for one in candidates if not one.is_rowless]
    units: List[PlannedUnit] = []
    batches: List[StageBatch] = []
    sources, attributes = {}, {}
    for codec, members in _group(fit, table, settings):
        stage_units = []
        for candidate in members:
            number = UnitNumber(len(units) + 1)
            planned, staged = _plan_unit(number, candidate)
            units.append(planned)
            stage_units.append(staged)
            sources[number], attributes[number] = candidate.footers.groups[0], candidate.attributes
        form = members[0].footers.groups[0].form
        target = paths.stage(len(batches) + 1)
        batches.append(StageBatch(_format(table), form, target, tuple(stage_units), codec, run, settings.sort_columns))
    refused = tuple((unit, reason) for unit, reason in reasons if reason is not None)
    rowless = tuple(candidate.analysis.unit for candidate in candidates if candidate.is_rowless)
    return CompactionPlan(run, table, tuple(units), tuple(batches), sources, attributes, refused, rowless)


def is_fit(candidate: Candidate, table: Table, engine: Engine) -> bool:
    """Whether a unit can be compacted, judging by its footers."""
    return not candidate.is_rowless and refuse_candidate(candidate, table, engine) is None


def _format(table: Table) -> str:
    return eligibility.format_of(table.storage) or ""


def _plan_unit(number: UnitNumber, candidate: Candidate) -> Tuple[PlannedUnit, StageUnit]:
    analysis = candidate.analysis
    with_rows = candidate.footers.groups[0].rows
    files = tuple(file for file in analysis.files if file.path in with_rows)
    bins = sizing.assign_bins([file.length for file in files], analysis.target_files)
    staged = StageUnit(number, files, bins)
    manifest = tuple(ManifestFile.of(entry) for entry in analysis.snapshot.entries)
    planned = PlannedUnit(number, analysis.unit, manifest, eligibility.marker_files(analysis.snapshot))
    return planned, staged


def refuse_compression(table: Table, settings: Settings, spark_version: str) -> Optional[Reason]:
    """Why no unit of a table can be written with the codec set in the configuration or the table."""
    codec, format = _wished_codec(table, settings), _format(table)
    writable = list_writable(format, spark_version)
    if codec is None or codec in writable:
        return None
    return Reason(
        Code.CODEC_NOT_WRITABLE,
        f"Spark {spark_version} cannot write {format} with the codec {codec}",
        f"set compression to one of {', '.join(sorted(writable))}",
    )


def _wished_codec(table: Table, settings: Settings) -> Optional[str]:
    """The codec named by the setting, or by the table's properties if the setting is `table`; None for the codec of the files."""
    name: Optional[str] = settings.compression
    if name == "table":
        stated = {key.lower(): value.lower() for key, value in {**table.storage.serde_parameters, **table.parameters}.items()}
        name = stated.get("parquet.compression") or stated.get("orc.compress") or stated.get("compression")
    return None if name is None or name == "source" else SAME_AS.get(name, name)


def _codec(candidate: Candidate, table: Table, settings: Settings) -> str:
    return _wished_codec(table, settings) or candidate.footers.groups[0].form.codec


def _group(candidates: Sequence[Candidate], table: Table, settings: Settings) -> List[Tuple[str, List[Candidate]]]:
    """Batches of (codec, candidates) with one form, one codec and equal attributes, some of which apply when files are created."""
    open_batches: Dict[object, List[Candidate]] = {}
    finished: List[Tuple[str, List[Candidate]]] = []
    for candidate in candidates:
        codec = _codec(candidate, table, settings)
        key = (codec, candidate.footers.groups[0].form, candidate.attributes)
        batch = open_batches.setdefault(key, [])
        size = sum(member.analysis.sizes.total_bytes for member in batch) + candidate.analysis.sizes.total_bytes
        if batch and (size > settings.batch_bytes or len(batch) >= settings.batch_units):
            finished.append((codec, batch))
            open_batches[key] = batch = []
        batch.append(candidate)
    finished.extend((key[0], batch) for key, batch in open_batches.items())  # type: ignore[index]
    return finished


def to_run_plan(plan: CompactionPlan, backup_table: str = "", record: str = "") -> RunPlan:
    """The part of a compaction's plan that goes into plan.json."""
    return RunPlan(plan.run, COMPACT_SWAP, plan.table, plan.units, backup_table, record)


def certify(planned: PlannedUnit, source: FooterGroup, output: FooterGroup, listed: Iterable[FileInfo], digest: Digest) -> Certificate:
    """The certificate of a proved unit; `listed` is its stage, markers included."""
    return Certificate(
        unit=planned.number,
        partition=planned.unit.name,
        files={entry.name: entry.length for entry in listed},
        rows=source.row_count,
        digest=digest,
        source_files=planned.data_files,
        source_bytes=planned.data_bytes,
        codec=output.form.codec,
        schema=output.form.schema,
        file_rows={names.base(path): rows for path, rows in output.rows.items()},
    )
