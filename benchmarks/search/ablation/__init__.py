"""Ablation of the search: every mechanism taken out once, beside repeated references."""
