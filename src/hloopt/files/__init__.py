"""Files of HLO, text or protos: plain or packed, single or in folders; written whole or not."""

from hloopt.files.inputs import find_inputs
from hloopt.files.names import file_name
from hloopt.files.packing import unpacked_name
from hloopt.files.reading import (
    STANDARD_STREAM,
    has_proto_suffix,
    has_proto_text_suffix,
    load,
    read_module,
    read_proto,
    read_proto_text,
    read_source,
    read_text_or_module,
)
from hloopt.files.storage import is_folder, is_remote
from hloopt.files.writing import (
    check_writable,
    is_stdout,
    make_folder,
    save,
    write_bytes,
    write_whole,
)

__all__ = [
    "STANDARD_STREAM",
    "check_writable",
    "file_name",
    "find_inputs",
    "has_proto_suffix",
    "has_proto_text_suffix",
    "is_folder",
    "is_remote",
    "is_stdout",
    "load",
    "make_folder",
    "read_module",
    "read_proto",
    "read_proto_text",
    "read_source",
    "read_text_or_module",
    "save",
    "unpacked_name",
    "write_bytes",
    "write_whole",
]
