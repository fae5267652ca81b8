"""The API reference of the site: a hook of mkdocs that makes one page for each group of public classes.

mkdocstrings renders the docstrings. A name that `paimon_core` or `paimon_spark` exports and that no group names is on
the page of its package, so the reference is complete. `docs/` has no file of these pages, only the navigation has.
"""

import ast
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parent.parent
FOLDER = "reference/api"
GROUPS = {
    "table": (
        "Table and system tables",
        "Open, create, read, write and maintain one table without Spark.",
        [
            "paimon_core.Table",
            "paimon_core.table.changeable_table.ChangeableTable",
            "paimon_core.MergeBuilder",
            "paimon_core.table.stored_table.StoredTable",
            "paimon_core.ReadableTable",
            "paimon_core.SystemTable",
        ],
    ),
    "groups": (
        "Tags, branches, consumers and maintenance",
        "Use these groups of methods as `table.tags`, `table.branches`, `table.consumers` and `table.maintenance`.",
        [
            "paimon_core.operations.history.table_tags.TableTags",
            "paimon_core.operations.history.table_branches.TableBranches",
            "paimon_core.operations.history.table_consumers.TableConsumers",
            "paimon_core.operations.table_maintenance.TableMaintenance",
        ],
    ),
    "catalog": (
        "Catalog and schema",
        "List, create, copy and drop tables by name; declare and change their schemas.",
        ["paimon_core.FileSystemCatalog", "paimon_core.Schema"],
    ),
    "reading": (
        "Scans, reads and streams",
        "Plan a read, read its splits in any process, and follow the changes of a table.",
        [
            "paimon_core.scan.table_scan.TableScan",
            "paimon_core.DataSplit",
            "paimon_core.read.table_read.TableRead",
            "paimon_core.read.stream.Stream",
            "paimon_core.col",
            "paimon_core.predicate.expr.Column",
            "paimon_core.predicate.expr.Predicate",
        ],
    ),
    "writing": (
        "Writers and commits",
        "Write rows in several processes, and commit their files once.",
        [
            "paimon_core.write.table_write.TableWrite",
            "paimon_core.CommitMessage",
            "paimon_core.commit.table_commit.TableCommit",
        ],
    ),
    "spark": (
        "Spark connector",
        "Functions and classes of `paimon_spark`. Reads and writes of DataFrames need only `format(\"paimon\")`.",
        ["paimon_spark.PaimonTable", "paimon_spark.maintained_table.MaintainedTable"],
    ),
    "errors": (
        "Errors",
        "Catch `PaimonError`, or the subclass that says how to react.",
        [],
    ),
    "more": (
        "More public names of paimon_core",
        "Schema changes, and the values that methods return.",
        [],
    ),
}  # fmt: skip
"""Pages by name: title, purpose, and the objects in their order. The last three get the names that remain."""
OPTIONS = """\
    options:
      heading_level: 2
      show_root_heading: true
      show_root_full_path: false
      show_source: false
      show_bases: true
      show_if_no_docstring: false
      merge_init_into_class: true
      inherited_members: true
      members_order: source
      separate_signature: true
      show_signature_annotations: true
      signature_crossrefs: false
      docstring_section_style: list
      filters: ["!^_"]
"""
ROLE = re.compile(r":(?:meth|class|func|attr|mod|data):(?=<code>)")


def exported(package: str) -> list[str]:
    """Return the paths of the names in `__all__` of a package.

    A name that is a module too, such as `paimon_spark.clustered`, gets the path of its definition.
    """
    tree = ast.parse((ROOT / package / "__init__.py").read_text(encoding="utf-8"))
    modules = {
        name.name: node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for name in node.names
    }
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == "__all__":
            names = ast.literal_eval(node.value)
            return [f"{modules[n]}.{n}" if modules.get(n) == f"{package}.{n}" else f"{package}.{n}" for n in names]
    raise LookupError(f"{package} has no __all__")


def objects() -> dict[str, list[str]]:
    """Return the objects of each page."""
    pages = {name: list(listed) for name, (_, _, listed) in GROUPS.items()}
    grouped = {path.rpartition(".")[2] for listed in pages.values() for path in listed}
    rest = [name for name in exported("paimon_core") if name.rpartition(".")[2] not in grouped]
    pages["errors"] += [name for name in rest if name.endswith("Error")]
    pages["more"] += [name for name in rest if not name.endswith("Error")]
    pages["spark"] += [name for name in exported("paimon_spark") if name.rpartition(".")[2] not in grouped]
    return pages


def page(name: str) -> str:
    """Return the Markdown of a page of the reference."""
    title, purpose, _ = GROUPS[name]
    return f"# {title}\n\n{purpose}\n\n" + "\n".join(f"::: {path}\n{OPTIONS}" for path in objects()[name])


def on_files(files: Files, *, config: Any) -> Files:
    """Add the pages of the reference."""
    for name in GROUPS:
        files.append(File.generated(config, f"{FOLDER}/{name}.md", content=page(name)))
    return files


def on_page_content(html: str, *, page: Any, config: Any, files: Files) -> str:
    """Remove the roles of Sphinx, such as `:meth:`, which editors read in docstrings."""
    return ROLE.sub("", html) if page.file.src_uri.startswith(f"{FOLDER}/") else html
