"""Decide what one run of compact-swap does to one table.

Pure: observations and settings in, a frozen plan out. `--dry-run` prints the plan, and `plan.json` records
it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple
from weakref import WeakKeyDictionary

from hivekeeper import names
from hivekeeper.config.codecs import SAME_AS, list_writable
from hivekeeper.config.settings import Settings
from hivekeeper.model import (
    MOST_VALUES_OF_FILE,
    VALUES_PER_BYTE,
    Attributes,
    ColumnFacts,
    Digest,
    FileInfo,
    FileRowGroups,
    FooterGroup,
    Form,
    StageBatch,
    StageOutput,
    StageUnit,
    Table,
    Unit,
    UnitFooters,
    ValueCounts,
    expect_values,
)
from hivekeeper.names import RunId, RunPaths, UnitNumber
from hivekeeper.plan import eligibility, fidelity, listings, sizing
from hivekeeper.plan.analysis import UnitAnalysis
from hivekeeper.plan.engine import Engine
from hivekeeper.plan.file_rights import while_written
from hivekeeper.reasons import Code, Reason
from hivekeeper.runlog.joins import Join
from hivekeeper.runlog.manifests import ManifestFile
from hivekeeper.runlog.run_files import COMPACT_SWAP, Certificate, OutputForm, PlannedUnit, RunPlan

# A footer of its own for each file costs the driver's memory and time, and its schema goes into the certificate.
MOST_FORMS = 1000
# Characters of the schemas of one unit's forms, and of one batch: they go into a certificate, and a recovery reads no longer ones
# (strict.MOST_TEXT, MOST_LINE, store.MOST_RECORD_BYTES). A schema of ten thousand columns has half a million.
MOST_SCHEMA = 2**23
MOST_SCHEMAS_OF_BATCH = 2**25
# Batches of one run that end before they are full: where Spark SQL writes, each form has one of its own, and each is a job. Whoever may
# write to a table can give each partition another form, or long schemas.
MOST_PART_BATCHES = 100
# Characters that a plan holds of all units that are written: their ACLs and extended attributes, of which a directory has up to twenty
# thousand, and what their footers say of forms and columns, of which a file has up to some hundred thousand.
MOST_HELD = 2**28
# Characters of the forms and columns of units that are judged together, before it is known which of them are fit.
MOST_READ = 2**26
# What the facts of a column take: the number of its values in an array, and all of them in a dict. As in FooterAnswer.java.
CHARACTERS_OF_VALUES, CHARACTERS_OF_FACTS = 8, 400
MORE_JOBS = Reason(
    Code.BEYOND_ONE_RUN, f"the units of one run are written in {MOST_PART_BATCHES} jobs at most that are not full", "run again"
)
MORE_TO_HOLD = Reason(
    Code.BEYOND_ONE_RUN,
    f"the ACLs, extended attributes, schemas and columns of one run's units have {MOST_HELD} characters at most",
    "run again",
)
MORE_THAN_READ = Reason(
    Code.MIXED_FORMS,
    f"the schemas and columns of its files have more than {MOST_READ} characters",
    "leave the unit out with --where",
)


@dataclass(frozen=True)
class Left:
    """A unit without room. `is_debt`: it could be written, but backups may take no more."""

    unit: Unit
    reason: Reason
    is_debt: bool = False


@dataclass(frozen=True)
class CompactionPlan:
    """Everything a run will do to a table. `batches` refer to `units` by number.

    `rowless` are units whose files hold no rows: there is nothing to write, so nothing to gain. `fewest` are units whose forms allow no
    fewer files; `unjoined` would only gain by a join, which is not possible. `sources` holds the forms of each unit's files, `whys` why it
    gets its exchange. `left` are for a later run. `row_groups` are those of the files as they lie, by unit, fit or not.
    """

    run: RunId
    table: Table
    units: Tuple[PlannedUnit, ...]
    batches: Tuple[StageBatch, ...] = ()
    sources: Mapping[UnitNumber, Tuple[FooterGroup, ...]] = field(default_factory=dict)
    attributes: Mapping[UnitNumber, Attributes] = field(default_factory=dict)
    refused: Tuple[Tuple[Unit, Reason], ...] = ()
    rowless: Tuple[Unit, ...] = ()
    fewest: Tuple[Unit, ...] = ()
    unjoined: Tuple[Tuple[Unit, Reason], ...] = ()
    left: Tuple[Left, ...] = ()
    whys: Mapping[UnitNumber, Reason] = field(default_factory=dict)
    row_groups: Mapping[str, Tuple[FileRowGroups, ...]] = field(default_factory=dict)

    def unit(self, number: UnitNumber) -> PlannedUnit:
        return self.units[number - 1]

    @property
    def outputs(self) -> Mapping[UnitNumber, int]:
        """The number of output files of each unit."""
        return {staged.number: len(staged.outputs) for batch in self.batches for staged in batch.units}

    @property
    def forms(self) -> Mapping[UnitNumber, int]:
        """The number of forms among the output files of each unit."""
        return {staged.number: staged.forms for batch in self.batches for staged in batch.units}


NOT_HELD = Attributes("", "", 0, 0)


@dataclass(frozen=True)
class Candidate:
    """A unit that passed the metadata checks, with the footers of its files that hold rows.

    `unfit`: why its files cannot be exchanged or rewritten, `unjoined` and `has_fewest`: there is nothing to gain; nothing is known of its
    footers then. `join`: it is only some files of a unit, and how they are to become one. `why`: why it gets this exchange, where that was
    chosen.
    """

    analysis: UnitAnalysis
    footers: UnitFooters
    attributes: Attributes
    hazard: Optional[str] = None
    unfit: Optional[Reason] = None
    join: Optional[Join] = None
    unjoined: Optional[Reason] = None
    has_fewest: bool = False
    why: Optional[Reason] = None

    @classmethod
    def of_unfit(cls, analysis: UnitAnalysis, reason: Reason) -> Candidate:
        return cls(analysis, UnitFooters(), NOT_HELD, unfit=reason)

    @classmethod
    def of_unjoined(cls, analysis: UnitAnalysis, reason: Reason) -> Candidate:
        return cls(analysis, UnitFooters(), NOT_HELD, unjoined=reason)

    @property
    def bare_values(self) -> int:
        """How many values its files claim that neither their bytes nor their number cover."""
        return max(0, self.footers.values - expect_values(self.analysis.files))

    @property
    def values_of_outputs(self) -> int:
        """So many values at most can be read of the files that it would become, about as long as its own and one for each form at least."""
        return VALUES_PER_BYTE * self.analysis.sizes.total_bytes + MOST_VALUES_OF_FILE * len(self.footers.groups)

    @property
    def is_rowless(self) -> bool:
        is_known = self.unfit is None and self.unjoined is None and not self.has_fewest
        return is_known and not self.footers.groups and not self.footers.unreadable


class Shared:
    """Makes equal values one object: a hundred thousand units may have a copy each of the same long schema, or ACL. Counts the rest.

    Not the facts of columns: a footer can claim such numbers that all of them have one hash.
    """

    def __init__(self) -> None:
        self._kept: Dict[Any, Any] = {}
        self._characters = 0

    @property
    def is_full(self) -> bool:
        """Whether they are as long as a plan holds."""
        return self._characters >= MOST_HELD

    def of(self, candidate: Candidate) -> Candidate:
        groups = tuple(
            replace(group, form=self._share_form(group.form), columns=self._share_columns(group.columns))
            for group in candidate.footers.groups
        )
        footers = replace(candidate.footers, groups=groups)
        return replace(candidate, attributes=self._one(self._share(candidate.attributes)), footers=footers)

    def _share_form(self, form: Form) -> Form:
        if form not in self._kept:
            self._characters += len(form.schema) + sum(map(len, (*form.keys, *form.blooms, *form.undecodable)))
        shared: Form = self._one(form)
        return shared

    def _share_columns(self, columns: Mapping[str, ColumnFacts]) -> Mapping[str, ColumnFacts]:
        if isinstance(columns, ValueCounts):
            self._characters += CHARACTERS_OF_VALUES * len(columns)
            if columns.names not in self._kept:
                self._characters += sum(map(len, columns.names))
            return ValueCounts(self._one(columns.names), columns.counts)
        own = [text for facts in columns.values() for text in (facts.low, facts.high) if text is not None]
        own += (name for name in columns if name not in self._kept)
        self._characters += CHARACTERS_OF_FACTS * len(columns) + sum(map(len, own))
        return {self._one(name): facts for name, facts in columns.items()}

    def _share(self, attributes: Attributes) -> Attributes:
        """With the parts that others have, too, whatever else they have."""
        acl, file_acl, xattrs = attributes.acl, attributes.file_acl, attributes.xattrs
        parts = [acl, file_acl, *((name, value) for name, value in xattrs)]
        self._characters += sum(sum(map(len, part)) for part in parts if part not in self._kept)
        shared = tuple(self._one(xattr) for xattr in xattrs)
        return replace(attributes, acl=self._one(acl), file_acl=self._one(file_acl), xattrs=self._one(shared))

    def _one(self, value: Any) -> Any:
        return self._kept.setdefault(value, value)


def set_aside(candidate: Candidate, rewrite: Rewrite) -> Candidate:
    """A candidate that is not fit, with no more of its footers and attributes than the plan tells of it."""
    refused = None if candidate.is_rowless else refuse_candidate(candidate, rewrite)
    few = replace(candidate, footers=UnitFooters(row_groups=candidate.footers.row_groups), attributes=NOT_HELD)
    return replace(few, unfit=refused, has_fewest=_has_fewest(candidate, rewrite))


def merge(parts: Sequence[UnitFooters]) -> UnitFooters:
    """The footers of a unit's files that were read in parts; without the facts of columns, whose bounds are texts of unknown order."""
    rows: Dict[Form, Dict[str, int]] = {}
    files: Dict[Form, List[FileInfo]] = {}
    for group in (group for part in parts for group in part.groups):
        rows.setdefault(group.form, {}).update(group.rows)
        files.setdefault(group.form, []).extend(group.files)
    groups = tuple(FooterGroup(form, of_form, {}, tuple(files[form])) for form, of_form in rows.items())
    row_groups = tuple(one for part in parts for one in part.row_groups)
    values = sum(part.values for part in parts)
    return UnitFooters(groups, tuple(one for part in parts for one in part.unreadable), row_groups, values)


