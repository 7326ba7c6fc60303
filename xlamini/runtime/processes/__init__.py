"""Multi-process computation over PJRT's distributed runtime: rendezvous, agreement, failure detection and shutdown.

`clusters` reads from the environment which process this is; `rendezvous` connects it with the others, and `roll_call`
names the processes that are missing; `group` exchanges values between them; `heartbeat` ends this process when another
one dies; `shutdown` ends all in order; `agreement` checks that all are about to run the same program.
"""
