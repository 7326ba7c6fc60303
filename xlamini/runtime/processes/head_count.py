"""The numbers of processes that the processes of a group were told are compared while they connect.

PJRT's coordination service admits nobody before as many processes have come as process 0 was told. So a process asks
process 0 for its number before, by a datagram to the coordinator's port. Where none comes through, nothing is compared.
"""
from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import suppress

_MAGIC = b"xlamini processes"
_TRIES, _PATIENCE = 3, 0.3


class HeadCount:
    """In process 0: answers the others; `on_other(rank, number)` is called for one that was told another number."""

    def __init__(self, where: tuple[str, int], number: int, on_other: Callable[[int, int], None]) -> None:
        self._socket: socket.socket | None = None
        self._number, self._on_other = number, on_other
        with suppress(OSError):  # the port is taken by other datagrams: nothing is compared
            self._socket = _listening(where)
            threading.Thread(target=self._answer, args=(self._socket,), name="xlamini head count", daemon=True).start()

    def _answer(self, listening: socket.socket) -> None:
        with suppress(OSError):  # stopped
            while True:
                question, asker = listening.recvfrom(64)
                if (told := _read(question)) is None:
                    continue
                listening.sendto(_written(0, self._number), asker)
                if told[1] != self._number:
                    self._on_other(*told)

    def stop(self) -> None:
        """End the thread that answers."""
        if self._socket is not None:
            with suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)
            self._socket.close()


def number_told(where: tuple[str, int], rank: int, number: int) -> int | None:
    """The number of processes that process 0 was told; None if it does not answer."""
    family, kind, _, _, address = socket.getaddrinfo(*where, type=socket.SOCK_DGRAM)[0]
    with socket.socket(family, kind) as asking:
        asking.settimeout(_PATIENCE)
        for _ in range(_TRIES):
            with suppress(OSError):
                asking.sendto(_written(rank, number), address)
                if (told := _read(asking.recv(64))) is not None:
                    return told[1]
    return None


def _listening(where: tuple[str, int]) -> socket.socket:
    family = socket.AF_INET6 if ":" in where[0] else socket.AF_INET
    made = socket.socket(family, socket.SOCK_DGRAM)
    try:
        if family == socket.AF_INET6:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        made.bind(where)
    except OSError:
        made.close()
        raise
    return made


def _written(rank: int, number: int) -> bytes:
    return b"%s %d %d" % (_MAGIC, rank, number)


def _read(datagram: bytes) -> tuple[int, int] | None:
    words = datagram.removeprefix(_MAGIC).split() if datagram.startswith(_MAGIC) else []
    return (int(words[0]), int(words[1])) if len(words) == 2 and all(w.isdigit() for w in words) else None
