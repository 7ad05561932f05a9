"""Sends and recvs: what host transfers on one channel share, and which schedules wait for ever."""

from __future__ import annotations

import pytest

from hloopt.text import parse_module
from hloopt.verifier import VerifierOptions, verify_module


def problems(body: str, options: VerifierOptions | None = None) -> list[str]:
    """Problems that the verifier finds in an entry computation with these lines."""
    text = f"""ENTRY e {{
  p = f32[8] parameter(0)
  k = token[] parameter(1)
  q = f32[4,2]{{1,0}} parameter(2)
  r = f32[4,2]{{0,1}} parameter(3)
  {body}
}}
"""
    return [error.message for error in verify_module(parse_module(text), options)]


HOST = "channel_id=1, is_host_transfer=true"


def to_host(name: str, start: str = "", done: str = "", operand: str = "p, f32[8]") -> str:
    value, shape = operand.split(", ")
    return (
        f"{name} = ({shape}, u32[], token[]) send({value}, k), {HOST}{start}\n"
        f"{name}.done = token[] send-done({name}), {HOST}{done}\n"
    )


def from_host(name: str, start: str = "", done: str = "") -> str:
    return (
        f"{name} = (f32[8], u32[], token[]) recv(k), {HOST}{start}\n"
        f"{name}.done = (f32[8], token[]) recv-done({name}), {HOST}{done}\n"
    )


NAMED = ', frontend_attributes={_xla_host_transfer_rendezvous="one"}'
OTHER = ', frontend_attributes={_xla_host_transfer_rendezvous="two"}'


@pytest.mark.parametrize(
    "body",
    [
        to_host("a", NAMED) + to_host("b", OTHER),
        to_host("a", NAMED) + to_host("b"),
        to_host("a") + to_host("b", ', backend_config="x"'),
        to_host("a") + to_host("b") + to_host("c", NAMED),
        from_host("a", NAMED) + from_host("b", OTHER),
        to_host("a") + from_host("b"),
        to_host("a") + to_host("b", operand="q, f32[4,2]"),
        to_host("a", operand="q, f32[4,2]{1,0}") + to_host("b", operand="r, f32[4,2]{0,1}"),
    ],
)
def test_host_transfers_on_one_channel_are_alike(body: str) -> None:
    (message,) = problems(body)
    assert "Host-transfer send/recv instructions that use the same channel" in message
    apart = body.replace("b = ", "b = ", 1).split("\nb = ")
    if len(apart) == 2 and "c = " not in body:
        other = "b = " + apart[1]
        assert problems(apart[0] + "\n" + other.replace("channel_id=1", "channel_id=2")) == []


@pytest.mark.parametrize(
    "body",
    [
        to_host("a", NAMED) + to_host("b", NAMED),
        to_host("a", "", NAMED) + to_host("b", "", OTHER),
        to_host("a", ", sharding={maximal device=0}") + to_host("b"),
        to_host("a", ', metadata={op_name="x"}') + to_host("b"),
        "w = f32[8] negate(p)\n" + to_host("a") + to_host("b", operand="w, f32[8]"),
        from_host("a", NAMED, OTHER) + from_host("b", NAMED),
        to_host("a", NAMED).replace("is_host_transfer=true", "is_host_transfer=false")
        + to_host("b", OTHER),
    ],
)
def test_where_they_come_from_and_their_operands_may_differ(body: str) -> None:
    assert problems(body) == []


SCHEDULED = """HloModule m, is_scheduled=true

add {{ x = f32[] parameter(0)  y = f32[] parameter(1)  ROOT a = f32[] add(x, y) }}
yes {{ t = (f32[8], token[], s32[]) parameter(0)  ROOT c = pred[] constant(false) }}
body {{
  t = (f32[8], token[], s32[]) parameter(0)
  p = f32[8] get-tuple-element(t), index=0
  k = token[] get-tuple-element(t), index=1
  i.2 = s32[] get-tuple-element(t), index=2
  {inside}
  ROOT r.2 = (f32[8], token[], s32[]) tuple(p, k, i.2)
}}
called {{
  p = f32[8] parameter(0)
  k = token[] parameter(1)
  {inside}
  ROOT n = f32[8] negate(p)
}}
ENTRY e {{
  p = f32[8] parameter(0)
  k = token[] parameter(1)
  z = s32[] constant(0)
  t = (f32[8], token[], s32[]) tuple(p, k, z)
  {body}
}}
"""
LOOP = "w = (f32[8], token[], s32[]) while(t), body=body, condition=yes\n"
CALL = "c = f32[8] call(p, k), to_apply=called\n"
GATHER = "g = f32[16] all-gather(p), dimensions={0}, replica_groups={{0,1}}\n"


def send(name: str, pairs: str | None = "{{0,1}}") -> str:
    return transfer(name, "send(p, k)", f"{name}.d = token[] send-done({name})", pairs)


