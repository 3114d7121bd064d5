"""Compiled models kept in a folder, so that the next process loads them without TVM's compiler."""
