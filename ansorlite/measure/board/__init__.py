"""Programs run on boards: machines with Python and numpy, which are reached through execnet. Nothing is compiled there."""
