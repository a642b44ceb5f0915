"""Lets the fork server find `hostile`: a pool hands its own sys.path on."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))
