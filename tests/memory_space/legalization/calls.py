"""Programs with values in host memory where other computations take them."""

from __future__ import annotations

from tests.memory_space.legalization.notation import program

CALLS = {
    "through a call": program(
        """
  <copied>
  k = <C> call(c), to_apply=f
  d = <C> to_device(k)
  ROOT n = <C> negate(d)
""",
        """
f {
  ROOT b = <C> parameter(0)
}
""",
    ),
    "in a called computation": program(
        """
  a = <R> parameter(0)
  k = <C> call(a), to_apply=f
  ROOT n = <C> negate(k)
""",
        """
f {
  <copied>
  ROOT d = <C> to_device(c)
}
""",
    ),
    "out of a called computation": program(
        """
  a = <R> parameter(0)
  k = <C> call(a), to_apply=f
  d = <C> to_device(k)
  ROOT n = <C> negate(d)
""",
        """
f {
  <moved>
  ROOT c = <C> copy(h)
}
""",
    ),
    "into branches": program(
        """
  a = <R> parameter(0)
  q = pred[] parameter(1)
  h = <R> to_host(a)
  c = <C> copy(h)
  k = <C> conditional(q, c, c), true_computation=f, false_computation=f2
  ROOT n = <C> negate(k)
""",
        """
f {
  b = <C> parameter(0)
  ROOT d = <C> to_device(b)
}
f2 {
  b = <C> parameter(0)
  ROOT d = <C> to_device(b)
}
""",
    ),
    "a parameter for the host": program(
        """
  a = <R> parameter(0)
  as = ((<R>), <C>, u32[]) async-start(a), async_execution_thread="host", calls=ac
  ad = <C> async-done(as)
  c = <C> copy(a)
  d = <C> to_device(c)
  ROOT n = <C> add(d, ad)
""",
        """
ac {
  q = <R> parameter(0)
  ROOT o = <C> custom-call(q), custom_call_target="HostExecute"
}, execution_thread="host" 
""",
        layout="(f32[8,16]{1,0:S(5)})->f32[8,16]{0,1}",
    ),
    "a copy for the host": program(
        """
  <copied>
  as = ((<C>), <C>, u32[]) async-start(c), async_execution_thread="host", calls=ac
  ad = <C> async-done(as)
  d = <C> to_device(c)
  ROOT n = <C> add(d, ad)
""",
        """
ac {
  q = <C> parameter(0)
  ROOT o = <C> custom-call(q), custom_call_target="HostExecute"
}, execution_thread="host" 
""",
    ),
    "a copied parameter for the host": program(
        """
  a = <R> parameter(0)
  c = <C> copy(a)
  as = ((<C>), <C>, u32[]) async-start(c), async_execution_thread="host", calls=ac
  ad = <C> async-done(as)
  d = <C> to_device(c)
  ROOT n = <C> add(d, ad)
""",
        """
ac {
  q = <C> parameter(0)
  ROOT o = <C> custom-call(q), custom_call_target="HostExecute"
}, execution_thread="host" 
""",
        layout="(f32[8,16]{1,0:S(5)})->f32[8,16]{0,1}",
    ),
}
