"""Records damaged at random, as anyone who may write to the table could: they are refused, or what is accepted stays inside the table.

The nightly run tries ten thousand of each kind; a failure prints its seed.
"""

from __future__ import annotations

import copy
import json
import os
import posixpath
import re
from functools import lru_cache

from hypothesis import given, settings
from hypothesis import strategies as st

from hivekeeper.codes import Exit
from hivekeeper.config.settings import Settings
from hivekeeper.runlog import checkpoint, store, strict
from hivekeeper.runlog.strict import UnreadableRecord
from hivekeeper.steps import table_lock
from support import records
from support.builders import ROOT, a_table
from support.desk import EVERYTHING, Desk
from support.world import World

EXAMPLES = 10 * settings.default.max_examples if os.environ.get("HKTEST_EXAMPLES") == "nightly" else settings.default.max_examples
many = settings(max_examples=EXAMPLES)

PLACE = re.compile(r"runs/[0-9]{8}t[0-9]{6}z-[0-9a-f]{4}(\.t[1-9][0-9]*)?(/retired/u[0-9]{5,})?")

NASTY = st.sampled_from(
    [
        *("", ".", "..", "/", "../..", "../../../fin/salaries/dt=1", "/etc/passwd", "a/../b", "a//b", ".hivekeeper", ".hivekeeper/log"),
        *("a\nb", "a\r", "a\0b", "a\u2028b", "a\x85b", "\ud800", "\U0001f4a9", "٣", "ａ", "é", "%2e%2e", "x" * 10_000, "x" * 1_100),
        *("runs/20260101t020304z-0000/retired/u00001", "20260101t020304z-0000", "dt=1", "NaN", "null", "true", "1"),
    ]
)
VALUES = st.one_of(
    NASTY,
    st.text(max_size=20),
    st.integers(),
    st.sampled_from([0, -1, 1, 2**31, 2**63, -(2**63), 2**64, 10**30, 1.5, float("nan"), float("inf"), None, True, False, [], {}]),
    st.recursive(
        st.one_of(NASTY, st.integers(), st.none()), lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NASTY, inner, max_size=3)
    ),
)


def value_from(draw):
    """A copy of the drawn value, because it may be damaged too."""
    return copy.deepcopy(draw(VALUES))


def nested(value, depth):
    for _ in range(depth):
        value = [value]
    return value


def spots(value, way=()):
    """The paths to all values of a record."""
    found = [way] if way else []
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return found + [spot for key, item in inside for spot in spots(item, (*way, key))]


def spoil(draw, document):
    """Make one random change."""
    way = draw(st.sampled_from(spots(document)))
    holder = document
    for key in way[:-1]:
        holder = holder[key]
    old, how = holder[way[-1]], draw(st.sampled_from(["drop", "replace", "replace", "edit", "nest", "repeat", "more", "rename"]))
    if how == "drop":
        del holder[way[-1]]
    elif how == "edit" and isinstance(old, str):
        at = draw(st.integers(0, len(old)))
        holder[way[-1]] = old[:at] + draw(NASTY) + old[at:]
    elif how == "edit" and isinstance(old, int):
        holder[way[-1]] = old + draw(st.sampled_from([1, -1, 2**40, 2**63, 2**70]))
    elif how == "nest":
        holder[way[-1]] = nested(old, draw(st.sampled_from([1, 2, 90])))
    elif how == "repeat" and isinstance(holder, list):
        holder.append(copy.deepcopy(old))
    elif how == "more" and isinstance(old, (dict, list)):
        if isinstance(old, dict):
            old[draw(NASTY)] = value_from(draw)
        else:
            old.append(value_from(draw))
    elif how == "rename" and isinstance(holder, dict):
        holder[draw(NASTY)] = holder.pop(way[-1])
    else:
        holder[way[-1]] = value_from(draw)


