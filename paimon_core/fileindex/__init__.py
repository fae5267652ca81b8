"""File indexes: what a data file holds of some columns, to skip it, or rows of it. `FILE_INDEXES` is the registry."""

from paimon_core.fileindex.bitmap import Bitmap
from paimon_core.fileindex.bloom import BloomFilter
from paimon_core.fileindex.bsi import BitSliced
from paimon_core.fileindex.index import FileIndex
from paimon_core.fileindex.range_bitmap import RangeBitmap

__all__ = ["FILE_INDEXES"]

FILE_INDEXES: dict[str, FileIndex] = {i.name: i for i in (BloomFilter(), Bitmap(), BitSliced(), RangeBitmap())}
