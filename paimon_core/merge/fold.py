"""What a merge engine is to this package: a function from a window to its result."""

from collections.abc import Callable
from typing import TypeAlias

import pyarrow as pa

from paimon_core.merge.window import Window

MergeFunction: TypeAlias = Callable[[Window], pa.Table]
"""One row for each group in key order, or none for a group that vanishes; the columns are those of the window.

A group of one row passes as it is, its kind and sequence number included. Removed rows stay, as retracting rows
(-U, -D): readers and compactions drop them where nothing older can lie below.
"""
