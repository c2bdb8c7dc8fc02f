from typing import Any, Callable, Dict, List, Optional, Tuple, Union, final

from ._source import File

@final
class Handle:
    @property
    def size(self) -> int: ...
    @property
    def info(self) -> Dict[str, Any]: ...
    def pread(self, n: int, offset: int) -> bytes: ...
    def pwrite(self, data: bytes, offset: int) -> None: ...
    def read(self, n: int) -> bytes: ...
    def write(self, data: bytes) -> int: ...
    def seek(self, offset: int, whence: int) -> int: ...
    def flush(self) -> None: ...
    def close(self) -> None: ...

def open(
    source: Union[str, File],
    secret: Union[None, str, Tuple[str, bytearray]],
    write: bool,
    format: Optional[str],
    header: Union[None, str, File],
    *,
    cipher: Optional[str],
    key_size: Optional[int],
    hash: Optional[str],
    offset: Optional[int],
    skip: Optional[int],
    size: Optional[int],
    sector_size: Optional[int],
    iv_large_sectors: bool,
    key_slot: Optional[int],
    tcrypt_hidden: bool,
    tcrypt_backup: bool,
    tcrypt_system: bool,
    veracrypt_pim: Optional[int],
    keyfiles: Optional[List[str]],
    key_derivation: Optional[str],
    experimental: bool,
    allow: list[str],
) -> Handle: ...
def change_keys(
    path: str,
    secret: Union[str, Tuple[str, bytearray]],
    new: Union[None, str, Tuple[str, bytearray]],
    keeps_old: bool,
    options: Dict[str, Any],
) -> int: ...
def create(
    path: str,
    secret: Union[None, str, Tuple[str, bytearray]],
    volume_key: Union[None, str, Tuple[str, bytearray]],
    options: Dict[str, Any],
) -> Dict[str, Any]: ...
def create_hidden(
    path: str,
    size: int,
    outer: Tuple[Union[str, Tuple[str, bytearray]], Dict[str, Any]],
    hidden: Tuple[Union[str, Tuple[str, bytearray]], Dict[str, Any]],
) -> int: ...
def reencrypt(
    path: str,
    change: str,
    secret: Union[str, Tuple[str, bytearray]],
    kept: List[Union[str, Tuple[str, bytearray]]],
    options: Dict[str, Any],
) -> None: ...
def convert(path: str, options: Dict[str, Any]) -> bool: ...
def resize(
    path: str,
    to: int,
    secret: Union[None, str, Tuple[str, bytearray]],
    options: Dict[str, Any],
) -> int: ...
def backup_header(path: str, output: str, options: Dict[str, Any]) -> str: ...
def mend_header(
    path: str,
    input: Optional[str],
    secret: Union[None, str, Tuple[str, bytearray]],
    options: Dict[str, Any],
) -> str: ...
def change_password(
    path: str,
    secret: Union[str, Tuple[str, bytearray]],
    new: Union[str, Tuple[str, bytearray]],
    options: Dict[str, Any],
) -> None: ...
def header(source: Union[str, File], format: Optional[str]) -> Dict[str, Any]: ...
def formats() -> List[str]: ...
def run(
    plan: str,
    *,
    at: Optional[str],
    size: Optional[int],
    repetitions: Optional[int],
    trial_seconds: Optional[float],
    systems: List[str],
    ciphers: List[str],
    seed: Optional[int],
    progress: Optional[Callable[[str, int, int], Any]],
) -> Tuple[str, List[Dict[str, Any]]]: ...
