"""Renders the configuration reference: the commented YAML of all defaults, the template, the page for operators.

Pure. conf/defaults.yaml and docs/configuration.md are generated from this, and a test compares them.
"""

from __future__ import annotations

import textwrap
from itertools import groupby
from typing import Iterator, List

from hivekeeper.config.definitions import Setting
from hivekeeper.config.settings import list_settings
from hivekeeper.config.sources import TABLES

WIDTH = 120

HEAD = """\
# Every key of Hivekeeper's configuration, with its default. Later layers win: this file, site.yaml, files
# given with -c, the environment (HIVEKEEPER_BLOCK_SIZE, HIVEKEEPER_SPARK__QUEUE), flags and --set.
# A key without a value counts as not given. Sizes: 512m, 8g, 2TB (powers of 1024). Times: 90s, 15m, 4h, 7d.
"""

SECTIONS = {
    "catalogue": "What commands saw and did, kept as tables for SQL: docs/catalogue.md. Off without base_path.",
    "spark": "How spark-submit is called.",
    "kerberos": "The keytab that Spark logs in with and renews its tickets from. Without one the user's ticket is used. Give principal and "
    "keytab together, or neither.",
}

ABOUT_TABLES = (
    "Settings for some tables: a pattern of database.table, and below it any key that docs/configuration.md marks as per table. "
    "Of several patterns that match, the last one wins."
)


def render_defaults() -> str:
    """conf/defaults.yaml."""
    return "\n".join([HEAD, *_lines(commented_out=False)]) + "\n"


def render_template() -> str:
    """The defaults with each key commented out: the file changes nothing until a line is uncommented."""
    return "\n".join([HEAD, *_lines(commented_out=True)]) + "\n"


def _lines(commented_out: bool) -> Iterator[str]:
    mark = "#" if commented_out else ""
    for section, settings in groupby(list_settings(), lambda each: each.section):
        indent = "  " if section else ""
        if section:
            yield from ["", *_comment(SECTIONS[section], ""), f"{section}:"]
        for each in settings:
            yield from _comment(each.meaning, indent)
            yield f"{indent}{mark}{each.name}:{_default(each)}"
    yield from ["", *_comment(ABOUT_TABLES, ""), f"{mark}{TABLES}: {{}}"]


def _comment(text: str, indent: str) -> List[str]:
    return textwrap.wrap(text, WIDTH, initial_indent=f"{indent}# ", subsequent_indent=f"{indent}# ", break_on_hyphens=False)


def _default(setting: Setting) -> str:
    if setting.is_map:
        return " {}"
    if setting.type.is_list:
        return f" [{setting.default}]"
    return f" {setting.default}" if setting.default else ""


PAGE = """\
# Configuration

Every setting, generated from the program's own definitions. [conf/defaults.yaml](../conf/defaults.yaml) is the same as a YAML file;
`bin/hivekeeper config --template` writes a commented file to start from, `bin/hivekeeper config` shows the effective values and where
each one comes from.

Later layers win: the defaults, `site.yaml` in `HIVEKEEPER_CONF_DIR`, files given with `-c`, environment variables, `--set KEY=VALUE`,
flags. A key without a value counts as not given; an empty text (`''`) removes the value of a lower layer. Sizes are `512m`, `8g`, `2TB`
(powers of 1024), times `90s`, `15m`, `4h`, `7d`. Below `tables:` a pattern of `database.table` may have its own value for each key that is
marked *per table*:

```yaml
tables:
  "sales.*":
    compression: zstd
```

Of several patterns that match, the last one wins. A flag wins over every pattern.
"""

TITLES = {"": "Work", "catalogue": "Catalogue", "spark": "Spark", "kerberos": "Kerberos"}


def render_page() -> str:
    """docs/configuration.md."""
    parts = [PAGE]
    for section, settings in groupby(list_settings(), lambda each: each.section):
        rows = ["| key | default | meaning | per table | flag | environment |", "| --- | --- | --- | --- | --- | --- |"]
        parts.append("\n".join([f"## {TITLES[section]}", "", *rows, *map(_row, settings)]) + "\n")
    return "\n".join(parts)


def _row(setting: Setting) -> str:
    meaning = setting.meaning
    if setting.alias:
        meaning += f" `{setting.alias.name}` takes {setting.alias.type.allowed}."
    default = _default(setting).strip()
    cells = [
        f"`{setting.key}`",
        f"`{default}`" if default else "",
        meaning.replace("|", "\\|"),
        "yes" if setting.per_table else "",
        f"`{setting.flag.name}`" if setting.flag else "",
        f"`{setting.variable}`" if setting.variable else "",
    ]
    return f"| {' | '.join(cells)} |".replace("|  |", "| |").replace("|  |", "| |")
