"""Descriptions of GPUs, plug-ins by name and path, and the table of functions of the PJRT C API."""

from __future__ import annotations

import ctypes
from functools import partial
from pathlib import Path

import pytest

from hloopt.compilers import plugins
from hloopt.compilers.gpu_description import describe_gpu, without_unknown_field
from hloopt.compilers.pjrt_api import _FUNCTIONS, PjrtError, Plugin
from hloopt.compilers.plugins import find_plugin, version_of
from hloopt.diagnostics import HloError
from hloopt.targets import load_target
from hloopt.targets.description import target_yaml


@pytest.mark.parametrize(
    ("name", "capability", "cores", "memory"),
    [
        ("h100_sxm", "major: 9 minor: 0 feature_extension: ACCELERATED_FEATURES", 132, 233472),
        ("b200", "major: 10 minor: 0 feature_extension: ACCELERATED_FEATURES", 148, 233472),
        ("gb300_nvl72", "major: 10 minor: 3 feature_extension: ACCELERATED_FEATURES", 0, 233472),
        ("a100_sxm_80", "major: 8 minor: 0 feature_extension: NONE", 108, 167936),
    ],
)
def test_a_description(name: str, capability: str, cores: int, memory: int) -> None:
    text = describe_gpu(load_target(name))
    assert capability in text
    assert f"shared_memory_per_core: {memory}\n" in text
    if cores:
        assert f"core_count: {cores}\n" in text


def test_a_target_that_is_written_is_described_alike(tmp_path: Path) -> None:
    for name in ("h100_sxm", "a100_sxm_80"):
        target = load_target(name)
        path = tmp_path / f"{name}.yaml"
        path.write_text(target_yaml(target), encoding="utf-8")
        assert describe_gpu(load_target(str(path))) == describe_gpu(target)


def test_a_name_with_quotes_stays_a_string(tmp_path: Path) -> None:
    path = tmp_path / "t.yaml"
    text = target_yaml(load_target("a100_sxm_80"))
    path.write_text(text.replace("NVIDIA A100-SXM4-80GB", 'a "b" {'), encoding="utf-8")
    assert 'device_description_str: "a \\"b\\" {"' in describe_gpu(load_target(str(path)))


def test_a_capability_without_limits(tmp_path: Path) -> None:
    path = tmp_path / "t.yaml"
    text = target_yaml(load_target("h100_sxm")).replace("9.0a", "12.1a")
    path.write_text(text, encoding="utf-8")
    with pytest.raises(HloError, match=r"limits of compute capability 12\.1 are not known"):
        describe_gpu(load_target(str(path)))


# -- plug-ins -------------------------------------------------------------------------------------


def wheel(folder: Path, version: str = "0.10.2") -> Path:
    library = folder / "site-packages/jax_plugins/xla_cuda13/xla_cuda_plugin.so"
    library.parent.mkdir(parents=True)
    library.touch()
    (folder / f"site-packages/jax_cuda13_pjrt-{version}.dist-info").mkdir()
    return library


def test_a_plugin_by_name_by_path_and_by_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = wheel(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path / "site-packages"))
    assert find_plugin("cuda13") == find_plugin(None) == find_plugin(str(library)) == str(library)
    assert version_of(str(library)) == "jax-cuda13-pjrt 0.10.2"
    with pytest.raises(HloError) as caught:
        find_plugin("cuda12")
    assert caught.value.help == "pip install jax-cuda12-pjrt"
    with pytest.raises(HloError) as caught:
        find_plugin("cuda31")
    assert caught.value.help == "did you mean 'cuda13'?"


def test_a_library_of_nobody_knows_whom(tmp_path: Path) -> None:
    assert version_of(str(tmp_path / "own_plugin.so")) == "own_plugin.so"
    assert plugins.MISSING_COMPILER == "HLO019"


def test_a_file_that_is_no_library(tmp_path: Path) -> None:
    path = tmp_path / "x.so"
    path.write_text("text")
    with pytest.raises(PjrtError) as caught:
        Plugin(str(path))
    assert caught.value.is_unfit
    import _ctypes

    with pytest.raises(PjrtError, match="has no function GetPjrtApi"):
        Plugin(_ctypes.__file__)


class _Api(ctypes.Structure):
    _fields_ = (
        ("head", ctypes.c_size_t * 4),
        ("version", ctypes.c_int * 2),
        ("functions", ctypes.c_void_p * len(_FUNCTIONS)),
    )


def _note(called: list[str], name: str, arguments: object) -> None:
    called.append(name)


def plugin_of(api: _Api, size: int) -> Plugin:
    plugin = Plugin.__new__(Plugin)
    plugin._api, plugin._size = ctypes.addressof(api), size
    return plugin


def test_a_function_is_found_by_its_name_and_the_size_of_the_table() -> None:
    called: list[str] = []
    kind = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
    functions = [kind(partial(_note, called, name)) for name in _FUNCTIONS]
    addresses = [ctypes.cast(each, ctypes.c_void_p).value for each in functions]
    api = _Api(functions=(ctypes.c_void_p * len(_FUNCTIONS))(*addresses))
    whole = plugin_of(api, ctypes.sizeof(api))
    for name in ("Error_Destroy", "Compile", "Executable_GetCompiledMemoryStats"):
        whole._function(name, ctypes.c_void_p)(None)
        assert called.pop() == name
    old = plugin_of(api, ctypes.sizeof(api) - 1)
    old._function("Compile", ctypes.c_void_p)(None)
    with pytest.raises(PjrtError, match="it is too old") as caught:
        old._function("Executable_GetCompiledMemoryStats", ctypes.c_void_p)
    assert caught.value.is_unfit
    api.functions[0] = None
    with pytest.raises(PjrtError, match="has no PJRT_Error_Destroy"):
        whole._function("Error_Destroy", ctypes.c_void_p)


NEWER = """gpu_device_info {
  core_count: 132
  of_tomorrow {
    a { x: 1 }
  }
  single: 3
}
"""
COMPLAINT = (
    "E1127 1:1:1.0 1 text_format.cc:378] Error parsing text-format x.GpuTargetConfigProto: {}:9: "
    'Message type "x.GpuDeviceInfoProto" has no field named "{}".\n'
)


def test_fields_that_an_older_xla_does_not_know_are_left_out() -> None:
    found = without_unknown_field(NEWER, COMPLAINT.format(3, "of_tomorrow"))
    assert found is not None
    fewer, name = found
    assert name == "of_tomorrow"
    assert fewer == NEWER.replace("  of_tomorrow {\n    a { x: 1 }\n  }\n", "")
    fewest = without_unknown_field(fewer, COMPLAINT.format(3, "single"))
    assert fewest == ("gpu_device_info {\n  core_count: 132\n}\n", "single")
    in_one_line = "gpu_device_info { core_count: 132 single: 3 }\n"
    assert without_unknown_field(in_one_line, COMPLAINT.format(1, "single")) is None
    assert without_unknown_field(NEWER, "another complaint") is None
    assert without_unknown_field(NEWER, COMPLAINT.format(2, "single")) is None
    assert without_unknown_field(NEWER, COMPLAINT.format(99, "single")) is None
