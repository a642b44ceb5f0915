"""Constants of Events that report that an operator reverted an edit of Argo CD's settings.

In, out: constants. Never: logic.
"""

from __future__ import annotations

from typing import Final

SETTINGS_RESTORED: Final = "SettingsRestored"  # the reason of such an Event
EDITED_KEY: Final = "data[{key}]"  # involvedObject.fieldPath: the key of the ConfigMap
