"""analyze --fsimage: the survey from the text of a NameNode's image. Reads the image and the metastore; asks the NameNode for nothing."""

from __future__ import annotations

import logging
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Dict, List

from hivekeeper import names
from hivekeeper.commands import per_table, selection
from hivekeeper.commands.context import Context
from hivekeeper.errors import UsageError
from hivekeeper.model import Table
from hivekeeper.names import ControlPaths
from hivekeeper.plan import eligibility, image_analysis, own_place
from hivekeeper.plan.analysis import ObservedTable
from hivekeeper.plan.image_analysis import DefinedTable
from hivekeeper.plan.image_format import BadImage, split_lines, unpack
from hivekeeper.plan.image_survey import Survey, Totals
from hivekeeper.ports import MOST_OF_PARTITIONS
from hivekeeper.reasons import Code, Reason
from hivekeeper.report.results import CommandResult, ImageReport, TableOutcome
from hivekeeper.steps.image_file import ImageFile, find_local, find_remote
from hivekeeper.steps.observe import find_homes, find_touching, find_units
from hivekeeper.steps.timing import Step, timed

log = logging.getLogger(__name__)

LOG_EVERY_LINES = 10_000_000
# Characters of long locations, of all tables: twice what one table may have. They are held twice.
MOST_OF_LOCATIONS = 2 * MOST_OF_PARTITIONS


class _Defined:
    """The tables that are fit, all of which are held until the image is read. Where their long texts are too much for that, those with the
    most are refused; where what is told of their columns is, it is cut.
    """

    def __init__(self) -> None:
        self.tables: Dict[str, DefinedTable] = {}
        self.refused: Dict[str, ObservedTable] = {}
        self._names: List[str] = []
        self._texts = per_table.Room(MOST_OF_LOCATIONS, per_table.TEXTS_OF_TABLE)
        self._definitions = per_table.Room(per_table.MOST_OF_TEXTS, per_table.TEXTS_OF_TABLE)

    def add(self, one: DefinedTable) -> None:
        self.tables[one.table.full_name] = one
        self._names.append(one.table.full_name)
        for at in self._texts.take(one.long_texts, len(self._names) - 1):
            large = self.tables.pop(self._names[at])
            reason = image_analysis.refuse_long_texts()
            self.refused[self._names[at]] = ObservedTable(large.table, ControlPaths(""), large.settings, reason=reason)
        for at in self._definitions.take(one.table.dispensable, len(self._names) - 1):
            if self._names[at] in self.tables:
                wide = self.tables[self._names[at]]
                per_table.say_cut_definition(self._names[at], wide.table.dispensable)
                self.tables[self._names[at]] = replace(wide, table=wide.table.shortened())


def analyze_image(context: Context, path: str, is_remote: bool) -> CommandResult:
    """Judge every selected table by the image, and list what belongs to no table. Raises UsageError if the image cannot be read."""
    cluster, selected = context.cluster, context.selection
    image = find_remote(cluster.files, path) if is_remote else find_local(path)
    started, began = cluster.clock.now_ms(), cluster.clock.monotonic_ms()
    home = _find_home(context)
    tables = selection.SelectedTables(cluster, selected, context.backup_prefix)
    defined = _Defined()
    outcomes = per_table.for_each(context, tables, partial(_define, defined, home))
    outcomes = per_table.absent_outcomes(tables.absent) + outcomes
    places = cluster.metastore.table_places()
    survey = Survey(image_analysis.find_places(defined.tables.values(), chain.from_iterable(places.values()), home))
    totals = _read(image, survey)
    report = ImageReport.of(image.path, image.written_ms, totals, survey, len(places.keys() - defined.tables.keys()))
    judged = per_table.Outcomes(context.selection.names_one)
    for outcome in outcomes:
        judged.add(_judge(outcome, defined, survey, home))
    seconds = (cluster.clock.monotonic_ms() - began) / 1000
    return CommandResult(
        "analyze",
        context.run,
        started,
        seconds,
        selected.named,
        context.dry_run,
        tuple(judged.tables),
        image=report,
        where=selected.where,
        databases=selected.databases,
    )


def _find_home(context: Context) -> str:
    """The default file system, whose paths the image has."""
    home = names.server_of(context.cluster.files.qualify("/"))
    if home.startswith("viewfs:"):
        raise UsageError(
            f"the default file system is {home}: an image has the paths of one NameNode, not those of its mounts",
            next="leave out --fsimage",
        )
    return home


def _define(defined: _Defined, home: str, context: Context, table: Table) -> TableOutcome:
    """All that the metastore says about one table. Those that are fit are added to `defined`."""
    settings = context.settings_for(table.full_name)
    with timed(context.cluster, Step.OBSERVE):
        reason = eligibility.refuse_table(table)
        if reason:
            return _refused(context, table, reason)
        table = replace(table, location=context.cluster.files.qualify(table.location))
        if not image_analysis.is_at_home(table.location, home):
            return _refused(context, table, image_analysis.refuse_other_file_system(table, home))
        control = ControlPaths.of(table.location, table.partitioned)
        reason = own_place.refuse_overlap(find_touching(context.cluster, table, control, moves_backups=False))
        reason = reason or own_place.refuse_home(table, find_homes(context.cluster))
        wanted = selection.wanted_in(table, context.selection)
        every = find_units(context.cluster, table)
    if reason:
        return _refused(context, table, reason)
    elsewhere = tuple(unit.live for unit in every if not own_place.is_inside(table, unit))
    refused = eligibility.refuse_units(table, every)
    # All tables are held until the image is read. Which exchange a unit gets depends on its format: that of the table, or it is refused.
    table = table.outlined()
    units = tuple(replace(unit.outlined(), storage=table.storage) for unit in every if wanted is None or wanted(unit.values))
    defined.add(DefinedTable(table, control, settings, units, refused, elsewhere))
    return TableOutcome(table.full_name)


def _refused(context: Context, table: Table, reason: Reason) -> TableOutcome:
    observed = ObservedTable(table, ControlPaths(""), context.settings_for(table.full_name), reason=reason)
    return per_table.refused(table, reason, observed)


def _read(image: ImageFile, survey: Survey) -> Totals:
    said = 0
    try:
        for batch in split_lines(unpack(image.read())):
            survey.count(batch)
            if batch.first > said + LOG_EVERY_LINES:
                said = batch.first
                log.info("step=read-image lines=%d", said)
        return survey.finish()
    except BadImage as error:
        raise UsageError(
            f"{image.path}: {error}",
            code=Code.UNREADABLE_IMAGE,
            state="nothing was changed, and no figure is given: those of a part of an image would be wrong",
            next="make the text again (hdfs oiv -p Delimited), and copy all of it: compare sizes or checksums",
        ) from None


def _judge(outcome: TableOutcome, defined: _Defined, survey: Survey, home: str) -> TableOutcome:
    refused = defined.refused.get(outcome.table)
    if refused and refused.reason:
        return replace(outcome, observed=refused, problem=refused.reason.about(outcome.table))
    if outcome.problem or outcome.table not in defined.tables:
        return outcome
    return replace(outcome, observed=image_analysis.judge_table(defined.tables.pop(outcome.table), survey, home))
