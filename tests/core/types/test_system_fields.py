import pytest

from paimon_core.errors import InvalidInputError
from paimon_core.types.datatype import INT, DataField
from paimon_core.types.system_fields import SEQUENCE_NUMBER, VALUE_KIND, check_names, is_reserved, key_field


def test_ids_of_format():
    assert (SEQUENCE_NUMBER.id, str(SEQUENCE_NUMBER.type)) == (2147483646, "BIGINT NOT NULL")
    assert (VALUE_KIND.id, str(VALUE_KIND.type)) == (2147483645, "TINYINT NOT NULL")


def test_key_columns_have_twin():
    assert key_field(DataField(2, "a", INT)) == DataField(1073741825, "_KEY_a", INT)


def test_names_of_system_fields_are_reserved():
    assert is_reserved("_KEY_x")
    assert is_reserved("rowkind")
    assert not is_reserved("_key_x")
    check_names(["a", "_b"])
    with pytest.raises(InvalidInputError, match="'_KEY_a', '_LEVEL' are reserved"):
        check_names(["_KEY_a", "ok", "_LEVEL"])
