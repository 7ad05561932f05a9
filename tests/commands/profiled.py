"""A module of kernels, and a profile of it."""

KERNELS = """HloModule m, is_scheduled=true
ENTRY e {
  p = f32[262144] parameter(0)
  a = f32[262144] copy(p)
  b = f32[262144] copy(a)
  ROOT c = f32[262144] copy(b)
}
"""
PROFILE = "".join(f'costs {{ name: "{name}" cost_us: 2 }}\n' for name in "abc")
