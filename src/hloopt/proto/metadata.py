"""OpMetadata messages."""

from __future__ import annotations

from typing import Any

from hloopt.ir.attributes.values.metadata import OpMetadata
from hloopt.proto.codecs import decoded, encoded

_PLAIN = (
    *("op_type", "op_name", "source_file", "source_line", "source_end_line", "source_column"),
    *("source_end_column", "deduplicated_name", "scheduling_name", "stack_frame_id"),
)
"""Fields that text and message have in common."""


def read_metadata(proto: Any) -> OpMetadata:
    """The metadata of the OpMetadata `proto`; a payload stands in the message itself."""
    fields = {field.name: value for field, value in proto.ListFields() if field.name in _PLAIN}
    if proto.profile_type:
        fields["profile_type"] = tuple(proto.profile_type)
    if proto.HasField("metadata_payload"):
        fields["metadata_payload"] = decoded(proto.metadata_payload.value)
    return OpMetadata(**fields)


def write_metadata(metadata: OpMetadata, proto: Any) -> None:
    proto.SetInParent()
    for name in _PLAIN:
        value = getattr(metadata, name)
        if value:
            setattr(proto, name, value)
    proto.profile_type.extend(metadata.profile_type)
    if metadata.metadata_payload:
        proto.metadata_payload.value = encoded(metadata.metadata_payload)
