"""The names that expectations begin with: tables and groups."""

from __future__ import annotations

from hloopt.checks.expectations.model import Group, Table
from hloopt.checks.expectations.scalars import COST, MEMORY, MODULE, REPLICATION, SCHEDULE
from hloopt.checks.expectations.tables.code import COMPUTATIONS, INSTRUCTIONS, LOOPS
from hloopt.checks.expectations.tables.collectives import COLLECTIVES
from hloopt.checks.expectations.tables.findings import FINDINGS
from hloopt.checks.expectations.tables.interface import PARAMETERS, RESULTS
from hloopt.checks.expectations.tables.operations import OPERATIONS
from hloopt.checks.expectations.tables.work import CONVOLUTIONS, CUSTOM_CALLS, DOTS

TABLES: dict[str, Table] = {
    table.name: table
    for table in (
        *(COLLECTIVES, DOTS, CONVOLUTIONS, CUSTOM_CALLS, PARAMETERS, RESULTS),
        *(LOOPS, OPERATIONS, COMPUTATIONS, INSTRUCTIONS, FINDINGS),
    )
}
GROUPS: dict[str, Group] = {
    group.name: group for group in (MEMORY, COST, SCHEDULE, REPLICATION, MODULE)
}
