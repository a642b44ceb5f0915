"""Ownership: which controller reconciles an Application, and how one takes over from another."""
