"""The interpreters: rewrites from jaxpr to jaxpr, each one loop over equations; none names a primitive. Private."""
