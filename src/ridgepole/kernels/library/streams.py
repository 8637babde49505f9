"""What the plain, wide and streaming variants of a kernel share."""

from __future__ import annotations

BLOCK = 256
ITEM = 4
"""Bytes of a float32."""
WIDE = 4
"""Elements of the widest access a GPU has, 16 bytes."""
LOADS = 4
"""Wide accesses of each input that a streaming thread has in flight before it uses the first."""
STREAMED = WIDE * LOADS
"""Elements of a streaming thread. Its accesses lie BLOCK apart, so that each stays coalesced."""
