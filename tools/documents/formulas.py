"""Formulas between dollar signs become MathML, which browsers typeset without a script."""

from __future__ import annotations

import re

from latex2mathml.converter import convert

CODE = re.compile(r"^(```|~~~).*?^\1[ \t]*$|`[^`\n]*`", re.M | re.S)
FORMULA = re.compile(r"\$\$\s*(.+?)\s*\$\$|\$([^$\s](?:[^$]*[^$\s])?)\$", re.S)
BARS = {
    r"\lvert": ("⟦", '<mo form="prefix" stretchy="false">|</mo>'),
    r"\rvert": ("⟧", '<mo form="postfix" stretchy="false">|</mo>'),
    r"\lVert": ("⟪", '<mo form="prefix" stretchy="false">‖</mo>'),
    r"\rVert": ("⟫", '<mo form="postfix" stretchy="false">‖</mo>'),
}
"""A bar that does not say which side it closes would be set apart like a sign between terms."""

OPERATOR = re.compile(r"<mi>([^\w\s])</mi>")
NAME = re.compile(r"<mo>([A-Za-z]\w*)</mo>")
FUNCTION = re.compile(r"(?<!<msub>)(?<!<msup>)(?<!<munder>)(<mi>\w\w+</mi>)(?=<m[inst])")
SIGN = re.compile(r"((?:&#x000(?:28|5B|3D|2C);|[≤≥·⟦\[])</mo>)<mo>([−±])</mo>")
"""A minus after a bracket or another sign belongs to what follows it."""

SLASH = "<mo>&#x0002F;</mo>"
MEANT_BY_MARKDOWN = str.maketrans({sign: f"&#{ord(sign)};" for sign in "*_|[]`\\~^"})


def typeset(page: str) -> str:
    """The Markdown of a page, with its formulas as MathML. What stands in code stays as it is."""
    parts, end = [], 0
    for code in CODE.finditer(page):
        parts += [FORMULA.sub(_formula, page[end : code.start()]), code.group()]
        end = code.end()
    return "".join([*parts, FORMULA.sub(_formula, page[end:])])


def mathml(latex: str, display: bool = False) -> str:
    """One formula. Signs that stand for themselves are operators, as if they had names in LaTeX."""
    source = " ".join(latex.split())
    for name, (stand_in, _) in BARS.items():
        source = source.replace(name, stand_in)
    made = convert(source, display="block" if display else "inline")
    for stand_in, bar in BARS.values():
        made = made.replace(f"<mi>{stand_in}</mi>", bar)
    if "\\" in made:
        raise ValueError(f"not understood in the formula {latex}")
    # Few fonts have the sign for differences of sets.
    made = made.replace("<mi>&#x029F5;</mi>", "<mo>&#92;</mo>")
    made = NAME.sub(r"<mi>\1</mi>", OPERATOR.sub(r"<mo>\1</mo>", made))
    made = SIGN.sub(r'\1<mo form="prefix">\2</mo>', made)
    made = FUNCTION.sub(r'\1<mspace width="0.167em" />', made)
    made = made.replace(SLASH, SLASH.replace("<mo>", '<mo lspace="0" rspace="0">'))
    return made.translate(MEANT_BY_MARKDOWN)


def _formula(found: re.Match[str]) -> str:
    block, inline = found.groups()
    shown = mathml(block or inline, display=block is not None)
    # Markdown would take a line that begins with a formula for a block of HTML.
    return f'<div class="formula">{shown}</div>' if block else f"<span>{shown}</span>"
