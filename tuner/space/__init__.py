"""Design spaces: traces with sampling instructions whose decisions are left open."""
