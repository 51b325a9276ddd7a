"""Pictures and tables of the documentation, made from what the engine wrote."""
