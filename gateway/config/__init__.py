"""The configuration: read a YAML file and the environment into immutable values.

- `schema`: every setting, once. `sections`: the same by section, with readers and defaults.
- `settings`: all settings, and the route of each model. `values`: their parts. `names`: names and patterns of models.
- `loading`: from the file to the settings, or to a list of its problems. It uses `document` (YAML with lines), `kinds`, `readers` and `locations`
  (one value), and `conflicts` between values.
- `catalogue`: what is known of models without configuration.
- `exposure`: configurations that are dangerous. `report`: what `turnfold check` says.
- `reload`: read the file again when it changes.
- `generated`: the files that are written from the schema.
"""

from gateway.config.document import WrongValue
from gateway.config.exposure import address_of, dangers, is_loopback
from gateway.config.loading import Copy, SettingsError, copy_of, key_file, load, load_copy, losses, parse, parts_to_keep
from gateway.config.locations import checked_network, checked_url
from gateway.config.names import is_pattern
from gateway.config.settings import Route, Settings
from gateway.config.values import (
    Admin,
    ClientKey,
    Defaults,
    Fold,
    Log,
    Mode,
    Model,
    Observe,
    Server,
    StoreSettings,
    SummarySettings,
    Upstream,
)

__all__ = [
    "Admin",
    "ClientKey",
    "Copy",
    "Defaults",
    "Fold",
    "Log",
    "Mode",
    "Model",
    "Observe",
    "Route",
    "Server",
    "Settings",
    "SettingsError",
    "StoreSettings",
    "SummarySettings",
    "Upstream",
    "WrongValue",
    "address_of",
    "checked_network",
    "checked_url",
    "copy_of",
    "dangers",
    "is_loopback",
    "is_pattern",
    "key_file",
    "load",
    "load_copy",
    "losses",
    "parse",
    "parts_to_keep",
]
