"""The resolver that asks the operating system, with all the sources that it is configured for."""

from __future__ import annotations

from typing import final

from .resolver import ResolverSettingsError, ResolverUnavailableError, UserResolutionError

__all__ = ["OperatingSystemResolver"]


@final
class OperatingSystemResolver:
    """Asks the databases of users and groups of this machine.

    Raises:
        ResolverSettingsError: This operating system has no such databases.
    """

    __slots__ = ()

    def __init__(self) -> None:
        try:
            import grp  # noqa: F401, PLC0415 - not every system has it
            import pwd  # noqa: F401, PLC0415 - likewise
        except ImportError as error:
            problem = f"this operating system has no database of users (module {error.name!r})"
            raise ResolverSettingsError((problem,)) from error

    def groups_of(self, user: str) -> tuple[str, ...]:
        """Return the groups, the primary one first, the others by number; one without a name is its number.

        Raises:
            UserResolutionError: The user is not known here, or the databases cannot be read.
        """
        import os  # noqa: PLC0415 - beside the others
        import pwd  # noqa: PLC0415 - not every system has it

        try:
            account = pwd.getpwnam(user)
            others = set(os.getgrouplist(user, account.pw_gid)) - {account.pw_gid}
            names = [_group_name(number) for number in (account.pw_gid, *sorted(others))]
        except (KeyError, ValueError):  # A text that cannot be a name, say with a zero byte, is a ValueError.
            raise UserResolutionError(f"user {user!r} is not known to the operating system") from None
        except OSError as error:
            raise ResolverUnavailableError(
                f"user {user!r}: the operating system cannot be asked: {error}"
            ) from error
        return tuple(dict.fromkeys(names))


def _group_name(number: int) -> str:
    import grp  # noqa: PLC0415 - not every system has it

    try:
        return grp.getgrgid(number).gr_name
    except KeyError:
        return str(number)
