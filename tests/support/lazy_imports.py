"""The names that a module imports for type checkers, and the names that it imports on first use."""

import ast


def type_checking_imports(tree):
    """Return the names that a module imports for type checkers only: name in the module, (module, name)."""
    blocks = [node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
    imports = [node for block in blocks for node in block.body if isinstance(node, ast.ImportFrom)]
    return {alias.asname or alias.name: (node.module, alias.name) for node in imports for alias in node.names}


def lazy_imports(tree):
    """Return the names that a module imports on first use: name in the module, (module, name)."""
    lazy = {}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Assign):
            continue
        if ast.unparse(node.targets[0]) == "_NAMES":
            for module, names in ast.literal_eval(node.value).items():
                for name, _, alias in (item.partition("=") for item in names.split()):
                    lazy[alias or name] = module, name
        elif isinstance(node.value, ast.Call) and ast.unparse(node.value.func) == "deferred":
            lazy[ast.unparse(node.targets[0])] = tuple(map(ast.literal_eval, node.value.args))
    return lazy
