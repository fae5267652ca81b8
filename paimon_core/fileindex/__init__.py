"""File indexes: summaries of columns of a data file, to skip the file or some of its rows.

`FILE_INDEXES` registers the kinds of indexes.
"""

from paimon_core.fileindex.bitmap import Bitmap
from paimon_core.fileindex.bloom import BloomFilter
from paimon_core.fileindex.bsi import BitSliced
from paimon_core.fileindex.index import FileIndex
from paimon_core.fileindex.range_bitmap import RangeBitmap

__all__ = ["FILE_INDEXES"]

FILE_INDEXES: dict[str, FileIndex] = {i.name: i for i in (BloomFilter(), Bitmap(), BitSliced(), RangeBitmap())}
