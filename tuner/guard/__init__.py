"""Checks of submitted input before TVM's parser, loader or code generator sees it."""
