"""The page of every verb's options: what `dynaesti VERB --help` prints."""

import os
import subprocess
import sys
from pathlib import Path

from sphinx.application import Sphinx

from dynaesti.cli.dispatch import VERBS

HEAD = """# Options of every verb

What `dynaesti VERB --help` prints. What the verbs do, and what they have in common:
[the command line](../commands.md).
"""


def help_of(verb: str) -> str:
    """What a verb prints about itself."""
    done = subprocess.run(
        [sys.executable, "-m", "dynaesti", verb, "--help"],
        env=os.environ | {"COLUMNS": "96", "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def write(app: Sphinx) -> None:
    """Write the page, unless it is there as it should be."""
    parts = [HEAD, *(f"## {verb}\n\n```text\n{help_of(verb).rstrip()}\n```\n" for verb in VERBS)]
    target = Path(app.srcdir, "reference", "generated", "options.md")
    target.parent.mkdir(parents=True, exist_ok=True)
    text = "\n".join(parts)
    if not target.exists() or target.read_text(encoding="utf-8") != text:
        target.write_text(text, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Write before Sphinx looks for pages."""
    app.connect("builder-inited", write)
    return {"parallel_read_safe": True}
