"""HLO, the language of XLA's compiler, read as text: what a program will do and at what cost."""
