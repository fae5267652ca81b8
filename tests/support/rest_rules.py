"""The JSON of row filters and column masks, as a REST server answers it."""

import json


def column(name, kind="STRING"):
    """A column in a rule."""
    return {"index": 0, "name": name, "type": kind}


def field(name, kind="STRING"):
    """A transform that returns a column."""
    return {"name": "FIELD_REF", "fieldRef": column(name, kind)}


def leaf(transform, function, *literals):
    """A test of a value."""
    return {"kind": "LEAF", "transform": transform, "function": function, "literals": list(literals)}


def compound(function, *children):
    """The AND or OR of tests."""
    return {"kind": "COMPOUND", "function": function, "children": list(children)}


def text(name, *inputs):
    """A transform of texts."""
    return {"name": name, "inputs": list(inputs)}


def rules(*filters, **masks):
    """The answer of a server with row filters, and with masks by column."""
    answer = {}
    if filters:
        answer["filter"] = [json.dumps(one) for one in filters]
    if masks:
        answer["columnMasking"] = {name: json.dumps(mask) for name, mask in masks.items()}
    return answer