def spoil_text(draw, text):
    how = draw(st.sampled_from(["none", "none", "none", "none", "cut", "insert", "twice", "crossed"]))
    at = draw(st.integers(0, len(text)))
    if how == "cut":
        return text[:at]
    if how == "insert":
        return (
            text[:at]
            + draw(st.sampled_from(["\n", "\0", "}", "]", '"', "[" * 5000, "{" * 3, "NaN", "9" * 5000, "\\ud800", ",", "\u2028"]))
            + text[at:]
        )
    if how == "twice":
        return text + text
    return text.replace(draw(st.sampled_from(["dt=", "runs", ":", ",", "retired", "1"])), draw(NASTY)) if how == "crossed" else text


@st.composite
def spoiled(draw, goods):
    """The text of a damaged record; `goods` make lists of the values on its lines."""
    document = draw(st.sampled_from(list(goods)))()
    for _ in range(draw(st.integers(1, 3))):
        if spots(document):
            spoil(draw, document)
    # As an attacker may write it, not only as our own writer does.
    ascii_only = draw(st.booleans())
    return spoil_text(draw, "".join(json.dumps(item, ensure_ascii=ascii_only) + "\n" for item in document))


def require_inside(relative):
    """The path is below the table's location, in normal form, and not in the control directory."""
    assert relative == "." or relative == posixpath.normpath(relative)
    assert not relative.startswith(("/", ".."))
    assert "\0" not in relative
    assert not any(part.startswith(".hivekeeper") for part in relative.split("/"))


def require_files(files):
    for file in files:
        assert file.name not in ("", ".", "..")
        assert not set(file.name) & {"/", "\0"}
        assert all(type(number) is int and -(2**63) <= number < 2**63 for number in (file.length, file.mtime_ms, file.file_id))
    assert len({file.name for file in files}) == len(files)


def require_place(place):
    assert PLACE.fullmatch(place)


@many
@given(spoiled(records.PLAN_LINES.values()))
def test_a_spoiled_plan_is_refused_or_stays_below_the_table(text):
    try:
        plan = records.read_plan(text)
    except UnreadableRecord as refused:
        str(refused).encode("utf-8")
        return
    for unit in plan.units:
        assert unit.live == ROOT or unit.live.startswith(ROOT + "/")
        require_inside(unit.live[len(ROOT) + 1 :] or ".")
        require_files(unit.manifest)
        require_files(unit.expected)
        assert not any("/" in marker for marker in unit.markers)
        if unit.backup:
            require_place(unit.backup.place)
            assert unit.backup.run in unit.backup.place
    assert len({unit.number for unit in plan.units}) == len(plan.units)
    assert all(PLACE.fullmatch(f"runs/{record}") for record in plan.records)
    repr(plan).encode("utf-8")


@many
@given(spoiled(records.ENTRIES.values()))
def test_a_spoiled_entry_is_refused_or_stays_below_the_table(text):
    try:
        run = records.read_entry(text)
    except UnreadableRecord as refused:
        str(refused).encode("utf-8")
        return
    for unit in run.units:
        require_inside(unit.live)
        assert not any("/" in name for name in unit.late_files)
    for effect in run.effects:
        require_place(effect.place)
        assert effect.place.startswith(f"runs/{run.directory}/retired/")
        require_files(effect.before)
        require_files(effect.after)
    for place in (*run.discarding, *run.discarded):
        require_place(place)
    json.dumps(run.parameters, allow_nan=False, ensure_ascii=False).encode("utf-8")
    repr(run).encode("utf-8")


@lru_cache(maxsize=1)
def a_checkpoint():
    """The values on the lines of a checkpoint with expired entries, and the files of the others."""
    world = World()
    world.add_table(a_table(["dt"]), {"dt=1": [1000] * 3, "dt=2": [1000] * 2})
    desk = Desk(world, checkpoint_interval=1, log_retention_ms=0)
    for night in range(3):
        desk.compact()
        desk.cleanup(EVERYTHING if night else Settings(min_age_ms=1000))
        desk.append("dt=1", f"a{night}", f"b{night}")
    desk.compact()
    found = store.list_log(world.files, desk.control)
    packed = world.files.read_bytes(found.checkpoints[max(found.checkpoints)])
    lines = strict.lines_of(checkpoint.decompress(packed, "checkpoint"), "checkpoint")
    return [json.loads(line) for line in lines if line], found.entries


