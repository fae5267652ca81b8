"""Procedures for consumers: the stored positions of streams."""

from paimon_core.procedures.procedure import DONE, Call, Rows, procedure


@procedure("reset_consumer(table STRING, consumerId STRING, [nextSnapshotId BIGINT])")
def reset_consumer(call: Call) -> Rows:
    """Set the next snapshot that a consumer reads; without a snapshot, delete the consumer."""
    call.table().consumers.reset(call["consumerId"], call["nextSnapshotId"])
    return DONE


@procedure("clear_consumers(table STRING, [includingConsumers STRING], [excludingConsumers STRING])")
def clear_consumers(call: Call) -> Rows:
    """Delete the consumers whose ids match one regular expression and do not match another one."""
    call.table().consumers.clear(call.text("includingConsumers"), call.text("excludingConsumers"))
    return DONE
