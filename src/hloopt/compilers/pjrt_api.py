"""The part of the PJRT C API that compiles for a described topology, through ctypes.

The API is one struct of functions, declared in XLA's `pjrt_c_api.h`. It grows at its end: a plug-in
has the functions that its `struct_size` covers. Every call takes a struct that begins with its own
size, so that an older plug-in knows which fields it was given.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

_MAJOR_VERSION = 0
"""Within a major version functions and fields are only added."""
_ERRORS = ("Error_Destroy", "Error_Message", "Error_GetCode")
_EXECUTABLE = (
    *("Executable_Destroy", "Executable_Name", "Executable_NumReplicas"),
    *("Executable_NumPartitions", "Executable_NumOutputs"),
    *("Executable_SizeOfGeneratedCodeInBytes", "Executable_GetCostAnalysis"),
    *("Executable_OutputMemoryKinds", "Executable_OptimizedProgram", "Executable_Serialize"),
)
_FUNCTIONS = (
    *_ERRORS,
    *("Plugin_Initialize", "Plugin_Attributes"),
    *("Event_Destroy", "Event_IsReady", "Event_Error", "Event_Await", "Event_OnReady"),
    *("Client_Create", "Client_Destroy", "Client_PlatformName", "Client_ProcessIndex"),
    *("Client_PlatformVersion", "Client_Devices", "Client_AddressableDevices"),
    *("Client_LookupDevice", "Client_LookupAddressableDevice", "Client_AddressableMemories"),
    *("Client_Compile", "Client_DefaultDeviceAssignment", "Client_BufferFromHostBuffer"),
    *("DeviceDescription_Id", "DeviceDescription_ProcessIndex", "DeviceDescription_Attributes"),
    *("DeviceDescription_Kind", "DeviceDescription_DebugString", "DeviceDescription_ToString"),
    *("Device_GetDescription", "Device_IsAddressable", "Device_LocalHardwareId"),
    *("Device_AddressableMemories", "Device_DefaultMemory", "Device_MemoryStats"),
    *("Memory_Id", "Memory_Kind", "Memory_DebugString", "Memory_ToString"),
    "Memory_AddressableByDevices",
    *_EXECUTABLE,
    *("LoadedExecutable_Destroy", "LoadedExecutable_GetExecutable"),
    *("LoadedExecutable_AddressableDevices", "LoadedExecutable_Delete"),
    *("LoadedExecutable_IsDeleted", "LoadedExecutable_Execute"),
    *("Executable_DeserializeAndLoad", "LoadedExecutable_Fingerprint"),
    *("Buffer_Destroy", "Buffer_ElementType", "Buffer_Dimensions", "Buffer_UnpaddedDimensions"),
    *("Buffer_DynamicDimensionIndices", "Buffer_GetMemoryLayout", "Buffer_OnDeviceSizeInBytes"),
    *("Buffer_Device", "Buffer_Memory", "Buffer_Delete", "Buffer_IsDeleted"),
    *("Buffer_CopyToDevice", "Buffer_ToHostBuffer", "Buffer_IsOnCpu", "Buffer_ReadyEvent"),
    *("Buffer_UnsafePointer", "Buffer_IncreaseExternalReferenceCount"),
    *("Buffer_DecreaseExternalReferenceCount", "Buffer_OpaqueDeviceMemoryDataPointer"),
    *("CopyToDeviceStream_Destroy", "CopyToDeviceStream_AddChunk"),
    *("CopyToDeviceStream_TotalBytes", "CopyToDeviceStream_GranuleSize"),
    "CopyToDeviceStream_CurrentBytes",
    *("TopologyDescription_Create", "TopologyDescription_Destroy"),
    *("TopologyDescription_PlatformName", "TopologyDescription_PlatformVersion"),
    *("TopologyDescription_GetDeviceDescriptions", "TopologyDescription_Serialize"),
    "TopologyDescription_Attributes",
    "Compile",
    *("Executable_OutputElementTypes", "Executable_OutputDimensions", "Buffer_CopyToMemory"),
    *("Client_CreateViewOfDeviceBuffer", "Executable_Fingerprint", "Client_TopologyDescription"),
    "Executable_GetCompiledMemoryStats",
)
"""The functions in the order in which the header declares them, as far as they are needed."""


class _Header(ctypes.Structure):
    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("extension_start", ctypes.c_void_p),
        ("version_struct_size", ctypes.c_size_t),
        ("version_extension_start", ctypes.c_void_p),
        ("major", ctypes.c_int),
        ("minor", ctypes.c_int),
    )


_BEGIN = (("struct_size", ctypes.c_size_t), ("extension_start", ctypes.c_void_p))


def _arguments(name: str, *fields: tuple[str, Any]) -> type[ctypes.Structure]:
    return type(name, (ctypes.Structure,), {"_fields_": (*_BEGIN, *fields)})


def _text(name: str) -> tuple[tuple[str, Any], tuple[str, Any]]:
    return (name, ctypes.c_char_p), (f"{name}_size", ctypes.c_size_t)


_Initialize = _arguments("Plugin_Initialize")
_ErrorMessage = _arguments("Error_Message", ("error", ctypes.c_void_p), *_text("message"))
_NamedValue = _arguments(
    "NamedValue",
    *_text("name"),
    ("type", ctypes.c_int),  # 0: a string
    ("value", ctypes.c_char_p),
    ("value_size", ctypes.c_size_t),
)
_CreateTopology = _arguments(
    "TopologyDescription_Create",
    *_text("name"),
    ("options", ctypes.POINTER(_NamedValue)),
    ("options_count", ctypes.c_size_t),
    ("topology", ctypes.c_void_p),
)
_Program = _arguments("Program", *_text("code"), *_text("format"))
_Compile = _arguments(
    "Compile",
    ("topology", ctypes.c_void_p),
    ("program", ctypes.POINTER(_Program)),
    *_text("options"),
    ("client", ctypes.c_void_p),
    ("executable", ctypes.c_void_p),
)
MEMORY_STATS = (
    *("generated_code", "argument", "output", "alias", "temp"),
    *("host_generated_code", "host_argument", "host_output", "host_alias", "host_temp"),
    *("peak", "total"),
)
"""The figures of XLA's CompiledMemoryStats, in bytes, in the order of the API's struct."""
_MemoryStats = _arguments(
    "Executable_GetCompiledMemoryStats",
    ("executable", ctypes.c_void_p),
    *((name, ctypes.c_int64) for name in MEMORY_STATS),
)


class PjrtError(Exception):
    """A plug-in refused a call; or it lacks what is needed, `is_unfit`."""

    def __init__(self, message: str, *, is_unfit: bool = False) -> None:
        super().__init__(message)
        self.is_unfit = is_unfit


class Plugin:
    """A library with the PJRT C API. Objects that it makes live as long as the process."""

    def __init__(self, path: str) -> None:
        """Load a library and initialize it. Raises PjrtError, is_unfit where it is none."""
        try:
            get_api = ctypes.CDLL(path).GetPjrtApi
        except OSError as error:
            raise PjrtError(f"cannot load {path}: {error}", is_unfit=True) from None
        except AttributeError:
            raise PjrtError(f"{path} has no function GetPjrtApi", is_unfit=True) from None
        get_api.restype = ctypes.c_void_p
        self._api = get_api() or 0
        if not self._api:
            raise PjrtError(f"{path} offers no PJRT C API", is_unfit=True)
        header = _Header.from_address(self._api)
        self._size = int(header.struct_size)
        self.version = (int(header.major), int(header.minor))
        if self.version[0] != _MAJOR_VERSION:
            raise PjrtError(
                f"{path} has version {self.version[0]}.{self.version[1]} of the PJRT C API; "
                f"known is {_MAJOR_VERSION}.x",
                is_unfit=True,
            )
        self._call("Plugin_Initialize", _made(_Initialize))

    def topology(self, platform: bytes, options: Sequence[tuple[bytes, bytes]]) -> int:
        """A topology that options describe. Raises PjrtError."""
        values = [_made(_NamedValue, *_sized(name), 0, *_sized(value)) for name, value in options]
        array = (_NamedValue * len(values))(*values)
        made = _made(_CreateTopology, *_sized(platform), array, len(values), None)
        return int(self._call("TopologyDescription_Create", made).topology)

    def compile(self, topology: int, code: bytes, form: bytes, options: bytes) -> int:
        """The executable for a program, `hlo` or `mlir`. Raises PjrtError."""
        program = _made(_Program, *_sized(code), *_sized(form))
        made = _made(_Compile, topology, ctypes.pointer(program), *_sized(options), None, None)
        return int(self._call("Compile", made).executable)

    def memory_stats(self, executable: int) -> dict[str, int]:
        """XLA's CompiledMemoryStats by `MEMORY_STATS`; those that a plug-in does not know are 0."""
        made = _made(_MemoryStats, executable, *(0 for _ in MEMORY_STATS))
        found = self._call("Executable_GetCompiledMemoryStats", made)
        return {name: int(getattr(found, name)) for name in MEMORY_STATS}

    def _call(self, name: str, arguments: Any) -> Any:
        error = self._function(name, ctypes.c_void_p)(ctypes.byref(arguments))
        if not error:
            return arguments
        message = _made(_ErrorMessage, error, None, 0)
        self._function("Error_Message", None)(ctypes.byref(message))
        raise PjrtError(message.message[: message.message_size].decode(errors="replace"))

    def _function(self, name: str, result: Any) -> Any:
        """Raises PjrtError if the plug-in is older than the function."""
        size = ctypes.sizeof(ctypes.c_void_p)
        offset = ctypes.sizeof(_Header) + size * _FUNCTIONS.index(name)
        if offset + size > self._size:
            raise PjrtError(f"the plug-in has no PJRT_{name}: it is too old", is_unfit=True)
        address = ctypes.c_void_p.from_address(self._api + offset).value
        if address is None:
            raise PjrtError(f"the plug-in has no PJRT_{name}", is_unfit=True)
        return ctypes.CFUNCTYPE(result, ctypes.c_void_p)(address)


def _made(kind: Any, *values: Any) -> Any:
    return kind(ctypes.sizeof(kind), None, *values)


def _sized(text: bytes) -> tuple[bytes, int]:
    return text, len(text)
