"""`report.html`: a release in one self-contained page, made from the public side only."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dualquery.release.release import Release

MOST_ATTRIBUTES = 200
"""Attributes listed in full; a wider table says how many more there are."""

_STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 56rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; } td, th { padding: .2rem .8rem .2rem 0; text-align: left; }
.stamp { color: #c00; font-weight: bold; }
pre { white-space: pre-wrap; }
"""


def render_page(release: Release) -> str:
    """The page as text. Every name and value from the schema is escaped."""
    privacy = release.privacy
    stamp = f'<p class="stamp">{escape(privacy.stamp)}</p>' if privacy.stamp else ""
    parameters = "".join(
        f"<tr><th scope=row>{escape(str(name))}</th><td>{escape(str(value))}</td></tr>"
        for name, value in release.parameters.items()
    )
    shown = release.schema.attributes[:MOST_ATTRIBUTES]
    attributes = "".join(
        f"<tr><th scope=row>{escape(a.name)}</th><td>{escape(a.describe())}</td></tr>"
        for a in shown
    )
    rest = len(release.schema) - len(shown)
    more = f"<p>and {rest:,} more</p>" if rest else ""
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>A differentially private release</title>
<style>{_STYLE}</style>
</head>
<body>
<h1>A differentially private release</h1>
{stamp}
<p>{len(release.workload):,} queries about {len(release.schema):,} attributes. Answers and rows
come from the {escape(release.source)}.</p>
<h2>Privacy</h2>
<pre>{escape(privacy.text())}</pre>
<h2>Parameters</h2>
<table>{parameters}</table>
<h2>Attributes</h2>
<table>{attributes}</table>
{more}
</body>
</html>
"""
