"""The format "paimon" as Spark sees it: a name, a schema, a batch reader and a batch writer."""

from collections.abc import Mapping
from typing import Any, NoReturn

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamWriter, DataSourceWriter
from pyspark.sql.types import StructType

from paimon_core.errors import UnsupportedError
from paimon_core.table import Table, project
from paimon_spark.options import ReadRequest, read_request, stream_write_request, write_request
from paimon_spark.reader import reader_of
from paimon_spark.stream_writer import PaimonStreamWriter
from paimon_spark.types import spark_schema
from paimon_spark.writer import PaimonWriter, table_to_write


class PaimonDataSource(DataSource):
    """Tables of Apache Paimon, read and written in batches and streams.

    Spark builds one of these from the options of a read or write and calls it in Python processes of its own.
    """

    @classmethod
    def name(cls) -> str:
        """What stands in ``format(...)``."""
        return "paimon"

    def schema(self) -> StructType:
        """Columns of the table at the moment the options choose, narrowed to the option ``columns``."""
        request, table = self._table()
        return spark_schema(project(table.scan(**request.when).store.schema, request.columns))

    def reader(self, schema: StructType) -> DataSourceReader:
        """A reader of exactly the columns of ``schema``, which is the user's own if one was given."""
        request, table = self._table()
        return reader_of(table, request, schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """A writer into the table, which is made from ``schema`` and the options when there is none yet."""
        request = write_request(_mapping(self.options), schema.names)
        return PaimonWriter(table_to_write(request, schema), request, schema, overwrite)

    def streamReader(self, schema: StructType) -> NoReturn:
        """Refused: batch reads only."""
        raise UnsupportedError("readStream is not supported yet by the format 'paimon' here: use spark.read")

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        """A writer of micro-batches into the table, which is made from ``schema`` and the options if there is none."""
        request = stream_write_request(_mapping(self.options), schema.names)
        return PaimonStreamWriter(table_to_write(request, schema), request, schema, overwrite)

    def _table(self) -> tuple[ReadRequest, Table]:
        request = read_request(_mapping(self.options))
        place = request.place
        table = Table.open(place.path, place.storage_options, request.options, place.branch)
        return request, table.read_optimized() if place.read_optimized else table


def _mapping(options: Any) -> Mapping[str, str]:
    return {str(key): str(value) for key, value in options.items()}
