"""The checks of ``nod doctor``, one file for each part of Nod; ``bot/cli/doctor.py`` runs them."""
