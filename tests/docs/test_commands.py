"""Every command that a document shows exists, with its options; and it is run, or said why not."""

from __future__ import annotations

import re
import shlex
from functools import cache
from typing import Any

import pytest
import typer

from dualquery.cli import COMMANDS, application
from tests.docs.test_documents import DOCS, FOLLOWED, GUIDES, ROOT
from tests.docs.test_names import PAGES, text_of

FENCED = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.M | re.S)

NOT_FOLLOWED = {
    "guide/app.md": "it runs until it is closed; tests/browser/test_app.py clicks through it",
    "guide/audit.md": "2,000 releases take a minute; tests/auditing makes fewer of them",
    "guide/paper.md": "experiments take hours; tests/paper runs every one of them with --quick",
    "guide/scaling.md": "needs a cluster; tests/engines runs the same with a scheduler of its own",
    "develop/walk.md": "tests/docs/test_walk.py runs these two commands under a profiler",
}
"""Pages with commands that no test follows line by line, and what runs instead."""


def commands(page: str) -> list[str]:
    """The lines of fenced blocks, and the backticked words, that call a command of the package."""
    text = text_of(page)
    lines = [
        line for _, body in FENCED.findall(text) for line in body.replace("\\\n", " ").splitlines()
    ] + re.findall(r"`([^`\n]+)`", FENCED.sub("", text))
    called = rf"(?:\$ )?dualquery ((?:{'|'.join(COMMANDS)})\b.*)"
    return [found.group(1) for line in lines if (found := re.fullmatch(called, line.strip()))]


@cache
def group() -> Any:
    return typer.main.get_command(application())


def options(name: str) -> set[str]:
    shown = group().commands[name].params
    return {option for one in shown for option in (*one.opts, *one.secondary_opts)}


def unknown_options(command: str) -> list[str]:
    words = shlex.split(command.replace("\\|", "|"), comments=True)
    asked = {word.partition("=")[0] for word in words[1:] if re.match(r"--[a-z]", word)}
    return sorted(asked - options(words[0]) - {"--help"})


@pytest.mark.parametrize("page", PAGES)
def test_commands_that_a_page_shows_have_their_options(page: str) -> None:
    assert [(line, wrong) for line in commands(page) if (wrong := unknown_options(line))] == []


def test_a_wrong_option_would_be_noticed() -> None:
    assert unknown_options('release t.csv --schema s.toml --epsilon 1 --title "a b" …') == []
    assert unknown_options("release t.csv --scheme s.toml --no-measure") == ["--scheme"]
    assert len([line for page in PAGES for line in commands(page)]) > 80


def test_commands_stand_in_blocks_that_are_run() -> None:
    """`sh` blocks are run line by line; another block with a command needs a reason."""
    elsewhere = {
        page
        for page in GUIDES
        for language, body in FENCED.findall((DOCS / page).read_text(encoding="utf-8"))
        if language != "sh" and re.search(r"^(\$ )?dualquery ", body, re.M)
    }
    assert elsewhere == set(NOT_FOLLOWED)
    assert not set(NOT_FOLLOWED) & set(FOLLOWED)


def test_readme_shows_no_command_that_no_test_runs() -> None:
    """Its Python runs in the slow lane and in `make release-check`, its targets in every build."""
    blocks = FENCED.findall((ROOT / "README.md").read_text(encoding="utf-8"))
    shown = "".join(body for language, body in blocks if language not in ("python", "toml"))
    assert re.findall(r"^make (\w+)", shown, re.M) == ["demo", "test"]
    assert "dualquery " not in shown.replace("pip install dualquery", "").replace("src/", "")


def test_no_help_loses_what_stands_in_brackets() -> None:
    """The terminal takes [word] for a style and shows nothing of it."""
    said = [
        text
        for command in group().commands.values()
        for text in (command.help, *(getattr(p, "help", "") for p in command.params))
    ]
    assert [text for text in said if re.search(r"(?<!\\)\[[a-z/]", text or "")] == []
