"""What ``tracekit new-module NAME`` writes: a module that works, its naive reference, and the test that compares them.

The files stand here as code, so that they are checked as the rest is; the command puts NAME in the place of their own.
"""

from __future__ import annotations

from importlib.resources import files

NAME = "template_name"
FILES = (f"{NAME}.py", f"naive_{NAME}.py", f"test_{NAME}.py")


def written(name: str) -> dict[str, str]:
    """File name -> its text, for a module called `name` (lower case, words joined by underscores)."""
    texts = {}
    for file in FILES:
        text = files(__name__).joinpath(file).read_text(encoding="utf-8")
        text = text.replace(f"{__name__}.", "").replace("TemplateName", name.title().replace("_", ""))
        texts[file.replace(NAME, name)] = text.replace(NAME, name)
    return texts
