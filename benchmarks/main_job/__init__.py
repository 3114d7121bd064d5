"""128 trials of a 128x128x128 fp32 product: Loopwright's whole service beside stock MetaSchedule."""
