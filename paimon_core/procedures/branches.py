"""Procedures for branches."""

from paimon_core.procedures.procedure import DONE, Call, Rows, procedure


@procedure("create_branch(table STRING, branch STRING, [tag STRING], [ignoreIfExists BOOLEAN])")
def create_branch(call: Call) -> Rows:
    """Create a branch, empty or with the rows of a tag."""
    ignore = bool(call["ignoreIfExists"])
    call.table().branches.create(call["branch"], call.text("tag"), ignore_if_exists=ignore)
    return DONE


@procedure("delete_branch(table STRING, branch STRING)")
def delete_branch(call: Call) -> Rows:
    """Delete branches, separated by commas."""
    branches = call.table().branches
    names = [name.strip() for name in call["branch"].split(",")]
    for name in names:
        branches.check(name)  # all or none
    for name in names:
        branches.delete(name)
    return DONE


@procedure("rename_branch(table STRING, from_branch STRING, to_branch STRING)")
def rename_branch(call: Call) -> Rows:
    """Rename a branch."""
    call.table().branches.rename(call["from_branch"], call["to_branch"])
    return DONE


@procedure("merge_branch(table STRING, source_branch STRING, [target_branch STRING])")
def merge_branch(call: Call) -> Rows:
    """Add a branch's new rows to the table or to another branch; only for tables without a primary key."""
    table = call.table()
    table.branches.merge(call["source_branch"], call.text("target_branch") or table.store.branch)
    call.refresh()
    return DONE


@procedure("fast_forward(table STRING, branch STRING)")
def fast_forward(call: Call) -> Rows:
    """Fast-forward the table to a branch, whose snapshots, tags and schemas replace the later ones of the table."""
    call.table().branches.fast_forward(call["branch"])
    call.refresh()
    return DONE