def leave_out_rowless(footers: UnitFooters) -> UnitFooters:
    """Drop the files without rows: they may differ in form from the others, and Spark writes no file without rows."""
    groups = (replace(group, rows={path: rows for path, rows in group.rows.items() if rows}) for group in footers.groups)
    return replace(footers, groups=tuple(group for group in groups if group.rows))


@dataclass(frozen=True)
class Rewrite:
    """How the files of one table are rewritten; `codec` is the configured one, None for that of the files."""

    format: str
    engine: Engine
    block_bytes: int
    codec: Optional[str] = None
    sort_columns: Tuple[str, ...] = ()
    may_grow: bool = False
    # Until nobody has a form any more: its schema may be long, and a hundred thousand units may have the same.
    _refusals: WeakKeyDictionary[Form, Optional[str]] = field(default_factory=WeakKeyDictionary, init=False, repr=False, compare=False)

    @classmethod
    def of(cls, table: Table, settings: Settings, engine: Engine) -> Rewrite:
        codec = _wished_codec(table, settings)
        return cls(_format(table), engine, settings.block_bytes, codec, settings.sort_columns, _wants_no_compression(settings))

    @property
    def is_copied(self) -> bool:
        """Whether stored values are copied without becoming rows; else Spark SQL reads and writes rows."""
        return not self.sort_columns

    def codec_for(self, form: Form) -> str:
        """One file may mix codecs; its copy gets the first."""
        return self.codec or form.codec.split("+")[0]

    def refuse(self, form: Form) -> Optional[str]:
        """Why files of this form cannot be rewritten faithfully, else None."""
        if form not in self._refusals:
            self._refusals[form] = self._find_refusal(form)
        return self._refusals[form]

    def _find_refusal(self, form: Form) -> Optional[str]:
        if self.is_copied:
            return fidelity.refuse_copy(form, self.format, self.codec_for(form), self.engine.spark_version)
        return fidelity.unfaithful(form, self.format, self.engine.spark_version, self.engine.time_zone)


