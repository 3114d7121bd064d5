"""The gate before TVM: what a user sends is checked here before TVM's parser, loader or code generator sees it."""
