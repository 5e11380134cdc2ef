"""Usage: python packaging/make_generated.py

Write every file in the repository that is generated from the program's own definitions. A test compares them.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Dict

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "job"), str(ROOT / "packaging")]


def generate() -> Dict[str, str]:
    """The text of each generated file, by its path in the repository."""
    import cli_page
    import code_tables

    from hivekeeper.config import reference

    return {
        "conf/defaults.yaml": reference.render_defaults(),
        "docs/configuration.md": reference.render_page(),
        **code_tables.fill_pages(),
        "docs/cli.md": cli_page.render_page(),
    }


def main() -> int:
    sys.path.insert(0, str(ROOT / "job"))
    for path, text in generate().items():
        (ROOT / path).write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
