"""Encryption of secrets in rows: tokens of sign-ins, of installations, of people's connections.

``NOD_SECRET_KEY`` has the keys, the newest first. Each value is encrypted for its own place (table, column,
key of the row), so a value that was copied to another row can't be read there. Without a key a value is
stored as plain text, which `encrypt_plain` encrypts at the next start with a key.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from sqlalchemy import Column, String, Table, select, update
from sqlmodel import Field, Session, SQLModel

from bot.errors import SecretLost
from bot.store.database import Database
from bot.store.tables.row import count_changed

SECRET = "secret"  # noqa: S105 - a word
"""The key in the ``info`` of a column that marks it as encrypted."""
_ENCRYPTED_PREFIX = "fernet:"
_KEYRING = "keyring"  # the key of the keyring in the ``info`` of a session


@dataclass(frozen=True)
class Keyring:
    """Encrypts and decrypts texts with the keys of ``NOD_SECRET_KEY``, the newest first."""

    keys: Sequence[str] = field(default=(), repr=False)

    def encrypt(self, text: str, place: str) -> str:
        """Return the text encrypted for its place; an empty text, or any text without a key, as it is."""
        if not text or not self.keys:
            return text
        token: bytes = self._fernets.encrypt(f"{place}\n{text}".encode())
        return _ENCRYPTED_PREFIX + token.decode()

    def decrypt(self, stored: str, place: str) -> str:
        """Return the text of a stored value. Raises SecretLost where no key opens the value at this place."""
        if not stored.startswith(_ENCRYPTED_PREFIX):
            return stored
        if not self.keys:
            raise SecretLost
        from cryptography.fernet import InvalidToken

        try:
            opened: bytes = self._fernets.decrypt(stored.removeprefix(_ENCRYPTED_PREFIX))
        except InvalidToken:
            raise SecretLost from None
        place_of_value, _, text = opened.decode().partition("\n")
        if place_of_value != place:
            raise SecretLost
        return text

    def opens(self, stored: str, place: str) -> bool:
        """Return whether a stored value can be read at this place."""
        try:
            self.decrypt(stored, place)
        except SecretLost:
            return False
        return True

    def is_newest(self, stored: str) -> bool:
        """Return whether a stored value is encrypted with the newest key."""
        if not self.keys or not stored.startswith(_ENCRYPTED_PREFIX):
            return False
        from cryptography.fernet import Fernet, InvalidToken

        try:
            Fernet(self.keys[0]).decrypt(stored.removeprefix(_ENCRYPTED_PREFIX))
        except InvalidToken:
            return False
        return True

    @cached_property
    def _fernets(self) -> Any:
        from cryptography.fernet import Fernet, MultiFernet  # few processes need it

        return MultiFernet([Fernet(key) for key in self.keys])


_NO_KEYS = Keyring()


def new_key() -> str:
    """Return a new random key."""
    from cryptography.fernet import Fernet

    return Fernet.generate_key().decode()


def give_keyring(database: Database, keyring: Keyring) -> None:
    """Have each session of the database encrypt and decrypt with these keys from now on."""
    database.info[_KEYRING] = keyring


def keyring_of(session: Session) -> Keyring:
    """Return the keys that a session carries; none for a session that its user made without a `Database`."""
    keyring: Keyring = session.info.get(_KEYRING, _NO_KEYS)
    return keyring


def make_secret_column(*, nullable: bool = False) -> Any:
    """Return the field of a column whose text is encrypted: by `encrypt_in`, and by `rotate` again."""
    return Field(default="", sa_column=Column(String, nullable=nullable, info={SECRET: True}))


def find_place(row: type[SQLModel], column: str, key: str) -> str:
    """Return the name of the place of a value: its table, its column, the key of its row."""
    return _name_place(str(row.__tablename__), column, key)


def _name_place(table: str, column: str, key: str) -> str:
    return f"{table}.{column} {key}"


def encrypt_in(session: Session, row: type[SQLModel], column: str, key: str, text: str) -> str:
    """Return the text, encrypted for a column of the row with that key."""
    return keyring_of(session).encrypt(text, find_place(row, column, key))


def decrypt_in(session: Session, row: type[SQLModel], column: str, key: str, stored: str) -> str:
    """Return the text of a value in a column of the row with that key. Raises SecretLost."""
    return keyring_of(session).decrypt(stored, find_place(row, column, key))


@dataclass(frozen=True, slots=True)
class StoredSecret:
    """A value of an encrypted column as it is stored."""

    table: Table
    column: str
    key: str
    stored: str

    @property
    def place(self) -> str:
        return _name_place(self.table.name, self.column, self.key)

    @property
    def is_encrypted(self) -> bool:
        return self.stored.startswith(_ENCRYPTED_PREFIX)


@dataclass(frozen=True, slots=True)
class Rotation:
    """The outcome of encrypting: the number of values that were encrypted, and the values no key opens."""

    encrypted: int
    lost: tuple[StoredSecret, ...]


@dataclass(frozen=True, slots=True)
class SecretsFound:
    """The numbers of values in plain text and of values under an older key, and the values no key opens."""

    plain: int
    older: int
    lost: tuple[StoredSecret, ...]


def encrypt_plain(session: Session) -> Rotation:
    """Encrypt values in plain text with the newest key; without a key nothing changes."""
    found = examine_secrets(session)
    return Rotation(_encrypt_again(session, lambda secret: not secret.is_encrypted), found.lost)


def rotate(session: Session) -> Rotation:
    """Encrypt every value with the newest key, so that older keys are no longer needed."""
    found = examine_secrets(session)
    keyring = keyring_of(session)
    return Rotation(_encrypt_again(session, lambda secret: not keyring.is_newest(secret.stored)), found.lost)


def examine_secrets(session: Session) -> SecretsFound:
    """Return the state of the stored values; nothing changes."""
    keyring = keyring_of(session)
    plain = 0
    older = 0
    lost: list[StoredSecret] = []
    for secret in list_secrets(session):
        if not secret.is_encrypted:
            plain += 1
        elif not keyring.opens(secret.stored, secret.place):
            lost.append(secret)
        elif not keyring.is_newest(secret.stored):
            older += 1
    return SecretsFound(plain, older, tuple(lost))


def list_secrets(session: Session) -> Iterator[StoredSecret]:
    """Yield every value of an encrypted column that is not empty, of the tables that this process knows."""
    for table in SQLModel.metadata.sorted_tables:
        columns = [column for column in table.columns if column.info.get(SECRET)]
        if not columns:
            continue
        [key] = table.primary_key.columns
        for row in session.execute(select(key, *columns)).mappings():
            for column in columns:
                if row[column]:
                    yield StoredSecret(table, column.name, str(row[key]), row[column])


def _encrypt_again(session: Session, is_due: Callable[[StoredSecret], bool]) -> int:
    """Encrypt with the newest key each stored value that is due and that a key opens; return how many."""
    keyring = keyring_of(session)
    encrypted = 0
    if not keyring.keys:
        return 0
    for secret in list(list_secrets(session)):
        if is_due(secret) and keyring.opens(secret.stored, secret.place):
            text = keyring.decrypt(secret.stored, secret.place)
            encrypted += _replace(session, secret, keyring.encrypt(text, secret.place))
    return encrypted


def _replace(session: Session, secret: StoredSecret, stored: str) -> int:
    """Replace a stored value, unless another transaction did; returns the number of changed rows."""
    [key] = secret.table.primary_key.columns
    column = secret.table.c[secret.column]
    statement = update(secret.table).where(key == secret.key, column == secret.stored)
    return count_changed(session.execute(statement.values({secret.column: stored})))
