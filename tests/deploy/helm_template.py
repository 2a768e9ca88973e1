"""As much of Helm's template language as deploy/helm uses: values, quote, toYaml with nindent, if and range.

What it does not know is an error, so that the chart and this stay together.
"""
import json
import re

import yaml

ACTION = re.compile(r"(?P<left>\{\{-\s*|\{\{\s*)(?P<code>.*?)(?P<right>\s*-\}\}|\s*\}\})", re.S)


def render(template, context):
    """The template's text with the context's .Values and .Release put in."""
    tokens, position = [], 0
    for action in ACTION.finditer(template):
        text = template[position:action.start()]
        tokens.append(text.rstrip() if "-" in action["left"] else text)
        tokens.append(action["code"])
        position = action.end()
        if "-" in action["right"]:
            position += len(template[position:]) - len(template[position:].lstrip())
    tokens.append(template[position:])
    text, rest = _block(tokens, dict(context, variables={}))
    assert not rest, f"not understood from here on: {rest}"
    return text


def _block(tokens, context):
    """Renders up to an `end` or the end; the text and the tokens after it."""
    text, tokens = tokens[0], tokens[1:]
    while tokens and tokens[0] != "end":
        code, tokens = tokens[0], tokens[1:]
        if code.startswith("if "):
            inner, after = _block(tokens, context)
            text += inner if _value(code[3:], context) else ""
        elif found := re.fullmatch(r"range \$(\w+), \$(\w+) := (\S+)", code):
            after = _block(tokens, dict(context, variables={found[1]: "", found[2]: ""}))[1]
            for key, value in sorted(_value(found[3], context).items()):
                text += _block(tokens, dict(context, variables={found[1]: key, found[2]: value}))[0]
        else:
            text += _pipe(code, context)
            after = ["end", *tokens]
        text, tokens = text + after[1], after[2:]
    return text, tokens


def _pipe(code, context):
    first, *filters = [part.strip() for part in code.split("|")]
    if first.startswith("toYaml "):
        value = yaml.safe_dump(_value(first[7:], context), default_flow_style=False).rstrip("\n")
    else:
        value = str(_value(first, context))
    for name in filters:
        if name == "quote":
            value = json.dumps(value)
        elif name.startswith("nindent "):
            indent = "\n" + " " * int(name[8:])
            value = indent + value.replace("\n", indent)
        else:
            raise ValueError(f"unknown filter: {name}")
    return value


def _value(path, context):
    if path.startswith("$"):
        return context["variables"][path[1:]]
    value = context
    for name in path.strip().lstrip(".").split("."):
        value = value[name]
    return value
