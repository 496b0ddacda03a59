"""The plainest command lines, read without Typer's machinery.

Typer (0.29) builds a pydantic validator per option, and importing pydantic takes longer than an
answer. A command that asks a release needs no validator: its options are texts, paths and
flags. So `arguments_of` reads those from the same declarations. Whatever is not entirely plain (a
help page, a wrong option, a missing value, an abbreviation) is left to Typer, which also words the
error. The tests hold both readings side by side.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from enum import Enum
from inspect import Parameter, signature
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from typer.models import ArgumentInfo, OptionInfo, ParameterInfo

QUICK = ("answer", "table", "summary")
"""The commands that are read here: people wait for them, and they do little."""

_WORDS = {"default", "param_decls", "help", "metavar", "rich_help_panel", "show_default"}
"""What a declaration may say of its own: names, and words of the help page."""


def arguments_of(
    command: Callable[..., object], line: Sequence[str], environment: Sequence[str] = ()
) -> dict[str, Any] | None:
    """The arguments that a command line gives to a command; None if Typer must read it.

    Args:
        command: the function behind the command, its parameters declared as Typer wants them.
        line: what follows the command's name.
        environment: the names of the environment variables; one of completion is Typer's.
    """
    if os.name == "nt" or any(name.endswith("_COMPLETE") for name in environment):
        return None
    hints = get_type_hints(command, include_extras=True)
    names: list[str] = []  # of the positional arguments, in order
    options: dict[str, str] = {}
    kinds: dict[str, Any] = {}
    declared = signature(command).parameters
    for name in declared:
        kinds[name], said = _declared(hints[name])
        if isinstance(said, ArgumentInfo):
            names.append(name)
        elif isinstance(said, OptionInfo):
            for option in _names(name, said):
                options[option] = name
        else:
            return None
    found = _split(line, names, options, kinds)
    if found is None:
        return None
    for name, parameter in declared.items():
        if name in found:
            continue
        if parameter.default is Parameter.empty:
            return None
        found[name] = parameter.default
    return found


def _declared(hint: object) -> tuple[Any, ParameterInfo | None]:
    """A parameter's type and declaration, if the declaration says nothing but words."""
    if get_origin(hint) is not Annotated:
        return hint, None
    kind, said, *more = get_args(hint)
    if more or not isinstance(said, ParameterInfo):
        return kind, None
    usual = vars(type(said)(default=said.default))
    plain = all(value == usual[key] for key, value in vars(said).items() if key not in _WORDS)
    return kind, said if plain else None


def _names(name: str, said: OptionInfo) -> list[str]:
    """The spellings of an option. The first word of a declaration is where a default would be."""
    told = [said.default, *(said.param_decls or ())]
    spelt = [one for one in told if isinstance(one, str)]
    return spelt or ["--" + name.replace("_", "-")]


def _split(
    line: Sequence[str], names: list[str], options: dict[str, str], kinds: dict[str, Any]
) -> dict[str, Any] | None:
    """The values on a command line, by parameter."""
    found: dict[str, Any] = {}
    positional: list[str] = []
    words = iter(line)
    for word in words:
        if not word.startswith("-"):
            positional.append(word)
            continue
        name = options.get(word)
        if name is None or name in found:
            return None
        if kinds[name] is bool:
            found[name] = True
            continue
        value = next(words, "-")
        if value.startswith("-") or not _take(found, name, kinds[name], value):
            return None
    *single, last = names
    if len(positional) <= len(single) or get_origin(kinds[last]) is not list:
        return None
    if not all(
        _take(found, name, kinds[name], value)
        for name, value in zip(single, positional, strict=False)
    ):
        return None
    rest: list[Any] = []
    for value in positional[len(single) :]:
        one: dict[str, Any] = {}
        if not _take(one, last, get_args(kinds[last])[0], value):
            return None
        rest.append(one[last])
    return {**found, last: rest}


def _take(found: dict[str, Any], name: str, kind: Any, value: str) -> bool:
    """Note a value as what its type makes of it; False if that is not plain."""
    possible = [one for one in get_args(kind) or (kind,) if one is not type(None)]
    if len(possible) != 1 or not value or not value.isprintable():
        return False
    wanted = possible[0]
    if wanted in (str, Path):
        found[name] = wanted(value)
        return True
    if isinstance(wanted, type) and issubclass(wanted, Enum):
        for one in wanted:
            if one.value == value:
                found[name] = one
        return name in found
    return False