@many
@given(st.data())
def test_a_spoiled_checkpoint_is_refused_or_stays_below_the_table(data):
    document, listed = copy.deepcopy(a_checkpoint())
    assert checkpoint.read(packed_lines(document), "checkpoint", listed).expired
    for _ in range(data.draw(st.integers(1, 3))):
        if spots(document):
            spoil(data.draw, document)
    text = spoil_text(data.draw, "\n".join(packed_lines(document)))
    try:
        found = checkpoint.read(strict.lines_of([text], "checkpoint"), "checkpoint", listed)
    except UnreadableRecord as refused:
        str(refused).encode("utf-8")
        return
    assert set(found.runs) >= set(listed)
    for run in found.runs.values():
        for unit in run.units:
            require_inside(unit.live)
        for effect in run.effects:
            require_place(effect.place)
            require_files(effect.before)
            require_files(effect.after)
    repr(found).encode("utf-8")


def packed_lines(document):
    return [json.dumps(item, separators=(",", ":"), ensure_ascii=False) for item in document]


@many
@given(spoiled([lambda: [records.certificate()]]))
def test_a_spoiled_certificate_is_refused_or_names_files(text):
    try:
        certificates = records.read_certificates(text)
    except UnreadableRecord as refused:
        str(refused).encode("utf-8")
        return
    for certificate in certificates:
        assert not any(set(name) & {"/", "\0"} or name in ("", ".", "..") for name in (*certificate.files, *certificate.file_rows))
        assert certificate.total_bytes >= 0


@many
@given(st.one_of(NASTY, st.text(), st.text(alphabet="\n\r\x1b\u2028\u202e() ", max_size=50)))
def test_what_a_lock_file_says_is_shown_as_one_short_line(text):
    shown = table_lock.show_holder(text)
    assert shown.isprintable()
    assert len(shown) <= table_lock.MOST_HOLDER
    shown.encode("utf-8")


@given(st.data())
def test_no_spoiled_record_ends_more_than_its_table_or_touches_another_one(data):
    world = World()
    for name in ("events", "salaries"):
        world.add_table(a_table(["dt"], name=name), {"dt=1": [1000] * 3})
    desk = Desk(world)
    desk.kill_before(["rename_exact", "/retired/u00001"], desk.compact)
    victim = {path: content for path, content in world.picture().items() if "/salaries/" in path}
    top = desk.control.top
    no_records = ("/_hivekeeper", "/_lock", "/clock")
    texts = [path for path, text in world.files.contents(top).items() if isinstance(text, str) and not path.endswith(no_records)]
    path = data.draw(st.sampled_from(sorted(texts)))
    document = [json.loads(line) for line in str(world.picture()[path]).splitlines()]
    spoil(data.draw, document)
    spoiled = spoil_text(data.draw, "".join(json.dumps(item) + "\n" for item in document))
    # A file holds bytes: half a character is read as another one.
    text = spoiled.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
    world.files.writer.delete(path)
    beside = data.draw(st.sampled_from(["", "", "", "_last_checkpoint", f"{3:020d}.checkpoint.json", "٠" * 20 + ".json", f"{0:020d}.json"]))
    world.files.writer.add(f"{top}/log/{beside}" if beside else path, text)
    assert desk.recover().code in (Exit.DONE, Exit.PARTIAL, Exit.REFUSED, Exit.INVESTIGATE)
    assert {path: content for path, content in world.picture().items() if "/salaries/" in path} == victim
    assert sum(world.rows_of("sales.salaries").values()) == 3
