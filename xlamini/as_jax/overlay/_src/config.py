"""`jax._src.config`: every flag as an object with a `value`, and the functions of `jax.config`."""

from typing import Any

from xlamini.as_jax.missing_names import fall_through
from xlamini.core.flags.config import ALIASES, Flag as Flag, config as config, flags, trace_context_key

_fall_through = fall_through(__name__)

State = Flag
update, read, parse_flags_with_absl = config.update, config.read, config.parse_flags_with_absl
trace_context = trace_context_key


config_states = {f"jax_{name}": flag for name, flag in flags.items()}


def __getattr__(name: str) -> Any:
    word = name.removeprefix("jax_")
    flag = flags.get(ALIASES.get(word, word))
    return _fall_through(name) if flag is None else flag
