"""The arguments of a call of a DaCe program."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Mapping
from typing import Any

from dace.frontend.python.parser import DaceProgram


def signature_of(program: DaceProgram) -> inspect.Signature:
    """What a caller of a program passes: not `self`."""
    parameters = [each for name, each in program.signature.parameters.items() if name != program.objname]
    return inspect.Signature(parameters)


@dataclasses.dataclass(frozen=True)
class Arguments:
    """The arguments of a call by the names that DaCe gives their parameters, and the number of each in the call."""

    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    places: Mapping[str, int]

    @classmethod
    def of(cls, program: DaceProgram, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Arguments:
        """
        The arguments of a call of `program`. Starred parameters become '__arg0' and '__kwarg_x', as in DaCe. Other
        names may be those of symbols. Raises TypeError for an argument that is passed twice, and for too many of them.
        """
        places: dict[str, int] = {}
        named = {name: len(args) + number for number, name in enumerate(kwargs)}
        next_ = 0
        for name, parameter in signature_of(program).parameters.items():
            match parameter.kind:
                case inspect.Parameter.VAR_POSITIONAL:
                    places |= {f"__arg{i}": place for i, place in enumerate(range(next_, len(args)))}
                    next_ = len(args)
                case inspect.Parameter.VAR_KEYWORD:
                    places |= {f"__kwarg_{each}": named.pop(each) for each in list(named)}
                case inspect.Parameter.KEYWORD_ONLY:
                    if name in named:
                        places[name] = named.pop(name)
                case _ if next_ < len(args):
                    if name in named and parameter.kind is not inspect.Parameter.POSITIONAL_ONLY:
                        raise TypeError(f"Argument '{name}' of program '{program.f.__name__}' is passed twice.")
                    places[name] = next_
                    next_ += 1
                case _ if name in named:
                    places[name] = named.pop(name)
        if next_ < len(args):
            raise TypeError(
                f"Program '{program.f.__name__}' takes {next_} arguments by position, but {len(args)} are given."
            )
        return cls(args, kwargs, places | named)

    def check_complete(self, program: str, signature: inspect.Signature) -> None:
        """Raises TypeError if a parameter without a default is missing."""
        for name, parameter in signature.parameters.items():
            starred = parameter.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
            if not starred and parameter.default is inspect.Parameter.empty and name not in self.places:
                raise TypeError(f"A call of program '{program}' lacks the argument '{name}'.")

    def without_defaults(self, signature: inspect.Signature) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """
        The arguments without each None that is the default of its parameter: DaCe compiles a program without what is
        not passed, and would compile an optional array that is None into a test at run time.
        """
        given = self.by_name
        args: list[Any] = []
        for number, (name, parameter) in enumerate(signature.parameters.items()):
            is_positional = parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
            if not is_positional or number >= len(self.args) or (given[name] is None and parameter.default is None):
                break
            args.append(given[name])
        names = {place: name for name, place in self.places.items()}
        rest = {names[place]: value for place, value in enumerate(self.args) if place >= len(args)}
        named: dict[str, Any] = {**rest, **self.kwargs}
        if any(name.startswith("__arg") for name in named):
            return self.args, dict(self.kwargs)
        defaults = {name for name, parameter in signature.parameters.items() if parameter.default is None}
        return tuple(args), {name: value for name, value in named.items() if value is not None or name not in defaults}

    @property
    def by_name(self) -> dict[str, Any]:
        values = [*self.args, *self.kwargs.values()]
        return {name: values[place] for name, place in self.places.items()}
