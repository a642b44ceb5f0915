"""`argosy demo`: a whole delivery on this machine, with failures to practise on."""
