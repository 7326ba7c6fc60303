"""Private: questions about a run, answered from one jaxpr, each in a file. `xlamini.debug` is their public face."""
