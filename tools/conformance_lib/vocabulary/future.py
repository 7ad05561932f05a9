"""Keys of `expect` that only components to come, or helpers of theirs, could answer.

A record that has one of them is skipped, and says which; a word that is in none of these forms
still fails it. The documents: MEMORY_SPACE_ASSIGNMENT.md, README.md.
"""

from __future__ import annotations

from conformance_lib.expectations import declare
from conformance_lib.forms import ANY

declare(
    __name__,
    {"dynamic_index_tuple_elements": ANY},  # only the notes of records say what it is
)
