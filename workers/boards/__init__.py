"""Boards: devices without Ray, and maybe without Python, behind TVM's RPC server."""
