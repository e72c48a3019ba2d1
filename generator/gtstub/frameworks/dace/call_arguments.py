"""The arguments of a call of a DaCe program."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Mapping
from typing import Any, Union, get_args, get_origin

from dace.frontend.python.parser import DaceProgram

RESULTS = "__return"
"""DaCe's name for the only array that a program returns; in a call, that of the memory for all results."""


def signature_of(program: DaceProgram) -> inspect.Signature:
    """What a caller of a program passes: not `self`."""
    parameters = [each for name, each in program.signature.parameters.items() if name != program.objname]
    return inspect.Signature(parameters)


def may_be_none(parameter: inspect.Parameter) -> bool:
    """Whether a program is compiled without a parameter if it is None."""
    return says_none(parameter) or getattr(parameter.annotation, "optional", False) is not False


def says_none(parameter: inspect.Parameter) -> bool:
    """Whether the default of a parameter is None, or its type `Optional[...]`."""
    is_optional = get_origin(parameter.annotation) is Union and type(None) in get_args(parameter.annotation)
    return parameter.default is None or is_optional


@dataclasses.dataclass(frozen=True)
class Arguments:
    """The arguments of a call by the names that DaCe gives their parameters, and the number of each in the call."""

    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    places: Mapping[str, int]

    @classmethod
    def of(cls, program: DaceProgram, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Arguments:
        """
        The arguments of a call of `program`. Starred parameters become '__arg0' and '__kwarg_x', as in DaCe, and 'out'
        becomes '__return' unless it is a parameter. Other names may be those of symbols. Raises TypeError for an
        argument that is passed twice, and for too many of them.
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
        if "out" in named:
            if RESULTS in named:
                raise TypeError(f"Results of program '{program.f.__name__}' are passed both as 'out' and '{RESULTS}'.")
            named[RESULTS] = named.pop("out")
        return cls(args, kwargs, places | named)

    def check_complete(self, program: str, signature: inspect.Signature) -> None:
        """Raises TypeError if a parameter without a default is missing."""
        for name, parameter in signature.parameters.items():
            starred = parameter.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
            if not starred and parameter.default is inspect.Parameter.empty and name not in self.places:
                raise TypeError(f"A call of program '{program}' lacks the argument '{name}'.")

    def without_defaults(self, signature: inspect.Signature) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """
        The arguments without memory for results, and without each None of an optional parameter: DaCe compiles a
        program without what is not passed, and would compile an optional array that is None into a test at run time.
        """
        given = self.by_name
        args: list[Any] = []
        for number, (name, parameter) in enumerate(signature.parameters.items()):
            is_positional = parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
            if not is_positional or number >= len(self.args) or (given[name] is None and may_be_none(parameter)):
                break
            args.append(given[name])
        names = {place: name for name, place in self.places.items()}
        rest = {names[place]: value for place, value in enumerate(self.args) if place >= len(args)}
        keywords = enumerate(self.kwargs.items(), len(self.args))
        named = {name: value for place, (name, value) in keywords if place != self.places.get(RESULTS)}
        if any(name.startswith("__arg") for name in rest):
            return self.args, named
        optional = {name for name, parameter in signature.parameters.items() if may_be_none(parameter)}
        named = {**rest, **named}
        return tuple(args), {name: value for name, value in named.items() if value is not None or name not in optional}

    @property
    def by_name(self) -> dict[str, Any]:
        values = [*self.args, *self.kwargs.values()]
        return {name: values[place] for name, place in self.places.items()}