def refuse_candidate(candidate: Candidate, rewrite: Rewrite) -> Optional[Reason]:
    """Why the files of a unit with rows cannot be rewritten, or not faithfully; else None."""
    footers, leave_out = candidate.footers, "leave the unit out with --where"
    if candidate.unfit:
        return candidate.unfit
    if footers.unreadable:
        path, why = footers.unreadable[0]
        more = f"{len(footers.unreadable)} files cannot be read" if len(footers.unreadable) > 1 else "a file cannot be read"
        return Reason(
            Code.UNREADABLE_FILE, f"{more} (first: {path.rpartition('/')[2]}: {why})", "repair the files or move them away, then run again"
        )
    if len(footers.groups) > 1 and not rewrite.is_copied:
        return Reason(Code.MIXED_FORMS, f"its files do not share one form: {describe_difference(footers.groups)}", leave_out)
    if len(footers.groups) > MOST_FORMS:
        return Reason(Code.MIXED_FORMS, f"its files have {len(footers.groups)} forms; at most {MOST_FORMS} are compacted", leave_out)
    if _schema_characters(candidate) > MOST_SCHEMA:
        what = f"the schemas of its files have {_schema_characters(candidate)} characters; units with more than {MOST_SCHEMA} are left out"
        return Reason(Code.MIXED_FORMS, what, leave_out)
    unfaithful = next(filter(None, (rewrite.refuse(group.form) for group in footers.groups)), None) or candidate.hazard
    return Reason(Code.NOT_FAITHFUL, unfaithful, leave_out) if unfaithful else None


