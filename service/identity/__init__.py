"""Who asks: a user or a guest, by a token, a code or a browser's cookie; and what each may do."""
