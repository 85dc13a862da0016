"""Every error that SpecBuild raises on purpose.

    SpecBuildError                    exit 1
    ├── UsageError                    exit 2   the request cannot be understood or carried out as given
    │   ├── ConfigError
    │   └── RepoError
    │       ├── RepoNotFoundError
    │       │   ├── RevisionNotFoundError
    │       │   ├── PackageNotFoundError
    │       │   └── NoSourceDistributionError
    │       ├── RepoSchemeError
    │       ├── RepoAccessError
    │       ├── RepoToolMissingError
    │       ├── NotARepositoryError
    │       ├── EmptyRepoError
    │       ├── RepoTooLargeError
    │       └── HostileArchiveError
    ├── LockError                     exit 3   what is locked is not what is there
    ├── BuildFailed                   exit 1   no candidate verified: the repository's side
    ├── SandboxError                  exit 4   our machinery broke: never held against a repository
    │   ├── SandboxUnavailableError            this machine cannot fork sandboxes
    │   ├── BaseUnavailableError               a base cannot be had here
    │   ├── StoreError                         the store is damaged, locked or full
    │   └── EngineError                        a container engine refused or failed
    │       ├── EngineNotRunningError          nobody answers at its address
    │       ├── EngineAccessError              it does not let us in
    │       ├── EngineTooOldError              it does not speak what we need
    │       ├── EngineFullError                its disk is full
    │       ├── EngineBusyError                it did not answer in time
    │       └── PullLimitError                 a registry limits how much it may pull
    ├── BudgetSpentError              exit 5   the time or another budget ended first
    ├── DownloadError                 exit 1   a server's answer is final and cannot be used
    │   ├── RequestRefusedError                it said no (401, 403, 404, …)
    │   │   ├── RegistryDeniedError            a registry of images wants (other) credentials
    │   │   └── ImageNotFoundError             a registry or an engine has no such image
    │   ├── OversizeError                      it sends more than was allowed for
    │   └── IntegrityError                     it sent other content than was promised
    └── TransientError                exit 75  network or registry trouble: trying again may help
        ├── UnansweredError                    a server was not heard of in time
        ├── UnreachableError                   no connection to a server could be made
        └── RateLimitedError                   a server wants us to come back later

A message says what happened and why that usually is; `hint` says what to try.
"""

from __future__ import annotations


class SpecBuildError(Exception):
    """The base of every error here.

    `message` says what happened and why; `hint`, when there is one, what to try next.
    """

    exit_code: int = 1

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(SpecBuildError):
    """The request cannot be carried out as it was given."""

    exit_code = 2


class ConfigError(UsageError):
    """A setting has a value that makes no sense."""


class RepoError(UsageError):
    """The repository cannot be read."""


class RepoNotFoundError(RepoError):
    """Nothing is there under that path, address, name or revision."""


class RevisionNotFoundError(RepoNotFoundError):
    """The repository has no such tag, branch or commit."""


class PackageNotFoundError(RepoNotFoundError):
    """No index that the user has set knows the package, or that version of it."""


class NoSourceDistributionError(RepoNotFoundError):
    """The release is on the index, but only as wheels."""


class RepoSchemeError(RepoError):
    """The address is of a kind that cannot be fetched."""


class RepoAccessError(RepoError):
    """Something is there, but reading it is not allowed with the credentials at hand."""


class RepoToolMissingError(RepoError):
    """A program that is needed to fetch the repository is not installed."""


class NotARepositoryError(RepoError):
    """Something is there, but it is not a source tree."""


class EmptyRepoError(RepoError):
    """The source tree holds no files."""


class RepoTooLargeError(RepoError):
    """The source tree does not fit the free disk or the size limit."""


class HostileArchiveError(RepoError):
    """The archive reaches outside of itself or expands beyond all measure."""


class LockError(SpecBuildError):
    """What is locked is not what is there: another source tree, base or set of packages, or an altered lock."""

    exit_code = 3


class BuildFailed(SpecBuildError):  # noqa: N818 - an outcome, named as in the design
    """No candidate passed verification."""


class SandboxError(SpecBuildError):
    """Our own machinery broke; this says nothing about the repository."""

    exit_code = 4


class SandboxUnavailableError(SandboxError):
    """This machine cannot fork sandboxes."""


class BaseUnavailableError(SandboxError):
    """A base cannot be had on this machine."""


class StoreError(SandboxError):
    """The store is damaged, locked or full."""


class EngineError(SandboxError):
    """A container engine refused what was asked of it, or failed at it.

    `status` is that of its HTTP answer; 0 when there was none.
    """

    def __init__(self, message: str, *, hint: str = "", status: int = 0) -> None:
        super().__init__(message, hint=hint)
        self.status = status


class EngineNotRunningError(EngineError):
    """Nobody answers at the engine's address."""


class EngineAccessError(EngineError):
    """The engine's socket may not be used by this user, or its certificates do not fit."""


class EngineTooOldError(EngineError):
    """The engine's API lacks what is needed."""


class EngineFullError(EngineError):
    """The disk on which the engine keeps its data is full."""


class EngineBusyError(EngineError):
    """The engine did not answer in time."""


class PullLimitError(EngineError):
    """A registry lets the engine pull no more for a while."""


class BudgetSpentError(SpecBuildError):
    """The time limit or another budget ended before a candidate verified."""

    exit_code = 5


class DownloadError(SpecBuildError):
    """What a server answered is final and cannot be used."""


class RequestRefusedError(DownloadError):
    """The server refused the request for good."""

    def __init__(self, message: str, *, status: int, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.status = status


class RegistryDeniedError(RequestRefusedError):
    """A registry lets nobody, or not this user, do that."""


class ImageNotFoundError(RequestRefusedError):
    """There is no such image, or none for this platform."""


class OversizeError(DownloadError):
    """The answer is larger than was allowed for."""


class IntegrityError(DownloadError):
    """What was downloaded is not what was promised."""


class TransientError(SpecBuildError):
    """The network or a registry failed in a way that may pass."""

    exit_code = 75


class UnansweredError(TransientError):
    """A server could not be heard of, or stopped sending, within the time it was given."""


class UnreachableError(TransientError):
    """No connection to the server could be made."""


class RateLimitedError(TransientError):
    """The server answers that it was asked too much."""