def _schema_characters(candidate: Candidate) -> int:
    return sum(len(group.form.schema) for group in candidate.footers.groups)


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
    known = frozenset(others)
    return next((f"«{word.strip()}»" for word in words if word not in known), "with fewer columns")


def plan_compaction(
    run: RunId, paths: RunPaths, table: Table, candidates: Sequence[Candidate], settings: Settings, rewrite: Rewrite
) -> CompactionPlan:
    """Number the units, group those that one job can write into batches, refuse what cannot be rewritten faithfully."""
    reasons = [(one.analysis.unit, refuse_candidate(one, rewrite)) for one in candidates if not one.is_rowless]
    units: List[PlannedUnit] = []
    batches: List[StageBatch] = []
    sources, attributes, whys = {}, {}, {}
    groups, beyond = _group([one for one in candidates if is_fit(one, rewrite)], rewrite, settings)
    for members in groups:
        stage_units = []
        for candidate in members:
            number = UnitNumber(len(units) + 1)
            units.append(_plan_unit(number, candidate))
            stage_units.append(StageUnit(number, plan_outputs(candidate, rewrite), candidate.bare_values))
            sources[number], attributes[number] = candidate.footers.groups, candidate.attributes
            if candidate.why is not None:
                whys[number] = candidate.why
        target = paths.stage(len(batches) + 1)
        batches.append(StageBatch(rewrite.format, target, tuple(stage_units), run, settings.sort_columns, rewrite.is_copied))
    # Of a unit whose files are joined some sets may have a batch.
    begun = {planned.name for planned in units}
    return CompactionPlan(
        run,
        table,
        tuple(units),
        tuple(batches),
        sources,
        attributes,
        refused=tuple((unit, reason) for unit, reason in reasons if reason is not None),
        rowless=tuple(candidate.analysis.unit for candidate in candidates if candidate.is_rowless),
        fewest=tuple(candidate.analysis.unit for candidate in candidates if _has_fewest(candidate, rewrite)),
        unjoined=tuple((candidate.analysis.unit, candidate.unjoined) for candidate in candidates if candidate.unjoined),
        left=tuple(Left(one.analysis.unit, MORE_JOBS) for one in beyond if one.analysis.name not in begun),
        whys=whys,
        row_groups={one.analysis.name: one.footers.row_groups for one in candidates if one.footers.row_groups},
    )


