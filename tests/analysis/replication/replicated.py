"""Modules for several devices, and whether a value is the same on them."""

from __future__ import annotations

from typing import Any

from hloopt.analysis.replication import ReplicationAnalysis
from hloopt.ir import Instruction, Module
from hloopt.text import parse_module

ADD = "sum { _a = f32[] parameter(0) _b = f32[] parameter(1) ROOT _c = f32[] add(_a, _b) }\n"
REPLICATED = "parameter_replication={true}"


def entry(*lines: str, before: str = "", replicas: int = 1, partitions: int = 1) -> Module:
    header = f"HloModule m, replica_count={replicas}, num_partitions={partitions}"
    body = "".join(f"  {line}\n" for line in lines)
    return parse_module(f"{header}\n\n{before}{ADD}ENTRY e {{\n{body}}}\n")


def find(module: Module, name: str) -> Instruction:
    return next(i for i in module.instructions() if i.name == name)


def replicated(module: Module, name: str, index: tuple[int, ...] = (), **options: Any) -> bool:
    return ReplicationAnalysis(module, **options).is_replicated(find(module, name), index)
