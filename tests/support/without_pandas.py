"""A plugin of pytest (`-p tests.support.without_pandas`): importing pandas fails, as if it was not installed."""

import sys

sys.modules["pandas"] = None  # type: ignore[assignment]