def is_fit(candidate: Candidate, rewrite: Rewrite) -> bool:
    """Whether compacting a unit is possible and leaves fewer files, judging by its footers."""
    is_possible = not candidate.is_rowless and candidate.unjoined is None and refuse_candidate(candidate, rewrite) is None
    return is_possible and not _has_fewest(candidate, rewrite)


def _has_fewest(candidate: Candidate, rewrite: Rewrite) -> bool:
    """Whether its files cannot become fewer, because each form needs a file of its own."""
    if candidate.has_fewest:
        return True
    if candidate.is_rowless or candidate.unjoined or refuse_candidate(candidate, rewrite) is not None:
        return False
    return len(plan_outputs(candidate, rewrite)) >= candidate.analysis.sizes.files


def plan_outputs(candidate: Candidate, rewrite: Rewrite) -> Tuple[StageOutput, ...]:
    """The files that a unit will have: for each form as few as fit into one block each. Forms that differ only in codec become one if they
    get the same. Files that are to be joined become one.
    """
    groups = candidate.footers.groups
    kinds = [(group.form.identity, rewrite.codec_for(group.form), group.form.blooms) for group in groups]
    of_path = {path: kind for group, kind in zip(groups, kinds) for path in group.rows}
    forms = {kind: group.form for group, kind in reversed(list(zip(groups, kinds)))}
    members: Dict[object, List[FileInfo]] = {kind: [] for kind in kinds}
    for file in candidate.analysis.files:
        if file.path in of_path:
            members[of_path[file.path]].append(file)
    return tuple(
        StageOutput(files, forms[kind], kind[1], rewrite.may_grow, *_least_of_blocks(candidate, files))
        for kind in dict.fromkeys(kinds)
        for files in _divide(candidate, members[kind], forms[kind], rewrite.block_bytes)
    )


def _least_of_blocks(candidate: Candidate, files: Sequence[FileInfo]) -> Tuple[int, int]:
    """Size and number of copies of an output's blocks, at least: HDFS joins no files with larger blocks than the first, and the rows of
    the others would lose copies.
    """
    block_bytes = 0 if candidate.join is None else max(file.block_size for file in files)
    return block_bytes, sizing.copies_of(file.replication for file in files)


def _divide(candidate: Candidate, files: Sequence[FileInfo], form: Form, block_bytes: int) -> List[Tuple[FileInfo, ...]]:
    if candidate.join is not None:
        # They are such a part of a unit already, which may be longer than a block by half a file.
        return [tuple(files)]
    return [(file,) for file in files] if form.single else fill_blocks(files, block_bytes)


def fill_blocks(files: Sequence[FileInfo], block_bytes: int) -> List[Tuple[FileInfo, ...]]:
    """The files in their order, divided among as few outputs as fit into one block each."""
    lengths = [file.length for file in files]
    filled: Dict[int, List[FileInfo]] = {}
    for file, number in zip(files, sizing.assign_bins(lengths, sizing.target_files(sum(lengths), block_bytes))):
        filled.setdefault(number, []).append(file)
    return [tuple(members) for members in filled.values()]


