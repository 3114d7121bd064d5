"""Who asks: the owner by the service's token, guests by links that read and change nothing."""
