"""Stage a batch of units aside, prove each, and make the proved ones ready.

Never touches live. After a kill anywhere here live is unchanged, and recovery drops stage and ready.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, replace
from typing import Deque, Dict, List, Mapping, Optional, Tuple

from hivekeeper import names
from hivekeeper.model import Content, FileInfo, FileRowGroups, StageBatch, UnitFooters
from hivekeeper.names import UnitNumber
from hivekeeper.plan import proof
from hivekeeper.plan.compaction import CompactionPlan, certify
from hivekeeper.plan.file_rights import while_written
from hivekeeper.ports import RowsError
from hivekeeper.reasons import Code, Reason
from hivekeeper.runlog.run_files import Certificate, certificates_to_text
from hivekeeper.runlog.store import write_durably
from hivekeeper.steps.attributes import dress, warn_narrower
from hivekeeper.steps.checks import why_begin_no_more
from hivekeeper.steps.fitness import FitnessOfTable
from hivekeeper.steps.join import ToJoin, make_joined
from hivekeeper.steps.run_directory import Run, require_lock, require_own_directory
from hivekeeper.steps.timing import Step, timed

# Halving a batch of a thousand units down to one bad unit takes twenty jobs, half of which succeed.
MOST_FAILED_JOBS_IN_A_ROW = 32


@dataclass
class Staged:
    """The results of the batches so far. `differing` are units whose proof failed, `failed` those whose job failed."""

    certificates: Dict[int, Certificate] = field(default_factory=dict)
    differing: Dict[int, Reason] = field(default_factory=dict)
    failed: Dict[int, Reason] = field(default_factory=dict)


class Stager:
    """Runs and numbers the stage jobs of one run. A batch whose job fails is halved until the failing unit is alone.

    `row_groups`: by unit, those of the copies that were proved, as far as there are not more than `most_row_groups`.
    """

    def __init__(self, run: Run, plan: CompactionPlan, owner: str, most_row_groups: int = 0) -> None:
        self.run = run
        self.plan = plan
        self.owner = owner
        # The table's definition was read for the plan.
        self.fitness = FitnessOfTable(run.cluster, run.table, run.cluster.clock.monotonic_ms())
        self.row_groups: Dict[int, Tuple[FileRowGroups, ...]] = {}
        self._most_row_groups = most_row_groups
        self.next_number = len(plan.batches) + 1
        self._failed_in_a_row = 0
        self._last_failure = ""

    def why_end(self) -> Optional[Reason]:
        """Why nothing more is staged, else None: the run has to end, job after job fails, which is not the units' fault, others have made
        it list or check enough, or the table is unfit by now.
        """
        if self._failed_in_a_row >= MOST_FAILED_JOBS_IN_A_ROW:
            what = f"{self._failed_in_a_row} jobs failed one after the other; the last one: {self._last_failure}"
            return Reason(Code.JOBS_KEEP_FAILING, what)
        why = self.run.cluster.stopping.why()
        return Reason(Code.STOP_ASKED, why) if why else why_begin_no_more(self.run) or self.fitness.why_known_unfit()

    def stage(self, number: int, batch: StageBatch) -> Staged:
        """Steps 2 and 3 for one batch of the plan, or a part of it. A job that fails while the run is ending counts as cancelled."""
        staged = Staged()
        waiting: Deque[Tuple[int, StageBatch]] = deque([(number, batch)])
        while waiting and not self.why_end():
            number, batch = waiting.popleft()
            try:
                with timed(self.run.cluster, Step.COPY):
                    read = self._write(batch)
                batch = self._without_failed(batch, read, staged)
                if batch.units:
                    with timed(self.run.cluster, Step.PROVE):
                        self._prove(number, batch, read, self.run.cluster.rows.read_stage(batch), staged)
                    self._failed_in_a_row = 0
            except RowsError as error:
                # Its executors may have re-created the directory of a run that was taken over.
                require_lock(self.run)
                self.run.files.delete_tree(batch.target)
                if self.run.cluster.stopping.why():
                    break
                self._failed_in_a_row += 1
                self._last_failure = str(error)
                if len(batch.units) == 1:
                    staged.failed[batch.units[0].number] = Reason(Code.JOB_FAILED, str(error))
                waiting.extend(self._halve(batch))
        return staged

    def _without_failed(self, batch: StageBatch, read: Mapping[UnitNumber, Content], staged: Staged) -> StageBatch:
        """The units that were written. One bad file costs its own unit; only if all units fail may the cause be elsewhere."""
        failed = {number: content.failed for number, content in read.items() if content.failed}
        staged.failed.update({number: Reason(Code.JOB_FAILED, why) for number, why in failed.items()})
        if len(failed) == len(batch.units):
            self._failed_in_a_row += len(failed)
            self._last_failure = next(iter(failed.values()))
        return replace(batch, units=tuple(unit for unit in batch.units if unit.number not in failed))

    def _halve(self, batch: StageBatch) -> List[Tuple[int, StageBatch]]:
        if len(batch.units) == 1:
            return []
        middle = len(batch.units) // 2
        halves = []
        for units in (batch.units[:middle], batch.units[middle:]):
            target = self.run.paths.stage(self.next_number)
            halves.append((self.next_number, replace(batch, units=units, target=target)))
            self.next_number += 1
        return halves

    def _write(self, batch: StageBatch) -> Mapping[UnitNumber, Content]:
        files = self.run.files
        files.make_directory(batch.target)
        # Before the write, because storage policy and erasure coding apply when a file is created. All units of a batch have the same.
        dress(files, {batch.target: while_written(self.plan.attributes[batch.units[0].number])}, self.owner)
        return self.run.cluster.beside.run(lambda: self.run.cluster.rows.write_stage(batch))

    def _prove(
        self,
        number: int,
        batch: StageBatch,
        read: Mapping[UnitNumber, Content],
        written: Mapping[UnitNumber, Content],
        staged: Staged,
    ) -> None:
        footers = self._read_footers(batch)
        proved: List[Certificate] = []
        to_join: List[ToJoin] = []
        differing: Dict[int, Reason] = {}
        for unit in batch.units:
            planned, sources = self.plan.unit(unit.number), self.plan.sources[unit.number]
            listed, output = footers[unit.number]
            content = written[unit.number]
            differences = proof.compare_unit(sources, output, listed, unit.outputs, read[unit.number], content)
            if differences:
                # Whoever took this run over deletes its stage; one that has stalled may do so although it has lost its lock.
                require_lock(self.run)
                require_own_directory(self.run)
                differing[unit.number] = Reason(Code.PROOF_FAILED, "; ".join(differences[:3]))
                continue
            directory = _staged_directory(batch, unit.number)
            self._add_markers(directory, planned.markers)
            everything = self.run.files.look([directory])[directory].entries if planned.markers else listed
            certificate = certify(planned, sources, output.groups, everything, content.digest)
            if planned.join:
                to_join.append(ToJoin(planned, directory, unit.files, certificate))
            else:
                proved.append(certificate)
        joining = make_joined(self.run, batch.format, to_join)
        # Not before: if that raises, all units of the batch are staged again.
        for certificate in proved:
            self._keep_row_groups(certificate.unit, footers[certificate.unit][1])
        staged.differing.update(differing)
        staged.failed.update(joining.failed)
        proved.extend(joining.certificates.values())
        self._make_ready(number, batch, proved)
        staged.certificates.update({certificate.unit: certificate for certificate in proved})

    def _read_footers(self, batch: StageBatch) -> Mapping[int, Tuple[Tuple[FileInfo, ...], UnitFooters]]:
        directories = {unit.number: _staged_directory(batch, unit.number) for unit in batch.units}
        seen = self.run.files.look(list(directories.values()))
        listed = {unit: seen[directory].entries for unit, directory in directories.items()}
        read = self.run.cluster.rows.footers(batch.format, listed, by_identity=batch.is_copied, most_row_groups=self._most_row_groups)
        return {unit: (listed[unit], read.get(unit, UnitFooters())) for unit in directories}

    def _keep_row_groups(self, unit: int, output: UnitFooters) -> None:
        if output.row_groups:
            self.row_groups[unit] = output.row_groups
            self._most_row_groups -= output.row_group_count

    def _add_markers(self, directory: str, markers: Tuple[str, ...]) -> None:
        for marker in markers:
            self.run.files.write_new(names.join(directory, marker), "")

    def _make_ready(self, number: int, batch: StageBatch, proved: List[Certificate]) -> None:
        """Write the certificates durably, then rename to ready, so that everything in ready is proved."""
        files, paths = self.run.files, self.run.paths
        if not proved:
            return
        directories = {_staged_directory(batch, certificate.unit): certificate.unit for certificate in proved}
        narrower = dress(files, {directory: self.plan.attributes[unit] for directory, unit in directories.items()}, self.owner)
        for directory, why in narrower.items():
            warn_narrower(self.plan.unit(directories[directory]), why)
        write_durably(files, paths.certificates(number), certificates_to_text(proved), self.run.record_mode)
        for certificate in proved:
            files.rename_exact(_staged_directory(batch, certificate.unit), paths.unit("ready", certificate.unit))


def _staged_directory(batch: StageBatch, number: int) -> str:
    return names.join(batch.target, f"{names.UNIT_COLUMN}={number}")
