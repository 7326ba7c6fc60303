"""Private: PJRT. Devices, arrays, executables and the C++ dispatch path; no other floor knows jaxlib's client."""

from xlamini.runtime.arrays.array import Array, ArrayImpl
from xlamini.runtime.arrays.keys import KeyType, key_words
from xlamini.runtime.arrays.to_device import device_put_value
from xlamini.runtime.devices.platforms import Device
from xlamini.runtime.meshes.current_mesh import named
from xlamini.runtime.meshes.mesh import Mesh
from xlamini.runtime.meshes.named_sharding import NamedSharding
from xlamini.runtime.sharding import Sharding
