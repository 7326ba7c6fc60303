"""Private: PJRT. Devices, arrays, executables and the C++ dispatch path; no other floor knows jaxlib's client."""
