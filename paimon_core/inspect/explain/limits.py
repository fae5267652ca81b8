"""The default limit of explanations, without the imports that explaining needs."""

from typing import Final

DEFAULT_LISTED: Final = 20
"""The number of splits, and of sections, that an explanation lists by default."""