def _format(table: Table) -> str:
    return eligibility.format_of(table.storage) or ""


def _plan_unit(number: UnitNumber, candidate: Candidate) -> PlannedUnit:
    snapshot = candidate.analysis.snapshot
    manifest = tuple(ManifestFile.of(entry) for entry in snapshot.entries)
    unit = candidate.analysis.unit
    if candidate.join:
        # Its directory stays where it is; the certificate has its id.
        return PlannedUnit(number, unit, manifest, join=candidate.join)
    return PlannedUnit(number, unit, manifest, listings.marker_files(snapshot), directory_id=snapshot.lasting_id(unit.live))


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


def _wants_no_compression(settings: Settings) -> bool:
    """Whether the site says so; what the files or the table's properties say comes from whoever may write to the table."""
    return SAME_AS.get(settings.compression, settings.compression) == "none"


@dataclass
class _Batch:
    """A batch while it is filled."""

    members: List[Candidate] = field(default_factory=list)
    size_bytes: int = 0
    schema_characters: int = 0

    def is_full_with(self, candidate: Candidate, settings: Settings) -> bool:
        size = self.size_bytes + candidate.analysis.sizes.total_bytes
        return size > settings.batch_bytes or len(self.members) >= settings.batch_units

    def ends_before(self, candidate: Candidate) -> bool:
        return self.schema_characters + _schema_characters(candidate) > MOST_SCHEMAS_OF_BATCH

    def add(self, candidate: Candidate) -> None:
        self.members.append(candidate)
        self.size_bytes += candidate.analysis.sizes.total_bytes
        self.schema_characters += _schema_characters(candidate)


def _group(candidates: Sequence[Candidate], rewrite: Rewrite, settings: Settings) -> Tuple[List[List[Candidate]], List[Candidate]]:
    """Batches whose copies are stored in one way; where Spark SQL writes, also of one form and codec. And what would need one more."""
    open_batches: Dict[object, _Batch] = {}
    full: List[_Batch] = []
    ended: List[_Batch] = []
    beyond: List[Candidate] = []
    for candidate in candidates:
        key = (while_written(candidate.attributes), None if rewrite.is_copied else candidate.footers.groups[0].form)
        if key in open_batches and open_batches[key].is_full_with(candidate, settings):
            full.append(open_batches.pop(key))
        elif key in open_batches and open_batches[key].ends_before(candidate):
            ended.append(open_batches.pop(key))
        if key not in open_batches and len(ended) + len(open_batches) >= MOST_PART_BATCHES:
            beyond.append(candidate)
        else:
            open_batches.setdefault(key, _Batch()).add(candidate)
    return [batch.members for batch in (*full, *ended, *open_batches.values())], beyond


def to_run_plan(plan: CompactionPlan, backup_table: str = "", record: str = "") -> RunPlan:
    """The part of a compaction's plan that goes into plan.json."""
    return RunPlan(plan.run, COMPACT_SWAP, plan.table, plan.units, backup_table, record)


def certify(
    planned: PlannedUnit, sources: Sequence[FooterGroup], outputs: Sequence[FooterGroup], listed: Iterable[FileInfo], digest: Digest
) -> Certificate:
    """The certificate of a proved unit; `listed` is its stage, markers included."""
    return Certificate(
        unit=planned.number,
        partition=planned.unit.name,
        files={entry.name: entry.length for entry in listed},
        rows=sum(source.row_count for source in sources),
        digest=digest,
        source_files=planned.data_files,
        source_bytes=planned.data_bytes,
        forms=tuple(OutputForm(group.form.schema, group.form.codec, group.form.identity) for group in outputs),
        file_rows={names.base(path): rows for group in outputs for path, rows in group.rows.items()},
    )
