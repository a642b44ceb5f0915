"""The features: one folder for each thing that a person can do with argosy. feature_table lists them."""
