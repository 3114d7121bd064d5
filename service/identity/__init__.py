"""The identity of a caller (a user or a guest, by token, code or cookie), and the caller's rights."""
