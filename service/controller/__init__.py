"""The controller: claims jobs and runs their loops."""
