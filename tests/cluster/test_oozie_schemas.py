"""The workflows and the coordinator of conf/oozie against Oozie's own schemas from its client jar. Needs Maven, no cluster."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from lxml import etree

ROOT = Path(__file__).parents[2]
POM = Path(__file__).with_name("pom-oozie.xml")
OOZIE = ROOT / "conf" / "oozie"
EXAMPLES = sorted(OOZIE.rglob("*.xml"))
XS = "http://www.w3.org/2001/XMLSchema"
ACTIONS = ("oozie-workflow-1.0", "oozie-coordinator-0.5", "shell-action-1.0", "spark-action-1.0")


@pytest.fixture(scope="module")
def schemas() -> Path:
    """The directory with Oozie's schemas. Skips with a clear reason without Maven; never in CI."""
    if shutil.which("mvn") is None and not os.environ.get("CI"):
        pytest.skip("NOTHING TESTED: mvn is not on PATH")
    directory = ROOT / "build" / "oozie-schemas"
    subprocess.run(["mvn", "-q", "-B", "-f", str(POM), "dependency:unpack", f"-Doozie.schemas={directory}"], check=True, timeout=300)
    return directory


@pytest.fixture(scope="module")
def schema(schemas: Path) -> etree.XMLSchema:
    """One schema with everything the examples use: actions have their own namespaces, which the workflow's schema does not check."""
    whole = etree.Element(f"{{{XS}}}schema", nsmap={"xs": XS})
    for name in ACTIONS:
        path = schemas / f"{name}.xsd"
        namespace = etree.parse(str(path)).getroot().get("targetNamespace")
        etree.SubElement(whole, f"{{{XS}}}import", namespace=namespace, schemaLocation=path.as_uri())
    return etree.XMLSchema(whole)


def test_there_are_two_workflows_and_a_coordinator():
    assert [str(path.relative_to(OOZIE)) for path in EXAMPLES] == ["coordinator.xml", "shell/workflow.xml", "spark/workflow.xml"]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: str(path.relative_to(OOZIE)))
def test_an_example_is_what_oozies_own_schema_asks_for(schema, path):
    schema.assertValid(etree.parse(str(path)))


@pytest.mark.parametrize(
    ("example", "right", "wrong"),
    [
        ("shell/workflow.xml", '<ok to="after-compact"/>', ""),
        ("shell/workflow.xml", "<exec>hivekeeper-action</exec>", ""),
        ("shell/workflow.xml", "<capture-output/>", "<captured-output/>"),
        ("shell/workflow.xml", '<default to="manual"/>', ""),
        ("spark/workflow.xml", "<master>yarn</master>", ""),
        ("spark/workflow.xml", "<arg>compact-swap</arg>", "<argument>compact-swap</argument>"),
        ("spark/workflow.xml", "uri:oozie:spark-action:1.0", "uri:oozie:spark-action:1.1"),
        ("coordinator.xml", "<app-path>${workflowPath}</app-path>", ""),
        ("coordinator.xml", "<concurrency>1</concurrency>", "<concurrent>1</concurrent>"),
    ],
)
def test_a_broken_example_is_refused(schema, example, right, wrong):
    text = (OOZIE / example).read_text("utf-8")
    assert right in text
    assert not schema.validate(etree.fromstring(text.replace(right, wrong, 1).encode("utf-8")))