def recv(name: str, pairs: str | None = "{{0,1}}") -> str:
    return transfer(name, "recv(k)", f"{name}.d = (f32[8], token[]) recv-done({name})", pairs)


def transfer(name: str, start: str, done: str, pairs: str | None) -> str:
    key = "_xla_send_recv_source_target_pairs"
    stated = f", frontend_attributes={{{key}={pairs}}}" if pairs is not None else ""
    return (
        f"{name} = (f32[8], u32[], token[]) {start}, channel_id=1{stated}\n{done}, channel_id=1\n"
    )


def deadlocks(body: str, inside: str = "") -> list[str]:
    """Deadlocks that the verifier finds in a schedule; a loop and a call run `inside`."""
    text = SCHEDULED.format(body=body, inside=inside)
    assert verify_module(parse_module(text)) == []
    options = VerifierOptions(verify_no_collective_deadlocks=True)
    return [error.message for error in verify_module(parse_module(text), options)]


@pytest.mark.parametrize(
    ("body", "inside", "message"),
    [
        (send("s"), "", "%s: Expected recv to match send"),
        (recv("r"), "", "%r: Expected send to match recv"),
        (send("s") + GATHER + recv("r"), "", "Introducing this all-gather will cause a deadlock"),
        (recv("r") + GATHER + send("s"), "", "Introducing this all-gather will cause a deadlock"),
        (send("s") + LOOP + recv("r"), GATHER, "Introducing this all-gather"),
        (send("s") + CALL + recv("r"), GATHER, "Introducing this all-gather"),
        (
            send("s") + "h = f32[8] collective-permute(p), source_target_pairs={{0,1}}\n"
            + recv("r"), "", "Introducing this collective-permute",
        ),
        (
            send("s") + "h = f32[8] all-to-all(p), dimensions={0}, replica_groups={{0,1}}\n"
            + recv("r"), "", "Introducing this all-to-all",
        ),
        (LOOP, send("i"), "%i: Expected recv to match send"),
        (send("s") + LOOP, send("i"), "%i: Expected recv to match send %s"),
        (send("s") + LOOP + recv("r"), send("i") + recv("j"), "%i: Expected recv to match send %s"),
        (send("s", None) + recv("r", None), "", "does not have source-target pairs attribute"),
        (send("s", "{{0,1,2}}") + recv("r", "{{0,1,2}}"), "", "something that is not a pair"),
        (send("s", "{{0,0}}") + recv("r", "{{0,0}}"), "", "non-cyclical source-target pairs"),
        (send("s", "{{0,1},{2,3}}") + recv("r"), "", "the same source-target pairs"),
    ],
)  # fmt: skip
def test_a_schedule_that_waits_for_ever_is_refused(body: str, inside: str, message: str) -> None:
    (found,) = deadlocks(body, inside)
    assert message in found


@pytest.mark.parametrize(
    ("body", "inside"),
    [
        (send("s") + recv("r"), ""),
        (recv("r") + send("s") + send("s.1") + recv("r.1"), ""),
        (GATHER + send("s") + recv("r") + GATHER.replace("g =", "h ="), ""),
        (send("s") + "h = f32[8] all-reduce(p), to_apply=add\n" + recv("r"), ""),
        (send("s") + LOOP, recv("i")),
        (recv("r") + LOOP, send("i")),
        (LOOP + recv("r"), send("i")),
        (send("s") + CALL, recv("i")),
        (LOOP, send("i") + recv("j")),
        (LOOP + send("s") + recv("r") + CALL, GATHER + send("i") + recv("j")),
        (send("s") + LOOP + recv("r"), ""),
        (send("s", "{}") + recv("r", "{}"), ""),
        (send("s") + to_host("h").replace("channel_id=1", "channel_id=2") + recv("r"), ""),
    ],
)
def test_halves_meet_wherever_they_run(body: str, inside: str) -> None:
    assert deadlocks(body, inside) == []


def test_a_computation_called_often_is_looked_at_once() -> None:
    depth = 60  # each calls the next one twice
    chain = "".join(
        f"run.{n} {{ p = f32[8] parameter(0)  a = f32[8] call(p), to_apply=run.{n - 1}\n"
        f"ROOT b = f32[8] call(a), to_apply=run.{n - 1} }}\n"
        for n in range(1, depth)
    )
    text = (
        "HloModule m, is_scheduled=true\nrun.0 { ROOT p = f32[8] parameter(0) }\n"
        f"{chain}ENTRY e {{ p = f32[8] parameter(0)  k = token[] parameter(1)\n"
        f"{send('s')}c = f32[8] call(p), to_apply=run.{depth - 1}\n{recv('r')} }}\n"
    )
    options = VerifierOptions(verify_no_collective_deadlocks=True)
    assert verify_module(parse_module(text), options) == []
