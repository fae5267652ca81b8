"""All targets by name."""

from tests.fuzz import file_targets, metadata_targets, server_targets, table_targets, text_targets
from tests.fuzz.target import Target

_MODULES = (metadata_targets, file_targets, text_targets, server_targets, table_targets)
TARGETS: dict[str, Target] = {target.name: target for module in _MODULES for target in module.TARGETS}

MODULE_OF: dict[str, str] = {
    target.name: module.__name__.rpartition(".")[2] for module in _MODULES for target in module.TARGETS
}
"""The module of each target."""
